"""``names`` as a person types it."""

from __future__ import annotations

import ast
import csv
import io
import json
from pathlib import Path

from graphkin.binaries.samples.bundled import FIRMWARE, path, true_names
from tests.command_line import Graphkin

MEDIA = str(path("gcc-O2/libkinmedia.so"))


def test_a_script_and_rows(run: Graphkin, tmp_path: Path) -> None:
    script = tmp_path / "names.py"
    outcome = run("names", MEDIA, FIRMWARE, "--format", "ghidra", "-o", script)
    assert (outcome.code, outcome.out) == (0, "")
    given = next(
        ast.literal_eval(node.value)
        for node in ast.parse(script.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAMES"
    )
    truth = true_names()
    assert sum(truth[address] == name for address, name, _ in given) >= 5
    outcome = run("names", MEDIA, FIRMWARE, "--format", "csv", "--min-probability", "0.9")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert 5 <= len(rows) <= len(given)
    assert all(float(row["probability"]) >= 0.9 for row in rows)


def test_json(run: Graphkin) -> None:
    document = json.loads(run("names", MEDIA, FIRMWARE, "--json").out)
    assert document["functions"] == len(true_names())
    assert {"target", "name", "probability", "origin"} <= document["names"][0].keys()


def test_refusals(run: Graphkin) -> None:
    outcome = run("names", MEDIA, FIRMWARE, "--format", "idc")
    assert outcome.code != 0
    assert "unknown format 'idc'; choose one of table, ghidra" in outcome.err
    outcome = run("names", MEDIA, f"{FIRMWARE}:0x400120")
    assert outcome.code != 0
    assert "is one function" in outcome.err
