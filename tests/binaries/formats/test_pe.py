"""Windows binaries against the C source that they were made from, and against SMDA."""

from __future__ import annotations

import logging
import random
import struct
import time
from itertools import pairwise
from pathlib import Path

import pytest

from graphkin.binaries import Function, Skipped
from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.formats.pe.pdata import exception_ranges
from graphkin.errors import FormatError, GraphkinError
from tests.binaries.descent import block_starts
from tests.paths import BINARIES

SAMPLES = BINARIES / "pe"
GCC = [f"gcc-{cpu}-{level}" for cpu in ("x86_64", "i686") for level in ("O0", "O2")]
CLANG = [f"clang-{cpu}-{level}" for cpu in ("x86_64", "aarch64") for level in ("O0", "O2")]
EXPORTS = {"out", "choose", "count", "pick", "checked", "dispatch"}
SECTION = struct.Struct("<8s6I2HI")


def read(path: Path) -> tuple[list[Function], list[Skipped]]:
    source = NativeSource(path)
    return list(source.functions()), source.skipped


def by_name(name: str) -> dict[str, Function]:
    functions, skipped = read(SAMPLES / f"{name}.dll")
    assert skipped == []
    return {function.name: function for function in functions}


def successors(function: Function) -> list[set[int]]:
    lists: list[set[int]] = [set() for _ in function.blocks]
    for source, target in function.edges:
        lists[source].add(target)
    return lists


@pytest.mark.parametrize("name", [*GCC, *CLANG])
def test_control_flow_is_that_of_the_source(name: str) -> None:
    functions = by_name(name)
    assert functions.keys() >= EXPORTS
    assert len(functions) == 8
    # 12 cases, and the default by a comparison.
    assert max(map(len, successors(functions["pick"]))) == 12
    # The call that leaves, through the import table, and the return: two ends.
    assert sum(not targets for targets in successors(functions["checked"])) == 2
    assert any(target <= source for source, target in functions["count"].edges)
    assert (len(functions["out"].blocks), len(functions["dispatch"].blocks)) == (1, 1)
    assert {value.format for value in functions.values()} == {"pe"}
    expected = {"x86_64": "x86-64", "i686": "x86", "aarch64": "aarch64"}[name.split("-")[1]]
    assert {value.architecture for value in functions.values()} == {expected}


@pytest.mark.parametrize("name", [*GCC, *CLANG])
def test_block_starts_equal_those_of_a_slow_descent(name: str) -> None:
    path = SAMPLES / f"{name}.dll"
    image = load(path.read_bytes(), name)
    functions, _ = read(path)
    compared = 0
    for function in functions:
        if function.name in ("pick", "checked"):
            continue
        starts = block_starts(image, function.address, function.address + function.size)
        assert {block.address for block in function.blocks} == starts, function.name
        compared += 1
    assert compared == 6


@pytest.mark.parametrize("name", GCC)
def test_a_stripped_file_gives_the_same_graphs(name: str) -> None:
    whole = {value.address: value for value in by_name(name).values()}
    stripped = {value.address: value for value in by_name(f"{name}-stripped").values()}
    assert stripped.keys() == whole.keys()
    lost = {value.name for value in whole.values()} - {value.name for value in stripped.values()}
    assert lost == {"hidden", "DllMain"}
    for address, function in stripped.items():
        assert (function.blocks, function.edges) == (whole[address].blocks, whole[address].edges)


def test_names_units_and_hints() -> None:
    for name in GCC:
        functions = by_name(name)
        assert (functions["hidden"].unit, functions["count"].unit) == ("containers.c", None)
        assert functions["hidden"].compiler == "GCC: (GNU) 12-win32"
    # 32-bit names lose the underscore and the size of the arguments: _DllMain@12.
    assert "DllMain" in by_name("gcc-i686-O2")
    assert by_name("clang-x86_64-O2")["pick"].compiler == "linker 14.0"


def test_tables_and_unwind_data_of_msvc() -> None:
    """The source is msvc64.s."""
    functions = by_name("msvc64")
    image = load((SAMPLES / "msvc64.dll").read_bytes(), "msvc64.dll")
    base = functions["leaf"].address
    # ``hidden`` has neither a name nor unwind data: a call leads to it.
    assert set(functions) == {"leaf", "sparse", f"sub_{base + 0xA0:x}", "shrunk", "after"}
    # 4 targets behind a table of bytes; the fourth is also where the comparison goes.
    assert functions["sparse"].edges == (
        (0, 1), (0, 5), (1, 2), (1, 3), (1, 4), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6),
    )  # fmt: skip
    # Three ranges that follow each other are one function; the fourth is behind another one.
    assert functions["shrunk"].size == 38
    assert image.fragments == [(base + 0xF0, base + 0xF9)]
    assert functions["shrunk"].blocks[5].address == base + 0xF0
    assert functions["shrunk"].edges == ((0, 1), (0, 4), (1, 2), (1, 3), (2, 5), (3, 4), (5, 3))


