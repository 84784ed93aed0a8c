"""Tables at a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from graphkin.results.document import BlockPair, Evidence, Query, SearchResult
from graphkin.results.known_function import KnownFunction
from graphkin.results.tables import scan_table, search_table
from tests.results.samples import ADLER, HEARTBEAT, HOSTILE, INFLATE, QUERY, result_named

FOUND = SearchResult(QUERY, (HEARTBEAT, INFLATE))


SEARCH = """\
sub_1234 of firmware/lib one.so at 0x1234, 44 blocks
#  was  prob.  score  dist.  blocks  function                binary                      address
1    4  0.987  -1.50     12     93%  tls1_process_heartbeat  openssl-1.0.…bssl.so.1.0.0    0x5a0
     cve=CVE-2014-0160  package=openssl
     block pairs  0=0 (0.99)  3=4 (0.75)
2    1  0.600  -3.00     30          inflate.part.0          libz.so                        0x40
"""


def test_a_search() -> None:
    near = replace(HEARTBEAT, entry=replace(HEARTBEAT.entry, address=0x5A0))
    table = search_table(SearchResult(QUERY, (near, INFLATE)), width=96)
    assert table.splitlines() == SEARCH.splitlines()


def test_columns_without_values_are_left_out() -> None:
    header = search_table(SearchResult(QUERY, (ADLER,))).splitlines()[1]
    assert header.split() == ["#", "was", "dist.", "function", "binary", "address"]


def test_nothing_found() -> None:
    assert "nothing found" in search_table(SearchResult(QUERY, ()))


LONG = "_ZN" + "9namespace" * 30
WIDE = SearchResult(
    Query(f"/{LONG}", LONG, 2**64 - 1, 100_000),
    tuple(
        replace(
            HEARTBEAT,
            entry=KnownFunction("漢字" * 40, LONG, 2**64 - 1, tags={"cve": LONG}),
            evidence=Evidence(1.0, tuple(BlockPair(9000 + n, n, 0.5) for n in range(50))),
        )
        for _ in range(12)
    ),
)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_fit(width: int) -> None:
    for table in (search_table(WIDE, width=width), scan_table([WIDE, FOUND], width=width)):
        lines = table.splitlines()
        assert max(map(cell_len, lines)) <= width
        assert max(map(cell_len, lines)) > width - 12, "the width that there is gets used"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_steer_nothing(name: str) -> None:
    result = result_named(name)
    tables = search_table(result, width=500), scan_table([result], width=500)
    for table in tables:
        assert all(line.isprintable() for line in table.split("\n"))
        table.encode()
    assert tables[0].count("\n") == 3, "a name stays on its line"


def test_a_scan_groups_by_vulnerability() -> None:
    likely = SearchResult(QUERY, (replace(INFLATE, probability=0.95),))
    tagged = SearchResult(
        replace(QUERY, function="tagged"),
        (replace(ADLER, entry=KnownFunction("f", tags={"os": "x"})),),
    )
    nothing = SearchResult(Query("other.so", "empty", 0, 1), ())
    lines = scan_table([likely, nothing, tagged, FOUND]).splitlines()
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles == [
        "CVE-2014-0160  package=openssl",
        "os=x",
        "no tags",
        "2 files: 4 functions, 3 with a hit",
    ]
    assert lines[2].split()[:5] == ["0.987", "12", "93%", "sub_1234", "0x1234"]
    assert "tls1_proc" in lines[2]
    assert "empty" not in "".join(lines)


def test_within_a_group_the_likeliest_is_first() -> None:
    results = [
        SearchResult(replace(QUERY, function=f"f{chance}"), (replace(INFLATE, probability=chance),))
        for chance in (0.2, 0.9, None, 0.5)
    ]
    assert re.findall(r"\bf(\S+)  +0x1234", scan_table(results)) == ["0.9", "0.5", "0.2", "None"]


def test_a_scan_of_one_file_names_it_once() -> None:
    table = scan_table([FOUND])
    assert table.count("firmware/lib one.so") == 1
    assert scan_table([]).endswith("0 files: 0 functions, 0 with a hit")
