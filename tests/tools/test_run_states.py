"""States of long runs: what is packed comes back, and what is further is left alone."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scripts import script

STATES = script("tools/run_states.py")


def make_run(folder: Path, step: int) -> None:
    (folder / "model").mkdir(parents=True)
    (folder / "checkpoint.safetensors").write_bytes(b"checkpoint %d" % step)
    (folder / "model" / "config.json").write_text("{}")
    line = json.dumps({"step": step})
    (folder / "log.jsonl").write_text(f'{{"step": 1}}\n{line}\n{{"step"')
    (folder / ".lock").touch()


def content(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_what_is_packed_comes_back(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a", 500)
    STATES.save(tmp_path / "runs", tmp_path / "states")
    STATES.restore(tmp_path / "elsewhere", tmp_path / "states")
    expected = content(tmp_path / "runs" / "a")
    del expected[".lock"]
    assert content(tmp_path / "elsewhere" / "a") == expected


def test_a_run_that_is_further_is_left_alone(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a", 500)
    STATES.save(tmp_path / "runs", tmp_path / "states")
    make_run(tmp_path / "other" / "a", 600)
    make_run(tmp_path / "behind" / "a", 400)
    before = content(tmp_path / "other" / "a")
    STATES.restore(tmp_path / "other", tmp_path / "states")
    STATES.restore(tmp_path / "behind", tmp_path / "states")
    assert content(tmp_path / "other" / "a") == before
    assert b"500" in content(tmp_path / "behind" / "a")["checkpoint.safetensors"]


def test_a_finished_run_needs_no_state(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a", 500)
    STATES.save(tmp_path / "runs", tmp_path / "states")
    results = tmp_path / "runs" / "results" / "reproduce"
    results.mkdir(parents=True)
    (results / "a.json").write_text("{}")
    STATES.save(tmp_path / "runs", tmp_path / "states")
    assert list((tmp_path / "states").iterdir()) == []


def test_stored_results_are_not_computed_again(tmp_path: Path) -> None:
    stored, own = tmp_path / "stored", tmp_path / "runs" / "results" / "reproduce"
    stored.mkdir()
    own.mkdir(parents=True)
    for name in ("table1-full-seed0", "table2-full-seed0", "table1-seed0"):
        (stored / f"{name}.json").write_text("stored")
    (own / "table2-full-seed0.json").write_text("newer")
    STATES.restore_results(tmp_path / "runs", stored)
    texts = {file.stem: file.read_text() for file in own.iterdir()}
    assert texts == {"table1-full-seed0": "stored", "table2-full-seed0": "newer"}
