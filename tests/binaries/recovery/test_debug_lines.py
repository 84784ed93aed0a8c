"""Line tables: written by hand, compiled by gcc and read by an independent reader too, damaged."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.image import LineSections
from graphkin.binaries.recovery.debug_lines import defining_files

COPY, ADVANCE_PC, SET_FILE, SET_COLUMN, CONST_ADD_PC, FIXED_ADVANCE_PC = 1, 2, 4, 5, 8, 9
OPERANDS = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]
OPCODE_BASE, LINE_RANGE = 13, 14
STRING, LINE_STRP, STRP, UDATA, DATA16 = 0x08, 0x1F, 0x0E, 0x0F, 0x1E
END = bytes([0, 1, 1])

Files = Sequence[tuple[str, int]]
"""Names, each with the number of its directory."""


def uleb(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])


def at(address: int) -> bytes:
    return bytes([0, 9, 2]) + address.to_bytes(8, "little")


def special(address_advance: int) -> bytes:
    return bytes([OPCODE_BASE + LINE_RANGE * address_advance])


def table(
    program: bytes,
    *,
    version: int = 4,
    folders: Sequence[str] = ("/src", "include"),
    files: Files = (("a.c", 0), ("b.h", 1)),
    wide: bool = False,
    unit: int = 1,
    names: bytes | None = None,
) -> bytes:
    """A line table. Up to version 4 folder 0, that of the compilation, is not listed."""
    if names is None:
        names = _names5(folders, files) if version == 5 else _names2(folders[1:], files)
    maximum = b"\1" if version >= 4 else b""
    head = bytes([unit]) + maximum + bytes([1, 0xFB, LINE_RANGE, OPCODE_BASE, *OPERANDS]) + names
    size = 8 if wide else 4
    sizes = b"\x08\x00" if version == 5 else b""
    rest = version.to_bytes(2, "little") + sizes + len(head).to_bytes(size, "little")
    rest += head + program
    mark = b"\xff\xff\xff\xff" if wide else b""
    return mark + len(rest).to_bytes(size, "little") + rest


def _names2(folders: Sequence[str], files: Files) -> bytes:
    listed = b"".join(name.encode() + b"\0" for name in folders) + b"\0"
    return listed + b"".join(n.encode() + b"\0" + bytes([at, 0, 0]) for n, at in files) + b"\0"


def _names5(folders: Sequence[str], files: Files) -> bytes:
    header = bytes([1, 1, STRING]) + uleb(len(folders))
    header += b"".join(name.encode() + b"\0" for name in folders)
    header += bytes([3, 1, STRING, 2, UDATA, 5, DATA16]) + uleb(len(files))
    return header + b"".join(n.encode() + b"\0" + uleb(at) + bytes(16) for n, at in files)


def found(line: bytes, *starts: int, **more: bytes) -> dict[int, str]:
    return defining_files(LineSections(line, **more), set(starts))


# --- Tables written by hand ---------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_the_file_of_the_row_at_a_start(version: int, wide: bool) -> None:
    """Files count from 1, from version 5 on from 0, and 1 is where every program begins."""
    header, source = (1, 0) if version == 5 else (2, 1)
    program = at(0x1000) + bytes([SET_FILE, source, COPY, SET_FILE, header])
    program += special(4) + bytes([SET_FILE, source]) + special(8) + END
    line = table(program, version=version, wide=wide)
    assert found(line, 0x1000, 0x1004, 0x100C, 0x1001) == {
        0x1000: "a.c",
        0x1004: "include/b.h",
        0x100C: "a.c",
    }
    assert found(line) == {}


@pytest.mark.parametrize("version", [4, 5])
def test_a_program_begins_with_file_1(version: int) -> None:
    line = table(at(0x10) + bytes([SET_FILE, 0, COPY]) + END + at(0x20) + bytes([COPY]) + END,
                 version=version)  # fmt: skip
    expected = {0x10: "a.c", 0x20: "include/b.h"} if version == 5 else {0x20: "a.c"}
    assert found(line, 0x10, 0x20) == expected


def test_all_ways_to_advance() -> None:
    steps = {
        0x1000: bytes([COPY]),
        0x1300: bytes([ADVANCE_PC]) + uleb(0x300) + bytes([COPY]),
        0x1311: bytes([CONST_ADD_PC, COPY]),  # (255 - 13) // 14
        0x1321: bytes([FIXED_ADVANCE_PC, 0x10, 0, COPY]),
        0x1324: special(3),
        0x1325: bytes([SET_COLUMN, 0xFF, 1, 0, 3, 4, 0x7F, 0x7F]) + special(1),
    }
    program = at(0x1000) + b"".join(steps.values()) + END
    assert list(found(table(program), *range(0x1000, 0x1400))) == list(steps)


def test_instructions_of_several_bytes() -> None:
    program = at(0x1000) + special(3) + bytes([ADVANCE_PC, 2, COPY, FIXED_ADVANCE_PC, 2, 0, COPY])
    line = table(program + END, unit=4)
    assert list(found(line, *range(0x1000, 0x1040))) == [0x100C, 0x1014, 0x1016]


def test_the_first_row_at_a_start_counts() -> None:
    line = table(at(0x10) + bytes([COPY, SET_FILE, 2, COPY]) + END)
    assert found(line, 0x10) == {0x10: "a.c"}
    again = table(at(0x10) + bytes([SET_FILE, 2, COPY]) + END)
    assert found(line + again, 0x10) == {0x10: "a.c"}
    assert found(again + line, 0x10) == {0x10: "include/b.h"}


def test_paths() -> None:
    folders = ("/src", "include", "/usr/include")
    files = (("a.c", 0), ("b.h", 1), ("c.h", 2), ("/abs/d.h", 1), ("e.h", 9))
    for version in (4, 5):
        first = 0 if version == 5 else 1
        rows = [at(8 * n) + bytes([SET_FILE, n + first, COPY]) + END for n in range(len(files))]
        line = table(b"".join(rows), version=version, folders=folders, files=files)
        expected = ["a.c", "include/b.h", "/usr/include/c.h", "/abs/d.h", "e.h"]
        assert list(found(line, *range(0, 40, 8)).values()) == expected


@pytest.mark.parametrize("wide", [False, True])
def test_names_in_other_sections(wide: bool) -> None:
    size = 8 if wide else 4
    names = bytes([1, 1, LINE_STRP, 1]) + (2).to_bytes(size, "little")
    names += bytes([2, 1, STRP, 2, 0x0B, 2])
    names += (0).to_bytes(size, "little") + b"\0" + (4).to_bytes(size, "little") + b"\0"
    line = table(at(0x10) + bytes([COPY]) + END, version=5, names=names, wide=wide)
    sections = {"line_str": b"x\0/src\0", "str": b"a.c\0b.c\0"}
    assert found(line, 0x10, **sections) == {0x10: "b.c"}
    assert found(line, 0x10) == {}  # the section is missing


def test_names_that_are_no_text() -> None:
    line = table(at(0x10) + bytes([COPY]) + END, names=b"\0\xff\xfe.c\0\0\0\0\0")
    assert found(line, 0x10) == {0x10: "��.c"}


def test_a_file_that_is_not_listed() -> None:
    assert found(table(at(0x10) + bytes([SET_FILE, 9, COPY]) + END), 0x10) == {}


def test_several_tables() -> None:
    lines = [
        table(at(0x100 * n) + bytes([COPY]) + END, files=((f"f{n}.c", 0),), version=2 + n % 4)
        if 2 + n % 4 < 5
        else table(at(0x100 * n) + bytes([SET_FILE, 0, COPY]) + END, files=((f"f{n}.c", 0),),
                   version=5)
        for n in range(8)
    ]  # fmt: skip
    assert found(b"".join(lines), *range(0, 0x800, 0x100)) == {
        0x100 * n: f"f{n}.c" for n in range(8)
    }


# --- Damage -------------------------------------------------------------------------------

GOOD = table(at(0x10) + bytes([COPY]) + END)


@pytest.mark.parametrize(
    "bad",
    [
        table(b"", version=6),
        table(b"", version=1),
        table(b"", version=5, names=b"\x01\x01\x7f\x01"),  # an unknown form
        table(b"", version=5, names=b"\x00\xff\xff\x7f"),  # two million names of nothing
        table(b"", version=5, names=b"\x01\x01\x08\xff\xff\x7f"),
        table(b"", version=5, names=b"\x01\x01\x1f\x01\xff\xff\xff\xff"),
        table(b"", names=b"never ends"),
        table(bytes([ADVANCE_PC]) + b"\xff" * 1000),
        table(bytes([0]) + uleb(1 << 60)),
        (3).to_bytes(4, "little") + b"\x04\0\0",
        (0).to_bytes(4, "little"),
    ],
)
def test_the_tables_behind_a_damaged_one_are_read(bad: bytes) -> None:
    assert found(bad + GOOD, 0x10) == {0x10: "a.c"}


@pytest.mark.parametrize("tail", [b"\x01", b"\xff\xff\xff\xff", b"\xff" * 12, b"\x00\x00\x00\x40"])
def test_an_end_that_is_cut_off(tail: bytes) -> None:
    assert found(GOOD + tail, 0x10) == {0x10: "a.c"}


def test_rows_before_the_damage_stay() -> None:
    line = table(at(0x10) + bytes([COPY, ADVANCE_PC]) + b"\xff" * 20)
    assert found(line, 0x10) == {0x10: "a.c"}


def test_no_section_takes_long() -> None:
    """Endless numbers and names, and tables that claim much in a few bytes."""
    claims = table(b"", version=5, names=b"\x00\xff\xff\x03")
    began = time.process_time()
    for line in (table(bytes([ADVANCE_PC]) + b"\xff" * 4_000_000), claims * 20_000):
        assert found(line, 0x10) == {}
    name = table(b"", version=5, names=b"\x01\x01\x1f\xff\xff\x03" + bytes(4 * 65535))
    assert found(name, 0x10, line_str=b"x" * 4_000_000) == {}
    assert time.process_time() - began < 5


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    found(data, *range(64))
    found(len(data).to_bytes(4, "little") + data, *range(64))


@given(st.integers(0, 10**9), st.sampled_from([2, 4, 5]))
def test_mutants(seed: int, version: int) -> None:
    rng = random.Random(seed)
    program = at(0x10) + bytes([COPY, SET_FILE, 1]) + special(2) + END
    line = bytearray(table(program, version=version) + GOOD)
    for _ in range(rng.randint(1, 4)):
        line[rng.randrange(len(line))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    assert found(bytes(line), 0x10, 0x12).keys() <= {0x10, 0x12}


# --- Compiled code ------------------------------------------------------------------------

HEADER = "static inline int helper(int a) { while (a > 9) a -= 3; return a; }\n"
SOURCE = """
#include "inner/helper.h"
extern void sink(int (*)(int));
int own(int a) { int s = 0; for (int i = 0; i < a; i++) s += i % 3 ? i : 2; return s; }
static int hidden(int a) { return own(a) * 2 - 1; }
void use(void) { sink(helper); sink(hidden); }
"""
DIALECTS = [["-gdwarf-2"], ["-gdwarf-3"], ["-gdwarf-4"], ["-gdwarf-5"], ["-g1"], ["-g", "-gz"],
            ["-gdwarf-5", "-gdwarf64"], ["-ffunction-sections", "-g"]]  # fmt: skip


@pytest.fixture
def library(compile_c, tmp_path: Path):
    """Compiles a library with a function of a header."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "helper.h").write_text(HEADER)

    def run(*flags: str) -> Path:
        path: Path = compile_c(SOURCE, "-shared", "-fPIC", f"-I{tmp_path}", *flags, name="lib.so")
        return path

    return run


