"""Attention over one pair of large graphs, tile by tile of its scores.

Scores and exponentials exist for one tile at a time, which stays in the second level of cache.
Sides of tiles and widths of values are rounded up to whole blocks of products; what is added to
them is zero, or minus infinity where a largest score is looked for. All arrays are of single
precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.models.kernels.compiled.compile import exp, kernel
from graphkin.models.kernels.compiled.products import (
    BLOCK_HEIGHT,
    BLOCK_WIDTH,
    multiply_add,
    round_up,
)

Array = NDArray[Any]

TILE_ROWS, TILE_COLUMNS = 96, 512


@kernel
def joint_attention(
    row_keys: Array,
    column_keys: Array,
    row_values: Array,
    column_values: Array,
    row_bias: Array,
    column_bias: Array,
    scale: float,
    row_out: Array,
    row_sums: Array,
    column_out: Array,
    column_sums: Array,
) -> None:
    """Sums over e_ij = exp(scale * k_i . k_j + bias_i + bias_j), for both directions.

    Adds to ``row_out`` (n, Dv) sum_j e_ij v_j and to ``row_sums`` (n,) sum_j e_ij; likewise to
    ``column_out`` (m, Dv) and ``column_sums`` (m,) over i.
    """
    n, depth = row_keys.shape
    m, width = column_values.shape
    padded = round_up(width, BLOCK_WIDTH)
    tile = np.zeros((TILE_ROWS, TILE_COLUMNS), dtype=np.float32)
    left_keys = np.zeros((TILE_ROWS, depth), dtype=np.float32)
    left_values = np.zeros((TILE_ROWS, padded), dtype=np.float32)
    right_keys = np.zeros((depth, TILE_COLUMNS), dtype=np.float32)
    right_values = np.zeros((TILE_COLUMNS, padded), dtype=np.float32)
    left_seen = np.zeros((TILE_ROWS, padded), dtype=np.float32)
    right_seen = np.zeros((round_up(width, BLOCK_HEIGHT), TILE_COLUMNS), dtype=np.float32)
    right_total = np.zeros_like(right_seen)
    right_sums = np.zeros(TILE_COLUMNS, dtype=np.float32)
    for first in range(0, m, TILE_COLUMNS):
        columns = min(TILE_COLUMNS, m - first)
        wide = round_up(columns, BLOCK_WIDTH)
        _take_keys(column_keys[first : first + columns], right_keys)
        _take_rows(column_values[first : first + columns], right_values, 1)
        biases, sums = column_bias[first : first + columns], right_sums[:columns]
        right_total[:] = 0
        for top in range(0, n, TILE_ROWS):
            rows = min(TILE_ROWS, n - top)
            high = round_up(rows, BLOCK_HEIGHT)
            _take_rows(row_keys[top : top + rows], left_keys, scale)
            _take_rows(row_values[top : top + rows], left_values, 1)
            raised = tile[:high, :wide]
            for i in range(rows):
                _add_number(biases, row_bias[top + i], tile[i, :columns])
            multiply_add(left_keys, right_keys, raised)
            sums[:] = 0
            for i in range(rows):
                row_sums[top + i] += _raise(tile[i, :columns], 0)
                _add(tile[i, :columns], sums)
                tile[i, columns:wide] = 0
            raised[rows:] = 0
            # Sums over a tile come first: thousands of like numbers one by one would drift.
            _add(sums, column_sums[first : first + columns])
            left_seen[:high] = 0
            multiply_add(raised, right_values, left_seen[:high])
            for i in range(rows):
                _add(left_seen[i, :width], row_out[top + i])
            right_seen[:] = 0
            multiply_add(left_values.T, raised, right_seen[:, :wide])
            for k in range(width):
                _add(right_seen[k], right_total[k])
        for j in range(columns):
            target = column_out[first + j]
            for k in range(width):
                target[k] += right_total[k, j]


@kernel
def softmax_attention(
    queries: Array, keys: Array, values: Array, bias: Array, scale: float, out: Array
) -> None:
    """Writes out_i = sum_j softmax_j(scale * q_i . k_j + bias_j) v_j, (n, Dv).

    The largest score of a row so far is subtracted, and where a later tile has a larger one,
    what is there is scaled down.
    """
    n, depth = queries.shape
    m, width = values.shape
    padded = round_up(width, BLOCK_WIDTH)
    tile = np.zeros((TILE_ROWS, TILE_COLUMNS), dtype=np.float32)
    left_keys = np.zeros((TILE_ROWS, depth), dtype=np.float32)
    right_keys = np.zeros((depth, TILE_COLUMNS), dtype=np.float32)
    right_values = np.zeros((TILE_COLUMNS, padded), dtype=np.float32)
    biases = np.empty(TILE_COLUMNS, dtype=np.float32)
    seen = np.zeros((TILE_ROWS, padded), dtype=np.float32)
    largest = np.full(n, -np.inf, dtype=np.float32)
    sums = np.zeros(n, dtype=np.float32)
    lanes = np.empty(BLOCK_WIDTH, dtype=np.float32)
    out[:] = 0
    for first in range(0, m, TILE_COLUMNS):
        columns = min(TILE_COLUMNS, m - first)
        wide = round_up(columns, BLOCK_WIDTH)
        _take_keys(keys[first : first + columns], right_keys)
        _take_rows(values[first : first + columns], right_values, 1)
        biases[:columns] = bias[first : first + columns]
        biases[columns:] = -np.inf
        for top in range(0, n, TILE_ROWS):
            rows = min(TILE_ROWS, n - top)
            high = round_up(rows, BLOCK_HEIGHT)
            _take_rows(queries[top : top + rows], left_keys, scale)
            raised = tile[:high, :wide]
            for i in range(high):
                _add_number(biases[:wide], 0, tile[i, :wide])
            multiply_add(left_keys, right_keys, raised)
            for i in range(rows):
                before = largest[top + i]
                now = _largest(tile[i, :wide], before, lanes)
                if now > before:
                    largest[top + i] = now
                    shrink = exp(before - now)
                    sums[top + i] *= shrink
                    _scale(out[top + i], shrink)
                sums[top + i] += _raise(tile[i, :columns], largest[top + i])
                tile[i, columns:wide] = 0
            raised[rows:] = 0
            seen[:high] = 0
            multiply_add(raised, right_values, seen[:high])
            for i in range(rows):
                _add(seen[i, :width], out[top + i])
    for i in range(n):
        _scale(out[i], 1 / sums[i])


@kernel
def _take_keys(keys: Array, out: Array) -> None:
    """Writes (m, K) keys as the columns of ``out``; the remaining columns become zero."""
    count, depth = keys.shape
    for j in range(count):
        for d in range(depth):
            out[d, j] = keys[j, d]
    out[:, count:] = 0


@kernel
def _take_rows(rows: Array, out: Array, factor: float) -> None:
    """Writes rows times a factor into the corner of ``out``; the remaining rows become zero."""
    count, width = rows.shape
    single = np.float32(factor)
    for i in range(count):
        source, target = rows[i], out[i]
        for k in range(width):
            target[k] = single * source[k]
    out[count:] = 0


@kernel
def _add_number(numbers: Array, number: float, out: Array) -> None:
    """Writes the numbers plus one more."""
    single = np.float32(number)
    for j in range(len(out)):
        out[j] = numbers[j] + single


@kernel
def _add(numbers: Array, out: Array) -> None:
    for j in range(len(out)):
        out[j] += numbers[j]


@kernel
def _scale(numbers: Array, factor: float) -> None:
    single = np.float32(factor)
    for j in range(len(numbers)):
        numbers[j] *= single


@kernel
def _raise(row: Array, largest: float) -> np.float32:
    """Replaces scores by the exponentials of what they lack to the largest; their sum."""
    single, total = np.float32(largest), np.float32(0)
    for j in range(len(row)):
        row[j] = exp(row[j] - single)
    for j in range(len(row)):
        total += row[j]
    return total


@kernel
def _largest(row: Array, least: float, lanes: Array) -> Any:
    """The largest number of a row of whole blocks, or ``least``.

    It is looked for in every lane first: numba's max treats NaN apart, which does not vectorise.
    """
    lanes[:] = np.float32(least)
    for start in range(0, len(row), BLOCK_WIDTH):
        part = row[start : start + BLOCK_WIDTH]
        for k in range(BLOCK_WIDTH):
            lanes[k] = part[k] if part[k] > lanes[k] else lanes[k]
    top = lanes[0]
    for k in range(1, BLOCK_WIDTH):
        top = lanes[k] if lanes[k] > top else top
    return top
