"""What was measured: one JSON file for each trained model, read and written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphkin._support.files import read_file, write_atomically
from graphkin._support.settings import build, check_types
from graphkin.errors import FormatError
from graphkin.research.reproduce.sections import Variant

FORMAT = "graphkin-result 1"
SUBFOLDER = "reproduce"
"""Of a folder of results: where the files of this format are."""


@dataclass(frozen=True)
class Measurement:
    """A value for a cell of a table."""

    table: str
    row: str
    model: str
    metric: str
    value: float
    """From 0 to 1."""
    data: str
    """SHA-256 of the evaluation set."""

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.value <= 1:
            raise ValueError(f"the value of {self.row}, {self.metric} must lie in 0..1")


@dataclass(frozen=True)
class Result:
    """What one model gave, and how it was made."""

    name: str
    group: str
    """The name without the seed."""
    variant: Variant
    seed: int | None
    """None where nothing was drawn."""
    command: str
    cells: tuple[Measurement, ...]
    steps: int | None = None
    """Of training; None where there was none."""
    seconds: float | None = None
    """Of training, and not of evaluation."""
    config: dict[str, Any] = field(default_factory=dict)
    """The tables model, training and task, as a checkpoint has them."""
    versions: dict[str, str] = field(default_factory=dict)
    cases: list[dict[str, Any]] | None = None
    """Attention of single pairs, for pictures."""

    def __post_init__(self) -> None:
        check_types(self)


def result_file(folder: Path, name: str) -> Path:
    """Where a folder of results keeps that of an experiment."""
    return folder / SUBFOLDER / f"{name}.json"


def write_result(result: Result, folder: Path) -> Path:
    """Writes a result into a folder of results; returns the file."""
    path = result_file(folder, result.name)
    document = {"format": FORMAT, **asdict(result)}
    if result.cases is None:
        del document["cases"]
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode())
    return path


def read_result(path: Path) -> Result:
    """A result that :func:`write_result` wrote."""
    document = read_document(path)
    if document.pop("format", None) != FORMAT:
        raise FormatError(f"{path} is no {FORMAT} file")
    try:
        cells = tuple(build(Measurement, cell, "cell") for cell in document["cells"])
        return build(Result, {**document, "cells": cells}, "result")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is no result of an experiment: {error}") from error


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        document = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise FormatError(f"{path} must hold a JSON object")
    return document
