"""CSV: columns, and names that a spreadsheet must not run."""

from __future__ import annotations

import csv

import pytest

from graphkin.results.csv_rows import COLUMNS, cell, csv_rows
from graphkin.results.document import FunctionResult
from tests.results.samples import (
    ADLER,
    HOSTILE,
    TALKING,
    result,
    result_named,
)


def read(*results: FunctionResult) -> list[dict[str, str]]:
    return list(csv.DictReader(csv_rows(results)))


def test_rows() -> None:
    rows = read(result(TALKING, ADLER), result())
    assert len(rows) == 2
    assert tuple(rows[0]) == COLUMNS
    assert rows[0] == {
        "query_binary": "firmware/lib one.so",
        "query_function": "sub_1234",
        "query_address": "0x1234",
        "query_blocks": "44",
        "rank": "1",
        "rank_by_distance": "4",
        "probability": "0.987000",
        "score": "-1.500000",
        "distance": "12",
        "matched_share": "0.930000",
        "binary": "openssl-1.0.1f/clang-14-O3/libssl.so.1.0.0",
        "function": "tls1_process_heartbeat",
        "address": "0xffffffff81000123",
        "blocks": "41",
        "architecture": "x86-64",
        "compiler": "clang 14",
        "build": "clang-14-O3",
        "tags": "cve=CVE-2014-0160;package=openssl",
        "query_demangled": "",
        "demangled": "",
        "shared": '"heartbeat of %d bytes"; 0x9e3779b9; memcpy',
        "note": "one of 3 equal copies",
        "patched": "",
    }
    unknown = ("probability", "score", "matched_share", "address", "tags", "shared", "note")
    assert [rows[1][name] for name in unknown] == [""] * 7


def test_names_of_cpp_are_there_as_they_are_and_as_the_source_spells_them() -> None:
    (row,) = read(result_named("_ZN3foo3barEi"))
    assert (row["function"], row["demangled"]) == ("_ZN3foo3barEi", "foo::bar(int)")
    assert (row["query_function"], row["query_demangled"]) == ("_ZN3foo3barEi", "foo::bar(int)")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\uff1d", "'"])
def test_no_cell_begins_a_formula_and_the_name_can_be_had_back(start: str) -> None:
    name = f"{start}cmd|' /C calc'!A0"
    (row,) = read(result_named(name))
    assert row["function"] == row["query_function"] == row["note"] == f"'{name}"


@pytest.mark.parametrize("name", ["main", "?f@@YAXXZ", "_Z1fv", "x=1", "a'b", ""])
def test_other_names_stay(name: str) -> None:
    assert cell(name) == name


@pytest.mark.parametrize("name", HOSTILE)
def test_a_row_is_one_line(name: str) -> None:
    lines = list(csv_rows([result_named(name)]))
    assert len(lines) == 2
    assert lines[1].endswith("\n")
    assert lines[1][:-1].isprintable()
    assert len(next(csv.reader([lines[1]]))) == len(COLUMNS)
