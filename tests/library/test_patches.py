"""Vulnerable or repaired: verdicts on the bundled pair, and on graphs made for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphkin import Graph, Library
from graphkin.binaries import samples
from graphkin.graphs import WordBags, packing
from graphkin.graphs.words import word_hash
from graphkin.library.indexing.index import index_paths
from graphkin.library.line_numbers import line_numbers
from graphkin.library.patch_signals import SIGNALS, KnownVersions, VersionPair, version_bags
from graphkin.library.patches import PatchJudge, judge
from graphkin.library.records import Filter, KnownFunction, SearchOptions, Stored
from graphkin.library.scan import Query, read_queries
from graphkin.library.whole_files import look_up_files
from graphkin.results.document import EvidenceToken, FunctionRef, PatchVerdict
from graphkin.results.patches import verdict_text

FUNCTION, IDENTIFIER = samples.VULNERABLE[1], samples.TAG[1]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with Library.create(tmp_path_factory.mktemp("patches") / "library.kin") as library:
        for tag, name in (("cve", "libkinbeat.so"), ("fixed", "libkinbeat-fixed.so")):
            files = [samples.path(f"{build}/{name}") for build in ("gcc-O2", "gcc-O1", "clang-O1")]
            index_paths(library, files, tags={tag: IDENTIFIER})
        yield library


def verdict(library: Library, target: str) -> PatchVerdict | None:
    queries = list(read_queries(library, [target]))
    (result,) = look_up_files(library, queries, SearchOptions(10, 20)).results
    return result.patches[0] if result.patches else None


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("gcc-O2/libkinbeat.so", "vulnerable"),
        ("gcc-O2/libkinbeat-fixed.so", "fixed"),
        ("gcc-O3/libkinbeat.so", "vulnerable"),
        ("gcc-O3/libkinbeat-fixed.so", "fixed"),
    ],
)
def test_which_of_two_versions_a_function_is(library: Library, file: str, expected: str) -> None:
    said = verdict(library, f"{samples.path(file)}:{FUNCTION}")
    assert said is not None
    assert (said.identifier, said.verdict) == (IDENTIFIER, expected)
    assert said.vulnerable.binary.endswith("libkinbeat.so")
    assert said.fixed.binary.endswith("libkinbeat-fixed.so")
    assert said.reasons
    assert said.reasons[0] in verdict_text(said)


def test_another_function_has_no_verdict(library: Library) -> None:
    path = samples.path("gcc-O2/libkinproto.so")
    queries = list(read_queries(library, [f"{path}:url_parse"]))
    options = SearchOptions(3, 20, min_probability=0.5)
    (result,) = look_up_files(library, queries, options).results
    assert result.patches == ()


def test_without_a_repaired_version_nothing_is_said(tmp_path: Path) -> None:
    file = samples.path("gcc-O2/libkinbeat.so")
    with Library.create(tmp_path / "library.kin") as library:
        index_paths(library, [file], tags={"cve": IDENTIFIER})
        assert verdict(library, f"{file}:{FUNCTION}") is None


def graph(*words: str, nodes: int = 8) -> Graph:
    hashes = np.array([word_hash("num", word) for word in words], dtype=np.uint64)
    return Graph(
        nodes,
        [(node, node + 1) for node in range(nodes - 1)],
        directed=True,
        node_tokens=[[node % 5] for node in range(nodes)],
        node_words=WordBags(hashes, np.array([0, *[len(hashes)] * nodes])),
    )


def stored(number: int, own: Graph) -> Stored:
    return Stored(number, KnownFunction("f", architecture="arm"), own.num_nodes, own.digest())


def asked(own: Graph, *said: str) -> Query:
    ref = FunctionRef(function="sub_1", binary="fw", address=1, blocks=own.num_nodes)
    return Query(ref, own, "arm", said=tuple(EvidenceToken("num", text) for text in said))


def test_words_of_one_version_decide_and_are_quoted(library: Library) -> None:
    before, after = graph("1000", "44"), graph("1000", "44", "7777", nodes=9)
    pair = VersionPair(stored(1, before), stored(2, after), before, after)
    matcher = library.model.matcher
    assert matcher is not None
    repaired = judge(
        asked(graph("1000", "7777", nodes=9), "7777"), "X", KnownVersions(matcher, [pair])
    )
    assert repaired.verdict == "fixed"
    assert "says 7777, which only the repaired one says" in repaired.reasons
    left = judge(asked(graph("1000", "44", "5")), "X", KnownVersions(matcher, [pair]))
    assert left.verdict == "vulnerable"
    assert "does not say 7777, which only the repaired one says" in left.reasons
    assert (left.probability or 0) < 0.3 < 0.7 < (repaired.probability or 0)


def asserting(line: str, *words: str, nodes: int = 8) -> Graph:
    """A graph whose last block calls a function with a string and a number."""
    own = [word_hash("num", word) for word in words]
    end = [word_hash("imp", "__assert_fail"), word_hash("str", "file.c"), word_hash("num", line)]
    hashes = np.array([*own, *end], dtype=np.uint64)
    offsets = np.array([0, *[len(own)] * (nodes - 1), len(hashes)])
    plain = graph(nodes=nodes)
    return Graph(
        nodes, plain.edges, directed=True, node_tokens=plain.node_tokens,
        node_words=WordBags(hashes, offsets),
    )  # fmt: skip


def test_lines_of_the_source_are_no_evidence(library: Library) -> None:
    before, after = asserting("700", "1000"), asserting("705", "1000", "7777")
    pair = VersionPair(stored(1, before), stored(2, after), before, after)
    matcher = library.model.matcher
    assert matcher is not None
    other_line = asserting("700", "1000", "7777")
    assert version_bags(other_line, "arm", pair)[0] == version_bags(after, "arm", pair)[0]
    said = judge(asked(other_line), "X", KnownVersions(matcher, [pair]))
    assert not any("700" in reason or "705" in reason for reason in said.reasons)
    alone = asserting("700"), asserting("705")
    pair = VersionPair(stored(1, alone[0]), stored(2, alone[1]), *alone)
    signals = KnownVersions(matcher, [pair]).compared([asserting("705", nodes=9)], ["arm"])
    assert signals.values[0, 0, :2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("before", "after"), [("256", "255"), ("100", "128"), ("10", "11"), ("700", "900")]
)
def test_repaired_constants_are_not_taken_for_lines(before: str, after: str) -> None:
    assert not line_numbers(asserting(before), asserting(after))
    assert line_numbers(asserting("700"), asserting("705"))


def test_who_asks_for_the_vulnerable_is_told_of_the_repaired(library: Library) -> None:
    target = f"{samples.path('gcc-O3/libkinbeat-fixed.so')}:{FUNCTION}"
    options = SearchOptions(3, 20, Filter(tags={"cve": "*"}), min_probability=0.5)
    (result,) = look_up_files(library, list(read_queries(library, [target])), options).results
    assert [item.verdict for item in result.patches] == ["fixed"]
    assert result.hits[0].tags == {"fixed": IDENTIFIER}
    other = replace(options, where=Filter(tags={"cve": "other"}))
    (nothing,) = look_up_files(library, list(read_queries(library, [target])), other).results
    assert not nothing.hits


def test_what_is_as_near_to_both_cannot_be_told(library: Library) -> None:
    before, after = graph("1000", "44"), graph("1000", "55")
    pair = VersionPair(stored(1, before), stored(2, after), before, after)
    matcher = library.model.matcher
    assert matcher is not None
    assert judge(asked(graph("1000")), "X", KnownVersions(matcher, [pair])).verdict == "cannot tell"


def test_what_another_build_says_of_both_versions_is_no_evidence(library: Library) -> None:
    before, after = graph("1000"), graph("1000", "7777")
    pair = VersionPair(stored(1, before), stored(2, after), before, after)
    # This compiler writes the constant of the repaired version in both.
    other_before, other_after = graph("1000", "7777", nodes=9), graph("1000", "7777", "5", nodes=9)
    other = VersionPair(stored(3, other_before), stored(4, other_after), other_before, other_after)
    matcher = library.model.matcher
    assert matcher is not None
    weighed = []
    for pairs in ([pair], [pair, other]):
        known = KnownVersions(matcher, pairs)
        signals = known.compared([graph("1000", "7777", nodes=10)], ["arm"])
        assert signals.values[0, 0, 0] == 1
        weighed.append(known.weighed(signals)[0, 0])
    assert weighed[1] < 0.7 * weighed[0]


def test_blocks_of_one_version_are_sought(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = graph(nodes=8), graph(nodes=12)
    pair = VersionPair(stored(1, before), stored(2, after), before, after)
    matcher = library.model.matcher
    assert matcher is not None
    signals = KnownVersions(matcher, [pair]).compared([before, after], ["arm", "arm"])
    of_blocks = signals.values[:, 0, SIGNALS.index("blocks")]
    assert of_blocks[0] < -0.01 < 0.01 < of_blocks[1]
    # Large functions are compared some blocks at a time.
    monkeypatch.setattr(packing, "CELLS_AT_ONCE", 20)
    again = KnownVersions(matcher, [pair]).compared([before, after], ["arm", "arm"])
    np.testing.assert_allclose(again.values, signals.values, rtol=1e-5, atol=1e-5)


def test_versions_are_compared_in_builds_of_one_kind(library: Library) -> None:
    known = PatchJudge(library.model, library.engine)._known_versions(
        next(iter(library.engine.scan())).id, IDENTIFIER, "x86-64"
    )
    assert known is not None
    assert len(known.pairs) == 3
    for pair in known.pairs:
        assert pair.vulnerable.entry.build == pair.fixed.entry.build
        assert pair.vulnerable.graph_hash != pair.fixed.graph_hash
