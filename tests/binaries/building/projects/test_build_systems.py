"""Which build system a source has, and which of its options are switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.binaries.building.projects.build_systems import detect, unwanted
from graphkin.errors import BuildError


@pytest.mark.parametrize(
    ("names", "system"),
    [
        (["configure", "CMakeLists.txt", "Makefile"], "autotools"),
        (["configure.ac", "Makefile"], "autotools"),
        (["configure.ac", "CMakeLists.txt"], "cmake"),
        (["CMakeLists.txt", "meson.build"], "cmake"),
        (["meson.build", "Makefile"], "meson"),
        (["GNUmakefile"], "make"),
    ],
)
def test_systems_by_their_files(tmp_path: Path, names: list[str], system: str) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    assert detect(tmp_path) == system


def test_no_known_system(tmp_path: Path) -> None:
    (tmp_path / "SConstruct").write_text("")
    with pytest.raises(BuildError, match=r"there is none of configure, .* in the source"):
        detect(tmp_path)


def test_options_that_are_switched_off() -> None:
    off = ["asm", "BUILD_TESTS", "enable_asm", "gtk-doc", "WITH_SIMD", "sse2", "nls", "examples"]
    on = ["threads", "DISABLE_ASM", "no-docs", "contest", "documents", "latest", "html5-parser"]
    assert unwanted(off + on) == off
