"""Products of small matrices inside compiled kernels, which never leave the processor's cache.

LLVM's vectoriser does not keep a block of sums in registers over a loop, and without that a product
runs at a quarter of the speed (measured). The innermost block is therefore written as vectors.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from graphkin.models.kernels.compiled.compile import kernel

Array = NDArray[Any]

_LANES = 16 if binding.get_host_cpu_features().get("avx512f") else 8
"""Floats of a vector; LLVM divides it where registers are narrower."""
_VECTORS = 2
"""Vectors side by side in a block of sums."""
BLOCK_HEIGHT = _LANES // 2
"""Rows of a block of sums: with that, sums and factors fit into 32 or 16 registers."""
BLOCK_WIDTH = _LANES * _VECTORS
"""Columns of a block of sums."""
_FLOAT_BYTES = 4


@kernel
def multiply_add(left: Array, right: Array, out: Array) -> None:
    """out += left right, in single precision.

    Args:
        left: (n, K), of any strides; n is at least the height of ``out``.
        right: (K, m), rows contiguous.
        out: (multiple of BLOCK_HEIGHT, multiple of BLOCK_WIDTH), rows contiguous.
    """
    for column in range(0, out.shape[1], BLOCK_WIDTH):
        for row in range(0, out.shape[0], BLOCK_HEIGHT):
            _add_block(left, right, out, row, column)  # type: ignore[call-arg]  # numba fills the first


@kernel
def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return (number + multiple - 1) // multiple * multiple


@intrinsic
def _add_block(
    typing_context: Any, left: Any, right: Any, out: Any, row: Any, column: Any
) -> tuple[Any, Any]:
    """One block of ``multiply_add``, the sums of which are in registers from start to end."""
    if any(array.dtype != types.float32 for array in (left, right, out)):
        return None, None  # numba then says that there is no such function of these types
    return types.void(left, right, out, types.intp, types.intp), _block_code


def _block_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    vector, integer = ir.VectorType(ir.FloatType(), _LANES), context.get_value_type(types.intp)

    def constant(number: int) -> Any:
        return ir.Constant(integer, number)

    def pointer(start: Any, offset: Any, kind: Any) -> Any:
        """To a value some bytes behind the start of an array."""
        address = builder.gep(builder.bitcast(start, ir.IntType(8).as_pointer()), [offset])
        return builder.bitcast(address, kind.as_pointer())

    def vectors(start: Any, offset: Any) -> list[Any]:
        """Pointers to the vectors of a row of the block."""
        steps = range(0, BLOCK_WIDTH * _FLOAT_BYTES, _LANES * _FLOAT_BYTES)
        return [pointer(start, builder.add(offset, constant(step)), vector) for step in steps]

    left, right, out = (
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
    )
    row, column = arguments[3:]
    (left_row, left_column), (right_row, _), (out_row, _) = (
        _numbers(builder, array.strides) for array in (left, right, out)
    )
    depth = _numbers(builder, right.shape)[0]
    column_bytes = builder.mul(column, constant(_FLOAT_BYTES))
    rows = [builder.add(row, constant(number)) for number in range(BLOCK_HEIGHT)]
    left_rows = [builder.mul(number, left_row) for number in rows]
    targets = [
        target
        for number in rows
        for target in vectors(out.data, builder.add(builder.mul(number, out_row), column_bytes))
    ]
    # cgutils keeps sums in stack slots, which LLVM turns into registers.
    keep: Any = cgutils.alloca_once_value
    sums = [keep(builder, _load(builder, target)) for target in targets]
    with cgutils.for_range(builder, depth, intp=integer) as loop:
        right_start = builder.add(builder.mul(loop.index, right_row), column_bytes)
        factors = [_load(builder, part) for part in vectors(right.data, right_start)]
        left_start = builder.mul(loop.index, left_column)
        for number, offset in enumerate(left_rows):
            place = pointer(left.data, builder.add(offset, left_start), ir.FloatType())
            spread = _spread(builder, _load(builder, place), vector)
            for total, factor in zip(sums[number * _VECTORS :], factors, strict=False):
                product = builder.fmul(spread, factor, flags=("contract",))
                added = builder.fadd(builder.load(total), product, flags=("contract",))
                builder.store(added, total)
    for target, total in zip(targets, sums, strict=True):
        builder.store(builder.load(total), target, align=_FLOAT_BYTES)
    return context.get_dummy_value()


def _numbers(builder: Any, pair: Any) -> Any:
    return [builder.extract_value(pair, number) for number in range(2)]


def _load(builder: Any, pointer: Any) -> Any:
    return builder.load(pointer, align=_FLOAT_BYTES)


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    """A vector that has a number in every lane."""
    undefined, lanes = ir.Constant(vector, ir.Undefined), ir.VectorType(ir.IntType(32), _LANES)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(lanes, [0] * _LANES))
