"""Code that the table of sections does not show is read all the same."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.formats.elf.load import HIDDEN
from graphkin.binaries.samples import bundled

FILES = [bundled.FIRMWARE, *bundled.CROSS_FIRMWARES.values(), bundled.ELF / "gcc-O2/libkinbeat.so"]
FLAGS, ADDRESS, SIZE = 8, 16, 32
"""Offsets of fields in a row of the table of sections of 64 bits."""
ROW = 64


def text_row(data: bytes) -> int:
    """Where the row of .text begins, in a file of 64 bits with the low byte first."""
    table, names = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 62)[0]
    strings = struct.unpack_from("<Q", data, table + names * ROW + 24)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    for number in range(count):
        at = table + number * ROW
        name = strings + struct.unpack_from("<I", data, at)[0]
        if data[name : data.index(b"\0", name)] == b".text":
            return at
    raise AssertionError("there is a .text")


def size_of(value: int) -> Callable[[bytearray, int], None]:
    return lambda data, row: struct.pack_into("<Q", data, row + SIZE, value)


def not_executable(data: bytearray, row: int) -> None:
    struct.pack_into("<Q", data, row + FLAGS, 2)


def without_bytes(data: bytearray, row: int) -> None:
    struct.pack_into("<I", data, row + 4, 8)


def elsewhere(data: bytearray, row: int) -> None:
    address = struct.unpack_from("<Q", data, row + ADDRESS)[0]
    struct.pack_into("<Q", data, row + ADDRESS, address + 0x100000)


LIES = {
    "no size": size_of(0),
    "a smaller size": size_of(64),
    "no code": not_executable,
    "no bytes": without_bytes,
    "another address": elsewhere,
}


def starts(path: Path) -> tuple[set[int], list[str]]:
    source = NativeSource(path)
    return {item.address for item in source.functions()}, [item.reason for item in source.skipped]


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("path", [bundled.FIRMWARE, FILES[-1]], ids=lambda path: path.name)
def test_lies_about_code(lie: Callable[[bytearray, int], None], path: Path, tmp_path: Path) -> None:
    expected, reasons = starts(path)
    assert HIDDEN not in reasons
    data = bytearray(path.read_bytes())
    lie(data, text_row(data))
    copy = tmp_path / "lying"
    copy.write_bytes(data)
    actual, reasons = starts(copy)
    assert HIDDEN in reasons
    assert len(expected - actual) <= 0.05 * len(expected)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_honest_files(path: Path) -> None:
    _, reasons = starts(path)
    assert HIDDEN not in reasons


def test_a_file_that_lost_its_table_of_sections_alone(tmp_path: Path) -> None:
    data = bundled.FIRMWARE.read_bytes()
    copy = tmp_path / "cut"
    copy.write_bytes(data[: struct.unpack_from("<Q", data, 40)[0]])
    actual, reasons = starts(copy)
    expected, _ = starts(bundled.FIRMWARE)
    assert len(expected - actual) <= 0.05 * len(expected)
    assert any("truncated or damaged" in reason for reason in reasons)
