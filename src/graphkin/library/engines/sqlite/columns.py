"""Columns of numbers that grow together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Columns:
    """Arrays of one length, by name.

    They may begin as arrays that are mapped from a file: those are left alone until rows are
    added, and then copied with room to grow.
    """

    def __init__(self, kinds: Mapping[str, DTypeLike]) -> None:
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros(0, kind) for name, kind in kinds.items()
        }
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name][: self._rows]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: self[name] for name in self._arrays}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def replace(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Takes arrays as they are for all columns."""
        self._arrays = {name: arrays[name] for name in self._arrays}
        self._rows = len(next(iter(self._arrays.values())))

    def replace_column(self, name: str, array: NDArray[Any]) -> None:
        """Takes an array as it is for the rows of one column."""
        self._arrays[name] = array

    def append(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Adds rows behind the last."""
        start = self._rows
        stop = start + len(next(iter(arrays.values())))
        for name, array in self._arrays.items():
            if stop > len(array):
                grown = np.empty(max(stop, stop + start // 2), array.dtype)
                grown[:start] = array[:start]
                self._arrays[name] = grown
            self._arrays[name][start:stop] = arrays[name]
        self._rows = stop
