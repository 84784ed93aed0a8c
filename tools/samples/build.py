"""Makes the sample binaries from their sources: ``python tools/samples/build.py [FOLDER]``.

The same compilers make the same bytes. Nothing at run time needs this.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.backends.choose import open_source
from graphkin.binaries.samples import BUILDS, CROSS_FIRMWARES, ELF, FIRMWARE
from graphkin.errors import BuildError, MissingDependencyError

SOURCES = Path(__file__).parent / "sources"
COMPILERS = {"gcc": "gcc-12", "clang": "clang-14"}
VERSIONS = {
    "gcc-12": "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0",
    "clang-14": "Debian clang version 14.0.6",
    "ld": "GNU ld (GNU Binutils for Debian) 2.40",
    "aarch64-linux-gnu-gcc-12": "aarch64-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0",
    "aarch64-linux-gnu-ld": "GNU ld (GNU Binutils for Debian) 2.40",
    "mips-linux-gnu-gcc-12": "mips-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0",
    "mips-linux-gnu-ld": "GNU ld (GNU Binutils for Debian) 2.40",
}
"""What made the files of this package. Other versions make other bytes."""
PACKAGES = "gcc-12 clang-14 binutils gcc-12-aarch64-linux-gnu gcc-12-mips-linux-gnu"
FIXED_FIRMWARE = ELF / "gateway-fixed"
"""The firmware with the missing check."""


class Toolchain(NamedTuple):
    """What makes a firmware."""

    compiler: str
    linker: str


FIRMWARE_LEVEL = "O2"
FIRMWARES = {
    FIRMWARE: Toolchain("clang-14", "ld"),
    FIXED_FIRMWARE: Toolchain("clang-14", "ld"),
    CROSS_FIRMWARES["AArch64"]: Toolchain("aarch64-linux-gnu-gcc-12", "aarch64-linux-gnu-ld"),
    CROSS_FIRMWARES["MIPS"]: Toolchain("mips-linux-gnu-gcc-12", "mips-linux-gnu-ld"),
}

LIBRARIES = {
    "libkinbeat-fixed.so": ["heartbeat"],
    "libkinbeat.so": ["heartbeat"],
    "libkinmedia.so": [
        "base64", "checksum", "sha256", "cipher", "lzw", "rle", "inflate", "lz", "image", "audio",
    ],
    "libkinparse.so": [
        "ini", "json", "format", "pattern", "expression", "utf8", "date", "number", "words",
        "table", "ring", "sort",
    ],
    "libkinproto.so": [
        "dns", "der", "tlv", "http", "url", "address", "mqtt", "tls", "framing", "modbus",
        "session",
    ],
}  # fmt: skip
FIRMWARE_UNITS = [
    "gateway", "shell", "guard", "control", "journal", "pool", "system", "heartbeat", "session",
    "dns", "http", "url", "address", "mqtt", "modbus", "base64", "checksum", "sha256",
    "inflate", "ini", "json", "format", "pattern", "utf8", "number", "words", "table",
]  # fmt: skip

COMPILE = [
    "-std=c11", "-Wall", "-Wextra", "-Werror", "-fno-stack-protector", "-fcf-protection=none",
    "-U_FORTIFY_SOURCE",
]  # fmt: skip
LIBRARY_COMPILE = ["-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
FIRMWARE_COMPILE = ["-fno-pic", "-fasynchronous-unwind-tables"]
UNIT_COMPILE = {"system": ["-fno-builtin"]}
"""A memcpy must not be compiled into a call of memcpy."""
LINK = [
    "-nostdlib", "-fuse-ld=bfd",
    "-Wl,--build-id=none,-z,norelro,-z,noseparate-code,-z,noexecstack,-z,max-page-size=4096",
]  # fmt: skip
LIBRARY_LINK = ["-shared", "-Wl,--hash-style=gnu"]
FIRMWARE_LINK = ["-static", "-Wl,-e,_start", "-lgcc"]
"""MIPS has another default entry, and divides 64 bits by functions of libgcc."""


def build(folder: Path) -> None:
    """Writes every sample into a folder, laid out as the ``elf`` folder of this package.

    Raises:
        MissingDependencyError: without the compilers of ``VERSIONS``.
        BuildError: when a compiler or the linker fails.
    """
    check_versions(*VERSIONS)
    for name in BUILDS:
        build_libraries(folder / name, name)
    truth = {}
    for firmware, toolchain in FIRMWARES.items():
        names = build_firmware(folder / firmware.name, toolchain.compiler)
        truth[firmware.name] = {f"{address:#x}": name for address, name in names.items()}
    text = json.dumps(truth, indent=1) + "\n"
    (folder / "truth.json").write_text(text, encoding="utf-8")


def check_versions(*programs: str) -> None:
    """Refuses other compilers and linkers than those that made the files of this package."""
    for program in programs:
        expected, installed = VERSIONS[program], _version(program)
        if installed != expected:
            raise MissingDependencyError(
                f"the samples are made by {expected!r}, and {program} here is {installed!r}; "
                f"another version makes other bytes"
            )


def _version(program: str) -> str:
    """The first line of what a program says of itself."""
    if shutil.which(program) is None:
        raise MissingDependencyError(
            f"{program} is not here; the samples are made by packages of Debian: "
            f"apt-get install {PACKAGES}"
        )
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.partition("\n")[0]


def build_libraries(folder: Path, name: str) -> list[Path]:
    """Makes the libraries of one build, ``gcc-O2`` say; returns their files."""
    compiler, level = name.split("-")
    folder.mkdir(parents=True, exist_ok=True)
    for library, units in LIBRARIES.items():
        flags = [f"-{level}", *LIBRARY_COMPILE, *_defines(library)]
        link = [*LIBRARY_LINK, f"-Wl,-soname,{library}"]
        _compile_and_link(COMPILERS[compiler], units, flags, {folder / library: link})
    return [folder / library for library in LIBRARIES]


def build_firmware(file: Path, compiler: str) -> dict[int, str]:
    """Makes the stripped executable of a path's name; returns its functions by address.

    The same objects are linked once more with symbols, only to see what is where.
    """
    flags = [f"-{FIRMWARE_LEVEL}", *FIRMWARE_COMPILE, *_defines(file.name)]
    with tempfile.TemporaryDirectory(prefix="graphkin-samples-") as name:
        with_symbols = Path(name) / file.name
        outputs = {file: [*FIRMWARE_LINK, "-s"], with_symbols: FIRMWARE_LINK}
        _compile_and_link(compiler, FIRMWARE_UNITS, flags, outputs)
        return {f.address: f.name for f in open_source(with_symbols).functions()}


def _defines(name: str) -> list[str]:
    return ["-DKIN_FIXED"] if "-fixed" in name else []


def _compile_and_link(
    compiler: str, units: Sequence[str], flags: Sequence[str], outputs: dict[Path, list[str]]
) -> None:
    with tempfile.TemporaryDirectory(prefix="graphkin-samples-") as name:
        folder = Path(name)
        for unit in units:
            own = UNIT_COMPILE.get(unit, [])
            output = str(folder / f"{unit}.o")
            command = [compiler, *COMPILE, *flags, *own, "-c", f"{unit}.c", "-o", output]
            _run(command, SOURCES)
        objects = [f"{unit}.o" for unit in units]
        for file, link in outputs.items():
            _run([compiler, *LINK, *objects, *link, "-o", str(file.absolute())], folder)


def _run(command: list[str], folder: Path) -> None:
    # Messages, and what a build sees of the caller, must not depend on who runs it.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise BuildError(f"{' '.join(command)} failed: {said}")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ELF)
