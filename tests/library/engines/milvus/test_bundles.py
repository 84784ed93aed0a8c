"""Bundles survive whatever happens to their writers, and damage is named."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphkin.errors import FormatError, StorageError
from graphkin.library.engines.milvus.bundles import BundleStore, Piece

WRITER = """
import sys
from graphkin.library.engines.milvus.bundles import BundleStore
store, own = BundleStore(sys.argv[1]), sys.argv[2]
for number in range(int(sys.argv[3])):
    parts = [f"{own} {number} {part} ".encode() * 200 for part in range(20)]
    for piece in store.put([*parts, b"the same for all"]):
        print(*piece)
    store.put([b"shared %d" % number])
    sys.stdout.flush()
"""


def writer(store: BundleStore, own: str, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(store.folder), own, str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def pieces_of(output: str) -> list[Piece]:
    """What a writer was told of, but for a line that was cut off."""
    lines = [line.split() for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return [Piece(bundle, int(start), int(size)) for bundle, start, size in lines]


@pytest.fixture
def store(tmp_path: Path) -> BundleStore:
    return BundleStore(tmp_path / "graphs")


def test_parts_come_back_in_any_order(store: BundleStore) -> None:
    parts = [b"one", b"", b"three", bytes(range(256)), b"one"]
    pieces = store.put(parts) + store.put([b"another", b"one"])
    contents = [*parts, b"another", b"one"]
    order = [5, 0, 3, 1, 6, 4, 2, 3]
    assert store.read([pieces[position] for position in order]) == [
        contents[position] for position in order
    ]
    assert store.read([]) == []


def test_equal_content_is_kept_once(store: BundleStore) -> None:
    first = store.put([b"graph", b"graph", b"other"])
    assert first[0] == first[1]
    assert store.put([b"graph", b"graph", b"other"]) == first
    assert [bundle.size for bundle in store] == [len(b"graphother")]


def test_a_bundle_that_is_put_again_counts_as_new(store: BundleStore) -> None:
    (piece,) = store.put([b"graph"])
    path = store.folder / piece.bundle[:2] / piece.bundle
    os.utime(path, (1000, 1000))
    assert next(iter(store)).modified == 1000
    store.put([b"graph"])
    assert next(iter(store)).modified > time.time() - 60


def test_a_bundle_that_was_cut_is_written_again(store: BundleStore) -> None:
    (piece,) = store.put([b"graph" * 100])
    path = store.folder / piece.bundle[:2] / piece.bundle
    path.write_bytes(b"gra")
    store.put([b"graph" * 100])
    assert store.read([piece]) == [b"graph" * 100]


def test_damage_is_named(store: BundleStore) -> None:
    (piece,) = store.put([b"graph" * 100])
    path = store.folder / piece.bundle[:2] / piece.bundle
    path.write_bytes(b"grapx" * 100)
    with pytest.raises(FormatError, match=f"{piece.bundle} is damaged"):
        store.read_whole(piece.bundle)
    path.write_bytes(b"graph" * 99)
    with pytest.raises(FormatError, match=f"{piece.bundle} is truncated"):
        store.read([piece])
    store.discard(piece.bundle)
    store.discard(piece.bundle)
    for read in (lambda: store.read([piece]), lambda: store.read_whole(piece.bundle)):
        with pytest.raises(FormatError, match=f"{piece.bundle} is missing"):
            read()


@pytest.mark.parametrize("name", ["", "../../secret", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_only_names_of_bundles_are_read(store: BundleStore, name: str) -> None:
    store.put([b"graph"])
    with pytest.raises(FormatError, match="not the name of a bundle"):
        store.read([Piece(name, 0, 1)])


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"cannot write .*file"):
        BundleStore(tmp_path / "file").put([b"graph"])


def test_other_files_are_no_bundles(store: BundleStore) -> None:
    (piece,) = store.put([b"graph"])
    (store.folder / piece.bundle[:2] / "notes.txt").write_text("mine")
    (store.folder / "notes.txt").write_text("mine")
    assert [bundle.name for bundle in store] == [piece.bundle]


def test_leftovers_of_killed_writers_go_when_they_are_old(store: BundleStore) -> None:
    (piece,) = store.put([b"graph"])
    left = store.folder / piece.bundle[:2] / ".new-abc"
    left.write_bytes(b"gra")
    store.discard_leftovers(before=time.time() - 60)
    assert left.exists()
    store.discard_leftovers(before=time.time() + 60)
    assert not left.exists()
    assert store.read([piece]) == [b"graph"]


def test_several_writers_share_a_folder(store: BundleStore) -> None:
    writers = [writer(store, own, rounds=20) for own in ("first", "second")]
    outputs = [process.communicate(timeout=120)[0] for process in writers]
    assert [process.returncode for process in writers] == [0, 0]
    names = [bundle.name for bundle in store]
    assert len(names) == 60
    for name in names:
        store.read_whole(name)
    for own, output in zip((b"first", b"second"), outputs, strict=True):
        contents = store.read(pieces_of(output))
        assert len(contents) == 20 * 21
        assert all(part.startswith(own) or part == b"the same for all" for part in contents)


def test_what_a_killed_writer_was_told_of_is_whole(store: BundleStore) -> None:
    moments = random.Random(5)
    told: list[Piece] = []
    for number in range(4):
        process = writer(store, f"run{number}", rounds=100_000)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(moments.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        told += pieces_of(first + process.communicate()[0])
    assert len(told) >= 4
    for piece, content in zip(told, store.read(told), strict=True):
        assert len(content) == piece.size
    for bundle in store:
        store.read_whole(bundle.name)
