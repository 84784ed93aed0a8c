"""Synthetic graph edit distance: is a graph one edge substitution away, or two?

Training batches come from arrays alone: many graphs are drawn at once as padded boolean
matrices, and packed without a Graph object or a loop over graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.graphs.graph import running_offsets
from graphkin.learning.datasets.splits import check_recipe, check_split
from graphkin.learning.task import EvaluationSet, Mode, Recipe, Split
from graphkin.models.config import STRONG

Bools = NDArray[np.bool_]
Index = NDArray[np.int64]

STREAMS = {"training": 0, "validation": 1, "test": 2}
CHUNK_SLOTS = 1 << 18
"""Node pairs that are drawn at once: enough to hide numpy's overhead, and still in cache."""
EVALUATION_BLOCK = 100
"""Examples of an evaluation set that are drawn at once; even, so that labels go on in turn."""
MAX_DRAWS = 20_000
"""Graphs drawn in a row without one that serves before the setting counts as hopeless."""


STRONG_MODELS: dict[str, dict[str, Any]] = {
    "gnn": {"message_norm": "graph", "readout": "nodes"},
    "gmn": {"message_norm": "graph", "similarity": "alignment"},
}
"""What our models change in the paper's architecture, by name."""
STRONG_TRAINING: dict[str, Any] = {"learning_rate": 2e-3, "evaluate_every": 500}


