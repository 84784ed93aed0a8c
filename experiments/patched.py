"""How often a scan tells a vulnerable function from its repaired version, across builds.

    python experiments/patched.py -o FOLDER [--pairs fitted|measured|all] [--json]

A pair is a function of Debian's archive before and after a security patch: the source package as
Debian ships it, and the same with that one patch taken back. Each is compiled by several compilers,
at several levels, for several processors. A library holds both versions of a function in all builds
but one; that one, stripped, is looked up. Downloads are kept in --cache.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graphkin import Library
from graphkin.binaries import samples
from graphkin.binaries.building import open_source
from graphkin.binaries.building.debian import fetch
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import Filter, SearchOptions
from graphkin.library.scan import read_queries
from graphkin.library.whole_files import look_up_files

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
        Pair("yajl", "CVE-2022-24795", "CVE-2022-24795.patch", "src/yajl_buf.c",
             "yajl_buf_append", ("-Igenerated",)),
    ),
    "measured": (
        Pair("hiredis", "CVE-2021-32765", "09_CVE-2021-32765.patch", "hiredis.c",
             "createArrayObject"),
        Pair("yajl", "CVE-2017-16516", "CVE-2017-16516.patch", "src/yajl_encode.c",
             "yajl_string_decode", ("-Igenerated",)),
        Pair("expat", "CVE-2024-45490", "CVE-2024-45490.patch", "expat/lib/xmlparse.c",
             "XML_ParseBuffer", ("-Igenerated", "-Iexpat/lib", "-DXML_DTD", "-DXML_NS",
                                 "-DXML_GE=1", "-DXML_CONTEXT_BYTES=1024", "-DXML_POOR_ENTROPY",
                                 "-DBYTEORDER=1234")),
        Pair("librabbitmq", "CVE-2026-44235", "CVE-2026-44235.patch",
             "librabbitmq/amqp_connection.c", "amqp_handle_input",
             ("-Iinclude", "-Ilibrabbitmq", "-Igenerated", "-DHAVE_CONFIG_H")),
        Pair("nghttp2", "CVE-2026-27135", "CVE-2026-27135.patch", "lib/nghttp2_session.c",
             "nghttp2_session_mem_recv", ("-Ilib/includes", "-Igenerated")),
    ),
}  # fmt: skip
"""Weights were chosen on the former; the latter and the pair of the bundled samples measure."""


def build_pair(pair: Pair, output: Path, cache: Path | None) -> dict[tuple[str, str], Path]:
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
    elif package == "nghttp2":
        (generated / "nghttp2").mkdir(parents=True)
        version = '#define NGHTTP2_VERSION "1"\n#define NGHTTP2_VERSION_NUM 1\n'
        (generated / "nghttp2" / "nghttp2ver.h").write_text(version)
    elif package in ("expat", "librabbitmq"):
        generated.mkdir()
        (generated / "expat_config.h").touch()
        (generated / "config.h").write_text('#define AMQ_PLATFORM "Linux"\n')


def build_sample(output: Path) -> dict[tuple[str, str], Path]:
    """The pair of the bundled samples, built like the others."""
    source = Path(__file__).parents[1] / "tools" / "samples" / "sources" / "heartbeat.c"
    files = {}
    for version, flags in ((VULNERABLE, []), (FIXED, ["-DKIN_FIXED"])):
        for name, compiler in COMPILERS.items():
            file = output / "sample" / version / name / "libkinbeat.so"
            file.parent.mkdir(parents=True, exist_ok=True)
            command = [*compiler, *flags, *FLAGS, str(source), "-o", str(file)]
            subprocess.run(command, check=True)
            files[name, version] = file
    return files


class Judged(NamedTuple):
    """What was said of one build of one version."""

    identifier: str
    build: str
    version: str
    verdict: str
    probability: float | None
    """That it is repaired."""


def judge_pair(
    identifier: str, function: str, files: dict[tuple[str, str], Path], work: Path
) -> Iterator[Judged]:
    """Looks up every build in a library of all others."""
    path = work / f"{identifier}.kin"
    path.unlink(missing_ok=True)
    addresses = {}
    with Library.create(path) as library:
        for tag, version in (("cve", VULNERABLE), ("fixed", FIXED)):
            own = [f"{file}:{function}" for (_, of), file in files.items() if of == version]
            index_paths(library, own, tags={tag: identifier})
        for stored in library.engine.scan():
            addresses[stored.entry.binary] = stored.entry.address
        graphs = {stored.entry.binary: stored.graph_hash for stored in library.engine.scan()}
    for build in COMPILERS:
        without = work / f"{identifier}-{build}.kin"
        shutil.copy(path, without)
        with Library.open(without) as library:
            library.remove(Filter(build=build))
            for version in (VULNERABLE, FIXED):
                file = files[build, version]
                other = files[build, FIXED if version == VULNERABLE else VULNERABLE]
                address = addresses.get(str(file))
                if address is None or graphs[str(file)] == graphs[str(other)]:
                    verdict = "inlined" if address is None else "no difference"
                    yield Judged(identifier, build, version, verdict, None)
                    continue
                stripped = work / f"{identifier}-{build}-{version}.so"
                subprocess.run(["llvm-strip", "-s", "-o", stripped, file], check=True)
                queries = list(read_queries(library, [f"{stripped}:{address:#x}"]))
                (result,) = look_up_files(library, queries, SearchOptions(10, 20)).results
                said = result.patches[0] if result.patches else None
                yield Judged(
                    identifier,
                    build,
                    version,
                    "not found" if said is None else said.verdict,
                    None if said is None else said.probability,
                )


def summary(rows: Sequence[Judged]) -> dict[str, int]:
    """How often verdicts are right."""
    counts = {"right": 0, "wrong": 0, "cannot tell": 0, "not asked": 0}
    for row in rows:
        if row.verdict in ("inlined", "no difference"):
            counts["not asked"] += 1
        elif row.verdict in (VULNERABLE, FIXED):
            counts["right" if row.verdict == row.version else "wrong"] += 1
        else:
            counts["cannot tell"] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--pairs", choices=("fitted", "measured", "all"), default="measured")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    output = options.output.absolute()
    work = output / "work"
    work.mkdir(parents=True, exist_ok=True)
    kinds = ("fitted", "measured") if options.pairs == "all" else (options.pairs,)
    rows: list[Judged] = []
    for pair in (pair for kind in kinds for pair in PAIRS[kind]):
        files = build_pair(pair, output, options.cache)
        rows += judge_pair(pair.identifier, pair.function, files, work)
    if "measured" in kinds:
        rows += judge_pair(samples.TAG[1], samples.VULNERABLE[1], build_sample(output), work)
    by_pair = {row.identifier: summary([r for r in rows if r[0] == row.identifier]) for row in rows}
    document: dict[str, Any] = {"pairs": by_pair, "all": summary(rows)}
    if options.json:
        print(json.dumps({**document, "verdicts": [row._asdict() for row in rows]}))
        return
    for row in rows:
        sure = "" if row.probability is None else f"{row.probability:.2f}"
        print(f"{row.identifier:<16}{row.build:<16}{row.version:<12}{row.verdict:<14}{sure}")
    for name, counts in (*by_pair.items(), ("all", document["all"])):
        print(f"{name:<16}{counts}")


if __name__ == "__main__":
    main()
