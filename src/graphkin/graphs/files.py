"""Reading and writing whole files, with errors that name them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from graphkin.errors import FormatError, GraphError, StorageError
from graphkin.graphs.attributes import AttributedGraph, AttributeNames
from graphkin.graphs.graph import Graph

PathLike = str | os.PathLike[str]


def read_file(path: PathLike) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error


def write_file(path: PathLike, text: str) -> None:
    """Writes beside the file and renames, so that a failure leaves what was there before."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        os.replace(part, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def graph_of_file(record: AttributedGraph, names: AttributeNames, path: PathLike) -> Graph:
    """The graph that a file holds; what is wrong with it is blamed on the file."""
    try:
        return record.to_graph(names)
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from error
