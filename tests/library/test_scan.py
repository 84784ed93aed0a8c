"""Functions of binaries looked up in a library: one pipeline for everybody who searches."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphkin
from graphkin.binaries import Function, Skipped, samples
from graphkin.binaries.targets import list_functions, parse_target
from graphkin.errors import FormatError, GraphError, GraphkinError
from graphkin.library.indexing.index import index_paths
from graphkin.library.library import Library
from graphkin.library.models import SearchModel
from graphkin.library.records import Filter, SearchOptions
from graphkin.library.scan import look_up, read_queries, scan
from tests.command_line import Graphkin
from tests.library.sample_models import search_model
from tests.paths import BINARIES

KNOWN = samples.path("gcc-O2/libkinbeat.so")
OTHER = samples.path("gcc-O0/libkinbeat.so")
PARSER = samples.path("gcc-O0/libkinparse.so")
NAME = samples.VULNERABLE[1]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = {
        word
        for function in list_functions(parse_target(str(OTHER)))
        for block in function.blocks
        for word in block.mnemonics
    }
    path = tmp_path_factory.mktemp("library") / "library.kin"
    with Library.create(path, search_model(words=tuple(sorted(words)))) as library:
        index_paths(library, [KNOWN, OTHER], min_blocks=1)
    return path


@pytest.fixture
def library(path: Path) -> Iterator[Library]:
    with Library.open(path) as library:
        yield library


def test_a_path_and_a_target_are_enough(path: Path) -> None:
    (result,) = scan(path, f"{KNOWN}:{NAME}", min_probability=0)
    assert (result.query.function, result.query.binary) == (NAME, str(KNOWN))
    best = result.hits[0]
    assert (best.function, best.distance, best.rank) == (NAME, 0, 1)
    assert best.evidence is not None


def test_an_open_library_stays_open(library: Library) -> None:
    whole = list(scan(library, [KNOWN, str(OTHER)], min_probability=0, rerank=0, min_blocks=1))
    assert {result.query.binary for result in whole} == {str(KNOWN), str(OTHER)}
    assert all(hit.score is hit.evidence is None for result in whole for hit in result.hits)
    assert len(library) == len(whole)


def test_small_functions_of_a_whole_file_are_skipped(library: Library) -> None:
    everything = [query.ref for query in read_queries(library, [str(PARSER)], min_blocks=1)]
    large = [query.ref for query in read_queries(library, [str(PARSER)], min_blocks=10)]
    assert [ref for ref in everything if ref.blocks >= 10] == large
    assert 0 < len(large) < len(everything)
    small = min(everything, key=lambda ref: ref.blocks)
    (named,) = read_queries(library, [f"{PARSER}:{small.address:#x}"], min_blocks=10)
    assert named.ref == small


def test_a_target_that_cannot_be_read(library: Library, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.so")
    with pytest.raises(FormatError, match=r"absent\.so"):
        list(read_queries(library, [absent]))
    errors: list[GraphkinError] = []
    targets = [absent, f"{KNOWN}:{NAME}"]
    (query,) = read_queries(library, targets, on_error=errors.append)
    assert query.ref.function == NAME
    assert len(errors) == 1


def test_a_missing_library_is_noticed_before_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("the file was read first")

    monkeypatch.setattr("graphkin.library.scan.read_queries", read)
    with pytest.raises(GraphkinError, match=r"typo\.kin"):
        list(scan(tmp_path / "typo.kin", str(KNOWN)))
    assert not (tmp_path / "typo.kin").exists()


def test_graphs_are_made_and_read_once(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query's graph is made once, and a candidate's is read once, evidence included."""
    made: Counter[int] = Counter()
    to_graph, read_graphs = Function.to_graph, library.engine.graphs
    reads: list[int] = []

    def counted(function: Function, *arguments: object) -> object:
        made[function.address] += 1
        return to_graph(function, *arguments)  # type: ignore[arg-type]

    def graphs(ids: list[int]) -> object:
        reads.extend(ids)
        return read_graphs(ids)

    monkeypatch.setattr(Function, "to_graph", counted)
    monkeypatch.setattr(library.engine, "graphs", graphs)
    queries = read_queries(library, [str(KNOWN)], min_blocks=1)
    options = SearchOptions(3, 5, evidence=True)
    results = list(look_up(library, queries, options))
    assert all(hit.evidence for result in results for hit in result.hits)
    assert set(made.values()) == {1}
    assert len(reads) == len(set(reads)) > 0


