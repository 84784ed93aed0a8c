"""The script for radare2, run by radare2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphkin.binaries.samples.bundled import FIRMWARE, true_names
from graphkin.results.naming.radare2 import UNDO, radare2_script
from tests.results.naming.radare import radare2
from tests.results.naming.samples import carried, hostile_names, names_of

STARTS = sorted(true_names())[:40]
FIRST, SECOND, ABSENT = STARTS[1], STARTS[3], STARTS[0] + 1
NAMES = names_of(
    carried(FIRST, "decode", source_file="src/decode.c"),
    carried(SECOND, "encode.part.0"),
    carried(ABSENT, "nothing_here"),
)
ANALYSE = f"af @ 0x{FIRST:x};af @ 0x{SECOND:x}"
TAKE_BACK = f".!sed -n 's/^{UNDO}//p' names.r2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "names.r2").write_text(radare2_script(NAMES))
    return tmp_path


def names_in(text: str) -> dict[int, str]:
    """What ``afl`` lists of the functions that have something to do with the script."""
    lines = re.findall(r"^(0x[0-9a-f]+) .* (\S+)$", text, re.MULTILINE)
    listed = {int(address, 16): name for address, name in lines}
    return {start: listed[start] for start in STARTS if start in listed}


def test_automatic_names_are_replaced(folder: Path) -> None:
    said = radare2(FIRMWARE, ANALYSE, ". names.r2", "afl", folder=folder)
    named = {start: name for start, name in names_in(said).items() if "fcn." not in name}
    assert named == {FIRST: "decode", SECOND: "encode.part.0"}
    said = radare2(FIRMWARE, ANALYSE, ". names.r2", f"CC. @ 0x{FIRST:x}", folder=folder)
    assert said.strip() == "graphkin:decode,p=0.987,from=libx.so:0x900,in=src/decode.c"


def test_other_names_stay(folder: Path) -> None:
    by_hand = f"afn by_hand @ 0x{FIRST:x}"
    said = radare2(FIRMWARE, ANALYSE, by_hand, ". names.r2", "afl", folder=folder)
    assert names_in(said)[FIRST] == "by_hand"
    assert names_in(said)[SECOND] == "encode.part.0"
    said = radare2(FIRMWARE, ANALYSE, by_hand, ". names.r2", f"CC. @ 0x{FIRST:x}", folder=folder)
    assert said.strip() == ""


def test_undo(folder: Path) -> None:
    """Comments and names that somebody else gave stay."""
    before = (ANALYSE, f"CC looked at this @ 0x{SECOND:x}", "s 0x400300", ". names.r2")
    said = radare2(FIRMWARE, *before, TAKE_BACK, "afl", folder=folder)
    assert {name for name in names_in(said).values() if "fcn." not in name} == set()
    said = radare2(FIRMWARE, *before, TAKE_BACK, "CC~0x004", "?e at", "s", "f~seek", folder=folder)
    assert f"0x{FIRST:08x}" not in said
    assert "looked at this" in said
    assert said.split()[-1] == "0x400300"
    again = f"afn renamed @ 0x{FIRST:x}"
    said = radare2(FIRMWARE, *before, again, TAKE_BACK, "afl", folder=folder)
    assert names_in(said)[FIRST] == "renamed"


def test_names_are_never_commands(tmp_path: Path) -> None:
    names = hostile_names()
    items = [
        item.model_copy(update={"target": item.target.model_copy(update={"address": start})})
        for item, start in zip(names.names, STARTS, strict=False)
    ]
    assert len(items) == len(names.names)
    script = radare2_script(names.model_copy(update={"names": tuple(items)}))
    assert script.isascii()
    (tmp_path / "names.r2").write_text(script)
    analyse = (f"af @ 0x{start:x}" for start in STARTS)
    said = radare2(
        FIRMWARE, *analyse, ". names.r2", TAKE_BACK, ". names.r2", "afl", folder=tmp_path
    )
    named = names_in(said)
    own = [named[start] for start in STARTS[: len(items)] if start in named]
    assert len(own) > len(items) / 2
    assert not [name for name in own if name.startswith("fcn.")]
    assert {path.name for path in tmp_path.iterdir()} == {"names.r2"}
