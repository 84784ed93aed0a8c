"""Tables at a terminal."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from graphkin.results.document import BlockPair, Evidence, FunctionRef, PatchVerdict, SearchedFile
from graphkin.results.tables import hits_tables, scan_table, search_table
from tests.results.samples import (
    ADLER,
    HEARTBEAT,
    HOSTILE,
    INFLATE,
    QUERY,
    TALKING,
    changed,
    result,
    result_named,
)

FOUND = result(HEARTBEAT, INFLATE)


SEARCH = """\
sub_1234 of firmware/lib one.so at 0x1234, 44 blocks
#  before  prob.  score  dist.  blocks  function                binary                      address
1       4  0.987  -1.50     12     93%  tls1_process_heartbeat  …/clang-14-O…bssl.so.1.0.0    0x5a0
     cve=CVE-2014-0160  package=openssl
     block pairs  0=0 (0.99)  3=4 (0.75)
2       1  0.600  -3.00     30          inflate.part.0          libz.so                        0x40
"""


def test_a_search() -> None:
    near = changed(HEARTBEAT, address=0x5A0)
    table = search_table(result(near, INFLATE), width=99)
    assert table.splitlines() == SEARCH.splitlines()


SAID = """\
     one of 3 equal copies
     cve=CVE-2014-0160  package=openssl
     both say  "heartbeat of %d bytes", 0x9e3779b9, memcpy
     block pairs  0=0 (0.99)  3=4 (0.75)
"""


def test_a_search_says_what_both_say_and_why_a_probability_is_low() -> None:
    assert search_table(result(TALKING)).splitlines()[3:] == SAID.splitlines()
    narrow = search_table(result(TALKING), width=57).splitlines()
    assert narrow[5] == '     both say  "heartbeat of %d bytes" and 2 more'


def test_a_scan_has_the_rarest_word_that_both_say() -> None:
    alone = changed(TALKING, shared=TALKING.shared[2:], note=None)
    _, head, *lines = scan_table([result(TALKING), result(alone), FOUND], width=140).splitlines()
    assert head.endswith("  both say")
    assert lines[0].endswith('  "heartbeat of %d bytes" +2')
    assert lines[1] == "       one of 3 equal copies"
    assert lines[2].endswith("  memcpy")
    assert lines[3].endswith("libssl.so.1.0.0")
    assert "both say" not in scan_table([FOUND])


def test_columns_without_values_are_left_out() -> None:
    header = search_table(result(ADLER)).splitlines()[1]
    assert header.split() == ["#", "before", "dist.", "function", "binary", "address"]


def test_nothing_found() -> None:
    assert "nothing found" in search_table(result())


LONG = "_ZN" + "9namespace" * 30
WIDE = result(
    *(
        changed(
            HEARTBEAT,
            function="漢字" * 40,
            binary=LONG,
            address=2**64 - 1,
            tags={"cve": LONG},
            evidence=Evidence(
                matched_share=1.0, pairs=tuple(BlockPair(9000 + n, n, 0.5) for n in range(50))
            ),
        )
        for _ in range(12)
    ),
    query=FunctionRef(function=LONG, binary=f"/{LONG}", address=2**64 - 1, blocks=100_000),
)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_fit(width: int) -> None:
    for table in (search_table(WIDE, width=width), scan_table([WIDE, FOUND], width=width)):
        lines = table.splitlines()
        assert max(map(cell_len, lines)) <= width
        assert max(map(cell_len, lines)) > width - 12, "the width that there is gets used"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_steer_nothing(name: str) -> None:
    hostile = result_named(name)
    tables = search_table(hostile, width=500), scan_table([hostile], width=500)
    for table in tables:
        assert all(line.isprintable() for line in table.split("\n"))
        table.encode()
    assert tables[0].count("\n") == 5, "a name stays on its line"


def test_names_of_cpp_are_shown_as_the_source_spells_them() -> None:
    named = result_named("_ZN3foo3barEi")
    for table in (search_table(named), scan_table([named])):
        assert table.count("foo::bar(int)") == 2


def test_a_scan_groups_by_vulnerability() -> None:
    likely = result(changed(INFLATE, probability=0.95))
    tagged = result(
        changed(ADLER, function="f", binary="", tags={"os": "x"}),
        query=changed(QUERY, function="tagged"),
    )
    nothing = result(query=FunctionRef(function="empty", binary="other.so", address=0, blocks=1))
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
        result(
            changed(INFLATE, probability=probability),
            query=changed(QUERY, function=f"f{probability}"),
        )
        for probability in (0.2, 0.9, None, 0.5)
    ]
    assert re.findall(r"\bf(\S+)  +0x1234", scan_table(results)) == ["0.9", "0.5", "0.2", "None"]


def test_a_scan_of_one_file_names_it_once() -> None:
    table = scan_table([FOUND])
    assert table.count("firmware/lib one.so") == 1
    assert scan_table([]) == "0 files: no function was looked up"


def test_two_versions_of_a_file_do_not_look_alike() -> None:
    root = "/srv/builds/of/every/night/and/day/in/a/long/folder"
    hits = [
        changed(INFLATE, id=n, binary=f"{root}/acme-{version}/lib/libacme.so")
        for n, version in enumerate(("1.0", "1.1"))
    ]
    for table in (
        search_table(result(*hits)),
        scan_table([result(hit, query=changed(QUERY, address=hit.id)) for hit in hits]),
    ):
        assert "…/acme-1.0/lib/libacme.so" in table
        assert "…/acme-1.1/lib/libacme.so" in table


def test_files_without_a_function_to_look_up() -> None:
    searched = SearchedFile(binary="firmware/lib one.so", functions=1)
    small = SearchedFile(binary="plugin.so", functions=0, small=3)
    empty = SearchedFile(binary="odd.so", functions=0)
    assert scan_table([], [small]) == (
        "plugin.so: no function was looked up; too few blocks: 3 functions"
    )
    assert hits_tables([], [small]) == scan_table([], [small]) + "\n"
    assert scan_table([], [empty]) == "odd.so: no function was looked up"
    assert scan_table([FOUND], [searched, small, empty]).splitlines()[-1] == (
        "3 files: 1 function, 1 with a hit, none to look up in 2 files"
    )
    assert scan_table([FOUND], [searched]).splitlines()[-1] == (
        "firmware/lib one.so: 1 function, 1 with a hit"
    )


def test_reasons_of_a_verdict_are_whole() -> None:
    reason = f"does not say {', '.join(map(str, range(40)))}, which only the repaired one says"
    verdict = PatchVerdict(
        identifier="CVE-2014-0160", verdict="vulnerable", probability=0.1, vulnerable=QUERY,
        fixed=QUERY, reasons=(reason, *HOSTILE),
    )  # fmt: skip
    judged = FOUND.model_copy(update={"patches": (verdict,)})
    for table in (search_table(judged, width=60), scan_table([judged], width=60)):
        lines = table.splitlines()
        start = next(at for at, line in enumerate(lines) if "not repaired (0.90)" in line)
        joined = " ".join(line.strip() for line in lines[start + 1 :])
        assert reason in joined
        assert table.isprintable() or set(table) - {"\n"} == set(filter(str.isprintable, table))
