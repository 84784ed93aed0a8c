"""The weights of SimHash's features, the bits that features stand for, and weights on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from graphkin._support.files import read_file, write_all_atomically
from graphkin.errors import ConfigError, FormatError
from graphkin.research.baselines.hashing import Hashes, mixed
from graphkin.research.baselines.simhash.features import KINDS, FeatureSets

Floats = NDArray[np.float32]

FORMAT, VERSION = "graphkin-simhash", 1
CONFIG_FILE, WEIGHTS_FILE = "config.json", "weights.safetensors"
RESOLUTION = 2.0**-20
"""Weights are counted in this unit: sums of whole numbers have no rounding, and so do not depend
on the order of the nodes."""


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """A weight for every feature: its own, or else that of its kind."""

    defaults: Floats
    """(K,) float32: the weight of a feature that has none of its own, for each of ``KINDS``."""
    keys: Hashes
    """(F,) uint64, rising: features with a weight of their own."""
    values: Floats
    """(F,) float32: their weights."""

    def __post_init__(self) -> None:
        for name, dtype, shape in (
            ("defaults", np.float32, (len(KINDS),)),
            ("keys", np.uint64, (self.keys.size,)),
            ("values", np.float32, (self.keys.size,)),
        ):
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != shape:
                raise ConfigError(
                    f"{name} must be {np.dtype(dtype)} of shape {shape}, "
                    f"got {array.dtype} of shape {array.shape}"
                )
        if (self.keys[1:] <= self.keys[:-1]).any():
            raise ConfigError("keys must rise, each of them once")
        for name in ("defaults", "values"):
            if not np.isfinite(getattr(self, name)).all():
                raise ConfigError(f"{name} holds a weight that is not finite")

    @classmethod
    def by_kind(cls, neighbourhoods: float = 1.0, trigrams: float = 1.0) -> FeatureWeights:
        """One weight for neighbourhoods of any size, and one for trigrams; nothing is learned."""
        defaults = np.array([neighbourhoods] * 3 + [trigrams], dtype=np.float32)
        return cls(defaults, np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.float32))

    def units(self, features: FeatureSets) -> NDArray[np.float64]:
        """(M,) float64, whole numbers: the weight of each feature in units of ``RESOLUTION``."""
        weights = self.defaults[features.kinds].astype(np.float64)
        if len(self.keys):
            position = np.searchsorted(self.keys, features.keys).clip(max=len(self.keys) - 1)
            weights = np.where(self.keys[position] == features.keys, self.values[position], weights)
        units: NDArray[np.float64] = np.rint(weights / RESOLUTION)
        return units


def hash_bytes(keys: Hashes, bits: int) -> NDArray[np.uint8]:
    """(M,) keys -> (M, bits / 8) uint8: the bits that each feature votes for."""
    words = [mixed(keys + np.uint64(word + 1)) for word in range(-(-bits // 64))]
    columns: NDArray[np.uint8] = np.stack(words, axis=1).astype("<u8").view(np.uint8)
    return columns[:, : bits // 8]


def signs(packed: NDArray[np.uint8]) -> Floats:
    """(M, B / 8) bytes -> (M, B) float32, +1 for a set bit and -1 for another."""
    return np.unpackbits(packed, axis=1).astype(np.float32) * 2 - 1


def save_weights(folder: Path, weights: FeatureWeights, bits: int) -> None:
    """Writes two files; they replace older ones only when both are complete."""
    document = {"format": FORMAT, "version": VERSION, "bits": bits, "kinds": KINDS}
    arrays: dict[str, NDArray[Any]] = {
        "defaults": weights.defaults,
        "keys": weights.keys,
        "values": weights.values,
    }
    write_all_atomically(
        {
            folder / WEIGHTS_FILE: safetensors.numpy.save(arrays),
            folder / CONFIG_FILE: json.dumps(document, indent=2).encode() + b"\n",
        }
    )


def load_weights(folder: Path) -> tuple[FeatureWeights, Any]:
    """The weights of a folder, and the bits they were learned for, as the file has them."""
    bits = _read_bits(folder / CONFIG_FILE)
    path = folder / WEIGHTS_FILE
    content = read_file(path)
    try:
        arrays = safetensors.numpy.load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise FormatError(f"{path} is damaged or no safetensors file: {error}") from error
    if sorted(arrays) != ["defaults", "keys", "values"]:
        raise FormatError(f"{path} must hold defaults, keys and values, not {sorted(arrays)}")
    try:
        return FeatureWeights(**arrays), bits
    except ConfigError as error:
        raise FormatError(f"{path} is damaged: {error}") from error


def _read_bits(path: Path) -> Any:
    content = read_file(path)
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FormatError(f"{path} is not a {FORMAT} file; SimHash.save writes one")
    expected = {"format": FORMAT, "version": VERSION, "kinds": list(KINDS)}
    options = {key: value for key, value in document.items() if key != "bits"}
    if options != expected:
        raise FormatError(f"{path} holds {options}; this graphkin reads {expected}")
    return document.get("bits")
