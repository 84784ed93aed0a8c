"""Binaries to read: the shared ffmpeg libraries."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tests.paths import REPOSITORY


@pytest.fixture(scope="session")
def ffmpeg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with one folder for each compiler and level."""
    shared = Path(os.environ.get("GRAPHKIN_SHARED", REPOSITORY.parent / "shared"))
    archive = shared / "data" / "ffmpeg-5.1.9-libs.tar.xz"
    if not archive.exists():
        pytest.skip(f"{archive.name} is not there; name its folder in GRAPHKIN_SHARED")
    folder = tmp_path_factory.mktemp("ffmpeg")
    expected = ("gcc-O0/libavutil.so", "gcc-O2/libavutil.so", "clang-O0/libavutil.so",
              "clang-O3/libavutil.so", "gcc-O3/libswscale.so", "clang-O2/libavutil.so")  # fmt: skip
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(expected):
                tar.extract(member, folder, filter="data")
    return folder / "ffmpeg-5.1.9"
