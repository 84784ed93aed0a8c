"""What a compiler adds to every file is marked, and counts for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphkin import Filter, Library
from graphkin.binaries.function import is_unnamed
from graphkin.binaries.runtime_code import is_runtime_code
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import SearchOptions
from graphkin.library.scan import read_queries
from graphkin.library.search import RUNTIME_NOTE
from graphkin.library.whole_files import look_up_files
from graphkin.results.document import FunctionResult

OWN = "int {0}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += x % (i + {1}); return s; }}"


@pytest.mark.parametrize(
    "name",
    [
        "register_tm_clones",
        "_init",
        "_start",
        "__x86.get_pc_thunk.bx",
        "__udivmoddi4",
        "__aeabi_uidiv",
        "__aarch64_ldadd4_acq_rel",
        "__fixunsdfdi",
        "__scrt_common_main",
    ],
)
def test_names_of_the_compiler(name: str) -> None:
    assert is_runtime_code(name)


@pytest.mark.parametrize("name", ["main", "init", "inflate", "_init_table", "__divide", "start"])
def test_names_of_people(name: str) -> None:
    assert not is_runtime_code(name)


@pytest.fixture
def library(compile_c: Callable[..., Path], tmp_path: Path) -> Iterator[Library]:
    known = compile_c(OWN.format("known", 3), "-O1", "-shared", "-fPIC", name="known.so")
    with Library.create(tmp_path / "library.kin") as library:
        index_paths(library, [known], tags={"cve": "CVE-2024-0001", "vendor": "x"}, min_blocks=1)
        yield library


@pytest.fixture
def results(library: Library, compile_c: Callable[..., Path]) -> list[FunctionResult]:
    other = compile_c(OWN.format("other", 7), "-O1", "-shared", "-fPIC")
    return looked_up(library, other, SearchOptions(top=5))


def looked_up(library: Library, file: Path, options: SearchOptions) -> list[FunctionResult]:
    queries = list(read_queries(library, [str(file)], min_blocks=1))
    return list(look_up_files(library, queries, options).results)


def test_hits_say_so_and_have_no_verdict(results: list[FunctionResult]) -> None:
    hits = [hit for result in results for hit in result.hits]
    marked = {hit.function for hit in hits if hit.note == RUNTIME_NOTE}
    assert {"register_tm_clones", "deregister_tm_clones"} <= marked
    for hit in hits:
        is_marked = is_runtime_code(hit.function)
        assert (hit.note == RUNTIME_NOTE) == is_marked
        assert ("cve" in hit.tags) != is_marked
        assert hit.tags["vendor"] == "x"
    assert not any(
        kin.is_runtime != is_runtime_code(kin.function) for r in results for kin in r.kin
    )


def test_a_search_for_vulnerable_functions_does_not_show_them(
    library: Library, compile_c: Callable[..., Path]
) -> None:
    other = compile_c(OWN.format("other", 7), "-O1", "-shared", "-fPIC")
    options = SearchOptions(top=5, where=Filter(tags={"cve": "*"}))
    shown = {hit.function for result in looked_up(library, other, options) for hit in result.hits}
    assert "known" in shown
    assert not any(map(is_runtime_code, shown))


def test_equal_code_without_a_name_is_marked_as_well(
    library: Library, compile_c: Callable[..., Path]
) -> None:
    stripped = compile_c(OWN.format("another", 9), "-O1", "-shared", "-fPIC", "-s", name="bare.so")
    index_paths(library, [stripped], min_blocks=1)
    other = compile_c(OWN.format("other", 7), "-O1", "-shared", "-fPIC")
    results = looked_up(library, other, SearchOptions(top=9))
    (query,) = (item for item in results if item.query.function == "register_tm_clones")
    unnamed = [hit for hit in query.hits if is_unnamed(hit.function)]
    equal = {hit.graph_hash for hit in query.hits if hit.function == "register_tm_clones"}
    assert any(hit.graph_hash in equal for hit in unnamed)
    for hit in unnamed:
        assert hit.graph_hash not in equal or hit.note == RUNTIME_NOTE
