"""Commands that search start at once: what takes long to load is left out, and noticed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from graphkin.binaries.samples import bundled
from graphkin.cli.main import READING, VERBS, application

LATE = ("torch", "numba", "scipy", "sklearn", "matplotlib", "networkx", "fastapi")
"""What none of the commands below needs."""
LIBRARY, OTHER = (bundled.ELF / build / "libkinbeat.so" for build in ("gcc-O2", "clang-O1"))
FUNCTION = bundled.VULNERABLE[1]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.kin"
    loaded_by("index", path, LIBRARY)
    return path


def loaded_by(*arguments: object) -> set[str]:
    """Which slow packages a command loads, in a process of its own."""
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*sorted(set(sys.modules) & set({LATE!r})), "
        "file=sys.stderr))\n"
        "from graphkin.cli.main import main\n"
        "main()"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_index_loads_no_torch(tmp_path: Path) -> None:
    assert loaded_by("index", tmp_path / "new.kin", LIBRARY) == set()


@pytest.mark.parametrize("verb", ["search", "scan"])
def test_a_search_loads_no_torch(verb: str, library: Path) -> None:
    target = f"{OTHER}:{FUNCTION}" if verb == "search" else OTHER
    assert loaded_by(verb, library, target) == set()


def test_show_and_compare_load_no_torch() -> None:
    assert loaded_by("show", f"{LIBRARY}:{FUNCTION}") == set()
    assert loaded_by("compare", f"{LIBRARY}:{FUNCTION}", f"{OTHER}:{FUNCTION}") == set()


def test_evaluation_loads_torch() -> None:
    """Else the tests above would not tell."""
    assert "torch" in loaded_by(
        "eval", "edits", "edits", "--nodes", "20", "--p", "0.2", "--size", "10"
    )


def verbs_of(app: typer.Typer) -> list[str]:
    names = [command.name for command in app.registered_commands]
    names += [group.name for group in app.registered_groups]
    return [name for name in names if name is not None]


@pytest.mark.parametrize("file", VERBS)
def test_every_file_has_the_verbs_that_are_listed(file: str) -> None:
    for verb in VERBS[file]:
        assert sorted(verbs_of(application(verb))) == sorted(VERBS[file])


def test_the_whole_application_has_all_verbs() -> None:
    everything = [verb for verbs in VERBS.values() for verb in verbs]
    assert sorted(verbs_of(application())) == sorted(everything)
    assert set(everything) >= READING
