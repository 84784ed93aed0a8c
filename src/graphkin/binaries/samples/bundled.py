"""Small binaries of our own, for the demo: libraries to index, and firmwares to scan.

The libraries are built by gcc and by clang at several levels, for x86-64. The firmware, stripped,
is built by clang at a level that no library is built with, and by gcc for other processors. One
function has a deliberate error in the spirit of Heartbleed. ``tools/samples`` in the repository
says how all of it was made.

Example:
    >>> path("gcc-O2/libkinbeat.so").name
    'libkinbeat.so'
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from graphkin.errors import ConfigError

ELF = Path(str(resources.files("graphkin.binaries.samples"))) / "elf"
BUILDS = ("clang-O0", "clang-O1", "gcc-O0", "gcc-O1", "gcc-O2", "gcc-O3")
"""Compiler and level of the libraries: the folders under ``elf``."""
LIBRARIES = ("libkinbeat.so", "libkinmedia.so", "libkinparse.so", "libkinproto.so")

KNOWN = tuple(ELF / build / library for build in BUILDS for library in LIBRARIES)
"""What the demo indexes. Every ``libkinbeat.so`` has the vulnerable function."""
FIRMWARE = ELF / "gateway"
"""The stripped executable that has the vulnerable function too."""
CROSS_FIRMWARES = {"AArch64": ELF / "gateway-aarch64", "MIPS": ELF / "gateway-mips"}
"""The same sources, stripped too, for processors that no library is built for; MIPS with the high
byte first."""
VULNERABLE = ("gcc-O2/libkinbeat.so", "process_heartbeat")
"""File, as :func:`path` takes it, and function."""
FIXED_LIBRARIES = tuple(ELF / build / "libkinbeat-fixed.so" for build in BUILDS)
"""The libraries with the vulnerable function, repaired; the demo indexes them, too."""
FIXED_FIRMWARE = ELF / "gateway-fixed"
"""The firmware with the repaired function."""
TAG = ("cve", "DEMO-2014-0001")
"""Key and value of the tag for ``libkinbeat.so``. The identifier is made up: no such entry exists
in any list of vulnerabilities."""


def path(name: str) -> Path:
    """The file of a name such as ``gateway`` or ``gcc-O2/libkinproto.so``.

    Raises:
        ConfigError: where there is no such sample.
    """
    files = {file.relative_to(ELF).as_posix(): file for file in ELF.rglob("*") if file.is_file()}
    if name not in files:
        names = ", ".join(sorted(files))
        raise ConfigError(f"there is no sample {name!r}; choose one of {names}")
    return files[name]


def tags(file: Path) -> dict[str, str]:
    """The tags of a file of ``KNOWN``: that of the vulnerability, or none."""
    return dict([TAG]) if file.name == Path(VULNERABLE[0]).name else {}


def true_names(name: str = FIRMWARE.name) -> dict[int, str]:
    """Address to name for each function of a stripped executable, as its linker knew them."""
    text = (ELF / "truth.json").read_text(encoding="utf-8")
    return {int(address, 16): function for address, function in json.loads(text)[name].items()}
