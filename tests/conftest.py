"""What tests of several parts share."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphkin.cli.main import main
from tests.binaries.compiling import Compile
from tests.command_line import Graphkin, Outcome
from tests.function_samples import records, write_corpus


def pytest_configure() -> None:
    """A run in the background ignores Ctrl-C, and so would the processes that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Graphkin:
    """Calls the entry point as a shell would."""

    def call(*arguments: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["graphkin", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return Outcome(int(caught.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def corpus_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 60 functions in 4 builds; see :func:`function_samples.records`."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.graphs"
    write_corpus(path, records())
    return path


@pytest.fixture(scope="session")
def gcc() -> str:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    return compiler


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
