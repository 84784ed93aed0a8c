"""Which graphs are one function, and which functions share a graph."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.binaries.corpus import FunctionCorpus, FunctionRecord
from graphkin.research.tasks.functions.groups import (
    FunctionClass,
    FunctionKey,
    contents_of,
    function_classes,
    grouped,
)
from tests.function_samples import Body, body, function, record, records, write_corpus


def key(name: str, unit: str = "", library: str = "libx") -> FunctionKey:
    return FunctionKey(library, unit, name)


def classes(path: Path, made: list[FunctionRecord], least: int = 1) -> list[FunctionClass]:
    return function_classes(write_corpus(path / "c", made), least)


def in_two(name: str, seed: int, **options: Any) -> list[FunctionRecord]:
    builds = ("gcc-O0", "gcc-O2")
    return [record(name, body(seed, number), build=b, **options) for number, b in enumerate(builds)]


def test_one_graph_for_each_build(tmp_path: Path) -> None:
    made = [*in_two("f", 1), *in_two("g", 2)]
    assert classes(tmp_path, made) == [
        FunctionClass(key("f"), {"gcc-O0": 0, "gcc-O2": 1}, False),
        FunctionClass(key("g"), {"gcc-O0": 2, "gcc-O2": 3}, False),
    ]


def test_static_functions_are_told_apart_by_their_files(tmp_path: Path) -> None:
    made = [
        *in_two("decode", 1, unit="a.c"),
        *in_two("decode", 2, unit="b.c"),
        *in_two("decode", 3),
        *in_two("decode", 4, library="liby.so"),
    ]
    assert [item.key for item in classes(tmp_path, made)] == [
        key("decode"), key("decode", "a.c"), key("decode", "b.c"), key("decode", "", "liby"),
    ]  # fmt: skip


def test_classes_do_not_depend_on_the_order(tmp_path: Path) -> None:
    made = records(30)
    expected = [
        (item.key, list(item.graphs), item.in_header) for item in classes(tmp_path, made, 2)
    ]
    random.Random(0).shuffle(made)
    (tmp_path / "other").mkdir()
    groups_made = classes(tmp_path / "other", made, 2)
    assert [(item.key, list(item.graphs), item.in_header) for item in groups_made] == expected


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["f"], 0),
        (["f.part.0", "f"], 1),
        (["f.isra.0", "f", "f.constprop.0"], 1),
        (["f.part.0", "f.isra.0"], 1),
        (["f.part.0", "f.constprop.0.isra.1"], 1),
        (["f.isra.0.part.0", "f.constprop.0"], 1),
        (["f.part.0"], 0),
        (["f.isra.0", "f.isra.1"], None),
        (["f.part.0", "f.part.1"], None),
        (["f", "f"], None),
    ],
)
def test_what_stands_for_a_function(tmp_path: Path, names: list[str], chosen: int | None) -> None:
    made = [record(name, body(n)) for n, name in enumerate(names)]
    groups_made = classes(tmp_path, made)
    if chosen is None:
        assert groups_made == []
    else:
        assert groups_made == [FunctionClass(key("f"), {"gcc-O2": chosen}, False)]


def test_a_build_that_is_not_clear_is_left_out(tmp_path: Path) -> None:
    made = [*in_two("f", 1), record("f", body(3), build="gcc-O2", address=0x9000)]
    assert classes(tmp_path, made) == [FunctionClass(key("f"), {"gcc-O0": 0}, False)]
    (tmp_path / "other").mkdir()
    assert classes(tmp_path / "other", made, 2) == []


def test_of_several_files_of_a_library_the_first_counts(tmp_path: Path) -> None:
    """A static library beside a shared one, or a copy."""
    made = []
    for number, name in enumerate(["libx.a", "libx.so", "libx.so.1"]):
        file = f"/builds/gcc-O2/{name}"
        binary = f"{file}(a.o)" if name == "libx.a" else file
        one = function("f", body(number), file=file, binary=binary)
        made.append(FunctionRecord.of(one, file))
    assert [item.graphs for item in classes(tmp_path, made[1:])] == [{"gcc-O2": 0}]
    (tmp_path / "other").mkdir()
    assert [item.graphs for item in classes(tmp_path / "other", made)] == [{"gcc-O2": 0}]


def test_two_members_of_an_archive_are_not_clear(tmp_path: Path) -> None:
    file = "/builds/gcc-O2/libx.a"
    made = [
        FunctionRecord.of(function("f", body(n), file=file, binary=f"{file}({n}.o)"), file)
        for n in range(2)
    ]
    assert classes(tmp_path, made) == []


def test_functions_of_too_few_builds(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c", records(40))
    counts = {least: len(function_classes(corpus, least)) for least in (1, 3, 4, 5)}
    assert counts == {1: 40, 3: 40, 4: 39, 5: 0}


@pytest.mark.parametrize(
    ("file", "in_header"),
    [
        ("src/a.h", True), ("a.hpp", True), ("x/template.inc", True), ("a.c", False),
        ("src/h.c", False), ("a_template.c", False), (None, False), ("a.h.c", False),
    ],
)  # fmt: skip
def test_functions_of_headers(tmp_path: Path, file: str | None, in_header: bool) -> None:
    """One build that tells is enough."""
    made = [record("f", body(1), build="gcc-O0", defined_in=file), *in_two("g", 2)]
    made.append(record("f", body(1, 1)))
    actual = {item.key.name: item.in_header for item in classes(tmp_path, made)}
    assert actual == {"f": in_header, "g": False}


# --- Groups -------------------------------------------------------------------------------


def groups_of(corpus: FunctionCorpus, least: int = 2) -> dict[str, int]:
    groups_made = function_classes(corpus, least)
    contents = contents_of(corpus, (g for item in groups_made for g in item.graphs.values()))
    return {item.key.name: item.group for item in grouped(groups_made, contents)}


def test_functions_that_share_a_graph_are_one_group(tmp_path: Path) -> None:
    groups = groups_of(write_corpus(tmp_path / "c", records()))
    chain = {groups[f"f{number:03}"] for number in (10, 11, 12, 13)}
    assert len(chain) == 1
    assert len(set(groups.values())) == 57


def test_graphs_of_other_mnemonics_are_not_equal(tmp_path: Path) -> None:
    words, edges = body(1)
    other: Body = ([tuple("nop" for _ in block) for block in words], edges)
    moved: Body = (words[::-1], edges)
    made = [record(name, one) for name, one in [("a", (words, edges)), ("b", other), ("c", moved)]]
    corpus = write_corpus(tmp_path / "c", [*made, record("d", (words, edges), build="O3")])
    contents = contents_of(corpus, range(4))
    assert len(set(contents[:3].tolist())) == 3
    assert contents[3] == contents[0]


def test_contents_of_some_graphs(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c", records(20))
    contents = contents_of(corpus, [3, 7])
    assert np.flatnonzero(contents >= 0).tolist() == [3, 7]
    assert len(contents) == len(corpus)


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), max_size=12))
def test_groups_are_connected_components(owned: list[list[int]]) -> None:
    """Against a search from each function through the contents that it shares."""
    contents = np.array([value for each in owned for value in each], dtype=np.int64)
    starts = np.cumsum([0, *map(len, owned)])
    made = [
        FunctionClass(key(f"f{n}"), {f"b{i}": int(starts[n] + i) for i in range(len(each))}, False)
        for n, each in enumerate(owned)
    ]
    actual = [item.group for item in grouped(made, contents)]
    for number in range(len(owned)):
        reached, edge = {number}, [number]
        while edge:
            one = edge.pop()
            near = {n for n, each in enumerate(owned) if set(each) & set(owned[one])}
            edge += near - reached
            reached |= near
        assert {n for n in range(len(owned)) if actual[n] == actual[number]} == reached
        assert actual[number] == min(reached)
