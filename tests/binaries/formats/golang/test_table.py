"""Go's table of functions in all its versions, and tables that mean harm."""

from __future__ import annotations

import random
import struct
import time

import pytest

from graphkin.binaries.formats.golang.table import MOST_TRIED, find_tables, read_table
from tests.binaries.formats.golang.tables import FORMS, Form, table

FUNCTIONS = [
    (0x1000, "runtime.text·1"),
    (0x1040, "main.(*Stack[...]).Push"),
    (0x1100, "example.com/größe.type:.eq.[2]interface {}"),
    (0x1100, "main.empty"),
    (0x1180, "main.main"),
]
NAMES = tuple(name for _, name in FUNCTIONS)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_each_version_order_and_width(form: Form) -> None:
    read = read_table(table(form, FUNCTIONS, 0x1200, text=0x7000))
    assert read is not None
    assert read.names == NAMES
    assert read.starts.tolist() == [0x1000, 0x1040, 0x1100, 0x1100, 0x1180, 0x1200]
    assert (read.version, read.pointer) == (form.version, form.pointer)
    assert read.byte_order == ("big" if form.big else "little")
    assert read.text_slot == (8 + 2 * form.pointer if form.version >= 18 else None)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_table_is_found_by_its_magic_number(form: Form) -> None:
    fake = b"\xf1\xff\xff\xff\0\0\x01\x08" + b"\xff" * 64
    content = b"code" * 9 + fake + table(form, FUNCTIONS, 0x1200) + b"more"
    ((at, parsed),) = find_tables(content)
    assert (at, parsed.names) == (36 + len(fake), NAMES)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_cut_table_is_none(form: Form) -> None:
    whole = table(form, FUNCTIONS, 0x1200)
    read = [read_table(whole[:size]) for size in range(len(whole))]
    assert all(item is None or len(item.names) == len(FUNCTIONS) for item in read)
    assert not any(read[: len(whole) // 4])


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_starts_that_do_not_rise_are_none(form: Form) -> None:
    assert read_table(table(form, [(0x2000, "a"), (0x1000, "b")], 0x3000)) is None
    assert read_table(table(form, FUNCTIONS, 0x100)) is None
    assert read_table(table(form, [], 0x100)) is None


def test_a_name_that_is_not_utf8_or_not_there() -> None:
    form = Form(20)
    read = read_table(table(form, [(0, "caf\udce9"), (8, "main.main")], 16))
    assert read is not None
    assert read.names == ("caf\ufffd", "main.main")
    content = bytearray(table(form, FUNCTIONS, 0x1200))
    record = content.index(struct.pack("<Ii", 0x1040, len("runtime.text·1".encode()) + 1))
    for offset in (-5, 1 << 30):
        content[record + 4 : record + 8] = struct.pack("<i", offset)
        damaged = read_table(bytes(content))
        assert damaged is not None
        assert damaged.names == (NAMES[0], "", *NAMES[2:])


def test_names_inside_each_other_take_no_more_memory_than_the_table() -> None:
    name = "n" * 60_000
    count = 5_000
    content = bytearray(table(Form(20), [(16 * n, name[:1]) for n in range(count)], 1 << 20))
    names_at = int.from_bytes(content[32:40], "little")
    list_at = int.from_bytes(content[64:72], "little")
    content[names_at:list_at] = b""
    content[names_at:names_at] = name.encode() + b"\0"
    moved = names_at + len(name) + 1
    for word in range(4, 8):
        content[8 + 8 * word : 16 + 8 * word] = moved.to_bytes(8, "little")
    for number in range(count):
        record = moved + int.from_bytes(content[moved + 8 * number + 4 :][:4], "little")
        content[record + 4 : record + 8] = number.to_bytes(4, "little")
    read = read_table(bytes(content))
    assert read is not None
    assert read.names[0] == name
    assert sum(map(len, read.names)) <= len(name) + 1


def test_many_magic_numbers_cost_little() -> None:
    content = table(Form(20), FUNCTIONS, 0x1200)[:16] * 200_000
    started = time.process_time()
    assert list(find_tables(content)) == []
    assert time.process_time() - started < 2
    behind = b"\xf1\xff\xff\xff\0\0\x01\x08" * MOST_TRIED + table(Form(20), FUNCTIONS, 0x1200)
    assert list(find_tables(behind)) == []


def test_damage_anywhere_raises_nothing() -> None:
    rng = random.Random(1)
    for form in FORMS:
        whole = table(form, FUNCTIONS, 0x1200)
        for _ in range(200):
            content = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                content[rng.randrange(8, len(whole))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            read = read_table(bytes(content))
            assert read is None or len(read.starts) == len(read.names) + 1