def test_32_bit_code_without_symbols_or_unwind_data() -> None:
    """The source is msvc32.s: starts by the entry point, by calls, and by a pointer in data."""
    functions, skipped = read(SAMPLES / "msvc32.dll")
    assert skipped == []
    base = functions[0].address
    assert [function.address - base for function in functions] == [0, 0x20, 0xA0, 0xE0, 0xF0]
    # The aligned cases of the switches are no functions, though pointers lead to them.
    assert functions[1].edges == ((0, 1), (0, 5), (1, 2), (1, 3), (1, 4), (1, 5))
    assert functions[2].edges == ((0, 1), (0, 2))


@pytest.mark.parametrize("name", [*GCC, "clang-x86_64-O0", "clang-x86_64-O2"])
def test_agreement_with_smda(name: str) -> None:
    """Equal block starts in every function that both know, but for those that SMDA misreads:

    it does not know that ExitProcess never returns, and at gcc -O0 it finds either none of the
    targets of the jump table, or takes the code of other functions for targets.
    """
    smda = pytest.importorskip("smda.Disassembler")
    path = SAMPLES / f"{name}.dll"
    logging.disable(logging.CRITICAL)
    try:
        report = smda.Disassembler().disassembleFile(str(path))
    finally:
        logging.disable(logging.NOTSET)
    theirs = {
        getFunction.offset: {
            block.offset
            for block in getFunction.getBlocks()
            if not all(item.mnemonic in ("nop", "xchg") for item in block.getInstructions())
        }
        for getFunction in report.getFunctions()
    }
    misread = {"checked", "pick"} if name.startswith("gcc") and name.endswith("O0") else {"checked"}
    ours = {
        function.address: function for function in read(path)[0] if function.name not in misread
    }
    both = ours.keys() & theirs.keys()
    assert len(both) >= 5
    for address in both:
        assert {block.address for block in ours[address].blocks} == theirs[address]


def test_exception_data_of_arm64() -> None:
    """Each form of an entry, laid out by hand."""
    memory = bytearray(0x400)
    # 0x40 words, one epilog scope ahead of the codes; 0x20 words whose codes begin with end_c;
    # 0x10 words in the long form, with 2 scopes.
    struct.pack_into("<II", memory, 0x100, 0x40 | 1 << 22 | 1 << 27, 0)
    memory[0x108] = 0x81
    struct.pack_into("<I", memory, 0x140, 0x20 | 1 << 21 | 1 << 27)
    memory[0x144] = 0xE5
    struct.pack_into("<II", memory, 0x180, 0x10, 2 | 1 << 16)
    memory[0x190] = 0xE5
    directory = struct.pack(
        "<12I", 0x1000, 0x100, 0x1100, 0x140, 0x2000, 0x180,
        0x3000, 1 | 5 << 2, 0x4000, 2 | 6 << 2, 0x5000, 0x3FC,
    )  # fmt: skip
    ranges = exception_ranges(
        directory, lambda at, size: bytes(memory[at : at + size]), "aarch64", 0x10000
    )
    assert ranges == [
        # The second continues the first.
        (0x11000, 0x11180, False),
        (0x12000, 0x12040, True),
        (0x13000, 0x13014, False),
        (0x14000, 0x14018, True),
    ]


def test_sizes_of_arm64_functions_come_from_exception_data() -> None:
    image = load((SAMPLES / "clang-aarch64-O0.dll").read_bytes(), "clang-aarch64-O0.dll")
    assert all(extent.end <= following.start for extent, following in pairwise(image.extents))
    named = {extent.name: extent.end - extent.start for extent in image.extents}
    assert (named["choose"], named["pick"], named["checked"]) == (76, 424, 92)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (4, b"\xc4\x01", "code for ARMNT; graphkin reads x86-64, x86, aarch64"),
        (0, b"QQ", "damaged PE file, or a program for DOS"),
    ],
)
def test_foreign_headers_are_named(tmp_path: Path, offset: int, value: bytes, message: str) -> None:
    data, header = headers("gcc-x86_64-O2")
    data[header + offset : header + offset + len(value)] = value
    path = tmp_path / "strange.dll"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message) as caught:
        read(path)
    assert "strange.dll" in str(caught.value)


