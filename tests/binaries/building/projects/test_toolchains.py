"""Configurations by name, and the compilers behind them."""

from __future__ import annotations

import platform
import shutil

import pytest

from graphkin.binaries.building.projects.toolchains import find_toolchain, find_toolchains
from graphkin.errors import ConfigError, MissingDependencyError

OWN = platform.machine()
needs_gcc = pytest.mark.skipif(
    OWN not in ("x86_64", "aarch64") or shutil.which("gcc") is None,
    reason="gcc of a machine that has configurations is not installed",
)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"no {program} here")


@needs_gcc
def test_the_machines_own_compiler_has_no_prefix_and_no_other_headers() -> None:
    toolchain = find_toolchain(f"{OWN}-gcc-O2")
    assert toolchain.c.spelling == "gcc"
    assert toolchain.cxx_spelling == "g++"
    assert toolchain.flags[0] == "-O2"
    assert "-idirafter" not in toolchain.flags


@needs("mipsel-linux-gnu-gcc")
def test_a_cross_compiler_has_this_machines_headers_behind_its_own() -> None:
    toolchain = find_toolchain("mipsel-gcc-O0")
    assert toolchain.command("c")[0].endswith("/mipsel-linux-gnu-gcc")
    assert toolchain.flags[:3] == ["-O0", "-fPIC", "-w"]
    assert "-fcf-protection=none" not in toolchain.flags
    assert toolchain.flags[toolchain.flags.index("-idirafter") + 1] == "/usr/include"


@needs("i686-linux-gnu-gcc")
def test_both_kinds_of_x86_are_without_landing_pads() -> None:
    assert "-fcf-protection=none" in find_toolchain("i386-gcc-O2").flags


@needs("clang")
def test_clang_takes_a_target() -> None:
    toolchain = find_toolchain("arm-clang-O1")
    assert toolchain.command("c")[1:] == ["--target=arm-linux-gnueabihf"]
    assert "-Qunused-arguments" in toolchain.flags


@pytest.mark.parametrize("name", ["x86_64-gcc", "sparc-gcc-O2", "gcc-O2", "x86_64-icc-O2", ""])
def test_names_that_are_not_configurations(name: str) -> None:
    with pytest.raises(ConfigError, match=r"such as x86_64-gcc-O2; got '"):
        find_toolchain(name)


def test_levels_and_releases_that_do_not_exist() -> None:
    with pytest.raises(ConfigError, match=r"a level is one of .*; got 'O9'"):
        find_toolchain("x86_64-gcc-O9")
    with pytest.raises(MissingDependencyError, match="apt-get install gcc-99-mipsel-linux-gnu"):
        find_toolchains(["mipsel-gcc-99-O2"])
