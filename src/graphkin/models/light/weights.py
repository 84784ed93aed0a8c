"""The weights of a model, taken one by one; nothing but an exact fit is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ModelError
from graphkin.models.saving import weight_arrays

Floats = NDArray[np.float32]


class Weights:
    """Arrays by name, until all of them are taken.

    Args:
        arrays: what a file holds.
        origin: names the file in errors.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], origin: str) -> None:
        self._left = dict(arrays)
        self._origin = origin

    @classmethod
    def read(cls, files: Mapping[str, bytes], origin: str) -> Self:
        """Those in the files of a model."""
        return cls(weight_arrays(files, origin), origin)

    def floats(self, name: str, *shape: int) -> Floats:
        """An array of float32."""
        return self._take(name, shape, np.dtype(np.float32))

    def integers(self, name: str, *shape: int) -> NDArray[np.int64]:
        """An array of int64."""
        return self._take(name, shape, np.dtype(np.int64))

    def _take(self, name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
        array = self._left.pop(name, None)
        if array is None:
            raise ModelError(f"{self._origin} lacks the tensor {name!r}")
        if array.shape != shape:
            raise ModelError(
                f"{self._origin}: tensor {name!r} has shape {array.shape}, "
                f"the configuration asks for {shape}"
            )
        if array.dtype != kind:
            raise ModelError(
                f"{self._origin}: tensor {name!r} is of {array.dtype}, the model's is of {kind}"
            )
        if not np.isfinite(array).all():
            raise ModelError(f"{self._origin}: tensor {name!r} holds values that are not finite")
        return array

    def finish(self) -> None:
        """Refuses what nobody took."""
        for name in self._left:
            raise ModelError(f"{self._origin} holds an unknown tensor {name!r}")
