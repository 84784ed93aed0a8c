"""How often a scan tells a vulnerable function from its repaired version, across builds.

    python experiments/patched.py -o FOLDER [--pairs fitted|measured|all] [--json]

A pair is a function of Debian's archive before and after a security patch: the source package as
Debian ships it, and the same with that one patch taken back. Each is compiled by several compilers,
at several levels, for several processors. A library holds both versions of a function in all builds
but one; that one, stripped, is looked up. Downloads are kept in --cache.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.building import open_source
from graphkin.binaries.building.debian import fetch

COMPILERS = {
    "gcc-O0": ["gcc-12", "-O0"],
    "gcc-O2": ["gcc-12", "-O2"],
    "gcc-O3": ["gcc-12", "-O3"],
    "clang-O2": ["clang-14", "-O2"],
    "aarch64-gcc-O2": ["aarch64-linux-gnu-gcc", "-O2"],
    "mipsel-gcc-O2": ["mipsel-linux-gnu-gcc", "-O2"],
}
FLAGS = [
    "-w", "-fPIC", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-shared", "-idirafter",
    "/usr/include", "-Wl,--unresolved-symbols=ignore-all", "-Wl,--build-id=none",
]  # fmt: skip
VULNERABLE, FIXED = "vulnerable", "fixed"


class Pair(NamedTuple):
    """A function before and after a patch."""

    package: str
    identifier: str
    patch: str
    """Under ``debian/patches``."""
    unit: str
    """The source file that the patch changes."""
    function: str
    flags: tuple[str, ...] = ()
    """Include paths are relative to the source."""


PAIRS = {
    "fitted": (
        Pair("cjson", "CVE-2025-57052", "CVE-2025-57052.patch", "cJSON_Utils.c",
             "decode_array_index_from_pointer"),
        Pair("libcue", "CVE-2023-43641", "CVE-2023-43641.patch", "cd.c", "track_set_index"),
        Pair("yajl", "CVE-2023-33460", "CVE-2023-33460.patch", "src/yajl_tree.c",
             "yajl_tree_parse", ("-Igenerated",)),
        Pair("libpng1.6", "CVE-2025-64505", "CVE-2025-64505.patch", "pngrtran.c",
             "png_set_quantize", ("-Igenerated",)),
        Pair("freetype", "CVE-2023-2004", "CVE-2023-2004.patch", "src/truetype/ttgxvar.c",
             "tt_hvadvance_adjust", ("-Iinclude", "-DFT2_BUILD_LIBRARY")),
    ),
    "measured": (
        Pair("hiredis", "CVE-2021-32765", "09_CVE-2021-32765.patch", "hiredis.c",
             "createArrayObject"),
        Pair("yajl", "CVE-2017-16516", "CVE-2017-16516.patch", "src/yajl_encode.c",
             "yajl_string_decode", ("-Igenerated",)),
        Pair("yajl", "CVE-2022-24795", "CVE-2022-24795.patch", "src/yajl_buf.c",
             "yajl_buf_ensure_available", ("-Igenerated",)),
        Pair("expat", "CVE-2024-45490", "CVE-2024-45490.patch", "expat/lib/xmlparse.c",
             "XML_ParseBuffer", ("-Igenerated", "-Iexpat/lib", "-DXML_DTD", "-DXML_NS",
                                 "-DXML_GE=1", "-DXML_CONTEXT_BYTES=1024", "-DXML_POOR_ENTROPY",
                                 "-DBYTEORDER=1234")),
        Pair("librabbitmq", "CVE-2026-44235", "CVE-2026-44235.patch",
             "librabbitmq/amqp_connection.c", "amqp_handle_input",
             ("-Iinclude", "-Ilibrabbitmq", "-Igenerated", "-DHAVE_CONFIG_H")),
    ),
}  # fmt: skip
"""Weights were chosen on the former; the latter and the pair of the bundled samples measure."""


def build_pair(pair: Pair, output: Path, cache: Path) -> dict[tuple[str, str], Path]:
    """The files of a pair by build and version."""
    files = {}
    folder = output / f"{pair.package}-{pair.identifier}"
    for version in (VULNERABLE, FIXED):
        wanted = {name: folder / version / name / f"{pair.package}.so" for name in COMPILERS}
        files |= {(name, version): file for name, file in wanted.items()}
        if all(file.exists() for file in wanted.values()):
            continue
        work = folder / "source" / version
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        tree = open_source(fetch(pair.package, cache)).unpack(work)
        if version == VULNERABLE:
            patch = (tree / "debian" / "patches" / pair.patch).read_bytes()
            command = ["patch", "-R", "-p1", "-f", "--no-backup-if-mismatch"]
            subprocess.run(command, input=patch, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        _generate(pair.package, tree)
        for name, file in wanted.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            command = [*COMPILERS[name], *pair.flags, *FLAGS, pair.unit, "-o", str(file.absolute())]
            subprocess.run(command, cwd=tree, check=True)
    return files


def _generate(package: str, tree: Path) -> None:
    """The headers that the build systems of some packages write."""
    generated = tree / "generated"
    if package == "yajl":
        (generated / "yajl").mkdir(parents=True)
        for header in (tree / "src" / "api").glob("*.h"):
            shutil.copy(header, generated / "yajl")
    elif package == "libpng1.6":
        generated.mkdir()
        shutil.copy(tree / "scripts" / "pnglibconf.h.prebuilt", generated / "pnglibconf.h")
    elif package in ("expat", "librabbitmq"):
        generated.mkdir()
        (generated / "expat_config.h").touch()
        (generated / "config.h").write_text('#define AMQ_PLATFORM "Linux"\n')
