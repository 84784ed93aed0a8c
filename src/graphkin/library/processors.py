"""Which processors a model was trained on, and a warning for code of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphkin.library.models import SearchModel
    from graphkin.results.document import FunctionResult


def known_processors(model: SearchModel) -> tuple[str, ...] | None:
    """``processors`` of what the embedder records of its training; None where it has no such list.

    They are named as :attr:`graphkin.binaries.Function.architecture` does. The list is part of
    ``trained_on`` in config.json, or of its task.
    """
    record = model.embedder.trained_on or {}
    listed = record.get("processors", record.get("task", {}).get("processors"))
    return None if listed is None else tuple(map(str, listed))


def unknown_processors(model: SearchModel, architectures: Iterable[str]) -> list[str]:
    """Those of some processors that a model was not trained on, each once; none if nobody knows."""
    known = known_processors(model)
    if known is None:
        return []
    return sorted({name for name in architectures if name} - set(known))


def processor_warnings(model: SearchModel, architectures: Iterable[str]) -> tuple[str, ...]:
    """A sentence on functions for processors that a model was not trained on, if there are any.

    A model without a record of its processors gets one as well: nobody knows what it can read.
    """
    if known_processors(model) is None:
        names = sorted({name for name in architectures if name})
        if not names:
            return ()
        missing = (
            f"the model {model.model_id.name!r} does not say which processors it was trained on: "
            f"if code for {_listed(names)} was not among them, its distances and probabilities "
            "mean little; the model 'functions' has such a list"
        )
        return (missing,)
    unknown = unknown_processors(model, architectures)
    if not unknown:
        return ()
    known = _listed(known_processors(model) or ())
    warning = (
        f"the model {model.model_id.name!r} was trained on code for {known}, not for "
        f"{_listed(unknown)}: its distances and probabilities mean little there; use a model that "
        "was trained on such code"
    )
    return (warning,)


def hit_processors(results: Iterable[FunctionResult]) -> set[str]:
    """Those of the hits: a model can misread them as well as the queries."""
    return {hit.architecture for result in results for hit in result.hits}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "no processor"
