"""Files written whole, or not at all, and read with errors that name them."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from graphkin._support.files import atomic_file, hash_file, read_file, write_atomically
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


def test_others_may_read_the_file(tmp_path: Path) -> None:
    """Temporary files are private; what takes its place must not stay so."""
    path = tmp_path / "file.bin"
    write_atomically(path, b"x")
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444


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


def test_a_file_written_by_others_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.bin"
    with atomic_file(path) as temporary:
        temporary.write_bytes(b"content")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert [file.name for file in path.parent.iterdir()] == ["file.bin"]


def _write_half(path: Path, error: Exception) -> None:
    path.write_bytes(b"half")
    raise error


def test_a_file_whose_writing_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old content")
    for error, expected in (
        (ValueError("no"), ValueError),
        (OSError(errno.ENOSPC, "No space left on device"), StorageError),
        (FormatError("no"), FormatError),
    ):
        with pytest.raises(expected), atomic_file(path) as temporary:
            _write_half(temporary, error)
    assert path.read_bytes() == b"old content"
    assert [file.name for file in tmp_path.iterdir()] == ["file.bin"]


def test_the_hash_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"content" * 1000)
    assert hash_file(path) == hashlib.sha256(b"content" * 1000).hexdigest()
    with pytest.raises(FormatError, match=r"cannot read .*absent"):
        hash_file(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(FormatError, match="not a regular file"):
            hash_file(tmp_path / name)