def files_of(path: Path) -> dict[str, str | None]:
    source = NativeSource(path, with_files=True)
    return {function.name: function.defined_in for function in source.functions()}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("flags", DIALECTS, ids=" ".join)
def test_functions_of_a_header(library, flags: list[str], level: str) -> None:
    files = files_of(library(level, *flags))
    assert Path(files["helper"] or "").name == "helper.h"
    for name in ("own", "hidden", "use"):
        assert Path(files[name] or "").name == "lib.so.c", name


def test_without_debug_information(library) -> None:
    assert set(files_of(library("-O1")).values()) == {None}


def test_only_where_it_is_asked_for(library) -> None:
    functions = NativeSource(library("-O1", "-g")).functions()
    assert {function.defined_in for function in functions} == {None}


# pyelftools cannot read the 64-bit form of version 5.
@pytest.mark.parametrize("flags", [f for f in DIALECTS if "-gdwarf64" not in f], ids=" ".join)
def test_every_row_agrees_with_an_independent_reader(library, flags: list[str]) -> None:
    """Of all addresses that pyelftools finds a row at, ours is the file of the first."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    path = library("-O2", *flags)
    expected: dict[int, str] = {}
    with open(path, "rb") as stream:
        dwarf = elffile.ELFFile(stream).get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            listed = program["file_entry"]
            first = 0 if program["version"] >= 5 else 1
            for entry in program.get_entries():
                if entry.state is not None and not entry.state.end_sequence:
                    name = listed[entry.state.file - first].name.decode()
                    expected.setdefault(entry.state.address, name)
    from graphkin.binaries.backends.native import load

    lines = load(path.read_bytes(), "lib.so").lines
    assert lines is not None
    ours = defining_files(lines, range(1 << 20))
    assert {start: Path(file).name for start, file in ours.items()} == expected
    assert {"helper.h", "lib.so.c"} <= set(expected.values())


def test_functions_of_headers_in_ffmpeg(ffmpeg: Path) -> None:
    """Functions that headers define and files take the address of, or do not inline at -O0."""
    for build in ("clang-O0", "gcc-O0"):
        files = files_of(ffmpeg / build / "libavutil.so")
        known = [file for file in files.values() if file is not None]
        assert len(known) > 0.97 * len(files)
        assert (files["av_dict_set"] or "").endswith("libavutil/dict.c")
        assert (files["av_cmp_q"] or "").endswith("libavutil/rational.h")
        assert (files["av_isspace"] or "").endswith("libavutil/avstring.h")
