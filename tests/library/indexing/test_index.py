"""Files into a library: complete, once, whatever the files are and whenever it is interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from graphkin import GraphEmbedder, ModelConfig
from graphkin.binaries import samples
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.corpus import FunctionRecord
from graphkin.binaries.extraction import FileSummary, extract
from graphkin.binaries.workers import Done
from graphkin.errors import ConfigError, FormatError, MissingDependencyError, ModelError
from graphkin.graphs import Graph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.indexing import batches as indexing_chunks
from graphkin.library.indexing import index as indexing
from graphkin.library.indexing.batches import Batch, Embedding, batches, ready
from graphkin.library.indexing.file_queue import FileJob, ReadSettings, groups
from graphkin.library.indexing.index import index_paths
from graphkin.library.library import Library
from graphkin.library.models import SearchModel
from graphkin.library.records import Filter, KnownFunction
from tests.binaries.compiling import Compile
from tests.command_line import Graphkin
from tests.function_samples import body, function
from tests.library.indexing.samples import BUILDS, SAMPLES, WORDS, content, search_model


@pytest.fixture(scope="module")
def model() -> SearchModel:
    return search_model()


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    """A folder with a library for each build, and what else lies around."""
    folder = tmp_path / "builds"
    for build, sample in BUILDS.items():
        (folder / build).mkdir(parents=True)
        shutil.copyfile(sample, folder / build / "libshapes.so")
        (folder / build / "build.log").write_text("compiled\n")
    return folder


@pytest.fixture
def library(tmp_path: Path, model: SearchModel) -> Iterator[Library]:
    with Library.create(tmp_path / "library.kin", model) as library:
        yield library


@pytest.fixture
def other(tmp_path: Path, model: SearchModel) -> Iterator[Library]:
    with Library.create(tmp_path / "other.kin", model) as library:
        yield library


def workers() -> list[psutil.Process]:
    """Those that run: children of the server that they are forked from."""
    servers = [p for p in psutil.Process().children() if "forkserver" in " ".join(p.cmdline())]
    return [worker for server in servers for worker in server.children()]


# --- What comes in ------------------------------------------------------------------------


def test_every_function_with_what_is_known_of_it(builds: Path, library: Library) -> None:
    seen: list[tuple[int, int]] = []
    summary = index_paths(
        library,
        [builds],
        tags={"cve": "none"},
        min_blocks=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    expected = {
        (function.name, function.address, build): function
        for build in BUILDS
        for function in NativeSource(builds / build / "libshapes.so").functions()
    }
    stored = list(library.engine.scan())
    assert len(stored) == len(expected) > 50
    graphs = library.engine.graphs([item.id for item in stored])
    for item, graph in zip(stored, graphs, strict=True):
        source = expected[item.entry.function, item.entry.address or 0, item.entry.build]
        assert item.entry == KnownFunction(
            function=source.name,
            binary=str(builds / item.entry.build / "libshapes.so"),
            address=source.address,
            size=source.size,
            architecture=source.architecture,
            compiler=source.compiler or "",
            build=item.entry.build,
            file_hash=source.file_hash,
            tags={"cve": "none"},
        )
        assert graph == source.to_graph(Vocabulary(WORDS))
    codes = library.engine.vectors([item.id for item in stored])
    assert np.array_equal(codes, library.embedder.codes(graphs))
    assert (summary.files, summary.known_files, summary.skipped) == (4, 0, [])
    assert (summary.functions, summary.added) == (len(expected), len(expected))
    assert (summary.known, summary.small) == (0, 0)
    assert (seen[0], seen[-1]) == ((0, 4), (4, 4))
    assert set(summary.rates()) == {"extract", "embed", "store", "total"}


def test_members_of_an_archive(library: Library) -> None:
    archive = SAMPLES / "macho" / "fat.a"
    index_paths(library, [archive], min_blocks=1)
    binaries = {item.entry.binary for item in library.engine.scan()}
    assert len(binaries) > 1
    assert all(name.startswith(f"{archive}(") for name in binaries)


def test_small_functions_are_counted(builds: Path, library: Library) -> None:
    summary = index_paths(library, [builds], min_blocks=6)
    assert min(item.nodes for item in library.engine.scan()) >= 6
    assert summary.small > 0
    again = index_paths(library, [builds], min_blocks=1)
    # Other settings: the files are read again, and only what is new is added.
    assert (again.known_files, again.known) == (0, summary.added)
    assert again.added == summary.small


def test_functions_without_names_are_left_out_on_request(library: Library) -> None:
    stripped, named = samples.path("gateway"), samples.path("gcc-O2/libkinbeat.so")
    summary = index_paths(library, [stripped, named], named_only=True)
    assert {item.entry.binary for item in library.engine.scan()} == {str(named)}
    assert summary.unnamed > 100
    again = index_paths(library, [stripped, named])  # other settings: what was left out is added
    assert again.added == summary.unnamed


def test_the_library_does_not_depend_on_processes_or_batches(
    builds: Path, library: Library, other: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_paths(library, [builds])
    monkeypatch.setattr(indexing_chunks, "BATCH", 7)
    summary = index_paths(other, [builds], jobs=3)
    assert content(other) == content(library)
    assert summary.added == len(library)
    assert other.engine.finished_files() == library.engine.finished_files()


def test_equal_graphs_are_embedded_once(
    builds: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for build in BUILDS:
        data = bytearray((builds / build / "libshapes.so").read_bytes())
        (builds / build / "twin.so").write_bytes(data + b"another file")
    embedded: list[Graph] = []
    encode = GraphEmbedder.encode

    def counting(self: GraphEmbedder, graphs: Any, **options: Any) -> Any:
        embedded.extend(graphs)
        return encode(self, graphs, **options)

    monkeypatch.setattr(indexing_chunks, "BATCH", 10)
    monkeypatch.setattr(GraphEmbedder, "encode", counting)
    summary = index_paths(library, [builds])
    hashes = {item.graph_hash for item in library.engine.scan()}
    assert len(embedded) == len(hashes) <= summary.added / 2


def test_few_vectors_are_remembered(model: SearchModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing_chunks, "REMEMBERED", 2)
    stream = ready(
        [(JOB, FunctionRecord.of(function("f", body(seed)), "x")) for seed in range(5)],
        Vocabulary(WORDS),
        {},
    )
    (batch,) = batches(stream, "")
    embedding = Embedding(model)
    first, again = embedding.chunk(batch), embedding.chunk(batch)
    graphs = [row.graph for row in first.rows]
    expected = [code.tobytes() for code in model.embedder.codes(graphs)]
    for chunk in (first, again):
        assert [row.vector.tobytes() for row in chunk.rows] == expected
    assert len(embedding._made) == 2


# --- Once ---------------------------------------------------------------------------------


def test_what_is_there_is_not_read_again(builds: Path, library: Library) -> None:
    first = index_paths(library, [builds], tags={"from": "first"})
    shutil.copyfile(builds / "gcc-O0" / "libshapes.so", builds / "copy.so")
    again = index_paths(library, [builds])
    assert (again.files, again.known_files, again.functions) == (5, 5, 0)
    assert {item.entry.tags["from"] for item in library.engine.scan()} == {"first"}
    assert len(library) == first.added


# --- Tags ---------------------------------------------------------------------------------


def test_what_was_lost_is_said_again(compile_c: Compile, run: Graphkin, tmp_path: Path) -> None:
    source = "int f(int n) { while (n > 3) n -= n & 1 ? 3 : 2; return n; } int main() { return 0; }"
    program, library = compile_c(source, "-O1"), tmp_path / "x.kin"
    program.write_bytes(program.read_bytes() + b"MEI\x0c\x0b\x0a\x0b\x0e" + bytes(80))
    warning = f"{program}!archive of PyInstaller skipped: "
    first, second = (run("index", library, program, "--min-blocks", "1") for _ in range(2))
    assert (first.code, second.code) == (21, 21)
    assert (first.err.count(warning), second.err.count(warning)) == (1, 1)
    assert ": 0 functions added, " in second.out, "and nothing is stored twice"
    assert "0 skipped" not in second.out


def test_known_files_get_the_tags(builds: Path, library: Library) -> None:
    first = index_paths(library, [builds], tags={"from": "first"})
    assert first.tagged == 0
    file = builds / "gcc-O0" / "libshapes.so"
    of_one = library.engine.count(Filter(build="gcc-O0"))
    tagged = index_paths(library, [file], tags={"cve": "X*"})
    assert (tagged.known_files, tagged.tagged, tagged.added) == (1, of_one, 0)
    assert [item.entry.tags for item in library.engine.scan(Filter(build="gcc-O0"))] == [
        {"from": "first", "cve": "X*"}
    ] * of_one
    assert library.engine.count(Filter(tags={"cve": "*"})) == of_one
    assert index_paths(library, [file], tags={"cve": "X*"}).tagged == 0, "they have it"
    assert index_paths(library, [file], tags={"cve": "Y"}).tagged == of_one


def test_functions_that_are_known_of_a_file_that_is_read_get_the_tags(
    builds: Path, library: Library
) -> None:
    file = builds / "gcc-O0" / "libshapes.so"
    first = index_paths(library, [file], min_blocks=6)
    again = index_paths(library, [file], min_blocks=1, tags={"cve": "X"})
    assert (again.tagged, again.added) == (first.added, first.small)
    assert library.engine.count(Filter(tags={"cve": "X"})) == len(library)


def test_known_files_of_a_corpus_get_the_tags(
    builds: Path, library: Library, tmp_path: Path
) -> None:
    extract([builds], tmp_path / "corpus")
    index_paths(library, [tmp_path / "corpus"])
    again = index_paths(library, [tmp_path / "corpus"], tags={"cve": "X"})
    assert (again.known_files, again.tagged) == (4, len(library))
    assert library.engine.count(Filter(tags={"cve": "X"})) == len(library) > 0


# --- Single functions ---------------------------------------------------------------------


def test_one_function_is_added_as_with_its_file(
    builds: Path, library: Library, other: Library
) -> None:
    file = builds / "gcc-O0" / "libshapes.so"
    index_paths(other, [file], min_blocks=1)
    every = {item.entry.address: item for item in other.engine.scan()}
    for number, (address, item) in enumerate(every.items()):
        summary = index_paths(library, [f"{file}:{address:#x}"])
        assert (summary.files, summary.functions, summary.added) == (1, 1, 1)
        (stored,) = list(library.engine.scan())[number:]
        assert stored.entry == item.entry
    assert content(library) == content(other)
    assert library.engine.finished_files() == set()
    again = index_paths(library, [file], min_blocks=1)
    assert (again.known_files, again.known, again.added) == (0, len(library), 0)


def test_one_known_function_gets_the_tags_and_no_other(builds: Path, library: Library) -> None:
    file = builds / "gcc-O0" / "libshapes.so"
    index_paths(library, [file], min_blocks=1)
    # A second function of the same name and file.
    chosen = next(library.engine.scan())
    twin = KnownFunction(**{**chosen.entry.to_dict(), "address": 1})
    library.add(library.engine.graphs([chosen.id]), [twin])
    named = f"{file}:{chosen.entry.address:#x}"
    summary = index_paths(library, [named], tags={"cve": "X"})
    assert (summary.tagged, summary.known, summary.added) == (1, 1, 0)
    assert [item.id for item in library.engine.scan(Filter(tags={"cve": "X"}))] == [chosen.id]
    assert index_paths(library, [named], tags={"cve": "X"}).tagged == 0


def test_one_function_of_a_member_of_an_archive(library: Library) -> None:
    archive = SAMPLES / "macho" / "fat.a"
    index_paths(library, [archive], min_blocks=1)
    named = list(library.engine.scan(Filter(function="out", address=0)))
    assert len({item.entry.binary for item in named}) == len(named) > 1
    summary = index_paths(library, [f"{archive}(clang-x86_64-O0.o):out"], tags={"cve": "X"})
    assert (summary.added, summary.known, summary.tagged, summary.skipped) == (0, 1, 1, [])
    (tagged,) = library.engine.scan(Filter(tags={"cve": "X"}))
    assert tagged.entry.binary == f"{archive}(x86_64)(clang-x86_64-O0.o)"
    assert tagged.id in [item.id for item in named]


def test_functions_that_are_not_there_are_skipped(builds: Path, library: Library) -> None:
    file = builds / "gcc-O0" / "libshapes.so"
    function = next(NativeSource(file).functions())
    text = builds / "gcc-O0" / "build.log"
    paths = [f"{file}:{function.address:#x}", f"{file}:no_such_function", f"{text}:f", "absent:f"]
    summary = index_paths(library, paths)
    assert [entry.entry.address for entry in library.engine.scan()] == [function.address]
    reasons = {(skip.binary, skip.function): skip.reason for skip in summary.skipped}
    assert set(reasons) == {(str(file), "no_such_function"), (str(text), "f"), ("absent:f", "")}
    assert "has no function no_such_function" in reasons[str(file), "no_such_function"]
    assert (summary.files, summary.added) == (3, 1)


def test_a_file_with_a_colon_in_its_name_is_a_file(builds: Path, library: Library) -> None:
    shutil.copyfile(builds / "gcc-O0" / "libshapes.so", builds / "lib:shapes")
    summary = index_paths(library, [builds / "lib:shapes"])
    assert len(library.engine.finished_files()) == 1
    assert summary.added > 1


def test_a_copy_in_the_same_run_is_not_read(builds: Path, library: Library) -> None:
    shutil.copyfile(builds / "gcc-O0" / "libshapes.so", builds / "copy.so")
    summary = index_paths(library, [builds, builds / "copy.so", builds / "copy.so"])
    assert (summary.files, summary.known_files) == (5, 1)


def test_a_file_that_was_removed_is_read_again(builds: Path, library: Library) -> None:
    first = index_paths(library, [builds])
    removed = library.remove(Filter(build="gcc-O0"))
    again = index_paths(library, [builds])
    assert (again.known_files, again.added) == (3, removed)
    assert len(library) == first.added


def test_a_file_that_changes_while_it_is_read_is_not_finished() -> None:
    made = FunctionRecord.of(function("f", body(1)), "/x")
    jobs = [FileJob("/x", "", "ab" * 32), FileJob("/x", "", "cd" * 32)]
    for job, expected in zip(jobs, ["ab" * 32, ""], strict=True):
        results = [(job, made), (job, FileSummary(0, [])), (job, Done())]
        (batch,) = batches(ready(results, Vocabulary(WORDS), {}), "")
        assert [end.file_hash for end in batch.ends] == [expected]


# --- Corpora ------------------------------------------------------------------------------


def test_a_corpus_gives_what_its_binaries_give(
    builds: Path, library: Library, other: Library, tmp_path: Path
) -> None:
    index_paths(library, [builds])
    extract([builds], tmp_path / "corpus", min_blocks=1)
    summary = index_paths(other, [tmp_path / "corpus"])
    assert content(other) == content(library)
    assert {item.entry.binary for item in other.engine.scan()} == {
        item.entry.binary for item in library.engine.scan()
    }
    assert (summary.files, summary.added) == (4, len(library))
    assert summary.small > 0
    again = index_paths(other, [tmp_path / "corpus"])
    assert (again.known_files, again.functions) == (4, 0)
    # Both at once: nothing comes twice.
    both = index_paths(library, [tmp_path / "corpus", builds])
    assert (both.files, both.known_files, both.known, both.added) == (8, 4, len(other), 0)


def test_damaged_corpora_are_skipped(builds: Path, library: Library, tmp_path: Path) -> None:
    extract([builds], tmp_path / "cut")
    (tmp_path / "cut" / "words.u32").write_bytes(b"")
    extract([builds], tmp_path / "scribbled")
    texts = (tmp_path / "scribbled" / "texts.jsonl").read_bytes()
    (tmp_path / "scribbled" / "texts.jsonl").write_bytes(b"?" * len(texts))
    summary = index_paths(library, [tmp_path / "cut", tmp_path / "scribbled", builds])
    reasons = [skip.reason for skip in summary.skipped]
    truncated, damaged = reasons
    assert "is truncated" in truncated
    assert "is damaged" in damaged
    assert summary.added == len(library) > 0


# --- What cannot be read ------------------------------------------------------------------


def test_bad_files_are_reported_and_the_rest_is_read(
    builds: Path, library: Library, tmp_path: Path
) -> None:
    bad = {"text.txt": b"hello", "cut.so": BUILDS["gcc-O2"].read_bytes()[:900], "empty.so": b""}
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
    os.mkfifo(tmp_path / "pipe")
    paths = [*(tmp_path / name for name in [*bad, "pipe", "absent"]), builds]
    summary = index_paths(library, paths, jobs=2, backend="native")
    reasons = {Path(skip.binary).name: skip.reason for skip in summary.skipped}
    assert set(reasons) == {*bad, "pipe", "absent"}
    assert "not an ELF, PE or Mach-O" in reasons["text.txt"]
    assert "not a regular file" in reasons["pipe"]
    assert "No such file" in reasons["absent"]
    assert summary.files == 9
    assert len({item.entry.file_hash for item in library.engine.scan()}) == 4
    # What failed is tried again, what did not is known.
    again = index_paths(library, paths, backend="native")
    assert again.known_files == 4
    assert len(again.skipped) == 5


def test_nothing_to_read(library: Library, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FormatError, match=r"no binary and no corpus in .*folder; .* --model"):
        index_paths(library, [tmp_path / "folder"])
    with pytest.raises(FormatError, match="no paths at all"):
        index_paths(library, [])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"jobs": 0}, ConfigError, "count from 1"),
        ({"min_blocks": 0}, ConfigError, "count from 1"),
        ({"limits": Limits(seconds=float("inf"))}, ConfigError, "finite"),
        ({"tags": {"cve": 1}}, ConfigError, "text to text"),
        ({"ray": "127.0.0.1:1"}, ConfigError, "no Ray cluster at 127.0.0.1:1"),
        ({"ray": "nowhere"}, ConfigError, "no Ray cluster at nowhere"),
    ],
)
def test_bad_arguments(
    builds: Path, library: Library, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        index_paths(library, [builds], **options)
    assert len(library) == 0


def test_ray_that_is_not_installed(
    builds: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"graphkin\[ray\]"):
        index_paths(library, [builds], ray="local")


def test_a_model_without_words(builds: Path, tmp_path: Path) -> None:
    plain = SearchModel.of(GraphEmbedder(ModelConfig.named("gnn", similarity="hamming")))
    with (
        Library.create(tmp_path / "plain.kin", plain) as library,
        pytest.raises(ModelError, match="vocabulary"),
    ):
        index_paths(library, [builds])


# --- Interruption -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left")])
def test_an_interrupted_run_is_taken_up(
    builds: Path,
    library: Library,
    other: Library,
    monkeypatch: pytest.MonkeyPatch,
    error: Any,
) -> None:
    monkeypatch.setattr(indexing_chunks, "BATCH", 5)
    monkeypatch.setattr(indexing, "AHEAD", 0)

    def stop(done: int, total: int) -> None:
        if 2 <= done < total:
            assert workers()
            raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        index_paths(library, [builds], progress=stop)
    # While the error, and with it every frame, is still held.
    assert workers() == []
    finished = len(library.engine.finished_files())
    assert 2 <= finished < 4
    before = len(library)
    assert before > 0
    summary = index_paths(library, [builds])
    assert (summary.known_files, summary.added) == (finished, len(library) - before)
    index_paths(other, [builds])
    assert content(library) == content(other)


KILLED = """
import os, signal, sys
from graphkin.library.indexing import index as indexing, batches as indexing_chunks
from graphkin.library.library import Library

