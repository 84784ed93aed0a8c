"""What a person put into a model: modules and parameters that its configuration does not make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from graphkin.models.saving import CLASSES

if TYPE_CHECKING:
    from graphkin.models.model import GraphModel

Part = nn.Module | Tensor


def configured_class(kind: type[Any]) -> type[Any]:
    """The class of graphkin that a class is, or is derived from."""
    package = __name__.partition(".")[0]
    return next(
        base
        for base in kind.__mro__
        if base.__name__ in CLASSES and base.__module__.partition(".")[0] == package
    )


def own_parts(model: GraphModel) -> dict[str, Part]:
    """By path, the outermost parts of a model that its configuration would make otherwise."""
    with torch.device("meta"):
        made = configured_class(type(model))(model.config)
    return dict(_differing(model, made, ""))


def put_back(model: nn.Module, parts: Mapping[str, Part]) -> None:
    """Sets parts at their paths."""
    for path, part in parts.items():
        home, _, name = path.rpartition(".")
        owner = model.get_submodule(home)
        if isinstance(part, nn.Module | nn.Parameter):
            setattr(owner, name, part)
        else:
            owner.register_buffer(name, part)


def _differing(module: nn.Module, made: nn.Module, prefix: str) -> Iterator[tuple[str, Part]]:
    tensors = _tensors(made)
    for name, tensor in _tensors(module).items():
        if name not in tensors:
            yield prefix + name, tensor
    children = dict(made.named_children())
    for name, child in module.named_children():
        other = children.get(name)
        if other is None or type(child) is not type(other) or _shapes(child) != _shapes(other):
            yield prefix + name, child
        else:
            yield from _differing(child, other, f"{prefix}{name}.")


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a module itself."""
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return dict(own)


def _shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in _tensors(module).items()}
