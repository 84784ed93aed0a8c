"""The torture of files: a disk that is full at any write, and a cut of the power."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import REPOSITORY
from tests.scripts import script

TORTURE = REPOSITORY / "tools" / "torture"
CREATE = """
import ctypes, sys
from pathlib import Path
from graphkin.errors import StorageError
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite.engine import SqliteEngine

folder, layer = Path(sys.argv[1]), ctypes.CDLL(None)
path, documents = folder / "library.kin", {"weights": bytes(range(256)) * 100}
for at in range(1, 1000):
    layer.torture_full(ctypes.c_long(at))
    try:
        SqliteEngine.create(path, Space("hamming", 64), documents).close()
        is_made = True
    except StorageError:
        is_made = False
    layer.torture_full(ctypes.c_long(0))
    if is_made:
        with SqliteEngine.open(path) as engine:
            assert engine.documents() == documents, at
            assert engine.verify().damage == [], at
        break
    assert not list(folder.iterdir()), (at, list(folder.iterdir()))
print(at)
"""


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or sys.platform != "linux":
        pytest.skip("needs gcc and Linux")
    file = tmp_path_factory.mktemp("layer") / "disk.so"
    command = ["gcc", "-shared", "-fPIC", "-o", file, TORTURE / "disk.c", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return file


def test_a_disk_that_is_full_at_any_write_of_a_new_library(layer: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CREATE, folder],
        env={**os.environ, "LD_PRELOAD": str(layer), "TORTURE_ROOT": str(folder)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_what_was_not_flushed_is_lost_when_the_power_is_cut(tmp_path: Path) -> None:
    power = script("tools/torture/power.py")
    before, root, target = tmp_path / "before", Path("/root"), tmp_path / "target"
    before.mkdir()
    (before / "old").write_bytes(b"old")
    changes = [
        power.Change("write", "/root/a", "", 0, b"kept"),
        power.Change("flush", "/root/a", "", 0, b""),
        power.Change("write", "/root/a", "", 4, b"lost"),
        power.Change("write", "/root/b", "", 0, b"lost"),
        power.Change("rename", "/root/b", "/root/c", 0, b""),
        power.Change("unlink", "/root/old", "", 0, b""),
    ]
    power.after_power_cut(before, root, changes, target, None)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"a": b"kept", "c": b""}
    shutil.rmtree(target)
    power.after_power_cut(before, root, changes[:4], target, random.Random(1))
    assert (target / "old").read_bytes() == b"old"
    assert (target / "a").read_bytes() in (b"kept", b"keptlost")
