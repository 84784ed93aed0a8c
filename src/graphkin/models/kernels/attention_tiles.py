"""Attention over pairs of large graphs by compiled kernels, in as many threads as torch has."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkin.models.kernels import dispatch

Floats = NDArray[np.float32]

MIN_CELLS = 1 << 16
"""Of a pair: below, blocks of many pairs at once are faster."""
MIN_ROWS_PER_THREAD = 1_000


class Side(NamedTuple):
    """One graph of a pair, (n, D), (n, D), (n, Dv) and (n,)."""

    queries: Floats
    keys: Floats
    values: Floats
    bias: Floats

    def part(self, nodes: slice) -> Side:
        """Some of its nodes."""
        return Side(*(array[nodes] for array in self))


def runs_in_tiles(key: Tensor, cells: int) -> bool:
    """Whether a pair of so many scores is computed here."""
    return cells >= MIN_CELLS and key.dtype == torch.float32 and dispatch.use_fused(key)


def softmax_both_ways(rows: Side, columns: Side, scale: float) -> tuple[Floats, Floats]:
    """What the nodes of each graph attend to in the other, (n, Dv) and (m, Dv)."""
    from graphkin.models.kernels import compiled

    outs = []
    for side, other in ((rows, columns), (columns, rows)):
        out = np.empty((len(side.keys), other.values.shape[1]), dtype=np.float32)

        def attend(part: slice, side: Side = side, other: Side = other, out: Floats = out) -> None:
            compiled.softmax_attention(
                side.queries[part], other.keys, other.values, other.bias, scale, out[part]
            )

        _in_threads(attend, len(out))
        outs.append(out)
    return outs[0], outs[1]


def joint_both_ways(
    rows: Side, columns: Side, scale: float, smallest_sum: float
) -> tuple[Floats, Floats] | None:
    """The same of distances, where queries are keys: e = exp(-d^2) serves both directions.

    None where a sum of them is not above the smallest.
    """
    from graphkin.models.kernels import compiled

    def totals(part: slice) -> tuple[Floats, ...]:
        """Sums over the rows' part for the columns, and those of the part's rows."""
        side = rows.part(part)
        shapes = [(len(s.keys), s.values.shape[1]) for s in (side, columns)]
        row_out, column_out = (np.zeros(shape, dtype=np.float32) for shape in shapes)
        row_sums, column_sums = (np.zeros(shape[0], dtype=np.float32) for shape in shapes)
        compiled.joint_attention(
            side.keys,
            columns.keys,
            side.values,
            columns.values,
            side.bias,
            columns.bias,
            scale,
            row_out,
            row_sums,
            column_out,
            column_sums,
        )
        return row_out, row_sums, column_out, column_sums

    row_outs, row_sums, column_outs, column_sums = zip(
        *_in_threads(totals, len(rows.keys)), strict=True
    )
    sums = np.concatenate(row_sums), sum(column_sums[1:], column_sums[0])
    if not min(float(each.min()) for each in sums) > smallest_sum:
        return None
    outs = np.concatenate(row_outs), sum(column_outs[1:], column_outs[0])
    for out, each in zip(outs, sums, strict=True):
        out /= each[:, None]
    return outs


def _in_threads(work: Callable[[slice], Any], count: int) -> list[Any]:
    """The results of the work on parts of so many rows; the kernels let go of the interpreter."""
    threads = max(1, min(torch.get_num_threads(), count // MIN_ROWS_PER_THREAD))
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    parts = [slice(a, b) for a, b in pairwise(edges)]
    if threads == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))