indexing_chunks.BATCH, indexing.AHEAD = 5, 0

def stop(done, total):
    if 2 <= done < total:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with Library.open(sys.argv[1]) as library:
        indexing.index_paths(library, sys.argv[2:], progress=stop)
"""


def test_a_killed_run_is_taken_up(
    builds: Path, tmp_path: Path, model: SearchModel, other: Library
) -> None:
    path = tmp_path / "killed.kin"
    Library.create(path, model).close()
    (tmp_path / "run.py").write_text(KILLED)
    ended = subprocess.run([sys.executable, tmp_path / "run.py", path, builds], timeout=300)
    assert ended.returncode == -signal.SIGKILL
    with Library.open(path) as library:
        before = len(library)
        assert before > 0
        summary = index_paths(library, [builds])
        assert summary.known_files >= 2
        assert summary.added == len(library) - before > 0
        index_paths(other, [builds])
        assert content(library) == content(other)
        assert library.verify().damage == []


# --- Parts --------------------------------------------------------------------------------

JOB = FileJob("/x", "", "ab" * 32)


def test_a_batch_holds_the_functions_of_a_file_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing_chunks, "BATCH", 2)
    made = [FunctionRecord.of(function("f", body(seed)), "/x") for seed in range(5)]
    a, b = JOB, FileJob("/y", "", "ab" * 32)
    results: Any = [(a, made[0]), (b, made[1]), (a, made[2]), (a, Done()), (b, made[3])]
    results += [(b, made[4]), (b, Done())]
    cut = list(batches(ready(results, Vocabulary(WORDS), {}), "how"))
    assert [len(batch.functions) for batch in cut] == [2, 3]
    assert [[end.path for end in batch.ends] for batch in cut] == [["/x"], ["/y"]]
    assert [batch.counts for batch in cut] == [{"/x": 2}, {"/y": 3}]


def test_a_very_large_file_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing_chunks, "LARGEST_FILE", 2)
    made = [FunctionRecord.of(function("f", body(seed)), "/x") for seed in range(3)]
    results: Any = [*((JOB, record) for record in made), (JOB, Done())]
    monkeypatch.setattr(indexing_chunks, "BATCH", 2)
    cut = list(batches(ready(results, Vocabulary(WORDS), {}), "how"))
    assert [len(batch.functions) for batch in cut] == [2, 1]
    assert [len(batch.ends) for batch in cut] == [0, 1]


def test_files_of_which_all_is_known_leave_a_batch_but_count(model: SearchModel) -> None:
    """A known function stays beside new ones of its file, whose callee it may be."""
    jobs = [JOB] * 3 + [FileJob("/y", "", "cd" * 32)]
    made = [
        FunctionRecord.of(replace(function(f"f{seed}", body(seed)), file_hash=job.file_hash), "")
        for seed, job in enumerate(jobs)
    ]
    (batch,) = batches(ready(zip(jobs, made, strict=True), Vocabulary(WORDS), {}), "")
    known = {batch.functions[1].key, batch.functions[3].key}
    left: Batch = batch.without(lambda keys: known & set(keys))
    assert [item.entry.function for item in left.functions] == ["f0", "f1", "f2"]
    assert left.known_files == {"ab" * 32, "cd" * 32}
    chunk = Embedding(model).chunk(left)
    assert [row.entry.function for row in chunk.rows] == ["f0", "f2"]
    assert chunk.counts == {"/x": 3, "/y": 1}


def test_small_files_are_grouped(tmp_path: Path) -> None:
    sizes = [10, 10, 100, 5, 5, 5, 5]
    jobs = []
    for number, size in enumerate(sizes):
        (tmp_path / str(number)).write_bytes(bytes(size))
        jobs.append(FileJob(str(tmp_path / str(number)), "", ""))
    actual = [[int(Path(job.path).name) for job in group] for group in groups(jobs, 50, 3)]
    assert actual == [[0, 1], [2], [3, 4, 5], [6]]


def test_settings_tell_what_is_read() -> None:
    make: Callable[..., ReadSettings] = ReadSettings
    different = [make(), make(min_blocks=4), make(backend="native"), make(limits=Limits(seconds=1))]
    assert len({settings.text for settings in different}) == 4
