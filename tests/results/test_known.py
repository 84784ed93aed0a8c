"""A scan from the side of the library."""

from __future__ import annotations

from graphkin.results.document import FunctionRef, FunctionResult, Hit
from graphkin.results.known import by_known_function, known_table


def hit(function: str, probability: float, build: str = "O0", **tags: str) -> Hit:
    return Hit(
        function=function, binary=f"{build}/lib.so", address=16, blocks=9, id=1, rank=1,
        rank_by_distance=1, distance=3.0, probability=probability, tags=tags,
    )  # fmt: skip


def result(address: int, *hits: Hit) -> FunctionResult:
    query = FunctionRef(function=f"sub_{address:x}", binary="fw", address=address, blocks=9)
    return FunctionResult(query=query, hits=hits)


RESULTS = [
    result(0x100, hit("parse", 0.6, cve="X"), hit("parse", 0.9, "O2", cve="X"), hit("other", 0.7)),
    result(0x200),
    result(0x300, hit("parse.part.0", 0.95, cve="X"), hit("named", 0.8, seen="yes")),
]


def test_matches_of_a_known_function_are_its_likeliest_in_each_scanned_one() -> None:
    known = by_known_function(RESULTS)
    assert [(item.function, item.tags) for item in known] == [
        ("parse", "X"),
        ("named", "seen=yes"),
        ("other", "no tags"),
    ]
    matches = known[0].matches
    assert [(match.query.address, match.hit.probability) for match in matches] == [
        (0x300, 0.95),
        (0x100, 0.9),
    ]


def test_the_table_has_a_title_for_each_known_function() -> None:
    lines = known_table(RESULTS).splitlines()
    assert lines[0] == "parse  X"
    assert "0.950" in lines[2]
    assert "sub_300" in lines[2]
    assert lines[-1] == "3 known functions found"
    assert known_table([]) == "0 known functions found"
