"""Names as a table, as rows and as JSON."""

from __future__ import annotations

import csv
import io
import json

import pytest

from graphkin.results.document import Names
from graphkin.results.naming.formats import NAME_FORMATS
from tests.results.naming.samples import carried, hostile_names, names_of


def test_table() -> None:
    names = names_of(carried(0x10, "_ZN2ns6decodeEi", source_file="a.cc"))
    *_, row, summary = NAME_FORMATS["table"](names).splitlines()
    assert row.split() == ["0.987", "0x10", "ns::decode(int)", "0x900", "a.cc"]
    assert summary == "1 name for 1 function without one; 3 have names already"
    assert NAME_FORMATS["table"](names_of()).startswith("0 names for 0 functions")


def test_rows() -> None:
    text = NAME_FORMATS["csv"](names_of(carried(0x10, "=cmd()", source_file="a.c")))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["name"] == "'=cmd()"
    assert (row["address"], row["probability"]) == ("0x10", "0.987000")
    assert (row["binary"], row["origin_binary"]) == ("firmware.bin", "libx.so")
    assert row["source_file"] == "a.c"


def test_json_is_the_whole_document() -> None:
    names = names_of(carried(0x10, "decode"), carried(0x20, "caf\udce9"))
    read = Names.model_validate(json.loads(NAME_FORMATS["json"](names)))
    assert read.names[0] == names.names[0]
    assert read.names[1].name == "caf\\xe9"


@pytest.mark.parametrize("name", NAME_FORMATS)
def test_every_format_takes_every_name(name: str) -> None:
    text = NAME_FORMATS[name](hostile_names())
    assert text.endswith("\n")
    text.encode()
    assert not [letter for letter in text if letter != "\n" and not letter.isprintable()]
