"""Checkpoints of a training run: weights, optimiser state and progress in one safetensors file."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from graphkin._support.files import write_atomically
from graphkin._support.settings import check_types
from graphkin.errors import FormatError, TrainingError
from graphkin.learning.training.config import ADDED_SETTINGS
from graphkin.learning.training.optimizer import FlatOptimizer
from graphkin.models.config import ModelConfig
from graphkin.models.saving import ADDED_OPTIONS

FORMAT = "graphkin-checkpoint 1"


@dataclass
class RunState:
    """How far a run has come, beyond its weights."""

    step: int = 0
    """Steps done."""
    best: float = float("-inf")
    """Best validation score so far."""
    stale: int = 0
    """Evaluations since the best one."""
    seconds: float = 0.0
    """Time spent training, over all sittings."""
    log_bytes: int = 0
    """Length of the log at this checkpoint: what lies beyond it is written again."""
    validation: dict[str, float] = field(default_factory=dict)
    """The latest validation metrics."""
    losses: list[float] = field(default_factory=list)
    """Losses since the last report, which the next one averages."""


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: FlatOptimizer,
    state: RunState,
    specification: dict[str, Any],
) -> None:
    """Replaces the checkpoint; the old one stays intact until the new one is complete."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors.update({f"optimizer.{name}": tensor for name, tensor in optimizer.state().items()})
    run = json.dumps({"state": asdict(state), "specification": specification})
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"format": FORMAT, "run": run, "checksum": _checksum(run, plain)}
    write_atomically(path, safetensors.torch.save(plain, metadata))


def load_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: FlatOptimizer,
    specification: dict[str, Any],
) -> RunState:
    """Puts model and optimiser back where they were.

    Raises:
        FormatError: where the file is damaged or something else, or holds NaN or infinity.
        TrainingError: where it belongs to a run of another specification.
    """
    state, saved, tensors = _read(path)
    _check_same(saved, specification, path)
    weights = _part(tensors, "model.")
    if {name: t.shape for name, t in weights.items()} != {
        name: t.shape for name, t in model.state_dict().items()
    }:
        raise TrainingError(f"{path} holds the weights of another model; start a new run")
    moments = _part(tensors, "optimizer.")
    if {n: t.shape for n, t in moments.items()} != {
        n: t.shape for n, t in optimizer.state().items()
    }:
        raise FormatError(f"{path} is damaged: its optimiser state does not fit the model")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise FormatError(
                f"{path} is damaged: {name} holds NaN or infinity; start a new run, or restore it "
                "from a copy"
            )
    model.load_state_dict(weights)
    optimizer.load_state(moments)
    return state


def _read(path: Path) -> tuple[RunState, dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FormatError(f"cannot read the checkpoint {path}: {error}") from error
    if metadata.get("format") != FORMAT:
        raise FormatError(
            f"{path} is not a checkpoint that this graphkin reads: {metadata.get('format')!r}, not "
            f"{FORMAT!r}; go on with the graphkin that wrote it"
        )
    if unknown := sorted(set(metadata) - {"format", "run", "checksum"}):
        raise FormatError(f"{path} is damaged: it has an unknown entry {unknown[0]!r}")
    # Checkpoints of the first versions have none.
    expected, actual = metadata.get("checksum"), _checksum(metadata.get("run", ""), tensors)
    if expected is not None and expected != actual:
        raise FormatError(
            f"{path} is damaged: its checksum is {actual}, expected {expected}; start a new run, "
            "or restore it from a copy"
        )
    try:
        document = json.loads(metadata["run"])
        state, specification = RunState(**document["state"]), document["specification"]
        check_types(state)
        tables = all(isinstance(table, dict) for table in specification.values())
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is damaged: its record of the run is broken") from error
    if not tables:
        raise FormatError(f"{path} is damaged: its record of the run is broken")
    return state, specification, tensors


def _checksum(run: str, tensors: Mapping[str, Tensor]) -> str:
    """CRC-32 of all that a checkpoint holds, in hexadecimal."""
    checksum = zlib.crc32(run.encode())
    for name, tensor in sorted(tensors.items()):
        checksum = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), checksum)
        checksum = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, checksum)
    return f"{checksum:08x}"


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _check_same(saved: dict[str, Any], expected: dict[str, Any], path: Path) -> None:
    """Names the first setting in which two runs differ."""
    defaults = ModelConfig().to_dict()
    added = {name: defaults[name] for name in ADDED_OPTIONS if name in expected.get("model", {})}
    saved = {**saved, "model": {**added, **saved.get("model", {})}}
    ours = expected.get("training", {})
    settings = {name: value for name, value in ADDED_SETTINGS.items() if name in ours}
    saved["training"] = {**settings, **saved.get("training", {})}
    task = saved.get("task", {})
    if "distances" in task and task["distances"] is None:
        # Once, every run decided anew by its values whether they are distances.
        saved["task"] = {**task, "distances": expected.get("task", {}).get("distances")}
    for table in sorted({*saved, *expected}):
        ours, theirs = expected.get(table, {}), saved.get(table, {})
        for key in sorted({*ours, *theirs}):
            if ours.get(key) != theirs.get(key):
                raise TrainingError(
                    f"{path} belongs to another run: its {table}.{key} is {theirs.get(key)!r}, "
                    f"this run's is {ours.get(key)!r}; use the same settings, or another folder"
                )
