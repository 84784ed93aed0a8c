"""The side file: round trips, damage that reads as absence, and writing that cannot hurt."""

from __future__ import annotations

import fcntl
from pathlib import Path

import numpy as np
import pytest

from graphkin.library.engines.sqlite.snapshot import PREFIX, Snapshot, read_snapshot, write_snapshot

ARRAYS = {
    "vectors": np.arange(35, dtype=np.uint8).reshape(7, 5),
    "ids": np.arange(7, dtype=np.int64),
    "empty": np.zeros((0, 3), np.float32),
    "strided": np.arange(20, dtype=np.int32)[::2],
}
SNAPSHOT = Snapshot({"library": "abc", "rows": 7}, ARRAYS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "library.kin.cache"
    assert write_snapshot(path, SNAPSHOT)
    return path


def state(path: Path) -> object:
    snapshot = read_snapshot(path)
    return snapshot and snapshot.state


def test_what_comes_out_is_what_went_in(path: Path) -> None:
    snapshot = read_snapshot(path)
    assert snapshot is not None
    assert snapshot.state == SNAPSHOT.state
    assert list(snapshot.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(snapshot.arrays[name], array)
        assert snapshot.arrays[name].dtype == array.dtype
        assert not snapshot.arrays[name].flags.writeable
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_no_file_and_foreign_files_are_nothing(tmp_path: Path) -> None:
    assert read_snapshot(tmp_path / "absent") is None
    assert read_snapshot(tmp_path) is None
    for content in (b"", b"kin", b"SQLite format 3\0" * 20, b"kinscan2" + b"\xff" * 20):
        (tmp_path / "file").write_bytes(content)
        assert read_snapshot(tmp_path / "file") is None


def test_a_file_cut_off_anywhere_is_nothing(path: Path) -> None:
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        assert read_snapshot(path) is None
    path.write_bytes(content + b"\0")
    assert read_snapshot(path) is None


def test_a_changed_head_is_nothing(path: Path) -> None:
    content = bytearray(path.read_bytes())
    head = PREFIX.unpack_from(content)[1]
    for position in range(PREFIX.size + head):
        damaged = content.copy()
        damaged[position] ^= 0x20
        path.write_bytes(damaged)
        assert read_snapshot(path) is None, position


def test_changed_arrays_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "library.kin.cache"
    rng = np.random.default_rng(0)
    arrays = {"long": rng.integers(0, 2**62, 3000), "odd": np.arange(9001, dtype=np.uint8)}
    assert write_snapshot(path, Snapshot({}, arrays))
    content = path.read_bytes()
    for array in arrays.values():
        start = content.index(array.tobytes())
        for position in rng.integers(0, array.nbytes, 40).tolist():
            damaged = bytearray(content)
            damaged[start + position] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            assert read_snapshot(path) is None, position
    path.write_bytes(content)
    assert read_snapshot(path) is not None


def trade(content: bytearray, first: int, second: int, length: int) -> None:
    one, other = content[first : first + length], content[second : second + length]
    content[first : first + length], content[second : second + length] = other, one


@pytest.mark.parametrize("name", ["id", "vectors"])
@pytest.mark.parametrize("length", [8, 64, 512, 4096])
def test_parts_that_traded_places_are_nothing(tmp_path: Path, name: str, length: int) -> None:
    """Vectors, sectors and pages, within a page and across."""
    path = tmp_path / "library.kin.cache"
    rng = np.random.default_rng(0)
    # Codes of similar functions differ in few bits: here in the highest of 64.
    codes = rng.integers(0, 2, (300_000, 8), dtype=np.uint8) << 7
    arrays = {"id": np.arange(300_000, dtype=np.int64), "vectors": codes}
    assert write_snapshot(path, Snapshot({}, arrays))
    content = path.read_bytes()
    size = arrays[name].nbytes // length * length
    start = content.index(arrays[name].tobytes())
    tried = 0
    for distance in (length, 4096, 3 * 4096 + length, 512 * 4096):
        first = start + int(rng.integers((size - distance - length) // length)) * length
        damaged = bytearray(content)
        trade(damaged, first, first + distance, length)
        if damaged != content:
            tried += 1
            path.write_bytes(damaged)
            assert read_snapshot(path) is None, distance
    assert tried >= 2


@pytest.mark.parametrize("bit", [0, 31, 32, 62, 63])
def test_opposite_flips_of_bits_are_nothing(tmp_path: Path, bit: int) -> None:
    """A bit set in one word and cleared in another leaves the sum of a page as it was."""
    path = tmp_path / "library.kin.cache"
    words = np.random.default_rng(bit).integers(0, 2**64, 4096, dtype=np.uint64)
    assert write_snapshot(path, Snapshot({}, {"words": words}))
    content = path.read_bytes()
    start = content.index(words.tobytes())
    mask = np.uint64(1 << bit)
    is_set = (words & mask) > 0
    (first, *_), (second, *_) = np.nonzero(is_set[:512])[0], np.nonzero(~is_set[:512])[0]
    (third, *_) = 512 + np.nonzero(~is_set[512:])[0]
    for other in (second, third):
        damaged = words.copy()
        damaged[[first, other]] ^= mask
        path.write_bytes(content[:start] + damaged.tobytes() + content[start + words.nbytes :])
        assert read_snapshot(path) is None, other


def test_pages_of_the_same_words_in_another_order_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "library.kin.cache"
    words = np.random.default_rng(0).integers(0, 2**64, 512, dtype=np.uint64)
    pages = np.concatenate([words, words[::-1], np.roll(words, 1)])
    assert write_snapshot(path, Snapshot({}, {"pages": pages}))
    content = bytearray(path.read_bytes())
    start = content.index(pages.tobytes())
    trade(content, start, start + 4096, 4096)
    path.write_bytes(content)
    assert read_snapshot(path) is None


def test_a_reader_keeps_its_arrays_when_the_file_is_replaced(path: Path) -> None:
    snapshot = read_snapshot(path)
    assert snapshot is not None
    assert write_snapshot(path, Snapshot({"rows": 1}, {"ids": np.zeros(1)}))
    np.testing.assert_array_equal(snapshot.arrays["ids"], ARRAYS["ids"])
    assert state(path) == {"rows": 1}


def test_what_a_killed_writer_left_is_taken_over(path: Path) -> None:
    left = path.with_name(f"{path.name}.new")
    left.write_bytes(b"half of something longer than the whole will be" * 100)
    assert write_snapshot(path, Snapshot({"rows": 2}, ARRAYS))
    assert state(path) == {"rows": 2}
    assert not left.exists()


def test_one_writer_at_a_time(path: Path) -> None:
    with open(path.with_name(f"{path.name}.new"), "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert not write_snapshot(path, Snapshot({"rows": 3}, ARRAYS))
    assert state(path) == SNAPSHOT.state
    assert write_snapshot(path, Snapshot({"rows": 3}, ARRAYS))


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert not write_snapshot(tmp_path / "file" / "library.kin.cache", SNAPSHOT)
