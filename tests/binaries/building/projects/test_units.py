"""What is kept of the calls that a build makes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from graphkin.binaries.building.projects.recording import (
    VARIABLE,
    CompilerCall,
    read_calls,
    write_wrappers,
)
from graphkin.binaries.building.projects.units import Unit, find_units


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "src").mkdir(parents=True)
    for name in ("a.c", "b.c", "src/c.cpp", "d.S"):
        (folder / name).write_text("")
    return folder.resolve()


def units(tree: Path, *arguments: str, program: str = "gcc", folder: str = ".") -> list[Unit]:
    return find_units([CompilerCall(program, tree / folder, list(arguments))], tree)


def test_macros_and_paths_are_kept_and_the_packagers_taste_is_not(tree: Path) -> None:
    words = (
        "-O3 -g -Wall -march=native -flto -fPIC -DA=1 -D B -U C -Iinc -I src -include x.h "
        "-isystem/opt/inc -std=gnu99 -fno-strict-aliasing -MD -MF dep.d -MT x.o -c a.c -o a.o"
    )
    (unit,) = units(tree, *words.split())
    assert unit.source == tree / "a.c"
    kept = (
        "-D A=1 -D B -U C -I inc -I src -include x.h -isystem /opt/inc -std=gnu99 "
        "-fno-strict-aliasing"
    )
    assert list(unit.arguments) == kept.split()


def test_sizes_in_macros_follow_the_target_and_own_folders_are_searched_last(tree: Path) -> None:
    words = "-DSIZEOF_LONG=8 -DSIZEOF_INT=4 -I/usr/include -I/usr/include/x86_64-linux-gnu -c a.c"
    (unit,) = units(tree, *words.split())
    assert unit.arguments == ("-D", "SIZEOF_LONG=__SIZEOF_LONG__", "-D", "SIZEOF_INT=4")


def test_languages(tree: Path) -> None:
    def languages(*words: str, program: str = "gcc") -> list[str]:
        return [unit.language for unit in units(tree, *words, program=program)]

    assert languages("a.c", "b.c", "src/c.cpp", "d.S", "-o", "all") == ["c", "c", "c++"]
    assert languages("-c", "a.c", program="g++") == ["c++"]
    assert languages("-x", "c++", "-c", "a.c") == ["c++"]
    assert languages("-x", "assembler-with-cpp", "-c", "a.c") == []


@pytest.mark.parametrize("word", ["-E", "-M", "-S"])
def test_calls_that_make_no_object(tree: Path, word: str) -> None:
    assert units(tree, word, "a.c") == []


def test_sources_elsewhere_or_gone_do_not_count(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("")
    assert units(tree, "-c", "../other.c") == []
    assert units(tree, "-c", "gone.c") == []
    assert [unit.source.name for unit in units(tree, "-c", "../a.c", folder="src")] == ["a.c"]


def test_the_first_call_of_a_file_counts(tree: Path) -> None:
    calls = [CompilerCall("cc", tree, ["-c", "a.c", f"-D{name}"]) for name in ("STATIC", "PIC")]
    assert [unit.arguments for unit in find_units(calls, tree)] == [("-D", "STATIC")]


def test_arguments_in_a_file(tree: Path) -> None:
    (tree / "words.rsp").write_text('-DNAME="a b" -c\na.c')
    (unit,) = units(tree, "@words.rsp")
    assert unit.arguments == ("-D", "NAME=a b")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_wrappers_compile_and_write_down_when_asked(tree: Path, tmp_path: Path) -> None:
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    calls.mkdir()
    write_wrappers(tools)
    quiet = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    quiet.pop(VARIABLE, None)
    subprocess.run(["cc", "-c", "a.c"], cwd=tree, env=quiet, check=True)
    assert read_calls(calls) == []
    words = ["-c", "a.c", "-DTEXT=two words\nand a line", "", "-o", "x.o"]
    loud = quiet | {VARIABLE: str(calls)}
    subprocess.run(["cc", *[word for word in words if word]], cwd=tree, env=loud, check=True)
    assert (tree / "x.o").exists()
    (call,) = read_calls(calls)
    assert call == CompilerCall("cc", tree, [word for word in words if word])
    number = next(calls.iterdir())
    number.write_bytes(number.read_bytes() * 2)  # a process number that came back
    assert read_calls(calls) == [call, call]
