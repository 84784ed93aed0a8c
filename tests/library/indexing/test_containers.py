"""Containers into a library: each member is a file of its own, and the whole is known again."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkin.binaries.inputs import Inputs
from graphkin.library.indexing.index import index_paths
from graphkin.library.library import Library
from graphkin.library.scan import read_queries
from tests.binaries.containers.making import OBJECT, deb_of, zip_of
from tests.library.indexing.samples import BUILDS, content, search_model


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    private = tmp_path / "temporary"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    with Library.create(tmp_path / "library.kin", search_model()) as library:
        yield library
    assert list(private.glob("graphkin-*")) == []


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with every build of a library, one of them twice."""
    files = {f"./opt/{build}/libshapes.so": path.read_bytes() for build, path in BUILDS.items()}
    path = tmp_path / "packages" / "shapes.deb"
    path.parent.mkdir()
    path.write_bytes(deb_of({**files, "./opt/again/libshapes.so": next(iter(files.values()))}))
    return path


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Is filled with the paths of containers that are unpacked from now on."""
    paths: list[str] = []
    job = Inputs._job

    def counting(self: Inputs, path: str) -> object:
        paths.append(path)
        return job(self, path)

    monkeypatch.setattr(Inputs, "_job", counting)
    return paths


def test_entries_say_where_they_lie(package: Path, library: Library) -> None:
    seen: list[tuple[int, int]] = []
    summary = index_paths(library, [package], jobs=2, progress=lambda *now: seen.append(now))
    assert (summary.files, summary.known_files, summary.skipped) == (5, 1, [])
    assert seen[-1] == (5, 5)
    assert summary.added == len(library) > 0
    hashes = {build: hashlib.sha256(path.read_bytes()) for build, path in BUILDS.items()}
    entries = [item.entry for item in library.engine.scan()]
    assert {(entry.binary, entry.build, entry.file_hash) for entry in entries} == {
        (
            f"{package}!opt/{build}/libshapes.so",
            f"packages/shapes.deb!opt/{build}",
            digest.hexdigest(),
        )
        for build, digest in hashes.items()
    }


def test_a_container_gives_what_its_files_give(
    package: Path, library: Library, tmp_path: Path
) -> None:
    index_paths(library, [package])
    with Library.create(tmp_path / "other.kin", search_model()) as other:
        index_paths(other, list(BUILDS.values()))
        assert content(other) == content(library)
    again = index_paths(library, list(BUILDS.values()))
    assert (again.added, again.known_files) == (0, len(BUILDS))


def test_a_known_container_is_not_opened(
    package: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_paths(library, [package])
    paths = opened(monkeypatch)
    again = index_paths(library, [package.parent])
    assert (again.files, again.known_files, again.functions, paths) == (1, 1, 0, [])
    tagged = index_paths(library, [package], tags={"cve": "none"})
    assert (tagged.added, tagged.tagged, paths) == (0, len(library), [str(package)])


def test_what_a_run_left_out_is_read_by_the_next(
    package: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = next(iter(BUILDS))
    part = index_paths(library, [f"{package}!opt/{build}"])
    assert {item.entry.build for item in library.engine.scan()} == {
        f"packages/shapes.deb!opt/{build}"
    }
    paths = opened(monkeypatch)
    rest = index_paths(library, [package])
    assert paths == [str(package)]
    assert 0 < part.added < len(library) == part.added + rest.added


def test_a_container_with_damage_is_opened_again(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of({"bad.o": OBJECT[:300], "good.o": OBJECT}))
    first = index_paths(library, [path], min_blocks=1)
    assert first.added > 0
    assert [item.binary for item in first.skipped] == [f"{path}!bad.o"]
    again = index_paths(library, [path], min_blocks=1)
    assert (again.added, again.known_files, len(again.skipped)) == (0, 1, 1)


def test_one_function_of_a_member(package: Path, library: Library) -> None:
    build, path = next(iter(BUILDS.items()))
    index_paths(library, [path])
    name = next(item.entry.function for item in library.engine.scan())
    target = f"{package}!opt/{build}/libshapes.so:{name}"
    summary = index_paths(library, [target], tags={"cve": "x"})
    assert (summary.skipped, summary.tagged) == ([], 1)
    (query,) = read_queries(library, [target])
    assert query.ref.binary == f"{package}!opt/{build}/libshapes.so"
