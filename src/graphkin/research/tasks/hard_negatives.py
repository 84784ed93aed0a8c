"""Hard negatives: classes that are easily confused, by what can be counted or by codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from graphkin._support.files import PathLike, read_file, write_atomically
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs import Graph
from graphkin.models import GraphEmbedder
from graphkin.models.codes import pack_codes
from graphkin.models.model import GraphModel

if TYPE_CHECKING:
    from graphkin.research.tasks.functions.task import FunctionTask

NEIGHBOURS = 20
SEARCHED = 120
"""Graphs among which those of other groups are looked for."""
CODES_AT_ONCE = 1024


def nearest_classes(
    graphs: Sequence[Graph], classes: Sequence[NDArray[np.int64]], num_tokens: int
) -> NDArray[np.int64]:
    """(C, K) the classes most like each one in the mean of what its graphs count to.

    Args:
        graphs: by graph number.
        classes: the graph numbers of each class, at least one, of at least two classes.
        num_tokens: tokens that nodes may have, the unknown one included.
    """
    _check(len(classes))
    counts = np.array(
        [
            np.mean([_counts(graphs[int(number)], num_tokens) for number in members], axis=0)
            for members in classes
        ]
    )
    spread = counts.std(axis=0)
    scaled = (counts - counts.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return _nearest(scaled)


def nearest_by_codes(codes: NDArray[np.uint8], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """(G, K) the graphs of other groups whose codes are nearest to that of each; -1 for none.

    What a search for a graph would find wrongly.

    Args:
        codes: (G, B)
        groups: (G,) graphs of one group are not confused with each other.
    """
    import faiss

    _check(len(np.unique(groups)))
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(np.ascontiguousarray(codes))
    confused = np.full((len(codes), NEIGHBOURS), -1, dtype=np.int64)
    for start in range(0, len(codes), CODES_AT_ONCE):
        part = slice(start, start + CODES_AT_ONCE)
        _, nearest = index.search(codes[part], min(SEARCHED, len(codes)))
        for row, candidates in enumerate(nearest, start=start):
            others = candidates[groups[candidates] != groups[row]][:NEIGHBOURS]
            confused[row, : len(others)] = others
    return confused


def with_hard_negatives(
    task: FunctionTask,
    model: GraphModel,
    file: Path,
    progress: Callable[[int, int], None] | None = None,
) -> FunctionTask:
    """The task with hard negatives that the codes of a model choose.

    Nothing changes where the task draws no hard negatives, or the model gives no codes.

    Args:
        task: whose training functions are encoded.
        model: an embedder with Hamming codes.
        file: where the codes are kept, or were kept before.
        progress: called as ``progress(done, total)``, in graphs encoded.
    """
    codable = isinstance(model, GraphEmbedder) and model.config.similarity == "hamming"
    if not task.hard_negatives or task.codes is not None or not codable:
        return task
    if not file.exists():
        assert isinstance(model, GraphEmbedder)
        graphs, numbers = task.numbered_graphs("training")
        own = pack_codes(model.encode(graphs, progress=progress))
        codes = np.zeros((len(task.data.corpus.store), own.shape[1]), dtype=np.uint8)
        codes[numbers] = own
        content = BytesIO()
        np.save(content, codes)
        write_atomically(file, content.getvalue())
    return replace(task, codes=str(file))


def read_codes(path: PathLike, count: int) -> NDArray[np.uint8]:
    """The codes of a numpy file, one for each of ``count`` graphs."""
    try:
        codes: NDArray[np.uint8] = np.load(BytesIO(read_file(path)), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(f"{path} is not a file of codes: {error}") from error
    if codes.ndim != 2 or codes.dtype != np.uint8 or len(codes) != count:
        raise FormatError(
            f"{path} must hold a code of bytes for each of {count} graphs, not "
            f"{codes.dtype} of shape {codes.shape}"
        )
    return codes


def _check(classes: int) -> None:
    if classes < 2:
        raise ConfigError(f"{classes} classes: too few to be confused with each other")


def _nearest(features: NDArray[np.float64]) -> NDArray[np.int64]:
    """(C, K) the rows nearest to each row, without itself."""
    neighbours = min(NEIGHBOURS, len(features) - 1)
    search = NearestNeighbors(n_neighbors=neighbours).fit(features)
    nearest: NDArray[np.int64] = search.kneighbors(return_distance=False).astype(np.int64)
    return nearest


def _counts(graph: Graph, num_tokens: int) -> NDArray[np.float64]:
    tokens = np.zeros(num_tokens)
    if graph.node_tokens is not None:
        tokens += np.bincount(graph.node_tokens.ids, minlength=num_tokens)
    shape = [graph.num_nodes, graph.num_edges]
    # Logarithms: what matters is how many times more, not how many more.
    logarithms: NDArray[np.float64] = np.log1p(np.concatenate([shape, tokens]))
    return logarithms
