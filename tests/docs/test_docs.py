"""The documentation tells the truth: its code runs, and its generated parts are up to date."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from graphkin.cli.main import application
from tests.function_samples import records, write_corpus
from tests.paths import REPOSITORY
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script

ROOT = REPOSITORY
DOCS = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHORT_RUN = ["train.steps=10", "train.evaluate_every=10", "task.evaluation_size=20"]
"""Settings that the training commands of the pages get here, so that each takes a second."""


def blocks(page: Path) -> Iterator[tuple[str, str, int]]:
    """Language, text and line number of each fenced block."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start(2))


def run_python(code: str, line: int, page: Path, namespace: dict[str, Any]) -> None:
    # Line numbers in a traceback are those of the page.
    exec(compile("\n" * line + code, str(page), "exec"), namespace)


def run_commands(text: str) -> None:
    """Runs the lines ``$ graphkin train ...`` and ``$ graphkin eval ...`` in short versions."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "))
        if words[:2] == ["graphkin", "train"]:
            words += [word for setting in SHORT_RUN for word in ("--set", setting)]
        elif words[:2] == ["graphkin", "eval"]:
            words += ["--size", "20"]
        else:
            continue
        result = CliRunner().invoke(application(), words[1:], catch_exceptions=False)
        assert result.exit_code == 0, f"{line}\n{result.output}"


def write_file(text: str) -> None:
    """Writes a block that begins with ``# name.toml`` to a file of that name."""
    name = text.splitlines()[0].removeprefix("# ")
    if name.endswith(".toml"):
        Path(name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_code_of_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "functions.md":
        write_corpus(Path("corpus.graphs"), records())
        validation = {"libkinbeat": "c-ares", "libkinproto": "flac"}
        write_projects(Path("projects.graphs"), validation)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for language, text, line in blocks(page):
        if language == "python":
            run_python(text, line, page, namespace)
        elif language == "console":
            run_commands(text)
        elif language == "toml":
            write_file(text)


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda n: n.name)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": notebook.stem}
    for cell in cells:
        if cell["cell_type"] == "code":
            run_python("".join(cell["source"]), 0, notebook, namespace)
    # What a reader is told holds: the nearest graphs are of the class, and so is the classifier.
    assert namespace["accuracy"] > 0.8
    assert len(namespace["matches"]) == min(graph.num_nodes for graph in namespace["pairs"][1])


def test_python_of_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "readme"}
    for language, text, line in blocks(page):
        if language == "python":
            run_python(text, line, page, namespace)


def test_the_security_tutorial_prints_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "tutorial-security.md"
    (tmp_path / "src").symlink_to(ROOT / "src")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    (console,) = [text for _, text, _ in blocks(page) if "$ graphkin index" in text]
    for transcript in console.replace("\\\n", " ").split("$ graphkin ")[1:]:
        command, _, expected = transcript.partition("\n")
        result = CliRunner().invoke(application(), shlex.split(command), catch_exceptions=False)
        printed = re.escape(expected).replace(r"\.\.\.", ".*")
        assert re.fullmatch(printed, result.stdout), f"{command}\n{result.stdout}"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return script("docs/generate.py")


@pytest.mark.parametrize(
    "page",
    [page for page in DOCS if "<!-- generated:" in page.read_text(encoding="utf-8")],
    ids=lambda page: page.name,
)
def test_generated_parts_are_in_step(page: Path, generate: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert generate.regenerated(text) == text, "run: python docs/generate.py"
