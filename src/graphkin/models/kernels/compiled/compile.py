"""How kernels are compiled, and the activations that they share.

Releasing the interpreter lock is safe: kernels hold no Python object.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[Any]

# Reassociation is what lets a float reduction vectorise; it also ruins the two-part
# argument reduction of `exp`, which therefore has a list without it.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_EXACT_ORDER = {"contract", "nsz"}
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    # Python's division checks for zero, and that branch stops the vectoriser.
    options: Any = {"fastmath": _FAST, "error_model": "numpy", "nogil": True}
    try:
        compiled: Kernel = njit(cache=True, **options)(function)
    except RuntimeError:  # no place for the cache: neither the package nor the home is writable
        compiled = njit(**options)(function)
    return compiled


def scalar(function: Kernel) -> Kernel:
    options: Any = {"fastmath": _EXACT_ORDER, "error_model": "numpy", "inline": "always"}
    compiled: Kernel = njit(**options)(function)
    return compiled


def exp(x: float) -> float:
    """exp of one float; vectorises in single precision. Replaced by the overload below."""
    return math.exp(x)


@overload(exp, jit_options={"fastmath": _EXACT_ORDER})
def _overload_exp(x: Any) -> Any:
    if x != types.float32:

        def double(x: Any) -> Any:
            return math.exp(x)

        return double
    log2e = np.float32(1.4426950408889634)
    ln2_high, ln2_low = np.float32(0.693359375), np.float32(-2.12194440e-4)
    low, high = np.float32(-87.0), np.float32(88.0)
    half, one = np.float32(0.5), np.float32(1.0)
    c2, c3, c4, c5, c6, c7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))

    def single(x: Any) -> Any:
        # exp(x) = 2^n exp(r) with |r| <= ln2 / 2; the power of two goes into the exponent bits.
        # Plain selects: numba's min and max treat NaN apart, and that stops the vectoriser.
        x = low if x < low else x
        x = high if x > high else x
        n = np.floor(x * log2e + half)
        r = (x - n * ln2_high) - n * ln2_low
        series = c2 + r * (c3 + r * (c4 + r * (c5 + r * (c6 + r * c7))))
        power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
        return (one + r + r * r * series) * power

    return single


@scalar
def sigmoid(x: Any) -> Any:
    one = type(x)(1.0)
    return one / (one + exp(-x))


def tanh(x: float) -> float:
    """tanh of one float; vectorises in single precision. Replaced by the overload below."""
    return math.tanh(x)


@overload(tanh, jit_options={"fastmath": _EXACT_ORDER, "error_model": "numpy"})
def _overload_tanh(x: Any) -> Any:
    if x != types.float32:

        def double(x: Any) -> Any:
            return math.tanh(x)

        return double
    one, two, near_zero = np.float32(1), np.float32(2), np.float32(0.02)
    c3, c5, c7, c9 = (np.float32(c) for c in (-1 / 3, 2 / 15, -17 / 315, 62 / 2835))

    def single(x: Any) -> Any:
        # Near 0 the exponential form cancels; there the odd series up to x^9 is exact to rounding.
        far = one - two / (one + exp(two * x))
        s = x * x
        near = x * (one + s * (c3 + s * (c5 + s * (c7 + s * c9))))
        return near if s < near_zero else far

    return single
