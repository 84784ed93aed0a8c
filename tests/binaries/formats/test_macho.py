"""Mach-O binaries against the C source that they were made from."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from graphkin.binaries import Function
from graphkin.binaries.backends.native import load
from graphkin.binaries.formats.macho.load import compact_unwind_starts
from graphkin.errors import FormatError
from tests.binaries.descent import block_starts
from tests.binaries.formats.test_pe import check_mutants, read, successors
from tests.paths import BINARIES

SAMPLES = BINARIES / "macho"
NAMES = ["out", "choose", "count", "pick", "checked", "hidden", "dispatch"]
"""In the order of the source; Zig's linker keeps it, as LLVM's does."""
LIBRARIES = ["lld-x86_64-O0", "lld-x86_64-O2", "lld-aarch64-O0", "lld-aarch64-O2", "zig-x86_64-O2"]
OBJECTS = ["clang-x86_64-O0", "clang-x86_64-O2", "clang-aarch64-O0", "clang-aarch64-O2"]
WHOLE = [f"{name}.dylib" for name in LIBRARIES] + [f"{name}.o" for name in OBJECTS]


def functions(name: str) -> list[Function]:
    recovered, skipped = read(SAMPLES / name)
    assert skipped == []
    return recovered


@pytest.mark.parametrize("name", [*WHOLE, "lld-x86_64-program", "lld-ios.dylib"])
def test_control_flow_is_that_of_the_source(name: str) -> None:
    recovered = {function.name: function for function in functions(name)}
    # As in ELF files: without the underscore that Apple's compilers put in front.
    assert list(recovered) == NAMES
    assert max(map(len, successors(recovered["pick"]))) == 12
    # The call that leaves, through a stub or, in objects, to a symbol; and the return.
    assert sum(not targets for targets in successors(recovered["checked"])) == 2
    assert any(target <= source for source, target in recovered["count"].edges)
    assert {value.format for value in recovered.values()} == {"macho"}
    is_arm = "aarch64" in name or "ios" in name
    assert {value.architecture for value in recovered.values()} == {
        "aarch64" if is_arm else "x86-64"
    }


@pytest.mark.parametrize("name", WHOLE)
def test_block_starts_equal_those_of_a_slow_descent(name: str) -> None:
    image = load((SAMPLES / name).read_bytes(), name)
    for function in functions(name):
        if function.name not in ("pick", "checked"):
            starts = block_starts(image, function.address, function.address + function.size)
            assert {block.address for block in function.blocks} == starts, function.name


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_gives_the_graphs_of_the_library(name: str) -> None:
    """Fixups stand for what the linker does: jump tables and calls have the same targets."""
    before, after = functions(f"{name}.o"), functions(f"{name.replace('clang', 'lld')}.dylib")
    for one, other in zip(before, after, strict=True):
        assert (one.name, one.edges) == (other.name, other.edges)
        assert [len(block.mnemonics) for block in one.blocks] == [
            len(block.mnemonics) for block in other.blocks
        ]


@pytest.mark.parametrize("name", ["lld-x86_64-O2", "lld-aarch64-O2"])
def test_a_stripped_library_has_function_starts(name: str) -> None:
    whole, stripped = functions(f"{name}.dylib"), functions(f"{name}-stripped.dylib")
    # Bytes of the headers moved with the symbols: addresses count from the first function.
    for one, other in zip(whole, stripped, strict=True):
        assert one.address - whole[0].address == other.address - stripped[0].address
        assert one.edges == other.edges
        assert other.name == (f"sub_{other.address:x}" if one.name == "hidden" else one.name)


def test_without_function_starts_unwind_tables_and_calls_tell() -> None:
    whole = functions("zig-x86_64-O2.dylib")
    recovered, skipped = read(SAMPLES / "zig-x86_64-O2-stripped.dylib")
    assert skipped == []
    assert [(function.address, function.edges) for function in recovered] == [
        (item.address, item.edges) for item in whole
    ]
    assert recovered[5].name == f"sub_{recovered[5].address:x}"


def test_compact_unwind_information_of_both_kinds_of_pages() -> None:
    content = struct.pack(
        "<7I 9I IHH4I IHHHH2I",
        1, 28, 0, 28, 0, 28, 3,
        0x1000, 64, 0, 0x2000, 88, 0, 0x3000, 0, 0,
        2, 8, 2, 0x1000, 0, 0x1040, 0,
        3, 12, 2, 20, 0, 0x0, 0x01000020,
    )  # fmt: skip
    assert list(compact_unwind_starts(content, 0x10000)) == [0x11000, 0x11040, 0x12000, 0x12020]
    for size in range(len(content)):
        assert len(list(compact_unwind_starts(content[:size], 0))) <= 4


def test_a_program_has_a_base_address_and_hints() -> None:
    recovered = functions("lld-x86_64-program")
    assert recovered[0].address >> 32 == 1
    assert recovered[0].compiler == "MACOS SDK 13.3, LD 14.0.6"


def test_a_fat_file_gives_every_slice() -> None:
    recovered = functions("fat.o")
    slices = {
        function.binary.partition("fat.o")[2]: function.architecture for function in recovered
    }
    assert slices == {"(x86_64)": "x86-64", "(arm64)": "aarch64"}
    assert [function.name for function in recovered] == NAMES + NAMES
    assert len({function.file_hash for function in recovered}) == 1


def test_a_fat_archive_gives_every_member_of_every_slice() -> None:
    recovered = functions("fat.a")
    assert list(dict.fromkeys(function.binary.partition("fat.a")[2] for function in recovered)) == [
        "(x86_64)(clang-x86_64-O0.o)",
        "(x86_64)(clang-x86_64-O2.o)",
        "(arm64)(clang-aarch64-O0.o)",
        "(arm64)(clang-aarch64-O2.o)",
    ]
    assert len(recovered) == 4 * len(NAMES)


def test_slices_that_lie_are_named(tmp_path: Path) -> None:
    data = bytearray((SAMPLES / "fat.o").read_bytes())
    path = tmp_path / "liar.o"
    (offset,) = struct.unpack_from(">I", data, 16)
    # The second slice where the first is; behind the end of the file; of a processor without
    # a reader, and damaged.
    struct.pack_into(">I", data, 36, offset)
    path.write_bytes(data)
    recovered, skipped = read(path)
    assert len(recovered) == len(NAMES)
    assert [str(item) for item in skipped] == [f"{path}(arm64) skipped: its slice overlaps another"]
    struct.pack_into(">I", data, 36, 0xFFFFFFF0)
    path.write_bytes(data)
    assert read(path)[1][0].reason == "the file ends inside it"
    struct.pack_into(">I", data, 8, 7)
    struct.pack_into("<I", data, offset + 4, 7)
    path.write_bytes(data)
    recovered, skipped = read(path)
    assert not recovered
    assert "liar.o(i386) is code for X86; graphkin reads x86-64, aarch64" in skipped[0].reason


def test_the_header_of_a_fat_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "strange"
    path.write_bytes(b"\xca\xfe\xba\xbe\0\0\0\x34" + bytes(100))
    with pytest.raises(FormatError, match="strange is a Java class"):
        read(path)
    for count in (b"\0\0\0\0", b"\0\0\0\x02"):
        path.write_bytes(b"\xca\xfe\xba\xbe" + count + bytes(20))
        with pytest.raises(FormatError, match="strange is a damaged fat file"):
            read(path)


def test_an_encrypted_file_is_named(tmp_path: Path) -> None:
    data = bytearray((SAMPLES / "lld-ios.dylib").read_bytes())
    (count,) = struct.unpack_from("<I", data, 16)
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0x2C:
            struct.pack_into("<I", data, at + 16, 1)
        at += size
    path = tmp_path / "shop.dylib"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"shop.dylib is encrypted \(cryptid 1\)"):
        read(path)


@pytest.mark.parametrize("value", [1, 1 << 31, (1 << 32) - 1])
def test_counts_and_offsets_that_lie(value: int) -> None:
    """Each number of each load command in turn."""
    original = (SAMPLES / "lld-x86_64-O2.dylib").read_bytes()
    (size,) = struct.unpack_from("<I", original, 20)
    survived = 0
    for at in range(32, 32 + size, 4):
        data = bytearray(original)
        struct.pack_into("<I", data, at, value)
        try:
            image = load(bytes(data), "liar.dylib")
        except FormatError:
            continue
        assert all(len(region.data) <= len(data) for region in image.regions)
        survived += 1
    assert survived > 50


def test_mutants_neither_crash_nor_hang(tmp_path: Path) -> None:
    samples = [path.read_bytes() for path in sorted(SAMPLES.iterdir())]
    assert len(samples) == 16
    check_mutants(samples, tmp_path / "mutant")
