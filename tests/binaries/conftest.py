"""Binaries to read: small C files compiled on the spot, and the shared ffmpeg libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.binaries.compiling import Compile
from tests.paths import REPOSITORY


@pytest.fixture(scope="session")
def gcc() -> str:
    found = shutil.which("gcc")
    if found is None:
        pytest.skip("gcc is not installed")
    return found


@pytest.fixture
def compile_c(gcc: str, tmp_path: Path) -> Compile:
    """Compiles C to a file: ``compile_c(source, "-O2", "-shared", "-fPIC")``."""

    def run(source: str, *flags: str, name: str = "out.bin") -> Path:
        code = tmp_path / f"{name}.c"
        code.write_text(source)
        target = tmp_path / name
        command = [gcc, "-w", "-x", "c", str(code), "-o", str(target), *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode and "-m32" in flags:
            pytest.skip("gcc cannot compile for 32 bits here")
        assert done.returncode == 0, done.stderr
        return target

    return run


@pytest.fixture(scope="session")
def ffmpeg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with one folder for each compiler and level."""
    shared = Path(os.environ.get("GRAPHKIN_SHARED", REPOSITORY.parent / "shared"))
    archive = shared / "data" / "ffmpeg-5.1.9-libs.tar.xz"
    if not archive.exists():
        pytest.skip(f"{archive.name} is not there; name its folder in GRAPHKIN_SHARED")
    folder = tmp_path_factory.mktemp("ffmpeg")
    wanted = ("gcc-O0/libavutil.so", "gcc-O2/libavutil.so", "clang-O0/libavutil.so",
              "clang-O3/libavutil.so", "gcc-O3/libswscale.so", "clang-O2/libavutil.so")  # fmt: skip
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(wanted):
                tar.extract(member, folder, filter="data")
    return folder / "ffmpeg-5.1.9"
