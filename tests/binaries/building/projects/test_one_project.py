"""Small projects, configured once and built for the compilers that the machine has."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lief
import pytest
import typer

from graphkin.binaries.building.projects.all_projects import build_projects
from graphkin.binaries.building.projects.cross_compiling import function_names
from graphkin.binaries.building.projects.fingerprints import fingerprint
from graphkin.binaries.building.projects.one_project import build_project
from graphkin.binaries.building.projects.package_list import Package, PackageList
from graphkin.binaries.building.projects.toolchains import find_toolchains
from graphkin.binaries.building.source_code import open_source
from graphkin.cli.build import register
from graphkin.errors import BuildError, ConfigError

COMPILERS = {
    "x86_64-gcc-O0": "gcc",
    "x86_64-gcc-O2": "gcc",
    "x86_64-clang-O3": "clang",
    "i386-gcc-O2": "i686-linux-gnu-gcc",
    "aarch64-gcc-O2": "aarch64-linux-gnu-gcc",
    "arm-gcc-O0": "arm-linux-gnueabihf-gcc",
    "mipsel-gcc-O2": "mipsel-linux-gnu-gcc",
}
CONFIGURE = """#!/bin/sh
case "$*" in *--help*) echo '  --enable-asm  --disable-tests  --enable-shared'; exit;; esac
echo "configured with: $*"
echo '#define SIZEOF_LONG 8' > config.h
"""
MAKEFILE = """
all: libown.a tool
generated.c:
\techo 'int generated(void) { return 42; }' > generated.c
%.o: %.c
\t$(CC) -O3 -march=native -DVALUE=5 -Iinclude -c -o $@ $<
libown.a: own.o generated.o vendored.o tests/check.o fast.o
\tar r $@ $^
tool: tool.c libown.a
\t$(CC) -DVALUE=5 -Iinclude -o $@ tool.c libown.a
docs:
\tfalse
"""
VENDORED = "".join(
    f"int inflate_{number}(int *window, int bits) {{ return window[bits] ^ {number}; }}\n"
    for number in range(8)
)
FILES = {
    "configure": CONFIGURE,
    "Makefile": MAKEFILE,
    "include/own.h": "int own(int);\n",
    "own.c": '#include "config.h"\n#include "own.h"\n#include <assert.h>\n'
    "int size(void) { return SIZEOF_LONG == sizeof(long) ? VALUE : -1; }\n"
    "int own(int a) { assert(a != VALUE); return a > 3 ? a * size() : a - 1; }\n"
    "int check[SIZEOF_LONG == sizeof(long) ? 1 : -1];\n",
    "tool.c": '#include "own.h"\nint main(int n, char **v) { return own(n) + !v; }\n',
    "vendored.c": VENDORED,
    "tests/check.c": "int checked(void) { return 1; }\n",
    "fast.c": "#ifdef __x86_64__\nint fast(void) { return 1; }\n#else\n#error only here\n#endif\n",
}


@pytest.fixture(scope="session")
def configurations() -> list[str]:
    names = [name for name, program in COMPILERS.items() if shutil.which(program)]
    if os.uname().machine != "x86_64" or "x86_64-gcc-O0" not in names or not shutil.which("make"):
        pytest.skip("gcc for x86-64 and make are not installed")
    return names


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "own-1.2"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "configure").chmod(0o644)
    return folder


@dataclass(frozen=True)
class Printed:
    out: str
    err: str


Build = Callable[..., Printed]


@pytest.fixture
def build(capsys: pytest.CaptureFixture[str]) -> Build:
    """Calls the verb; errors come out as exceptions."""
    app = typer.Typer(pretty_exceptions_enable=False)
    register(app)

    def call(*arguments: str | Path) -> Printed:
        capsys.readouterr()
        app([str(word) for word in arguments], standalone_mode=False)
        captured = capsys.readouterr()
        return Printed(captured.out, captured.err)

    return call


def arguments(code: Path, output: Path, configurations: list[str]) -> list[str]:
    config = [word for name in configurations for word in ("--configuration", name)]
    return ["own", "--source", str(code), "-o", str(output), "--jobs", "1", *config]


def functions(path: Path) -> set[str]:
    return set(function_names(path))


def test_one_file_for_each_configuration_from_the_same_sources(
    build: Build, code: Path, configurations: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "corpus"
    printed = build(*arguments(code, output, configurations), "--json")
    (report,) = json.loads(printed.out)
    assert [each["configuration"] for each in report["configurations"]] == configurations
    foreign = [name for name in configurations if not name.startswith("x86_64")]
    # Only a compiler for another processor refuses fast.c.
    kept, absent = (4, {"checked", "fast"}) if foreign else (5, {"checked"})
    assert (report["system"], report["files"], report["version"]) == ("autotools", kept, "1.2")
    assert report["given_up"] == {}
    own = {"own", "size", "main", "generated", "inflate_0"}
    machines = set()
    for name in configurations:
        path = output / "own" / f"{name}.so"
        assert own <= functions(path)
        assert not functions(path) & absent
        binary = lief.ELF.parse(str(path))
        assert binary is not None
        assert binary.header.file_type == lief.ELF.Header.FILE_TYPE.DYN
        assert not binary.has_section(".debug_info")
        machines.add(str(binary.header.machine_type))
        # What an assert says does not depend on where it was compiled.
        assert b"/usr/src/own-1.2" in path.read_bytes() or b"\0own.c\0" in path.read_bytes()
        assert str(tmp_path).encode() not in path.read_bytes()
    assert len(machines) == 1 + len({name.partition("-")[0] for name in foreign})
    left_out = report["left_out"]
    assert left_out["tests/check.c"] == "a test, an example or documentation"
    if foreign:
        assert left_out["fast.c"].startswith(f"{foreign[0]}: ")
        assert "only here" in left_out["fast.c"]
    log = (output / "own" / "build.log").read_text()
    assert "configured with: --disable-asm --disable-tests --disable-shared" in log
    rows = (output / "projects.tsv").read_text().splitlines()
    values = dict(zip(rows[0].split("\t"), rows[1].split("\t"), strict=True))
    assert (values["project"], values["files"]) == ("own", str(kept))
    assert values["sha256"] == open_source(code).digest
    assert values["configurations"] == ",".join(configurations)
    assert sorted(path.name for path in code.iterdir()) == sorted(
        {name.partition("/")[0] for name in FILES}
    )


def test_a_second_run_builds_nothing_and_damage_or_change_everything(
    build: Build, code: Path, configurations: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "corpus"
    words = [*arguments(code, output, configurations[:1]), "--json"]
    path = output / "own" / f"{configurations[0]}.so"

    def status() -> Any:
        return json.loads(build(*words).out)[0]["status"]

    assert [status(), status()] == ["built", "kept"]
    path.write_bytes(b"half of it")
    assert [status(), status()] == ["built", "kept"]
    (code / "tool.c").write_text(FILES["tool.c"].replace("!v", "3"))
    assert [status(), status()] == ["built", "kept"]
    (output / "own" / "manifest.json").write_text("{}")
    assert status() == "built"


def test_copies_are_left_out(code: Path, configurations: list[str], tmp_path: Path) -> None:
    package = Package("own", configurations[:1])
    report = build_project(
        package,
        open_source(code),
        find_toolchains(configurations[:1]),
        tmp_path / "corpus",
        known={"zlib": fingerprint(VENDORED), "lua": fingerprint("int x;")},
    )
    assert report.left_out["vendored.c"].startswith("a copy of zlib: ")
    assert "inflate_0" not in functions(tmp_path / "corpus" / "own" / f"{configurations[0]}.so")


def test_a_later_project_is_without_what_an_earlier_one_has(
    code: Path, configurations: list[str], tmp_path: Path
) -> None:
    later = tmp_path / "later-1.0"
    shutil.copytree(code, later)
    (later / "own.c").write_text("int other(int a) { return a ? a * 3 : 9; }\n")
    paths = {"own": code, "later": later}
    packages = PackageList(
        [Package(name, configurations[:1], source=str(path)) for name, path in paths.items()]
    )
    first, second = build_projects(packages, tmp_path / "corpus", cache=tmp_path / "cache")
    assert "vendored.c" not in first.left_out
    assert second.left_out["vendored.c"].startswith("a copy of own: 100% of its code")
    assert second.files < first.files


def test_names_of_functions_are_enough(
    code: Path, configurations: list[str], tmp_path: Path
) -> None:
    packages = PackageList(
        [Package("own", configurations[:1], source=str(code))],
        held_out_names={"zlib": [f"inflate_{number}" for number in range(5)]},
    )
    (report,) = build_projects(packages, tmp_path / "corpus", cache=tmp_path)
    reason = "a copy of zlib: 0% of its code, 62% of its names"
    assert report.left_out["vendored.c"] == reason


CMAKE = """cmake_minimum_required(VERSION 3.10)
project(own C)
option(BUILD_SAMPLES "programs that nobody wants" ON)
add_library(own own.c)
target_compile_definitions(own PRIVATE VALUE=5)
if(BUILD_SAMPLES)
  add_library(more more.c)
