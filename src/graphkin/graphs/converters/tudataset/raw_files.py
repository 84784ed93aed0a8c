"""The files of one TUDataset as checked arrays, from a folder or a zip."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError

Index = NDArray[np.int64]

MAX_BYTES = 2 << 30
MAX_ONE_HOT_CELLS = 1 << 28
_MAX_ID = np.iinfo(np.int32).max
_PARTS = (
    "A",
    "graph_indicator",
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
)


class TUFiles:
    """The parts of one dataset as checked arrays; every complaint names file and line."""

    def __init__(self, source: str, name: str, parts: Mapping[str, bytes]) -> None:
        self.source, self.name, self.parts = source, name, parts

    @classmethod
    def load(cls, path: Path, max_bytes: int) -> TUFiles:
        """Reads into memory those of the parts that exist; nothing is unpacked to disk."""
        return cls(str(path), *_load(path, max_bytes))

    def error(self, part: str, problem: str, row: int | None = None) -> FormatError:
        line = "" if row is None else f", line {row + 1}"
        return FormatError(f"{self.source}: {self.name}_{part}.txt{line}: {problem}")

    def required(self, part: str, columns: int) -> Index:
        """(rows, columns) int64."""
        if part not in self.parts:
            raise FormatError(
                f"{self.source} has no {self.name}_{part}.txt, which every TUDataset has; "
                "download it again"
            )
        table = self.table(part, np.int64)
        if len(table) == 0:
            return np.zeros((0, columns), dtype=np.int64)
        if table.shape[1] != columns:
            raise self.error(part, f"needs {columns} columns, has {table.shape[1]}")
        return table

    def optional(self, part: str, dtype: type[Any], count: int, item: str) -> NDArray[Any] | None:
        """(count, columns), or None where the dataset has no such part."""
        if part not in self.parts:
            return None
        table = self.table(part, dtype)
        if len(table) != count:
            raise self.error(part, f"has {len(table)} lines for {count} {item}; is it cut short?")
        return table

    def table(self, part: str, dtype: type[Any]) -> NDArray[Any]:
        data = self.parts[part]
        if not data.strip():
            return np.zeros((0, 1), dtype=dtype)
        try:
            text = data.decode("ascii")
            table = np.loadtxt(
                io.StringIO(text), dtype=dtype, delimiter=",", comments=None, ndmin=2
            )
        except UnicodeDecodeError as error:
            raise self.error(part, f"is not text: {error}") from error
        except (ValueError, OverflowError) as error:
            row = _first_bad_row(text, int if dtype is np.int64 else float)
            raise self.error(part, f"cannot be read as numbers: {error}", row) from error
        if dtype is not np.int64 and not np.isfinite(table).all():
            row = int(np.argmin(np.isfinite(table).all(axis=1)))
            raise self.error(part, f"values must be finite, got {table[row].tolist()}", row)
        return table

    def graph_labels(self) -> NDArray[Any]:
        part = "graph_labels" if "graph_labels" in self.parts else "graph_attributes"
        if part not in self.parts:
            raise FormatError(
                f"{self.source} has neither {self.name}_graph_labels.txt nor "
                f"{self.name}_graph_attributes.txt; download it again"
            )
        table = self.table(part, np.int64 if part == "graph_labels" else np.float64)
        if len(table) == 0:
            raise self.error(part, "is empty; a dataset has at least one graph")
        return table[:, 0] if table.shape[1] == 1 else table

    def check_indicator(self, indicator: Index, num_graphs: int) -> None:
        wrong = (indicator < 0) | (indicator >= num_graphs)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self.error(
                "graph_indicator",
                f"graph {indicator[row] + 1}, but the labels make it 1..{num_graphs}",
                row,
            )
        empty = np.bincount(indicator, minlength=num_graphs) == 0
        if empty.any():
            graph = int(np.argmax(empty)) + 1
            raise self.error(
                "graph_indicator",
                f"graph {graph} of {num_graphs} has no nodes; is the file cut short?",
            )

    def check_edges(self, edges: Index, indicator: Index) -> None:
        wrong = ((edges < 0) | (edges >= len(indicator))).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self.error(
                "A", f"edge {(edges[row] + 1).tolist()}, but nodes are 1..{len(indicator)}", row
            )
        across = indicator[edges[:, 0]] != indicator[edges[:, 1]]
        if across.any():
            row = int(np.argmax(across))
            raise self.error("A", f"edge {(edges[row] + 1).tolist()} joins two graphs", row)

    def node_input(self, count: int) -> dict[str, NDArray[Any]]:
        """``node_features`` (N, F), ``node_tokens`` (N, K) or nothing."""
        features = self.optional("node_attributes", np.float32, count, "nodes")
        labels = self.optional("node_labels", np.int64, count, "nodes")
        if features is not None:
            return {"node_features": self.with_one_hot(features, labels, "node_labels")}
        if labels is None:
            return {}
        columns: list[Index] = []
        for column in labels.T:
            below = int(columns[-1].max()) + 1 if columns else 0
            columns.append(self.from_zero(column, "node_labels") + below)
        return {"node_tokens": self.from_zero(np.stack(columns, axis=1), "node_labels")}

    def edge_input(self, count: int) -> dict[str, NDArray[Any]]:
        """``edge_features`` (E, F), ``edge_types`` (E,) or nothing."""
        features = self.optional("edge_attributes", np.float32, count, "edges")
        labels = self.optional("edge_labels", np.int64, count, "edges")
        if features is not None:
            return {"edge_features": self.with_one_hot(features, labels, "edge_labels")}
        if labels is None:
            return {}
        if labels.shape[1] > 1:
            types = np.unique(labels, axis=0, return_inverse=True)[1].reshape(-1)
        else:
            types = self.from_zero(labels[:, 0], "edge_labels")
        return {"edge_types": types}

    def from_zero(self, labels: Index, part: str) -> Index:
        """Labels as ids >= 0: as they are, or shifted where the lowest is below 0."""
        lowest, highest = int(labels.min(initial=0)), int(labels.max(initial=0))
        if highest - lowest > _MAX_ID:
            raise self.error(part, f"labels {lowest}..{highest} do not fit {_MAX_ID} ids")
        return labels - lowest

    def with_one_hot(self, features: NDArray[Any], labels: Index | None, part: str) -> NDArray[Any]:
        blocks = [features]
        for column in () if labels is None else labels.T:
            values, codes = np.unique(column, return_inverse=True)
            if len(values) * len(column) > MAX_ONE_HOT_CELLS:
                raise self.error(part, f"has {len(values)} values, too many for one-hot columns")
            block = np.zeros((len(column), len(values)), dtype=np.float32)
            block[np.arange(len(column)), codes] = 1
            blocks.append(block)
        return np.concatenate(blocks, axis=1)


def _load(path: Path, max_bytes: int) -> tuple[str, dict[str, bytes]]:
    """The name of the dataset, and the bytes of those of its parts that exist."""
    if not path.exists():
        raise FormatError(f"{path} does not exist; give the folder or zip of a TUDataset")
    try:
        return (_load_folder if path.is_dir() else _load_zip)(path, max_bytes)
    except FormatError:
        raise
    except Exception as error:  # zipfile and its decompressors raise a dozen kinds
        raise FormatError(f"cannot read {path} as a folder or zip: {error}") from error


def _load_folder(path: Path, max_bytes: int) -> tuple[str, dict[str, bytes]]:
    files = {file.name: file for file in sorted(path.iterdir()) if file.is_file()}
    name = _dataset_name(path, list(files))
    parts = {part: files[f"{name}_{part}.txt"] for part in _PARTS if f"{name}_{part}.txt" in files}
    _check_size(path, sum(file.stat().st_size for file in parts.values()), max_bytes)
    return name, {part: file.read_bytes() for part, file in parts.items()}


def _load_zip(path: Path, max_bytes: int) -> tuple[str, dict[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        files = {file.filename: file for file in archive.infolist()}
        name = _dataset_name(path, list(files))
        parts = {
            part: files[f"{name}_{part}.txt"] for part in _PARTS if f"{name}_{part}.txt" in files
        }
        # zipfile reads no more of a member than its header says.
        _check_size(path, sum(file.file_size for file in parts.values()), max_bytes)
        contents = {part: archive.read(file) for part, file in parts.items()}
    return name.rsplit("/", 1)[-1], contents


def _dataset_name(path: Path, files: Sequence[str]) -> str:
    names = [file.removesuffix("_A.txt") for file in files if file.endswith("_A.txt")]
    names = [name for name in names if not name.startswith("__MACOSX")]
    if len(names) != 1:
        problem = f"holds several datasets ({', '.join(names)})" if names else "has no *_A.txt"
        raise FormatError(f"{path} {problem}; give the folder or zip of one TUDataset")
    return names[0]


def _check_size(path: Path, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise FormatError(
            f"{path} unpacks to {size:,} bytes, past the limit of {max_bytes:,}; pass a larger "
            "max_bytes if you trust it"
        )


def _first_bad_row(text: str, convert: Callable[[str], float]) -> int | None:
    """The first line that is not numbers, or of another width than the first."""
    width = None
    for row, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        cells = line.split(",")
        width = width or len(cells)
        try:
            numbers = [convert(cell) for cell in cells]
        except ValueError:
            return row
        if len(numbers) != width:
            return row
    return None
