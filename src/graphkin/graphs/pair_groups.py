"""Pairs of graphs in groups of similar size, to pad little in attention."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from graphkin.graphs.packing import Index

GROUP_OVERHEAD = 4_000
"""What a further group costs, in cells of the |V1| x |V2| matrix: a group is a dozen small
operator calls, and a pair of about 64 x 64 nodes takes as long as those."""
MAX_PADDING = 0.2
"""Largest share of the cells that may be padding; more groups are made until it holds."""


@dataclass(frozen=True, eq=False)
class PairGroup:
    """Pairs that share one padded shape (n, m), n >= m: attention runs on (B, n, m) blocks.

    The larger graph of a pair is its ``rows``; attention is computed both ways, so that
    which one is larger has no effect on the result.
    """

    rows: Tensor
    """(B, n) int64 node numbers, one after the other; padding repeats the graph's last node."""
    columns: Tensor
    """(B, m) int64 node numbers; padding likewise."""
    row_sizes: Tensor
    """(B,) int64 real rows of each block."""
    column_sizes: Tensor
    """(B,) int64 real columns of each block."""
    padded: bool
    """Whether any block has padding."""
    regular: bool = False
    """Whether rows and columns take turns over all nodes of the batch, so that (N, D) arrays
    seen as (B, 2, n, D) are the blocks, and nothing need be gathered."""

    def to(self, device: torch.device | str) -> PairGroup:
        return PairGroup(
            self.rows.to(device),
            self.columns.to(device),
            self.row_sizes.to(device),
            self.column_sizes.to(device),
            self.padded,
            self.regular,
        )

    @property
    def cells(self) -> int:
        """Cells of the padded blocks."""
        return self.rows.numel() * self.columns.shape[1]

    @property
    def cells_of_pair(self) -> int:
        """Cells of one padded block."""
        return self.rows.shape[1] * self.columns.shape[1]


def group_pairs(node_offsets: Index, left: Index, right: Index) -> list[PairGroup]:
    """Splits the pairs into groups that minimise padded cells plus an overhead for each group."""
    sizes = np.diff(node_offsets)
    if sizes.min() == sizes.max():
        graphs = np.stack([left, right], axis=1).flatten()
        regular = np.array_equal(graphs, np.arange(len(sizes)))
        return [replace(_group(node_offsets, left, right), regular=regular)]
    swap = sizes[left] < sizes[right]
    large = np.where(swap, right, left)
    small = np.where(swap, left, right)
    heights, widths = sizes[large], sizes[small]
    # Rows first, in steps of 1/8 octave, so that within a step the widths lie sorted too.
    steps = np.floor(8 * np.log2(heights))
    order = np.lexsort((widths, steps))
    runs = _bounded_cuts(heights[order], widths[order])
    return [_group(node_offsets, large[order[run]], small[order[run]]) for run in runs]


def _bounded_cuts(heights: Index, widths: Index) -> list[slice]:
    """The cheapest cuts whose padding stays within ``MAX_PADDING``."""
    real = int((heights * widths).sum())
    overhead = float(GROUP_OVERHEAD)
    while True:
        runs = _cuts(heights, widths, overhead)
        done = sum(
            (run.stop - run.start) * int(heights[run].max()) * int(widths[run].max())
            for run in runs
        )
        # Without overhead, only equal blocks share a group, and nothing is padded.
        if real >= (1 - MAX_PADDING) * done or overhead == 0:
            return runs
        overhead = overhead / 4 if overhead > 1 else 0.0


def _cuts(heights: Index, widths: Index, overhead: float) -> list[slice]:
    """The cheapest way to cut a sorted list of blocks into runs (dynamic programming)."""
    count = len(heights)
    best = np.zeros(count + 1)
    origin = np.zeros(count + 1, dtype=np.int64)
    for stop in range(1, count + 1):
        # Cost of a run start..stop, for every start, from the running maxima backwards.
        tallest = np.maximum.accumulate(heights[:stop][::-1])[::-1]
        widest = np.maximum.accumulate(widths[:stop][::-1])[::-1]
        lengths = np.arange(stop, 0, -1)
        costs = best[:stop] + overhead + lengths * tallest * widest
        origin[stop] = int(np.argmin(costs))
        best[stop] = costs[origin[stop]]
    runs = []
    stop = count
    while stop:
        start = int(origin[stop])
        runs.append(slice(start, stop))
        stop = start
    return runs[::-1]


def _group(node_offsets: Index, large: Index, small: Index) -> PairGroup:
    rows, row_sizes = _padded_nodes(node_offsets, large)
    columns, column_sizes = _padded_nodes(node_offsets, small)
    padded = bool((row_sizes < rows.shape[1]).any() or (column_sizes < columns.shape[1]).any())
    return PairGroup(
        torch.from_numpy(rows),
        torch.from_numpy(columns),
        torch.from_numpy(row_sizes),
        torch.from_numpy(column_sizes),
        padded,
    )


def _padded_nodes(node_offsets: Index, graphs: Index) -> tuple[Index, Index]:
    sizes = np.diff(node_offsets)[graphs]
    slots = np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
    return node_offsets[graphs][:, None] + slots, sizes
