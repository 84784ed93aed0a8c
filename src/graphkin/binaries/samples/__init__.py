"""Small binaries of our own, for the demo: libraries to index, and firmwares to scan."""

from graphkin.binaries.samples.bundled import (
    BUILDS,
    CROSS_FIRMWARES,
    ELF,
    FIRMWARE,
    FIXED_FIRMWARE,
    FIXED_LIBRARIES,
    KNOWN,
    LIBRARIES,
    TAG,
    VULNERABLE,
    path,
    tags,
    true_names,
)

__all__ = [
    "BUILDS",
    "CROSS_FIRMWARES",
    "ELF",
    "FIRMWARE",
    "FIXED_FIRMWARE",
    "FIXED_LIBRARIES",
    "KNOWN",
    "LIBRARIES",
    "TAG",
    "VULNERABLE",
    "path",
    "tags",
    "true_names",
]