def test_chunks_change_nothing(library: Library) -> None:
    queries = list(read_queries(library, [str(OTHER)], min_blocks=1))
    options = SearchOptions(2, 4)
    seen: list[tuple[int, int]] = []
    whole = list(look_up(library, queries, options, progress=lambda *counts: seen.append(counts)))
    pieces = list(look_up(library, iter(queries), options, at_once=1))
    assert [result.query for result in whole] == [query.ref for query in queries]
    ids = [[hit.id for hit in result.hits] for result in whole]
    assert ids == [[hit.id for hit in result.hits] for result in pieces]
    assert seen == [(done, len(queries)) for done in range(1, len(queries) + 1)]


def test_what_is_less_probable_is_left_out(library: Library) -> None:
    queries = list(read_queries(library, [f"{KNOWN}:{NAME}"]))
    (everything,) = look_up(library, queries, SearchOptions(5, 5))
    probabilities = [hit.probability or 0.0 for hit in everything.hits]
    assert probabilities == sorted(probabilities, reverse=True)
    assert everything.best_left_out is None
    least = probabilities[1]
    (cut,) = look_up(library, queries, SearchOptions(5, 5, min_probability=least))
    kept = [number for number in probabilities if number >= least]
    assert len(cut.hits) == len(kept)
    (nothing,) = look_up(library, queries, SearchOptions(5, 5, min_probability=1.0))
    assert nothing.hits == ()
    assert nothing.best_left_out == pytest.approx(probabilities[0])


def test_a_part_of_the_library(library: Library) -> None:
    (result,) = scan(library, f"{KNOWN}:{NAME}", where=Filter(binary="*O0*"), min_probability=0)
    assert {hit.binary for hit in result.hits} == {str(OTHER)}


def test_a_search_in_one_line_is_the_document_of_the_command(
    library: Library, path: Path, run: Graphkin
) -> None:
    target = f"{KNOWN}:{NAME}"
    report = graphkin.search(path, target)
    assert report.to_dict() == json.loads(run("search", path, target, "--json").out)
    assert report.results[0].hits[0].function == NAME
    assert graphkin.search(library, [target]).results == report.results
    assert len(library), "what was open stays open"
    with pytest.raises(FormatError, match="absent"):
        graphkin.search(library, "absent.so")


SCRIPT = """
import graphkin
left, right = {sides!r}
print(graphkin.compare(left, right).document.left.blocks)
print(len(list(graphkin.scan({library!r}, left, min_probability=0))))
"""


@pytest.mark.parametrize("is_file", [True, False])
def test_an_ordinary_script_may_scan_and_compare(path: Path, tmp_path: Path, is_file: bool) -> None:
    """Without ``if __name__ == "__main__":``, from a file and from standard input."""
    code = SCRIPT.format(sides=(f"{KNOWN}:{NAME}", f"{OTHER}:{NAME}"), library=str(path))
    script = tmp_path / "script.py"
    script.write_text(code)
    command = [sys.executable, str(script) if is_file else "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "1"
    assert len(done.stdout.split()) == 2, "the script ran once"


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_the_model_cannot_read_is_refused_before_it_is_loaded(
    is_whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = BINARIES / "riscv64" / "gcc-shared-O2"
    function = next(iter(list_functions(parse_target(str(path)))))
    Library.create(tmp_path / "library.kin").close()

    def loaded(_: object) -> SearchModel:
        raise AssertionError("the model is loaded")

    monkeypatch.setattr(SearchModel, "from_files", loaded)
    name = str(path) if is_whole else f"{path}:{function.address:#x}"
    with (
        Library.open(tmp_path / "library.kin") as library,
        pytest.raises(GraphError, match="for riscv64, read by this backend, take a library"),
    ):
        list(read_queries(library, [name]))


def test_a_file_that_the_model_cannot_read_does_not_end_its_folder(tmp_path: Path) -> None:
    """Nor does it take back what was read ahead of it."""
    folder = tmp_path / "rootfs"
    folder.mkdir()
    names = {"a": "riscv64/gcc-shared-O2", "b": "mipsel/gcc-shared-O2", "c": "ppc/clang-shared-O2"}
    for name, file in names.items():
        shutil.copy(BINARIES / file, folder / name)
    skipped: list[Skipped] = []
    Library.create(tmp_path / "library.kin").close()
    with Library.open(tmp_path / "library.kin") as library:
        queries = list(read_queries(library, [str(folder)], min_blocks=1, skipped=skipped))
    assert {query.ref.binary for query in queries} == {str(folder / "b")}
    assert len(queries) > 3
    reasons = {item.binary: item.reason for item in skipped if "another model" in item.reason}
    assert reasons.keys() == {str(folder / "a"), str(folder / "c")}
