"""Files that are broken, foreign or hostile: a clear error or a warning, never a crash."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Compile
from test_flow import SWITCH

from graphkin.binaries import Function, Skipped
from graphkin.binaries.native import Limits, NativeSource
from graphkin.errors import FormatError, GraphkinError

SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")


@pytest.fixture
def library(compile_c: Compile) -> Path:
    source = SWITCH + "int also(int a) { return a ? pick(a, 2) : pick(2, a) + 1; }"
    return compile_c(source, "-O2", "-shared", "-fPIC", name="lib.so")


def read(path: Path, limits: Limits | None = None) -> tuple[list[Function], list[Skipped]]:
    source = NativeSource(path, limits=limits or Limits())
    return list(source.functions()), source.skipped


def attempt(path: Path) -> tuple[list[Function], list[Skipped], str]:
    """The same, and the message of graphkin's error; any other error passes through."""
    try:
        return *read(path), ""
    except GraphkinError as error:
        return [], [], str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"just some text\n", "begins with b'just som'"),
        (b"\x7fELF", "damaged ELF"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "damaged ELF"),
        (b"!<thin>\n", "thin archive"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "strange.bin"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read(path)
    assert "strange.bin" in str(caught.value)


def test_directory_absent_file_and_pipe(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(FormatError, match="No such file"):
        read(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="no regular file"):
        read(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(library: Path) -> None:
    library.chmod(0)
    with pytest.raises(FormatError, match="Permission denied"):
        read(library)


def test_foreign_architecture_is_named(library: Path) -> None:
    data = bytearray(library.read_bytes())
    data[18:20] = (243).to_bytes(2, "little")
    library.write_bytes(data)
    with pytest.raises(FormatError, match="RISCV"):
        read(library)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_truncated_file(library: Path, share: float) -> None:
    data = library.read_bytes()
    library.write_bytes(data[: int(len(data) * share)])
    found, skipped, error = attempt(library)
    assert found or skipped or "lib.so" in error


def test_symbol_sizes_that_lie(library: Path) -> None:
    expected = {one.name: one.blocks for one in read(library)[0]}
    data = bytearray(library.read_bytes())
    lied = 0
    for at, header in _sections(data):
        if header[1] not in (2, 11):
            continue
        for entry in range(header[4], header[4] + header[5], SYMBOL.size):
            name, info, other, section, value, size = SYMBOL.unpack_from(data, entry)
            if info & 15 == 2 and size:
                SYMBOL.pack_into(data, entry, name, info, other, section, value, 1 << 60)
                lied += 1
        assert at
    assert lied >= 2
    library.write_bytes(data)
    found, _ = read(library)
    assert {one.name: one.blocks for one in found} == expected


@pytest.mark.parametrize("field", [3, 4, 5])
@pytest.mark.parametrize("value", [1, 1 << 31, 1 << 60, (1 << 64) - 1])
def test_section_headers_that_lie(library: Path, field: int, value: int) -> None:
    """Address, offset and size of each section in turn."""
    original = library.read_bytes()
    for at, header in _sections(bytearray(original)):
        data = bytearray(original)
        SECTION_HEADER.pack_into(data, at, *header[:field], value, *header[field + 1 :])
        library.write_bytes(data)
        _, _, error = attempt(library)
        assert not error or "lib.so" in error


def test_damaged_and_strange_archives(compile_c: Compile, tmp_path: Path) -> None:
    one = compile_c("int g(int x) { return x ? 1 : 2; }", "-c", name="one.o")
    note = tmp_path / "note.txt"
    note.write_text("no code\n")
    archive = tmp_path / "all.a"
    subprocess.run(["ar", "rc", str(archive), str(one), str(note)], check=True)
    nested = tmp_path / "nested.a"
    subprocess.run(["ar", "rc", str(nested), str(archive), str(one)], check=True)
    found, skipped = read(archive)
    assert [function.name for function in found] == ["g"]
    assert [Path(item.binary).name for item in skipped] == ["all.a(note.txt)"]
    found, skipped = read(nested)
    assert [function.name for function in found] == ["g"]
    assert "all.a" in skipped[0].binary

    data = archive.read_bytes()
    archive.write_bytes(data[:-3])
    assert any("ends inside" in item.reason for item in read(archive)[1])
    # A member that claims to be as large as the archive, so that the next would be itself.
    first = data.index(b"one.o")
    size = data[first + 48 : first + 58]
    archive.write_bytes(data.replace(size, b"%-10d" % 9_999_999_999, 1))
    assert read(archive)[1]
    archive.write_bytes(data.replace(size, b"-60       ", 1))
    assert any("damaged at byte" in item.reason for item in read(archive)[1])


def test_budgets_name_what_they_cut(library: Path) -> None:
    _, skipped = read(library, Limits(function_bytes=64))
    assert [item.function for item in skipped] == ["pick"]
    assert "over the limit of 64" in skipped[0].reason
    found, skipped = read(library, Limits(seconds=0))
    assert not found
    assert "is over with" in skipped[0].reason
    with pytest.raises(FormatError, match="over the limit of 100"):
        read(library, Limits(file_bytes=100))


def test_a_library_without_function_starts_says_so(library: Path) -> None:
    subprocess.run(
        ["strip", "--strip-all", "-R", ".eh_frame", "-R", ".dynsym", str(library)], check=False
    )
    data = bytearray(library.read_bytes())
    for at, header in _sections(data):
        if header[1] in (2, 11):
            SECTION_HEADER.pack_into(data, at, header[0], 0, *header[2:])
    library.write_bytes(data)
    found, skipped = read(library)
    assert found or "no function symbols" in skipped[0].reason


def test_a_huge_function_is_read(compile_c: Compile) -> None:
    """100,000 blocks in one function."""
    source = r"""__asm__(".globl f\n.type f,@function\nf:\n.rept 100000\n test %edi,%edi\n je 1f\n"
      "1:\n.endr\n ret\n.size f,.-f");"""
    start = time.process_time()
    found, _ = read(compile_c(source, "-c"))
    assert len(found[0].blocks) == 100_001
    assert time.process_time() - start < 20


def test_targets_inside_instructions_stay_cheap(compile_c: Compile) -> None:
    """Each jump goes into the middle of an instruction: decoding must not start over each time."""
    source = r"""__asm__(".globl f\n.type f,@function\nf:\n.rept 3000\n je .+7\n"
      " movabs $0x9090909090909090,%rax\n.endr\n ret\n.size f,.-f");"""
    start = time.process_time()
    read(compile_c(source, "-c"))
    assert time.process_time() - start < 20


def test_mutants_neither_crash_nor_hang(library: Path, compile_c: Compile) -> None:
    samples = [library.read_bytes(), compile_c(SWITCH, "-O0", "-c", name="x.o").read_bytes()]
    archive = library.with_name("x.a")
    subprocess.run(["ar", "rc", str(archive), str(library.with_name("x.o"))], check=True)
    samples.append(archive.read_bytes())
    path = library.with_name("mutant")
    for seed in range(400):
        rng = random.Random(seed)
        data = bytearray(rng.choice(samples))
        for _ in range(rng.choice([1, 3, 10, 50])):
            ends = rng.choice([64, 1024, len(data)])
            at = rng.randrange(ends)
            at = rng.choice([at, len(data) - 1 - at]) % len(data)
            data[at] = rng.choice([0, 255, 128, 127, rng.randrange(256)])
        if rng.random() < 0.2:
            del data[rng.randrange(1, len(data)) :]
        path.write_bytes(data)
        start = time.monotonic()
        found, _, error = attempt(path)
        assert not error or "mutant" in error
        for function in found:
            count = len(function.blocks)
            assert all(0 <= a < count and 0 <= b < count for a, b in function.edges), seed
        assert time.monotonic() - start < 5, seed


def _sections(data: bytearray) -> list[tuple[int, tuple[int, ...]]]:
    """Offset and fields of every section header."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    places = [table + size * number for number in range(count)]
    return [(at, SECTION_HEADER.unpack_from(data, at)) for at in places]
