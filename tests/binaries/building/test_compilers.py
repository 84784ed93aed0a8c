"""Compilers: their names, their packages, and the programs that stand in for them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from graphkin.binaries.building.compilers import Compiler, apt_package, check_works, find_compiler
from graphkin.errors import ConfigError, MissingDependencyError

FOREIGN = "aarch64-linux-gnu" if platform.machine() == "x86_64" else "x86_64-linux-gnu"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder at the front of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("gcc-12", "gcc-12"),
        ("clang-14", "clang-14"),
        ("cc", "gcc"),
        ("aarch64-linux-gnu-gcc-12", "gcc-12-aarch64-linux-gnu"),
        ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
        ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
        ("musl-gcc", "musl-tools"),
        (f"{platform.machine()}-linux-gnu-gcc-12", "gcc-12"),
    ],
)
def test_packages_of_compilers(name: str, package: str) -> None:
    assert apt_package(name) == package


def test_a_compiler_that_is_not_installed() -> None:
    with pytest.raises(MissingDependencyError) as caught:
        find_compiler("clang-99")
    assert str(caught.value) == (
        "there is no compiler 'clang-99' here; install it with: apt-get install clang-99"
    )


@pytest.mark.parametrize(
    "name", ["", "../gcc", "gcc 12", "gcc;ls", "-v", "$(ls)", "clang@", "a@b@c"]
)
def test_what_is_no_name_of_a_compiler(name: str) -> None:
    with pytest.raises(ConfigError, match="a compiler is named as gcc-12, "):
        find_compiler(name)


def test_only_clang_takes_a_target() -> None:
    with pytest.raises(ConfigError, match="a compiler of its own: aarch64-linux-gnu-gcc-12"):
        find_compiler("gcc-12@aarch64-linux-gnu")


def test_properties_of_a_native_and_of_a_cross_compiler() -> None:
    here = f"{platform.machine()}-linux-gnu"
    native = Compiler("gcc-12", "/usr/bin/gcc-12", "gcc-12 12.2", here)
    assert (native.command, native.cross, native.prefix) == ("gcc-12", False, "")
    assert native.flags("O2") == ["-O2", "-g1"]
    other = Compiler(f"clang-14@{FOREIGN}", "/opt/clang-14", "clang version 14", FOREIGN, FOREIGN)
    assert (other.command, other.cross, other.prefix) == (
        f"{FOREIGN}-clang-14",
        True,
        f"{FOREIGN}-",
    )
    assert other.flags("O2") == ["-O2", "-g1", "-Qunused-arguments"]


def test_the_wrapper_puts_its_flags_last(tmp_path: Path) -> None:
    """And hands on every argument as it is, from a program in a folder with an odd name."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    write_program(folder / "clang-1", 'for word; do echo "<$word>"; done')
    compiler = Compiler("clang-1@t", str(folder / "clang-1"), "clang", "t", "t")
    wrapper = compiler.wrap(tmp_path, ["-O1", "-ffile-prefix-map=/a b=/c"])
    done = subprocess.run([wrapper, "-O3", '-DX="a b"', "*", ""], capture_output=True, text=True)
    words = ["--target=t", "-O3", '-DX="a b"', "*", "", "-O1", "-ffile-prefix-map=/a b=/c"]
    assert wrapper.name == "t-clang-1"
    assert done.stdout.splitlines() == [f"<{word}>" for word in words]


def test_a_compiler_without_headers(programs: Path) -> None:
    answer = f"case $1 in --version) echo odd 1.0;; -dumpmachine) echo {FOREIGN};; *) "
    write_program(programs / "odd-gcc", answer + "echo 'stdio.h: error: not found'; exit 1;; esac")
    compiler = find_compiler("odd-gcc")
    assert (compiler.version, compiler.triplet) == ("odd 1.0", FOREIGN)
    package = f"gcc-{FOREIGN}".replace("_", "-")
    with pytest.raises(MissingDependencyError, match=rf"stdio.h: .*: apt-get install {package}$"):
        check_works(compiler, "O2")


def test_what_is_no_compiler(programs: Path) -> None:
    write_program(programs / "silent", "exit 0")
    with pytest.raises(MissingDependencyError, match="--version says nothing; is it a compiler"):
        find_compiler("silent")
    (programs / "broken").write_bytes(b"\x7fELF")
    (programs / "broken").chmod(0o755)
    with pytest.raises(MissingDependencyError, match="broken cannot be run: Exec format error"):
        find_compiler("broken")


@pytest.mark.parametrize("name", ["gcc", "clang", "clang-14", "aarch64-linux-gnu-gcc-12"])
def test_compilers_of_this_machine_work(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    compiler = find_compiler(name)
    assert compiler.spelling == name
    assert "-linux-" in compiler.triplet
    check_works(compiler, "O3")
