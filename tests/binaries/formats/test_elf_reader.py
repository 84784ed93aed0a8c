"""The reader of ELF files: what a writer wrote, what an independent reader reads, and damage."""

from __future__ import annotations

import struct
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.binaries.formats.elf.android_relocations import unpacked
from graphkin.binaries.formats.elf.constants import Tag
from graphkin.binaries.formats.elf.load import load_elf
from graphkin.binaries.formats.elf.reader import ElfFile, read_elf
from graphkin.binaries.formats.elf.relocation_table import columns_of_bit_maps
from graphkin.binaries.formats.elf.symbol_table import ElfSymbol
from graphkin.errors import FormatError
from tests.binaries.formats.elf_writer import BASE, MIPS, ElfWriter, NewSection
from tests.paths import BINARIES

WRITERS = [ElfWriter(is_wide, order) for is_wide in (False, True) for order in ("little", "big")]
EMPTY = ElfSymbol("", 0, 0, 0, 0, 0, 0)
SYMTAB, STRTAB, RELA, REL, DYNSYM, SYMTAB_SHNDX = 2, 3, 4, 9, 11, 18
SAMPLES = [
    "aarch64/gcc-shared-O2",
    "aarch64/gcc-shared-O2.o",
    "arm/gcc-thumb-shared-O2",
    "arm/gcc-arm-static-O2.o",
    "mips/gcc-shared-O2",
    "mips/gcc-static-O2.o",
    "mips64el/gcc-shared-O2",
    "ppc/gcc-shared-O2",
    "ppc64le/clang-shared-O2",
    "riscv64/gcc-shared-O2",
    "x86/clang-shared-O2",
    "x86/clang-static-O2.o",
]
word = st.integers(0, (1 << 32) - 1)
byte = st.integers(0, 255)
symbols = st.lists(
    st.builds(
        ElfSymbol,
        name=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8),
        value=word,
        size=word,
        kind=st.integers(0, 15),
        binding=st.integers(0, 15),
        section=st.integers(0, 0xFFFE),
        other=byte,
    ),
    max_size=20,
)
relocations = st.lists(
    st.tuples(word, byte, st.integers(0, 30), st.integers(-(1 << 31), (1 << 31) - 1)), max_size=20
)


def _object(writer: ElfWriter, items: list[ElfSymbol], *more: NewSection) -> ElfFile:
    """An object with a section of code, its symbols, and more."""
    rows, strings = writer.symbols(items)
    text = NewSection(".text", 1, b"\xc3", flags=6)
    table = NewSection(".symtab", SYMTAB, rows, link=3)
    sections = [text, table, NewSection(".strtab", STRTAB, strings), *more]
    return read_elf(writer.object_file(sections), "written")


def _rows(file: ElfFile) -> list[tuple[int, int, ElfSymbol | None, int | None]]:
    return [tuple(entry) for table in file.relocations for entry in table.of()]


@pytest.mark.parametrize("writer", WRITERS)
@given(items=symbols, places=relocations)
def test_objects_are_read_back(
    writer: ElfWriter,
    items: list[ElfSymbol],
    places: list[tuple[int, int, int, int]],
) -> None:
    with_addends = b"".join(writer.relocation(*place) for place in places)
    without = b"".join(writer.relocation(*place[:3]) for place in places)
    file = _object(
        writer,
        items,
        NewSection(".rela.text", RELA, with_addends, link=2, info=1),
        NewSection(".rel.text", REL, without, link=2, info=1),
    )
    assert (file.header.is_wide, file.header.order) == writer[:2]
    names = ["", ".text", ".symtab", ".strtab", ".rela.text", ".rel.text", ".shstrtab"]
    assert [section.name for section in file.sections] == names
    assert list(file.symbols) == items
    assert [file.symbols[number] for number in range(len(items))] == items
    functions = [item for item in items if item.kind in (2, 10)]
    assert list(file.symbols.of_kinds(2, 10)) == functions
    assert [table.section for table in file.relocations] == [1, 1]
    known = [
        (offset, kind, items[number] if number < len(items) else None, addend)
        for offset, kind, number, addend in places
    ]
    assert _rows(file) == known + [(*row[:3], None) for row in known]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("hashes", ["hash", "gnu", "gnu-empty", "none"])