endif()
"""
MESON = """project('own', 'c')
library('own', 'own.c', c_args: ['-DVALUE=5'])
if get_option('samples')
  library('more', 'more.c')
endif
if not get_option('docs').disabled()
  library('docs', 'docs.c')
endif
"""
MESON_OPTIONS = """option('samples', type: 'boolean', value: true)
option('docs', type: 'feature', value: 'enabled')
"""


@pytest.mark.parametrize("system", ["cmake", "meson"])
def test_other_build_systems(system: str, configurations: list[str], tmp_path: Path) -> None:
    """What has an option is switched off, whatever its value was."""
    if shutil.which(system) is None or (system == "meson" and shutil.which("ninja") is None):
        pytest.skip(f"{system} is not installed")
    folder = tmp_path / "own-3.0"
    folder.mkdir()
    files = {
        "CMakeLists.txt": CMAKE,
        "meson.build": MESON,
        "meson_options.txt": MESON_OPTIONS,
        "own.c": "int own(int a) { return a * VALUE; }\n",
        "more.c": "int more(void) { return 1; }\n",
        "docs.c": "int docs(void) { return 2; }\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    package = Package("own", configurations[-1:], system=system)
    toolchains = find_toolchains(package.configurations)
    report = build_project(package, open_source(folder), toolchains, tmp_path / "corpus")
    assert (report.system, report.files, report.left_out) == (system, 1, {})
    assert "own" in functions(tmp_path / "corpus" / "own" / f"{configurations[-1]}.so")


def test_symbols_with_versions_are_linked(
    code: Path, configurations: list[str], tmp_path: Path
) -> None:
    """A library links them with a script of its own, which we do not know."""
    text = "int own(int a) { return a; }\n"
    for name, version in (("run_0", "@OWN_1.0"), ("run_1", "@@OWN_1.1")):
        text += f'int {name}(void) {{ return 1; }}\n__asm__(".symver {name},run{version}");\n'
    (code / "own.c").write_text(text)
    toolchains = find_toolchains(configurations)
    report = build_project(
        Package("own", configurations), open_source(code), toolchains, tmp_path / "corpus"
    )
    assert report.given_up == {}
    for name in configurations:
        assert {"run_0", "run_1"} <= functions(tmp_path / "corpus" / "own" / f"{name}.so")


def test_which_files_a_list_chooses(code: Path, configurations: list[str], tmp_path: Path) -> None:
    package = Package("own", configurations[:1], only=["*n.c", "tool.c"], leave_out=["to*"])
    toolchains = find_toolchains(configurations[:1])
    report = build_project(package, open_source(code), toolchains, tmp_path)
    assert report.files == 1
    assert report.left_out["tool.c"] == "left out by the list"
    assert report.left_out["vendored.c"] == "not among the files to build"


def test_a_build_that_fails_late_gives_what_it_compiled(
    code: Path, configurations: list[str], tmp_path: Path
) -> None:
    package = Package("own", configurations[:1], targets=["docs", "all"])
    toolchains = find_toolchains(configurations[:1])
    assert build_project(package, open_source(code), toolchains, tmp_path).files == 5


def test_one_project_fails_and_the_next_is_built(
    code: Path, configurations: list[str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken-2.0"
    shutil.copytree(code, broken)
    (broken / "configure").write_text("#!/bin/sh\necho needs a library; exit 3\n")
    paths = {"broken": broken, "own": code}
    packages = PackageList(
        [Package(name, configurations[:1], source=str(path)) for name, path in paths.items()]
    )
    output = tmp_path / "corpus"
    failed, built = build_projects(packages, output, cache=tmp_path / "cache")
    assert (failed.status, built.status) == ("failed", "built")
    log = output / "broken" / "build.log"
    assert failed.error == (
        f"cannot configure broken: ./configure ended with exit code 3; see {log}"
    )
    assert "needs a library" in log.read_text()
    assert "broken" not in (output / "projects.tsv").read_text()


def test_failures_have_an_exit_code(
    build: Build, code: Path, configurations: list[str], tmp_path: Path
) -> None:
    (code / "configure").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(BuildError, match="1 of 1 projects failed: own"):
        build(*arguments(code, tmp_path / "corpus", configurations[:1]))


def test_a_list_that_pins_another_source(
    code: Path, configurations: list[str], tmp_path: Path
) -> None:
    packages = PackageList([Package("own", configurations[:1], sha256="0" * 64, source=str(code))])
    (report,) = build_projects(packages, tmp_path, cache=tmp_path)
    assert report.status == "failed"
    assert report.error is not None
    assert "as the list says" in report.error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--configuration", "x86_64-gcc-O2"], "name the packages to build, or a file with --list"),
        (["a", "b", "--configuration", "x"], "a configuration is a processor"),
        (["a", "b"], "recipes build one package at a time, got a b"),
        (
            ["a", "b", "--source", ".", "--configuration", "x"],
            "--source is the code of one package",
        ),
        (["a", "--list", "x.toml"], "x.toml says which packages are built and how"),
    ],
)
def test_options_that_do_not_fit(build: Build, words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(*words)
