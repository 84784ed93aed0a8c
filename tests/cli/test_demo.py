"""The demo, as a newcomer runs it: with the models and the samples that ship."""

from __future__ import annotations

import json
from pathlib import Path

from graphkin.binaries import samples
from graphkin.cli.demo import IDENTIFIER, TAG
from graphkin.library.scan import MIN_PROBABILITY
from tests.command_line import Graphkin


def test_the_demo_finds_the_vulnerable_function(run: Graphkin, tmp_path: Path) -> None:
    own = tmp_path / "out" / "notes.txt"
    own.parent.mkdir()
    own.touch()
    outcome = run("demo", "--output", own.parent, "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert own.exists()
    assert document["files"] == len(samples.KNOWN)
    suspect = document["suspect"]
    assert samples.true_names()[int(suspect["query"]["address"], 16)] == samples.VULNERABLE[1]
    hit = suspect["hits"][0]
    assert hit["function"] == samples.VULNERABLE[1]
    assert hit["tags"] == {TAG: IDENTIFIER}
    assert hit["probability"] >= MIN_PROBABILITY
    assert document["shared"] > 50
    assert document["right"] > document["shared"] / 3
    assert sum(document["seconds"].values()) < 120
    for name in ("library", "report", "comparison"):
        assert Path(document[name]).stat().st_size > 1000
    assert samples.VULNERABLE[1] in Path(document["comparison"]).read_text()


def test_the_demo_again_in_the_same_folder_as_text(run: Graphkin, tmp_path: Path) -> None:
    first = run("demo", "--output", tmp_path)
    again = run("demo", "--output", tmp_path)
    assert first.code == again.code == 0
    lines = [[splitline for splitline in text.splitlines() if "drawn in" not in splitline]
             for text in (first.out, again.out)]  # fmt: skip
    assert lines[0] == lines[1]
    assert IDENTIFIER in first.out
    assert f"its name was `{samples.VULNERABLE[1]}`" in first.out
    pages = ("report:", "which block")
    assert all(len(line) <= 100 for line in first.out.splitlines() if not line.startswith(pages))