def test_files_without_sections_are_read_back(writer: ElfWriter, hashes: str) -> None:
    items = [EMPTY, *(ElfSymbol(f"f{n}", BASE + n, 4, 2, 1, n % 2, 0) for n in range(7))]
    rows, strings = writer.symbols(items)
    tables = {
        Tag.SYMBOLS: rows,
        Tag.STRINGS: strings,
        Tag.RELA: writer.relocation(0x300, 6, 2, 0) + writer.relocation(0x308, 8, 0, -5),
        Tag.REL: writer.relocation(0x310, 6, 1),
        Tag.PLT_RELOCATIONS: writer.relocation(0x318, 7, 7, 1),
        Tag.RELR: writer.pack("NN", 0x400, 0b1011),
    }
    if hashes == "hash":
        tables[Tag.HASH] = writer.pack("III", 1, len(items), 1) + bytes(4 * len(items))
    elif hashes == "gnu":
        # The symbols from 3 on are in two chains, which end with 5 and with 7.
        words = writer.pack("IIII", 2, 3, 1, 0) + writer.pack("N", 0) + writer.pack("II", 3, 6)
        tables[Tag.GNU_HASH] = words + writer.pack("IIIII", 2, 4, 7, 8, 9)
    elif hashes == "gnu-empty":
        words = writer.pack("IIII", 1, 1, 1, 0) + writer.pack("N", 0) + writer.pack("I", 0)
        tables[Tag.GNU_HASH] = words
    sizes = {
        Tag.STRINGS_SIZE: len(strings),
        Tag.RELA_SIZE: len(tables[Tag.RELA]),
        Tag.REL_SIZE: len(tables[Tag.REL]),
        Tag.PLT_RELOCATIONS_SIZE: len(tables[Tag.PLT_RELOCATIONS]),
        Tag.PLT_RELOCATIONS_KIND: Tag.RELA,
        Tag.RELR_SIZE: len(tables[Tag.RELR]),
        Tag.INIT: 0x500,
    }
    file = read_elf(writer.linked_file(tables, sizes), "written")
    assert file.sections == []
    assert list(file.dynamic_symbols) == items
    assert len(file.symbols) == 0
    assert file.dynamic.get(Tag.INIT) == 0x500
    assert _rows(file) == [
        (0x300, 6, items[2], 0),
        (0x308, 8, EMPTY, -5),
        (0x310, 6, items[1], None),
        (0x318, 7, items[7], 1),
        *((0x400 + writer.word * step, 8, EMPTY, None) for step in (0, 1, 3)),
    ]


