"""Searches from one build in another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.research.tasks.functions.pools import build_named, pools_between
from graphkin.research.tasks.functions.task import FunctionTask, Protocol
from tests.function_samples import BUILDS, body, record, write_corpus

PROTOCOLS = get_args(Protocol)
ASKED, HELD = BUILDS[0], BUILDS[-1]
PINNED = ["f11", "f173", "f5", "f85"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Functions of all builds, and as many that lack one of those in between."""
    path = tmp_path_factory.mktemp("pools") / "corpus.graphs"
    made = [
        record(f"f{number}", body(number, variant), build=build)
        for number in range(400)
        for variant, build in enumerate(BUILDS)
        if number % 2 or variant != 1
    ]
    write_corpus(path, made)
    return path


def origins(task: FunctionTask) -> dict[Graph, tuple[str, str, str]]:
    """Split, function and build of each graph."""
    everything = replace(task, min_builds=2)
    return {
        task.graphs_of([number])[0]: (split, item.key.name, build)
        for split in ("training", "validation", "test")
        for item in everything.classes(split)
        for build, number in item.graphs.items()
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("pool", [0, 4])
def test_queries_and_answers(corpus: Path, protocol: Protocol, pool: int) -> None:
    task = FunctionTask(str(corpus), protocol=protocol, pool=pool)
    blocks = pools_between(task, "test", ASKED, HELD)
    whole = len(task.classes("test"))
    assert [len(block.pool) for block in blocks] == ([4] * (whole // 4) if pool else [whole])
    origin = origins(task)
    names: list[str] = []
    for block in blocks:
        assert len(block.queries) == len(block.pool)
        for query, answer in zip(block.queries, block.pool, strict=True):
            split, name, build = origin[query]
            assert (split, build) == ("test", ASKED)
            assert origin[answer] == ("test", name, HELD)
            names.append(name)
    assert len(set(names)) == len(names)
    again = pools_between(replace(task, seed=7), "test", ASKED, HELD)
    assert [(b.queries, b.pool) for b in again] == [(b.queries, b.pool) for b in blocks]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_large_pools_are_filled_up(corpus: Path, protocol: Protocol) -> None:
    task = FunctionTask(str(corpus), protocol=protocol, pool=100)
    (block,) = pools_between(task, "test", ASKED, HELD)
    (alone,) = pools_between(replace(task, pool=0), "test", ASKED, HELD)
    assert block.queries == alone.queries
    assert block.pool[: len(alone.pool)] == alone.pool
    assert len(block.pool) == 100
    origin = origins(task)
    actual = [origin[graph] for graph in block.pool]
    assert {build for _, _, build in actual} == {HELD}
    assert len({name for _, name, _ in actual}) == 100
    splits = [split for split, _, _ in actual]
    everything = replace(task, min_builds=2)
    unseen = [len(everything.classes(split)) for split in ("test", "validation")]
    assert splits == (
        ["test"] * unseen[0] + ["validation"] * unseen[1] + ["training"] * (100 - sum(unseen))
    )


def test_a_pool_that_the_corpus_cannot_fill(corpus: Path) -> None:
    task = FunctionTask(str(corpus), pool=10_000)
    (block,) = pools_between(task, "test", ASKED, HELD)
    assert len(block.pool) == 400


def test_no_candidate_shares_a_graph_with_a_function_that_is_looked_for(tmp_path: Path) -> None:
    """Functions in threes that are equal in one build; the second is not in all builds."""
    made = [
        record(f"f{number}", body(number // 3 if variant == 0 else 1000 + number, variant), build=b)
        for number in range(300)
        for variant, b in enumerate(BUILDS)
        if number % 3 != 1 or variant != 1
    ]
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"), protocol="clean", pool=10_000)
    (block,) = pools_between(task, "test", BUILDS[2], HELD)
    origin = origins(task)
    thirds = [int(origin[graph][1][1:]) // 3 for graph in block.pool]
    assert len(set(thirds)) == len(thirds) == 100
    assert len(block.queries) == 10


def test_builds_by_their_endings(corpus: Path) -> None:
    task = FunctionTask(str(corpus))
    assert [build_named(task, name) for name in BUILDS] == list(BUILDS)
    assert build_named(task, "msvc-O2") is None


def test_a_build_may_name_the_version_of_its_compiler(tmp_path: Path) -> None:
    builds = ("gcc-12-O0", "gcc-12-O3", "clang-14.0-O3", "mygcc-O0")
    made = [
        record(f"f{number}", body(number, variant), build=build)
        for number in range(60)
        for variant, build in enumerate(builds)
    ]
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"))
    assert build_named(task, "gcc-O0") == "gcc-12-O0"
    assert build_named(task, "clang-O3") == "clang-14.0-O3"
    assert build_named(task, "clang-O0") is None


def test_which_functions_share_a_pool_does_not_change(corpus: Path) -> None:
    """Published numbers rest on it."""
    task = FunctionTask(str(corpus), pool=4)
    origin = origins(task)
    first = pools_between(task, "test", ASKED, HELD)[0]
    assert [origin[query][1] for query in first.queries] == PINNED


def test_builds_that_share_nothing(corpus: Path) -> None:
    task = FunctionTask(str(corpus))
    with pytest.raises(ConfigError, match="share 0 test functions"):
        pools_between(task, "test", "none", HELD)
