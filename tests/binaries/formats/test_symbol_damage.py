"""Files whose tables of symbols are damaged: they are read, and a remark says what is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphkin.binaries.formats.elf.constants import SectionKind
from graphkin.binaries.formats.elf.layouts import layouts, rows
from graphkin.binaries.formats.elf.load import load_elf
from graphkin.binaries.formats.elf.reader import read_elf
from graphkin.binaries.formats.elf.symbol_damage import symbol_damage
from tests.command_line import Graphkin
from tests.paths import BINARIES

PLAIN = BINARIES / "aarch64" / "gcc-shared-O2"
OFFSET, SIZE, LINK, ROW_SIZE = 24, 32, 40, 56
"""Where fields lie in a row of the table of sections."""


def damaged(data: bytes, section: int, field: int, value: int, width: int = 8) -> bytes:
    """The file with one field of one section changed."""
    header = rows(data, layouts(True, "little").header, 0, 1)[0]
    at = int(header["section_offset"]) + 64 * section + field
    return data[:at] + value.to_bytes(width, "little") + data[at + width :]


def symbols_of(data: bytes) -> tuple[int, int]:
    """The numbers of the table of symbols, and of that of its names."""
    sections = read_elf(data, "x").sections
    (number,) = (n for n, item in enumerate(sections) if item.kind == SectionKind.SYMBOLS)
    return number, sections[number].link


@pytest.fixture
def data() -> bytes:
    return PLAIN.read_bytes()


def overwritten(data: bytes, section: int, field: str | None, first: int = 0) -> bytes:
    """The file with a field of all rows of a table changed, or with zeros from a row on."""
    own = read_elf(data, "x").sections[section]
    layout = layouts(True, "little").symbol
    changed = bytearray(data)
    if field is None:
        start = own.offset + first * layout.itemsize
        changed[start : own.offset + own.size] = bytes(own.offset + own.size - start)
    else:
        table = np.frombuffer(changed, layout, own.size // layout.itemsize, own.offset)
        table[field] = 0xDEAD0000
    return bytes(changed)


LIES: dict[str, tuple[Callable[[bytes, int, int], bytes], str]] = {
    "names of nothing": (
        lambda data, _, names: overwritten(data, names, None),
        "of its names are empty",
    ),
    "half of its rows": (
        lambda data, table, _: overwritten(data, table, None, first=20),
        "of its rows are empty",
    ),
    "addresses of nothing": (
        lambda data, table, _: overwritten(data, table, "value"),
        "of its functions are in no section",
    ),
    "link to nothing": (
        lambda data, table, _: damaged(data, table, LINK, 0xFFFF, 4),
        "section 65535, which should have its names, has none",
    ),
    "link to code": (
        lambda data, table, _: damaged(data, table, LINK, 1, 4),
        "section 1, which should have its names, has none",
    ),
    "names beyond the file": (
        lambda data, _, names: damaged(data, names, OFFSET, 1 << 40),
        "its names lie beyond the end of the file",
    ),
    "few names": (
        lambda data, _, names: damaged(data, names, SIZE, 8),
        "of its names lie outside the table of names",
    ),
    "rows beyond the file": (
        lambda data, table, _: damaged(data, table, OFFSET, 1 << 40),
        "it lies beyond the end of the file",
    ),
    "half a row": (
        lambda data, table, _: damaged(
            data, table, SIZE, read_elf(data, "x").sections[table].size - 12
        ),
        " bytes are not a whole number of rows",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_lost_names_are_said(lie: str, data: bytes, run: Graphkin, tmp_path: Path) -> None:
    change, reason = LIES[lie]
    path = tmp_path / "damaged"
    path.write_bytes(change(data, *symbols_of(data)))
    honest = {extent.start for extent in load_elf(data, "x").extents}
    image = load_elf(path.read_bytes(), "x")
    assert image.remark is not None
    assert reason in image.remark
    assert len(honest & {extent.start for extent in image.extents}) >= 0.8 * len(honest)
    result = run("show", path)
    assert result.code == 0, "functions are all there"
    assert f"{path}: its table of symbols is damaged: " in result.err
    assert "; functions may lack their names" in result.err


def test_a_row_size_of_0_loses_nothing(data: bytes) -> None:
    table, _ = symbols_of(data)
    image = load_elf(damaged(data, table, ROW_SIZE, 0), "x")
    assert image.extents == load_elf(data, "x").extents
    assert image.remark is None


def test_honest_files() -> None:
    paths = [path for path in BINARIES.glob("*/*") if path.is_file()]
    files = [data for path in paths if (data := path.read_bytes()).startswith(b"\x7fELF")]
    assert len(files) > 100
    assert {symbol_damage(read_elf(data, "x")) for data in files} == {None}