@pytest.mark.parametrize("width", [4, 8])
@given(numbers=st.sets(st.integers(0, 2000), max_size=60))
def test_maps_of_bits(width: int, numbers: set[int]) -> None:
    addresses = sorted(width * number for number in numbers)
    rest, words, base, bits = addresses, [], -1, 8 * width - 1
    while rest:
        inside = [item for item in rest if base >= 0 and (item - base) // width < bits]
        if inside:
            words.append(1 | sum(2 << (item - base) // width for item in inside))
            base += bits * width
        else:
            inside = rest[:1]
            words.append(rest[0])
            base = rest[0] + width
        rest = rest[len(inside) :]
    table = np.array(words, f"<u{width}")
    columns = columns_of_bit_maps(table, 8, most=100)
    assert columns.offsets.tolist() == addresses
    assert set(columns.kinds.tolist()) <= {8}


def test_maps_of_bits_cannot_ask_for_all_memory() -> None:
    table = np.full(1 << 16, (1 << 64) - 1, "<u8")
    table[0] = 0
    assert len(columns_of_bit_maps(table, 8, most=1000)) <= 1000


def test_relocations_that_android_packs() -> None:
    def signed(value: int) -> bytes:
        out = bytearray()
        while not -64 <= value < 64:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value & 0x7F])

    relative, jump = 8, 5 << 32 | 7
    numbers = [5, 0x1000]
    numbers += [3, 1 | 2 | 8, 8, relative, 0x400, 16, -8]  # same steps and kinds, other addends
    numbers += [2, 0, 0x100, jump, -0x10, jump]  # nothing in common, no addends
    packed = b"APS2" + b"".join(map(signed, numbers))
    columns = unpacked(packed, is_wide=True, has_addends=True)
    assert columns.offsets.tolist() == [0x1008, 0x1010, 0x1018, 0x1118, 0x1108]
    assert columns.kinds.tolist() == [8, 8, 8, 7, 7]
    assert columns.symbols.tolist() == [0, 0, 0, 5, 5]
    assert columns.addends is not None
    assert columns.addends.tolist() == [0x400, 0x410, 0x408, 0, 0]
    for end in range(len(packed)):
        assert len(unpacked(packed[:end], is_wide=True, has_addends=True)) <= 5


@pytest.mark.parametrize("order", ["little", "big"])
def test_relocations_of_mips_of_64_bits(order: str) -> None:
    writer = ElfWriter(True, "little" if order == "little" else "big", MIPS)
    items = [EMPTY, EMPTY._replace(name="f", section=1)]
    place = NewSection(".rela.text", RELA, writer.relocation(16, 20, 1, 3), link=2, info=1)
    assert _rows(_object(writer, items, place)) == [(16, 20, items[1], 3)]


@pytest.mark.parametrize("writer", WRITERS)
def test_numbers_of_sections_that_do_not_fit(writer: ElfWriter) -> None:
    items = [EMPTY, EMPTY._replace(section=0xFFFF), EMPTY._replace(section=7)]
    numbers = NewSection(".symtab_shndx", SYMTAB_SHNDX, writer.pack("III", 0, 70000, 0), link=2)
    rows, strings = writer.symbols(items)
    table = NewSection(".symtab", SYMTAB, rows, link=3)
    data = bytearray(
        writer.object_file(
            [NewSection(".text", 1), table, NewSection(".strtab", STRTAB, strings), numbers]
        )
    )
    # The count and the section of names move into the first section.
    at = struct.calcsize("16sHHIQQQIHHHH") if writer.is_wide else struct.calcsize("16sHHIIIIIHHHH")
    offset = 40 if writer.is_wide else 32
    first = int.from_bytes(data[offset : offset + writer.word], writer.order)
    size, link = (32, 40) if writer.is_wide else (20, 24)
    data[at : at + 4] = writer.pack("HH", 0, 0xFFFF)
    data[first + size : first + size + writer.word] = writer.pack("N", 6)
    data[first + link : first + link + 4] = writer.pack("I", 5)
    file = read_elf(bytes(data), "written")
    names = ["", ".text", ".symtab", ".strtab", ".symtab_shndx", ".shstrtab"]
    assert [section.name for section in file.sections] == names
    assert [symbol.section for symbol in file.symbols] == [0, 70000, 7]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_table_of_no_sections(writer: ElfWriter) -> None:
    """Its offset may be left over, and lead anywhere."""
    data = bytearray(writer.object_file([NewSection(".text", 1, b"\xc3" * 99)]))
    at, count_at = (40, 60) if writer.is_wide else (32, 48)
    data[at : at + writer.word] = writer.pack("N", 64)
    data[count_at : count_at + 2] = bytes(2)
    assert read_elf(bytes(data), "written").sections == []


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("hidden", [[4], [5], [4, 5]])
def test_a_header_that_hides_its_layout(writer: ElfWriter, hidden: list[int]) -> None:
    data = bytearray(writer.object_file([NewSection(".text", 1)]))
    for at in hidden:
        data[at] = 0
    header = read_elf(bytes(data), "written").header
    assert (header.is_wide, header.order) == writer[:2]


@pytest.mark.parametrize("name", SAMPLES)
def test_another_reader_reads_the_same(name: str) -> None:
    path = BINARIES / name
    file = read_elf(path.read_bytes(), name)
    with path.open("rb") as stream:
        other = ELFFile(stream)
        assert [
            (item.name, item["sh_offset"], item["sh_size"], item["sh_flags"], item["sh_addr"])
            for item in other.iter_sections()
        ] == [(s.name, s.offset, s.size, s.flags, s.address) for s in file.sections]
        assert [
            (item["p_offset"], item["p_vaddr"], item["p_filesz"], item["p_flags"])
            for item in other.iter_segments()
        ] == [(s.offset, s.address, s.size, s.flags) for s in file.segments]
        for kind, table in (("SHT_SYMTAB", file.symbols), ("SHT_DYNSYM", file.dynamic_symbols)):
            assert [
                (symbol.name, symbol["st_value"], symbol["st_size"])
                for section in other.iter_sections(kind)
                for symbol in section.iter_symbols()
            ] == [(symbol.name, symbol.value, symbol.size) for symbol in table]
        theirs = {
            (
                place["r_offset"],
                place["r_info_type"],
                place["r_info_sym"],
                place.entry.get("r_addend"),
            )
            for section in other.iter_sections()
            if isinstance(section, RelocationSection)
            for place in section.iter_relocations()
        }
    ours = set()
    for table in file.relocations:
        columns = table.columns
        count = len(columns)
        addends = [None] * count if columns.addends is None else columns.addends.tolist()
        rows = (columns.offsets.tolist(), columns.kinds.tolist(), columns.symbols.tolist(), addends)
        ours |= set(zip(*rows, strict=True))
    assert ours == theirs
    assert ours


@pytest.mark.parametrize("name", ["x86/clang-shared-O2", "mips64el/gcc-shared-O2"])
def test_symbols_of_a_file_whose_sections_were_removed(name: str) -> None:
    data = bytearray((BINARIES / name).read_bytes())
    whole = read_elf(bytes(data), name)
    at, width, count_at = (40, 8, 60) if whole.header.is_wide else (32, 4, 48)
    data[at : at + width] = bytes(width)
    data[count_at : count_at + 4] = bytes(4)
    bare = read_elf(bytes(data), name)
    assert (bare.sections, len(bare.symbols)) == ([], 0)
    assert list(bare.dynamic_symbols) == list(whole.dynamic_symbols)
    assert _rows(bare) == _rows(whole)


def test_relocations_cannot_ask_for_all_memory() -> None:
    """A thousand sections that are the whole file each."""
    writer = ElfWriter(True, "little")
    file = _object(writer, [EMPTY], NewSection(".rel.text", REL, bytes(1 << 16), link=2, info=1))
    whole = file.sections[4]._replace(offset=0, size=1 << 60)
    file = replace(file, sections=[*file.sections[:4], *[whole] * 1000])
    assert sum(len(table.columns) for table in file.relocations) <= len(file.data) / 16


def test_names_cannot_ask_for_all_memory() -> None:
    """A million symbols, each with another part of one long name."""
    writer, count = ElfWriter(False, "little"), 100_000
    rows = np.zeros((count, 4), "<u4")
    rows[:, 0] = np.arange(count)
    table = NewSection(".symtab", SYMTAB, rows.tobytes(), link=2)
    data = writer.object_file([table, NewSection(".strtab", STRTAB, b"x" * count)])
    start = time.process_time()
    assert sum(len(symbol.name) for symbol in read_elf(data, "written").symbols) < 6 * count
    assert time.process_time() - start < 10


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_damage_is_an_error_or_read_around(name: str, data: st.DataObject) -> None:
    content = bytearray((BINARIES / name).read_bytes())
    tables = [(0, 64), *_tables(read_elf(bytes(content), name))]
    for _ in range(data.draw(st.integers(1, 8))):
        start, size = data.draw(st.sampled_from(tables))
        at = start + data.draw(st.integers(0, size - 1))
        value = data.draw(
            st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xff" * 8, b"\0" * 4])
        )
        content[at : at + len(value)] = value
    end = data.draw(st.sampled_from([len(content), len(content) * 2 // 3, len(content) // 9]))
    damaged = bytes(content[:end])
    began = time.process_time()
    with suppress(FormatError):
        file = read_elf(damaged, name)
        assert len(list(file.symbols)) == len(file.symbols)
        assert len(list(file.dynamic_symbols)) == len(file.dynamic_symbols)
        assert len(_rows(file)) == sum(len(table.columns) for table in file.relocations)
    assert time.process_time() - began < 2
    # On the others, recovery may take seconds for data that it takes for code.
    if not name.startswith(("ppc", "riscv64")):
        with suppress(FormatError):
            load_elf(damaged, name)


def _tables(file: ElfFile) -> list[tuple[int, int]]:
    """(offset, size) of what a reader of the file looks at."""
    row = 64 if file.header.is_wide else 40
    headers = (file.header.end_of_sections - row * len(file.sections), row * len(file.sections))
    kinds = (SYMTAB, STRTAB, RELA, REL, DYNSYM, 6, 7)
    sections = ((item.offset, item.size) for item in file.sections if item.kind in kinds)
    return [headers, *(place for place in sections if place[1])]


def test_no_header() -> None:
    for data in (b"", b"\x7fELF", b"\x7fELF\2\1\1" + bytes(50), bytes(100)):
        with pytest.raises(FormatError, match="headers cannot be read"):
            read_elf(data, "short")
