"""The table of real files: what a row has, and what becomes of files that cannot be had."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.paths import BINARIES, REPOSITORY
from tests.scripts import script

REAL = script("benchmarks/real_files.py")
SCRIPT = REPOSITORY / "benchmarks" / "real_files.py"
CLOSED = "http://127.0.0.1:9/debian"
"""A mirror that nobody answers at."""


def test_a_member_is_measured_by_a_process_of_its_own(tmp_path: Path) -> None:
    package = tmp_path / "package.zip"
    with zipfile.ZipFile(package, "w") as archive:
        archive.write(BINARIES / "aarch64" / "gcc-shared-O2-stripped", "lib/x.so")
    command = [sys.executable, str(SCRIPT), "--measure", f"{package}!lib/x.so"]
    answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    measure = REAL.Measure(**json.loads(answer))
    assert measure.functions > 10
    assert 0.85 < measure.in_blocks <= measure.coverage <= 1
    assert measure.seconds > 0
    assert 20e6 < measure.memory_bytes < 1e9
    assert measure.warnings == []
    assert not measure.is_silently_bad
    assert replace(measure, coverage=0.5).is_silently_bad
    assert not replace(measure, coverage=0.5, warnings=["only 50%"]).is_silently_bad
    row = REAL.Row("x", package.name, "arm64", "lib/x.so", measure)
    header, line, cells = REAL.markdown([row])
    assert header.count("|") == line.count("|") == cells.count("|")
    assert f"| {measure.functions:,} |" in cells


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is not installed")
def test_without_a_network_files_are_left_out_with_the_reason(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--downloads", str(tmp_path), "--mirror", CLOSED]
    done = subprocess.run([*command, "--only", "mipsel"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Left out: busybox, static, mipsel: apt-get failed: " in done.stdout


def test_only_takes_whole_names() -> None:
    rows = [REAL.row_of(file) for file in REAL.FILES]

    def chosen(name: str) -> set[str]:
        return {row.title for row in rows if name in REAL._names(row)}

    assert chosen("age") == {"age, in Go"}
    assert chosen("xfs") == {"xfs, a kernel module"}
    assert chosen("lxml") == {"lxml, Windows", "lxml, macOS"}
    assert chosen("busybox, static") == {"busybox, static"}
    assert {row.processor for row in rows if "mipsel" in REAL._names(row)} == {"mipsel"}
