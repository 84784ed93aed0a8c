"""Headers of configure that say of every target what is true there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from graphkin.binaries.building.projects.target_headers import (
    follow_target,
    list_files,
    rewrite_header,
    rewrite_headers,
    set_times,
)

HEADER = """
#define SIZEOF_LONG 8
#define SIZEOF_VOID_P 8
#  define MY_SIZEOF_SIZE_T 8
#define SIZEOF_INT 4
#define SIZEOF_SHORT 2
/* #undef WORDS_BIGENDIAN */
#define HAVE_UINT128_T 1
#define HAVE_CPUID_H 1
#define PACKAGE "SIZEOF_LONG 8"
#define MACHINE_X86 3
"""
CODE = """
#include "config.h"
#if SIZEOF_LONG != __SIZEOF_LONG__ || SIZEOF_VOID_P != __SIZEOF_POINTER__
#error sizes
#endif
#if MY_SIZEOF_SIZE_T != __SIZEOF_SIZE_T__ || SIZEOF_INT != 4 || SIZEOF_SHORT != 2
#error more sizes
#endif
#if defined WORDS_BIGENDIAN != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#error order
#endif
#if defined HAVE_UINT128_T != defined __SIZEOF_INT128__
#error 128 bits
#endif
#if defined HAVE_CPUID_H != defined __x86_64__ || MACHINE_X86 != 3
#error x86
#endif
"""


@pytest.mark.parametrize("prefix", ["", "i686-linux-gnu-", "mips-linux-gnu-", "aarch64-linux-gnu-"])
def test_every_compiler_reads_its_own_sizes_and_order(tmp_path: Path, prefix: str) -> None:
    compiler = shutil.which(f"{prefix}gcc")
    if compiler is None:
        pytest.skip(f"{prefix}gcc is not installed")
    (tmp_path / "code.c").write_text(CODE)
    (tmp_path / "config.h").write_text(rewrite_header(HEADER))
    command = [compiler, "-fsyntax-only", "code.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_does_not_depend_on_the_target_stays() -> None:
    same = (
        '#define PACKAGE "SIZEOF_LONG 8"\n#define SIZEOF_INT\t4\n#define SIZEOF_LONG sizeof(long)\n'
    )
    assert rewrite_header(same) == same
    assert follow_target("SIZEOF_LONG") == "SIZEOF_LONG"
    assert follow_target("NAME=8") == "NAME=8"
    assert follow_target("SIZEOF_VOID_P=8") == "SIZEOF_VOID_P=__SIZEOF_POINTER__"


def test_only_headers_that_were_made_are_rewritten(tmp_path: Path) -> None:
    for name in ("old.h", "config.h", "generated.c"):
        (tmp_path / name).write_text("#define SIZEOF_LONG 8\n")
    set_times(tmp_path)
    before = list_files(tmp_path)
    assert len(set(before.values())) == 1
    for name in ("config.h", "generated.c"):
        os.utime(tmp_path / name)
    (tmp_path / "new.h").write_bytes(b"/* \xe9 */\n#define SIZEOF_LONG 8\n")
    paths = rewrite_headers(tmp_path, before)
    assert [path.name for path in paths] == ["config.h", "new.h"]
    assert (tmp_path / "old.h").read_text() == "#define SIZEOF_LONG 8\n"
    assert (tmp_path / "new.h").read_bytes().startswith(b"/* \xe9 */\n#define SIZEOF_LONG __SIZE")
