"""Counts of a corpus, against counting by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.research.tasks.functions.stats import CorpusStats, corpus_stats
from tests.function_samples import Body, body, record, records, write_corpus


@pytest.fixture
def counted(corpus_path: Path) -> tuple[FunctionCorpus, CorpusStats]:
    corpus = FunctionCorpus.open(corpus_path)
    return corpus, corpus_stats(corpus)


def test_counts(counted: tuple[FunctionCorpus, CorpusStats]) -> None:
    corpus, stats = counted
    assert (stats.binaries, stats.graphs) == (4, 239)
    assert stats.builds == {"clang-O0": 60, "clang-O2": 60, "gcc-O2": 60, "gcc-O3": 59}
    assert stats.digest == corpus.digest()
    assert (stats.in_all_builds.functions, stats.in_all_builds.graphs) == (59, 236)
    assert (stats.in_two_builds.functions, stats.in_two_builds.graphs) == (60, 239)
    assert stats.header_functions == 2


def test_sizes(counted: tuple[FunctionCorpus, CorpusStats]) -> None:
    corpus, stats = counted
    kept = [n for n, entry in enumerate(corpus.entries) if entry.name != "f030"]
    nodes = np.array([corpus.store[n].num_nodes for n in kept])
    edges = np.array([corpus.store[n].num_edges for n in kept])
    sizes = stats.in_all_builds
    assert sizes.mean_nodes == pytest.approx(nodes.mean())
    assert sizes.mean_edges == pytest.approx(edges.mean())
    assert sizes.median_nodes == np.median(nodes)
    assert sizes.p90_nodes == np.percentile(nodes, 90)
    assert sizes.largest == nodes.max()
    assert sizes.mnemonics == len(corpus.words.words)


def test_graphs_of_other_functions(counted: tuple[FunctionCorpus, CorpusStats]) -> None:
    corpus, stats = counted
    names: dict[str, set[str]] = {}
    for number, entry in enumerate(corpus.entries):
        names.setdefault(corpus.store[number].digest(), set()).add(entry.name)
    shared = [len(names[corpus.store[n].digest()]) > 1 for n in range(len(corpus))]
    assert sum(shared) == 6
    assert stats.shared_graphs == pytest.approx(6 / 239)


def test_builds_that_are_alike(counted: tuple[FunctionCorpus, CorpusStats]) -> None:
    _, stats = counted
    assert stats.equal_builds == {
        "gcc-O2 and gcc-O3": pytest.approx(10 / 59),
        "clang-O0 and clang-O2": 0,
    }


def test_mnemonics_of_functions_that_do_not_count(tmp_path: Path) -> None:
    rare: Body = ([("rare",)] * 5, [(0, 1)])
    corpus = write_corpus(tmp_path / "c", [*records(10), record("lone", rare)])
    stats = corpus_stats(corpus)
    assert stats.in_all_builds.mnemonics == stats.in_two_builds.mnemonics
    assert stats.in_two_builds.mnemonics == len(corpus.words.words) - 1


def test_as_text_and_json(counted: tuple[FunctionCorpus, CorpusStats]) -> None:
    _, stats = counted
    document = json.loads(json.dumps(stats.to_dict()))
    assert document["in_all_builds"]["functions"] == 59
    assert document["builds"] == stats.builds
    lines = [line.split() for line in stats.to_text().splitlines()]
    assert lines[0][:2] == ["239", "graphs"]
    assert ["gcc-O3", "59"] in lines
    assert ["mean", "nodes", f"{stats.in_all_builds.mean_nodes:.1f}"] in lines
    assert ["defined", "in", "headers", "2"] in lines
    assert "functions equal in gcc-O2 and gcc-O3: 17%" in stats.to_text()


def test_one_build_and_none(tmp_path: Path) -> None:
    one = corpus_stats(write_corpus(tmp_path / "one", [record("f", body(1)), record("g", body(2))]))
    assert one.in_all_builds.functions == 2
    assert one.in_two_builds.functions == 0
    assert one.equal_builds == {}
    none = corpus_stats(write_corpus(tmp_path / "none", []))
    assert (none.graphs, none.binaries, none.shared_graphs) == (0, 0, 0)
    for stats in (one, none):
        assert stats.to_text()
        json.dumps(stats.to_dict(), allow_nan=False)


def test_builds_without_levels_in_their_names(tmp_path: Path) -> None:
    made = [record("f", body(1), build=build) for build in ("before", "after")]
    assert corpus_stats(write_corpus(tmp_path / "c", made)).equal_builds == {"after and before": 1}