def test_a_net_assembly_is_named(tmp_path: Path) -> None:
    data, header = headers("gcc-x86_64-O2")
    # The header of the runtime: 72 bytes with the flag of "no machine code", in .rdata's padding.
    at = data.index(b".rdata\0\0")
    name, _, address, size, start, *rest = SECTION.unpack_from(data, at)
    SECTION.pack_into(data, at, name, size, address, size, start, *rest)
    data[start + size - 72 + 16] = 1
    struct.pack_into("<II", data, header + 24 + 112 + 14 * 8, address + size - 72, 72)
    path = tmp_path / "managed.dll"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"managed.dll is a \.NET assembly"):
        read(path)


@pytest.mark.parametrize("field", [1, 2, 3, 4])
@pytest.mark.parametrize("value", [1, 0x1FFF, 1 << 31, (1 << 32) - 1])
def test_section_headers_that_lie(field: int, value: int) -> None:
    """Size in memory, address, size and offset in the file, of each section in turn."""
    original, header = headers("gcc-x86_64-O2")
    count = int.from_bytes(original[header + 6 : header + 8], "little")
    read_on = 0
    for number in range(count):
        data = bytearray(original)
        at = header + 24 + 240 + number * SECTION.size
        fields = list(SECTION.unpack_from(data, at))
        fields[field] = value
        SECTION.pack_into(data, at, *fields)
        try:
            image = load(bytes(data), "liar.dll")
        except FormatError:
            continue
        # No more bytes than the file has, whatever the headers say.
        assert all(len(region.data) <= len(data) for region in image.regions)
        read_on += 1
    assert read_on


@pytest.mark.parametrize("count", [1, 1000, 1 << 31, (1 << 32) - 1])
def test_symbol_counts_that_lie(count: int) -> None:
    data, header = headers("gcc-x86_64-O2")
    struct.pack_into("<I", data, header + 12, count)
    image = load(bytes(data), "liar.dll")
    assert {extent.name for extent in image.extents} >= EXPORTS


@pytest.mark.parametrize("extra", [-1, 1])
def test_relocations_of_an_odd_size(extra: int) -> None:
    """The blocks behind one of them begin at odd places then."""
    data = bytearray((SAMPLES / "gcc-i686-O2.dll").read_bytes())
    header = data.index(b".reloc\0\0")
    _, virtual, _, raw, start, *_ = SECTION.unpack_from(data, header)
    (size,) = struct.unpack_from("<I", data, start + 4)
    assert 8 < size <= min(virtual, raw)
    struct.pack_into("<I", data, start + 4, size + extra)
    assert load(bytes(data), "odd.dll").extents


def test_a_source_file_whose_name_is_no_text() -> None:
    data = (SAMPLES / "gcc-x86_64-O2.dll").read_bytes().replace(b"containers.c", b"\xff" * 12)
    image = load(data, "odd.dll")
    assert {extent.name: extent.unit for extent in image.extents}["hidden"] is None


def headers(name: str) -> tuple[bytearray, int]:
    """A sample, and where its PE header is."""
    data = bytearray((SAMPLES / f"{name}.dll").read_bytes())
    return data, int.from_bytes(data[60:64], "little")


def test_mutants_neither_crash_nor_hang(tmp_path: Path) -> None:
    samples = [path.read_bytes() for path in sorted(SAMPLES.glob("*.dll"))]
    assert len(samples) == 14
    check_mutants(samples, tmp_path / "mutant")


def check_mutants(samples: list[bytes], path: Path) -> None:
    """Damaged samples end in functions or in an error that names the file, and soon."""
    good = 0
    for seed in range(400):
        path.write_bytes(mutate(random.Random(seed), samples))
        start = time.monotonic()
        functions, error = attempt(path)
        assert time.monotonic() - start < 5, seed
        assert not error or path.name in error
        good += bool(functions)
        for function in functions:
            count = len(function.blocks)
            assert all(0 <= a < count and 0 <= b < count for a, b in function.edges), seed
    assert good > 100


def attempt(path: Path) -> tuple[list[Function], str]:
    """Functions, or the message of graphkin's error; any other error passes through."""
    try:
        return read(path)[0], ""
    except GraphkinError as error:
        return [], str(error)


def mutate(rng: random.Random, samples: list[bytes]) -> bytes:
    """A sample with a few bytes changed, most of them in the headers; some are cut off."""
    data = bytearray(rng.choice(samples))
    for _ in range(rng.choice([1, 3, 10, 50])):
        at = rng.randrange(min(len(data), rng.choice([512, 2048, len(data)])))
        data[at] = rng.choice([0, 255, 128, 127, rng.randrange(256)])
    if rng.random() < 0.2:
        del data[rng.randrange(1, len(data)) :]
    return bytes(data)
