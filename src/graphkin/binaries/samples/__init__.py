"""Small binaries of our own, for the demo: libraries to index, and a firmware to scan."""

from graphkin.binaries.samples.bundled import (
    BUILDS,
    ELF,
    FIRMWARE,
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
    "ELF",
    "FIRMWARE",
    "KNOWN",
    "LIBRARIES",
    "TAG",
    "VULNERABLE",
    "path",
    "tags",
    "true_names",
]