@dataclass(frozen=True)
class EditTask:
    """Pairs (G1, G2) where G2 is G1 after k edge substitutions, with its nodes permuted.

    G1 is a random graph G(n, p), drawn anew until it is connected. A substitution removes
    an edge of G1 and adds one that G1 does not have. k is ``positive_edits`` for similar
    pairs and ``negative_edits`` for dissimilar ones. G2 need not be connected.

    Args:
        nodes: range of n, both ends included; n is uniform in it for each example.
        p: range of the edge probability, uniform for each example.
        positive_edits: substitutions between similar graphs, k_p.
        negative_edits: substitutions between dissimilar graphs, k_n.
        seed: seed of the training data. The evaluation sets do not depend on it.
        evaluation_size: pairs, and triplets, of an evaluation set.

    Example:
        >>> task = EditTask(nodes=(20, 20), p=(0.2, 0.2))
        >>> task.batch(step=0, size=20, mode="pairs").num_pairs
        20
    """

    nodes: tuple[int, int] = (20, 20)
    p: tuple[float, float] = (0.2, 0.2)
    positive_edits: int = 1
    negative_edits: int = 2
    seed: int = 0
    evaluation_size: int = 1000

    def __post_init__(self) -> None:
        low, high = _range(self.nodes, "nodes")
        _at_least(2, low, "nodes")
        _at_least(2, high, "nodes")
        p_low, p_high = _range(self.p, "p")
        if not 0 < p_low <= p_high < 1:
            raise ConfigError(f"p must lie strictly between 0 and 1, got {self.p}")
        _at_least(0, self.positive_edits, "positive_edits")
        _at_least(self.positive_edits + 1, self.negative_edits, "negative_edits")
        _at_least(0, self.seed, "seed")
        _at_least(1, self.evaluation_size, "evaluation_size")
        # Tuples of Python's own numbers, whatever was given: hashable, and ready for JSON.
        object.__setattr__(self, "nodes", (int(low), int(high)))
        object.__setattr__(self, "p", (float(p_low), float(p_high)))
        for name in ("positive_edits", "negative_edits", "seed", "evaluation_size"):
            object.__setattr__(self, name, int(getattr(self, name)))
        edits, slots = self.negative_edits, _slots(int(low))
        if max(edits, low - 1) + edits > slots:
            raise ConfigError(
                f"negative_edits={edits} is impossible at nodes={low}: of {slots} node pairs, "
                f"{edits} must be edges to remove and {edits} others absent, in a connected "
                f"graph; use larger graphs or fewer edits"
            )

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`.

        Pairs are similar and dissimilar in turn.
        """
        _at_least(0, step, "step")
        _at_least(1, world, "world")
        _at_least(world, size, "size")
        if not 0 <= rank < world:
            raise ConfigError(f"rank must lie in 0..{world - 1}, got {rank}")
        steps = max(1, CHUNK_SLOTS // (size * _slots(self.nodes[1])))
        examples = _chunk(self, step // steps, steps * size, mode)
        start = step % steps * size
        part = slice(start + rank, start + size, world)
        graphs = _packed(examples.adjacency[part], examples.nodes[part])
        labels = _labels(part.start, part.stop, world) if mode == "pairs" else None
        return PairBatch.interleaved(graphs, labels)

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """The fixed pairs and triplets of a split: the same for every ``seed``."""
        check_split(split)
        pairs = _graphs(self, split, "pairs")
        triplets = _graphs(self, split, "triplets")
        return EvaluationSet(
            pairs=tuple((a, b) for a, b in pairs),
            labels=_labels(0, self.evaluation_size),
            triplets=tuple((a, b, c) for a, b, _, c in triplets),
        )

    def recipe(self, model: str, kind: str = "paper") -> Recipe:
        """The defaults of model and training, which are for this task; ``strong`` is our own."""
        check_recipe(kind, ("paper", "strong"))
        if kind == "paper":
            return Recipe()
        return Recipe(STRONG_MODELS.get(model.removesuffix(STRONG), {}), STRONG_TRAINING)

    def describe(self) -> dict[str, Any]:
        """The parameters, ready for JSON."""
        return {"task": "edits", **asdict(self), "nodes": list(self.nodes), "p": list(self.p)}


@dataclass(frozen=True, eq=False)
class _Examples:
    """B examples of G graphs each: 2 for a pair, 4 (G1, G2, G1, G3) for a triplet."""

    adjacency: Bools
    """(B, G, n, n) symmetric, padded with absent nodes at the end."""
    nodes: Index
    """(B,) nodes of the example's graphs."""


@lru_cache(maxsize=4)
def _chunk(task: EditTask, number: int, count: int, mode: Mode) -> _Examples:
    """A chunk of the training stream. Steps follow one another, so the last few are kept."""
    return _draw(task, _generator(task.seed, "training", number), count, mode)


def _generator(
    seed: int, stream: Literal["training", "validation", "test"], part: int
) -> Generator:
    return np.random.default_rng(SeedSequence(seed, spawn_key=(STREAMS[stream], part)))


def _draw(task: EditTask, rng: Generator, count: int, mode: Mode) -> _Examples:
    nodes = rng.integers(task.nodes[0], task.nodes[1], size=count, endpoint=True)
    p = rng.uniform(task.p[0], task.p[1], size=count)
    slots, first = _connected_graphs(rng, nodes, p, task.nodes[1], task.negative_edits)
    if mode == "pairs":
        edits = np.where(_labels(0, count) > 0, task.positive_edits, task.negative_edits)
        graphs = [first, _edited(rng, slots, first, nodes, edits)[0]]
    elif mode == "triplets":
        close, far = (
            _edited(rng, slots, first, nodes, np.full(count, edits))[0]
            for edits in (task.positive_edits, task.negative_edits)
        )
        graphs = [first, close, first, far]
    else:
        raise ConfigError(f"mode must be 'pairs' or 'triplets', got {mode!r}")
    return _Examples(np.stack(graphs, axis=1), nodes)


def _labels(start: int, stop: int, step: int = 1) -> NDArray[np.float32]:
    """Labels of the examples start:stop:step, similar and dissimilar in turn."""
    return (1 - 2 * (np.arange(start, stop, step) % 2)).astype(np.float32)


def _slots(nodes: int) -> int:
    """Node pairs of a graph: its places for an edge."""
    return nodes * (nodes - 1) // 2


@lru_cache(maxsize=16)
def _slot_tables(width: int) -> tuple[Index, Index, Index]:
    """Larger and smaller node of each slot, (M,), and the slot of each cell, (width * width,).

    Slots are ordered by their larger node, so that a graph of n nodes uses the first
    n (n - 1) / 2 whatever the width. Cells of the diagonal have slot M.
    """
    larger, smaller = np.tril_indices(width, -1)
    cells = np.full((width, width), len(larger))
    cells[larger, smaller] = cells[smaller, larger] = np.arange(len(larger))
    return larger, smaller, cells.ravel()


def _real_slots(nodes: Index, columns: int) -> Bools:
    """(B, columns) which slots exist in graphs of ``nodes`` (B,) nodes."""
    sizes = (nodes * (nodes - 1) // 2).astype(np.int32)
    return np.arange(columns, dtype=np.int32) < sizes[:, None]


def _connected_graphs(
    rng: Generator, nodes: Index, p: NDArray[np.float64], width: int, edits: int
) -> tuple[Bools, Bools]:
    """Connected random graphs with at least ``edits`` edges present, and as many absent.

    Returns:
        Their slots, (B, M + 1) with M = width (width - 1) / 2 and the last always empty,
        and their adjacency matrices, (B, width, width).
    """
    count, columns = len(nodes), _slots(width) + 1
    slots = np.empty((count, columns), dtype=np.bool_)
    matrices = np.empty((count, width, width), dtype=np.bool_)
    real = _real_slots(nodes, columns)
    sizes = nodes * (nodes - 1) // 2
    thresholds = (p * 2**32).astype(np.uint32)
    cells = _slot_tables(width)[2]
    missing = np.arange(count)
    failures = 0
    while failures < MAX_DRAWS:
        bits = rng.integers(0, 2**32, size=(len(missing), columns), dtype=np.uint32)
        drawn = bits < thresholds[missing, None]
        drawn &= real[missing]
        matrix = drawn.take(cells, axis=1).reshape(-1, width, width)
        edges = drawn.view(np.uint8).sum(axis=1, dtype=np.int32)
        good = (edges >= edits) & (sizes[missing] - edges >= edits)
        good &= _connected(matrix, nodes[missing])
        slots[missing[good]] = drawn[good]
        matrices[missing[good]] = matrix[good]
        missing = missing[~good]
        failures = 0 if good.any() else failures + len(good)
        if len(missing) == 0:
            return slots, matrices
    raise ConfigError(
        f"none of {failures} random graphs like one with {nodes[missing[0]]} nodes and p="
        f"{p[missing[0]]:.4g} was connected with {edits} edges to remove and {edits} to add; "
        f"raise p, or lower it where the graphs are nearly complete"
    )


def _connected(matrices: Bools, nodes: Index) -> Bools:
    """(B,) whether the nodes of each padded matrix (B, n, n) can all be reached from node 0."""
    count, width, _ = matrices.shape
    words = -(-width // 64)
    padded = np.zeros((count, width, 64 * words), dtype=np.bool_)
    padded[:, :, :width] = matrices
    # (B, n, words), then (B, words, n): a node's neighbours as the bits of its column.
    bits = np.packbits(padded, bitorder="little").view(np.uint64).reshape(count, width, words)
    neighbours = np.ascontiguousarray(bits.transpose(0, 2, 1))
    reached = np.zeros((count, width), dtype=np.bool_)
    reached[:, 0] = True
    while True:
        adjacent = np.bitwise_or.reduce(neighbours * reached[:, None, :], axis=-1)
        grown = np.unpackbits(adjacent.view(np.uint8), axis=-1, count=width, bitorder="little")
        frontier = grown.view(np.bool_) & ~reached
        if not frontier.any():
            whole: Bools = reached.sum(axis=1) == nodes
            return whole
        reached |= frontier


def _edited(
    rng: Generator, slots: Bools, matrices: Bools, nodes: Index, edits: Index
) -> tuple[Bools, Index]:
    """Substitutes ``edits`` (B,) edges in each graph, then permutes its nodes.

    Returns:
        The new matrices (B, n, n), and for each of their nodes its number before the
        permutation, (B, n).
    """
    count, width, _ = matrices.shape
    larger, smaller, _ = _slot_tables(width)
    edited = matrices.copy()
    for allowed in (slots, _real_slots(nodes, slots.shape[1]) & ~slots):
        row, slot = _choose(rng, allowed, edits)
        edited[row, larger[slot], smaller[slot]] ^= True
        edited[row, smaller[slot], larger[slot]] ^= True
    keys = rng.random((count, width))
    keys[np.arange(width) >= nodes[:, None]] = 1  # absent nodes stay at the end
    origin = keys.argsort(axis=1)
    rows = (np.arange(count)[:, None] * width + origin).ravel()
    # The matrix is symmetric: permuting rows, transposing and permuting rows again does both.
    half = edited.reshape(-1, width).take(rows, axis=0).reshape(count, width, width)
    half = half.transpose(0, 2, 1).reshape(-1, width)
    return half.take(rows, axis=0).reshape(count, width, width), origin


def _choose(rng: Generator, allowed: Bools, needed: Index) -> tuple[Index, Index]:
    """Distinct True places, ``wanted`` (B,) in each row of (B, M): their rows and columns."""
    count, columns = allowed.shape
    positions = np.flatnonzero(allowed)
    starts = np.searchsorted(positions, np.arange(count + 1) * columns)
    available = np.diff(starts)
    # Floyd's sampling without replacement, all rows at once; -1 where a row has its share.
    picks = np.full((count, int(needed.max())), -1)
    for turn in range(picks.shape[1]):
        last = available - needed + turn
        pick = rng.integers(0, last, endpoint=True)
        pick = np.where((picks[:, :turn] == pick[:, None]).any(axis=1), last, pick)
        picks[:, turn] = np.where(turn < needed, pick, -1)
    chosen = positions[(picks + starts[:-1, None])[picks >= 0]]
    return chosen // columns, chosen % columns


def _packed(adjacency: Bools, nodes: Index) -> GraphBatch:
    """Packs (B, G, n, n) padded matrices of ``nodes`` (B,) nodes each."""
    _, graphs, width, _ = adjacency.shape
    sizes = np.repeat(nodes, graphs)
    node_offsets = running_offsets(sizes)
    # Of each padded row: how many messages it receives, and what turns the position of a
    # cell in it into the number of the sending node. einsum sums bytes much faster than sum.
    total = np.uint8 if width <= 256 else np.int32
    counts = np.einsum("bgij->bgj", adjacency.view(np.uint8), dtype=total).ravel()
    shifts = np.repeat(node_offsets[:-1], width) - np.arange(len(counts)) * width
    senders = np.flatnonzero(adjacency)
    senders += np.repeat(shifts, counts)
    real = (np.arange(width) < sizes[:, None]).ravel()
    return GraphBatch.from_sorted_messages(node_offsets, running_offsets(counts[real]), senders)


def _graphs(task: EditTask, split: Split, mode: Mode) -> Iterator[list[Graph]]:
    """The graphs of each example of an evaluation set.

    They are drawn in blocks, which bounds memory; a larger set begins with the smaller one.
    """
    rng = _generator(0, split, 0 if mode == "pairs" else 1)
    for start in range(0, task.evaluation_size, EVALUATION_BLOCK):
        examples = _draw(task, rng, EVALUATION_BLOCK, mode)
        needed = task.evaluation_size - start
        for matrices, n in zip(examples.adjacency[:needed], examples.nodes, strict=False):
            yield [Graph(int(n), np.argwhere(np.triu(matrix[:n, :n]))) for matrix in matrices]


def _range(value: Any, name: str) -> tuple[Any, Any]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ConfigError(f"{name} must be a range (low, high), got {value!r}") from None
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float | np.integer | np.floating):
            raise ConfigError(f"{name} must hold numbers, got {value!r}")
    if not low <= high:
        raise ConfigError(f"{name} must be a range (low, high) with low <= high, got {value!r}")
    return low, high


def _at_least(least: int, value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ConfigError(f"{name} must be an integer of at least {least}, got {value!r}")
