"""From files and folders to a corpus: complete or not there at all, whatever the files are."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from graphkin.binaries import extraction
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.binaries.extraction import build_names, extract
from graphkin.errors import ConfigError, FormatError, MissingDependencyError, StorageError
from tests.paths import BINARIES

SAMPLES = BINARIES
BUILDS = {
    "gcc-O0": SAMPLES / "x86" / "gcc-static-O0",
    "gcc-O2": SAMPLES / "x86" / "gcc-static-O2",
    "clang-O1": SAMPLES / "aarch64" / "clang-static-O1",
    "clang-O3": SAMPLES / "arm" / "clang-thumb-shared-O3",
}


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    """A folder with a library for each build, and what else lies around."""
    folder = tmp_path / "builds"
    for build, sample in BUILDS.items():
        (folder / build).mkdir(parents=True)
        shutil.copyfile(sample, folder / build / "libshapes.so")
        (folder / build / "build.log").write_text("compiled\n")
    (folder / "empty").touch()
    (folder / "manifest.json").write_text("{}")
    return folder


def names(corpus: FunctionCorpus) -> list[tuple[str, str]]:
    return [(entry.binary.build, entry.name) for entry in corpus.entries]


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def workers() -> list[psutil.Process]:
    """Those that run: children of the server that they are forked from."""
    servers = [p for p in psutil.Process().children() if "forkserver" in " ".join(p.cmdline())]
    return [worker for server in servers for worker in server.children()]


# --- What comes out -----------------------------------------------------------------------


def test_every_function_of_every_binary(builds: Path, tmp_path: Path) -> None:
    summary = extract([builds], tmp_path / "c", min_blocks=1)
    corpus = FunctionCorpus.open(tmp_path / "c")
    expected = [
        function
        for build in sorted(BUILDS)
        for function in NativeSource(builds / build / "libshapes.so").functions()
    ]
    assert [entry.name for entry in corpus.entries] == [function.name for function in expected]
    for number, function in enumerate(expected):
        entry = corpus.entry(number)
        assert (entry.address, entry.size) == (function.address, function.size)
        assert entry.binary.architecture == function.architecture
        assert entry.binary.file_hash == function.file_hash
        assert corpus.store[number] == function.to_graph(corpus.words)
    assert {entry.binary.build for entry in corpus.entries} == set(BUILDS)
    assert {entry.binary.library for entry in corpus.entries} == {"libshapes"}
    assert (summary.files, summary.functions, summary.small) == (4, len(expected), 0)
    assert summary.skipped == []
    corpus.store.verify()
    assert left_in(tmp_path) == ["builds", "c"]
    assert sorted(os.listdir(tmp_path / "c")) == [
        "functions.json", "index.i64", "lock", "manifest.json", "texts.jsonl", "words.u32",
    ]  # fmt: skip


def test_small_functions_are_left_out_and_counted(builds: Path, tmp_path: Path) -> None:
    everything = extract([builds / "gcc-O0"], tmp_path / "all", min_blocks=1)
    summary = extract([builds / "gcc-O0"], tmp_path / "c", min_blocks=6)
    corpus = FunctionCorpus.open(tmp_path / "c")
    assert corpus.store.node_counts.min() >= 6
    assert 0 < summary.functions < everything.functions
    assert summary.functions + summary.small == everything.functions


@pytest.fixture
def many(builds: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """More files, some that cannot be read, and batches of a few functions."""
    monkeypatch.setattr(extraction, "BATCH", 7)
    for number, build in enumerate(BUILDS):
        shutil.copyfile(SAMPLES / "x86" / f"gcc-shared-O{number}", builds / build / "other.so")
        (builds / build / "broken.so").write_bytes(b"\x7fELF" + bytes(number * 100))
    return builds


def test_the_corpus_does_not_depend_on_the_number_of_processes(many: Path, tmp_path: Path) -> None:
    summaries = [extract([many], tmp_path / f"c{jobs}", jobs=jobs) for jobs in (1, 3)]
    by_one_job, by_three_jobs = (FunctionCorpus.open(tmp_path / f"c{jobs}") for jobs in (1, 3))
    assert by_one_job.digest() == by_three_jobs.digest()
    assert by_one_job.entries == by_three_jobs.entries
    assert by_one_job.words == by_three_jobs.words
    assert summaries[0] == summaries[1]
    assert len(summaries[0].skipped) == 4


def test_results_that_come_before_their_turn(tmp_path: Path) -> None:
    """Files that end in every order are written in one, and memory holds one at a time."""
    from itertools import permutations

    from graphkin.binaries.workers import Done, Failure

    files = [Path("a"), Path("b"), Path("c")]
    expected = [(path, text) for path in files for text in (f"{path}1", f"{path}2", "end")]
    for number, order in enumerate(permutations(range(3))):
        folder = tmp_path / f"spool{number}"
        folder.mkdir()
        spool = extraction._Spool(folder)
        # All first results, then all second ones, then the ends, each time in this order.
        results = [(files[i], f"{files[i]}{part}") for part in (1, 2) for i in order]
        ends = [(files[i], Failure("end") if i == 1 else Done()) for i in order]
        ordered = extraction._in_order(files, iter([*results, *ends]), spool)  # type: ignore[list-item]
        actual = [(path, r if isinstance(r, str) else "end") for path, r in ordered]
        assert actual == expected
        assert os.listdir(folder) == []


def test_progress_counts_files(many: Path, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    extract([many], tmp_path / "c", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, 12) for done in range(13)]


# --- What is read -------------------------------------------------------------------------


def test_files_in_the_order_given(builds: Path, tmp_path: Path) -> None:
    files = [builds / build / "libshapes.so" for build in ("gcc-O2", "clang-O1", "gcc-O0")]
    extract(files, tmp_path / "c")
    builds_read = list(
        dict.fromkeys(build for build, _ in names(FunctionCorpus.open(tmp_path / "c")))
    )
    assert builds_read == ["gcc-O2", "clang-O1", "gcc-O0"]


def test_a_file_counts_once(builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = builds / "gcc-O2" / "libshapes.so"
    (tmp_path / "link.so").symlink_to(file)
    monkeypatch.chdir(builds)
    again = [file, file, "gcc-O2/libshapes.so", builds / "gcc-O0" / ".." / "gcc-O2"]
    summary = extract([*again, tmp_path / "link.so"], tmp_path / "c")
    assert summary.files == 1
    extract([file], tmp_path / "single")
    once, many_list = (FunctionCorpus.open(tmp_path / name) for name in ("single", "c"))
    assert many_list.digest() == once.digest()


def test_links_in_folders_are_not_followed(builds: Path, tmp_path: Path) -> None:
    (builds / "gcc-O2" / "libshapes.so.1").symlink_to("libshapes.so")
    (builds / "outside").symlink_to(SAMPLES)
    (builds / "loop").symlink_to(builds)
    (builds / "nowhere.so").symlink_to("absent")
    assert extract([builds], tmp_path / "c").files == 4


def test_what_is_no_regular_file_is_passed_over(builds: Path, tmp_path: Path) -> None:
    os.mkfifo(builds / "pipe")
    assert extract([builds], tmp_path / "c").files == 4


def test_an_output_inside_the_folder_that_is_searched(builds: Path) -> None:
    extract([builds], builds / "corpus.graphs")
    corpus = FunctionCorpus.open(builds / "corpus.graphs")
    extract([builds], builds / "second.graphs")
    assert FunctionCorpus.open(builds / "second.graphs").digest() == corpus.digest()


def test_members_of_an_archive_are_one_library(tmp_path: Path) -> None:
    (tmp_path / "O2").mkdir()
    shutil.copyfile(SAMPLES / "macho" / "fat.a", tmp_path / "O2" / "libshapes.a")
    extract([tmp_path / "O2"], tmp_path / "c", min_blocks=1)
    records = FunctionCorpus.open(tmp_path / "c").binaries
    assert len(records) > 1
    assert {(binary.build, binary.library) for binary in records} == {("O2", "libshapes")}
    assert {binary.path for binary in records} == {str(tmp_path / "O2" / "libshapes.a")}
    assert all(binary.part.startswith("(") for binary in records)


def test_the_source_files_of_functions(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    body = "{ for (int i = 0; i < a; i++) if (i % 3) a -= i; else a ^= 1; return a; }"
    code = f"static __attribute__((noinline)) int inner(int a) {body} int outer(int a) {body}\n"
    code += "int more(int a) { return inner(a) + inner(outer(a)); }"
    path = compile_c(code, "-O1", "-g1", "-shared", "-fPIC", name="libs.so")
    extract([path], tmp_path / "c", min_blocks=2)
    entries = {entry.name: entry for entry in FunctionCorpus.open(tmp_path / "c").entries}
    assert entries["inner"].unit == "libs.so.c"
    assert entries["outer"].unit is None
    assert (entries["outer"].defined_in or "").endswith("libs.so.c")


def test_shared_libraries(ffmpeg: Path, tmp_path: Path) -> None:
    files = [ffmpeg / build / "libavutil.so" for build in ("gcc-O2", "clang-O3")]
    summary = extract(files, tmp_path / "c")
    corpus = FunctionCorpus.open(tmp_path / "c")
    assert summary.skipped == []
    counts = dict.fromkeys(("gcc-O2", "clang-O3"), 0)
    for build, _ in names(corpus):
        counts[build] += 1
    assert min(counts.values()) > 400
    assert corpus.store.node_counts.min() == 5


# --- What cannot be read ------------------------------------------------------------------


def test_bad_files_are_reported_and_the_rest_is_read(builds: Path, tmp_path: Path) -> None:
    bad = {
        "text.txt": b"hello",
        "cut.so": BUILDS["gcc-O2"].read_bytes()[:900],
        "empty.so": b"",
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    paths = [*(tmp_path / name for name in bad), tmp_path / "absent", builds]
    summary = extract(paths, tmp_path / "c", jobs=2, backend="native")
    reasons = {Path(skip.binary).name: skip.reason for skip in summary.skipped}
    assert set(reasons) == {*bad, "absent"}
    assert "not an ELF, PE or Mach-O" in reasons["text.txt"]
    assert "is empty" in reasons["empty.so"]
    assert "No such file" in reasons["absent"]
    assert summary.files == 8
    extract([builds], tmp_path / "good")
    good, corpus = (FunctionCorpus.open(tmp_path / name) for name in ("good", "c"))
    assert corpus.digest() == good.digest()


def test_nothing_to_keep(builds: Path, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"bad{number}").write_bytes(b"\x7fELF")
    bad = [tmp_path / f"bad{number}" for number in range(5)]
    with pytest.raises(FormatError, match=r"no function to keep: .*bad0.*; and 2 more"):
        extract(bad, tmp_path / "c")
    with pytest.raises(FormatError, match=r"\d\d functions have fewer than 9999 blocks"):
        extract([builds / "gcc-O0"], tmp_path / "c", min_blocks=9999)
    assert not (tmp_path / "c").exists()


def test_no_binary_at_all(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "text").write_text("text")
    with pytest.raises(FormatError, match=r"no binary found in .*folder"):
        extract([tmp_path / "folder"], tmp_path / "c")
    with pytest.raises(FormatError, match="no binary found"):
        extract([], tmp_path / "c")
    assert left_in(tmp_path) == ["folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_must_not_be_read_is_reported(builds: Path, tmp_path: Path) -> None:
    (builds / "gcc-O0" / "libshapes.so").chmod(0)
    (builds / "gcc-O2").chmod(0)
    try:
        summary = extract([builds], tmp_path / "c")
    finally:
        (builds / "gcc-O2").chmod(0o755)
    assert {Path(skip.binary).name for skip in summary.skipped} == {"libshapes.so", "gcc-O2"}
    assert all("Permission denied" in skip.reason for skip in summary.skipped)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), -1.0])
def test_times_that_are_none(builds: Path, tmp_path: Path, seconds: float) -> None:
    with pytest.raises(ConfigError, match="finite"):
        extract([builds], tmp_path / "c", limits=Limits(seconds=seconds))


def test_a_file_out_of_time(builds: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="the time of 0 s is over"):
        extract([builds], tmp_path / "c", limits=Limits(seconds=0))
    assert left_in(tmp_path) == ["builds"]


# --- Where it is written ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["corpus", "file", "folder", "dangling link"])
def test_what_exists_is_not_touched(builds: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "c"
    if kind == "corpus":
        extract([builds / "gcc-O0"], out)
    elif kind == "file":
        out.write_text("mine")
    elif kind == "folder":
        out.mkdir()
    else:
        out.symlink_to("absent")
    before = {
        path: (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [out, *out.rglob("*")]
    }
    with pytest.raises(StorageError, match="exists already"):
        extract([builds], out)
    after = [out, *out.rglob("*")]
    assert {
        path: (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in after
    } == before


def test_folders_on_the_way_are_made(builds: Path, tmp_path: Path) -> None:
    extract([builds], tmp_path / "new" / "folder" / "c")
    assert left_in(tmp_path / "new" / "folder") == ["c"]
    assert len(FunctionCorpus.open(tmp_path / "new" / "folder" / "c")) > 0


def test_a_place_that_cannot_be_written(builds: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(StorageError, match=r"cannot write .*taken/c: Not a directory"):
        extract([builds], tmp_path / "taken" / "c")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(builds: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(StorageError, match="Permission denied"):
        extract([builds], tmp_path / "locked" / "c")


class Stop(Exception):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop, OSError(28, "No space left")])
def test_nothing_is_left_after_an_interrupt(
    many: Path, tmp_path: Path, error: type[BaseException] | OSError
) -> None:
    def progress(done: int, total: int) -> None:
        if done == 2:
            assert left_in(tmp_path) == [".c.partial", "builds"]
            assert workers()
            raise error

    kind = StorageError if isinstance(error, OSError) else error
    with pytest.raises(kind) as caught:  # type: ignore[arg-type]
        extract([many], tmp_path / "c", jobs=3, progress=progress)
    # While the error, and with it every frame, is still held.
    assert workers() == []
    assert left_in(tmp_path) == ["builds"]
    if isinstance(error, OSError):
        assert "cannot write" in str(caught.value)
        assert "No space left" in str(caught.value)


def test_what_a_killed_run_left_is_cleared(builds: Path, tmp_path: Path) -> None:
    leftover = tmp_path / ".c.partial" / "corpus"
    leftover.mkdir(parents=True)
    (leftover / "index.i64").write_bytes(b"half")
    extract([builds], tmp_path / "c")
    assert left_in(tmp_path) == ["builds", "c"]
    FunctionCorpus.open(tmp_path / "c").store.verify()


def test_only_one_process_writes_a_corpus(builds: Path, tmp_path: Path) -> None:
    """Two at once would mix their functions."""

    def progress(done: int, total: int) -> None:
        if done == 2:
            with pytest.raises(StorageError, match="another process is writing"):
                extract([builds / "gcc-O0"], tmp_path / "c")

    extract([builds], tmp_path / "c", progress=progress)
    corpus = FunctionCorpus.open(tmp_path / "c")
    extract([builds], tmp_path / "again")
    assert FunctionCorpus.open(tmp_path / "again").digest() == corpus.digest()


def test_builds_are_told_apart_by_as_many_folders_as_it_takes() -> None:
    files = [Path(f"/q/{name}") for name in ("gcc/lib/a", "clang/lib/a", "gcc/lib/b", "O2/a")]
    assert list(build_names(files).values()) == ["gcc/lib", "clang/lib", "gcc/lib", "O2"]
    deep = [Path("/q/one/x/lib/a"), Path("/q/two/x/lib/a"), Path("/a"), Path("/q/one/x/lib/b")]
    assert list(build_names(deep).values()) == ["one/x/lib", "two/x/lib", "/", "one/x/lib"]


def test_a_backend_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphkin.binaries.backends.smda.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"graphkin\[smda\]"):
        extract([SAMPLES / "x86" / "gcc-shared-O2"], tmp_path / "c", backend="smda")
    assert not (tmp_path / "c").exists()
