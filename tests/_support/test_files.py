"""Files written whole, or not at all, and read with errors that name them."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from graphkin._support.files import (
    hash_file,
    locked,
    read_file,
    replacing,
    sweep,
    write_atomically,
)
from graphkin.errors import FormatError, StorageError


def test_a_new_file_in_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "some" / "folder" / "file.bin"
    write_atomically(path, b"\x00content\xff")
    assert path.read_bytes() == b"\x00content\xff"
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


@pytest.mark.parametrize("content", [b"", b"short", b"long" * 100_000], ids=["none", "few", "many"])
def test_an_existing_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old content")
    write_atomically(path, content)
    assert path.read_bytes() == content


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "file.bin"
    before = os.umask(umask)
    try:
        write_atomically(path, b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """And nobody whom it kept out can read the new one while it is written."""
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) & ~mode & 0o077 == 0
        temporary.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_reader_keeps_what_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        write_atomically(path, b"new content")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new content"


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failure_at_any_step_costs_nothing(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")

    def failing(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, failing)
    with pytest.raises(StorageError, match=r"cannot write .*file\.bin: No space left") as caught:
        write_atomically(path, b"new")
    assert caught.value.exit_code == 15
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_the_content_is_on_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut after the move could leave an empty file where the old one was."""
    done: list[str] = []
    flush, move = os.fsync, os.replace

    def watched_flush(handle: int) -> None:
        done.append(f"flush {os.fstat(handle).st_size}")
        flush(handle)

    def watched_move(source: str, target: Path) -> None:
        done.append("move")
        move(source, target)

    monkeypatch.setattr(os, "fsync", watched_flush)
    monkeypatch.setattr(os, "replace", watched_move)
    write_atomically(tmp_path / "file.bin", b"12345")
    assert done[:2] == ["flush 5", "move"]


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageError, match="cannot write"):
        write_atomically(tmp_path / "file" / "inner", b"y")
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*taken"):
        write_atomically(tmp_path / "taken", b"y")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_reading(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "file.bin"), b"\x00\xff")
    assert read_file(tmp_path / "file.bin") == read_file(str(tmp_path / "file.bin")) == b"\x00\xff"
    with pytest.raises(FormatError, match=r"cannot read .*absent: No such file"):
        read_file(tmp_path / "absent")
    with pytest.raises(FormatError, match=r"cannot read .*: Is a directory"):
        read_file(tmp_path)


def test_what_a_block_writes_takes_the_place_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.bin"
    with replacing(path) as new:
        assert new.parent == path.parent
        with new.open("wb") as file:
            file.write(b"in ")
            file.write(b"pieces")
        assert not path.exists()
    assert path.read_bytes() == b"in pieces"
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    with replacing(path, prefix=".begun-") as new:
        assert new.name.startswith(".begun-")
        new.write_bytes(b"again")
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), OSError(28, "No space")])
def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    expected = StorageError if isinstance(error, OSError) else type(error)

    def fail() -> None:
        with replacing(path) as new:
            new.write_bytes(b"half")
            raise error

    with pytest.raises(expected):
        fail()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_the_hash_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"abc" * 1_000_000)
    assert hash_file(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {"pipe": "not a regular file", "absent": "No such file"}.items():
        with pytest.raises(FormatError, match=f"cannot read .*{name}: .*{reason}"):
            hash_file(tmp_path / name)


@pytest.mark.parametrize("name", ["lock", "."])
def test_a_lock_is_one_process_s(tmp_path: Path, name: str) -> None:
    def lock(path: Path) -> AbstractContextManager[None]:
        return locked(path, "it is busy; wait")

    with (
        lock(tmp_path / name),
        pytest.raises(StorageError, match="it is busy; wait"),
        lock(tmp_path / name),
    ):
        pass
    with lock(tmp_path / name):
        pass
    with (
        pytest.raises(StorageError, match=r"cannot lock .*absent/lock: No such file"),
        lock(tmp_path / "absent" / "lock"),
    ):
        pass


KILLED = """
import os, signal, sys
from graphkin._support.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_bytes(b"half")
    temporary.with_name(temporary.name + "-wal").write_bytes(b"")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    foreign = tmp_path / ".file.my_notes_on_it"
    foreign.write_bytes(b"")
    for expected in (3, 3):  # the second writer sweeps what the first one left
        subprocess.run([sys.executable, "-c", KILLED, path], check=False)
        assert len(list(tmp_path.iterdir())) == expected
    with replacing(path) as temporary:
        temporary.write_bytes(b"whole")
        sweep(path)
        assert temporary.exists(), "who writes still holds the lock"
    assert set(tmp_path.iterdir()) == {path, foreign}
