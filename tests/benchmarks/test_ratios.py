"""What was fast stays fast: ratios of speeds, which hold on any machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.paths import REPOSITORY


def test_no_ratio_has_fallen_by_more_than_a_third() -> None:
    pytest.importorskip("smda", reason="SMDA, which reading is compared with, is not installed")
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "ratios.py")]
    for _ in range(3):  # a burst of other work may fall on one side of a ratio
        done = subprocess.run(command, capture_output=True, text=True)
        if not done.returncode:
            return
    pytest.fail(done.stdout + done.stderr)
