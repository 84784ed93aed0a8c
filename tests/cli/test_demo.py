"""The demo, as a newcomer runs it: with the models and the samples that ship."""

from __future__ import annotations

import json
from pathlib import Path

from graphkin.binaries import samples
from graphkin.cli.demo import IDENTIFIER, TAG, run_demo
from graphkin.library.models import SearchModel
from graphkin.library.scan import MIN_PROBABILITY
from tests.command_line import Graphkin
from tests.library.sample_models import search_model

NAME = samples.VULNERABLE[1]
CROSS = [file.name for file in samples.CROSS_FIRMWARES.values()]
FIRMWARES = [samples.FIRMWARE.name, *CROSS]


def test_the_demo_finds_the_vulnerable_function(run: Graphkin, tmp_path: Path) -> None:
    own = tmp_path / "out" / "notes.txt"
    own.parent.mkdir()
    own.touch()
    outcome = run("demo", "--output", own.parent, "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert own.exists()
    assert document["files"] == len(samples.KNOWN) + len(samples.FIXED_LIBRARIES)
    scans = {firmware["firmware"]: firmware for firmware in document["firmwares"]}
    assert [*scans, *document["not_scanned"]] == FIRMWARES
    for name, scan in scans.items():
        suspect = scan["suspect"]
        assert samples.true_names(name)[int(suspect["query"]["address"], 16)] == NAME
        hit = suspect["hits"][0]
        assert hit["function"] == NAME
        (verdict,) = suspect["patches"]
        # Where nobody can tell whether it is repaired, either may be the nearer one.
        shown = suspect["hits"] if verdict["verdict"] == "cannot tell" else [hit]
        assert {TAG: IDENTIFIER} in [item["tags"] for item in shown]
        assert hit["probability"] >= MIN_PROBABILITY
        assert scan["shared"] > 50
        assert scan["right"] > scan["shared"] / 3
        assert NAME in Path(document["comparisons"][name]).read_text()
    (verdict,) = scans["gateway"]["suspect"]["patches"]
    assert verdict["verdict"] == "vulnerable"
    assert document["repaired"]["query"]["address"] == "0x4024d0"
    (verdict,) = document["repaired"]["patches"]
    assert verdict["verdict"] == "fixed"
    assert sum(document["seconds"].values()) < 120
    for name in ("library", "report"):
        assert Path(document[name]).stat().st_size > 1000


def test_the_demo_again_in_the_same_folder_as_text(run: Graphkin, tmp_path: Path) -> None:
    first = run("demo", "--output", tmp_path)
    again = run("demo", "--output", tmp_path)
    assert first.code == again.code == 0
    lines = [[splitline for splitline in text.splitlines() if "drawn in" not in splitline]
             for text in (first.out, again.out)]  # fmt: skip
    assert lines[0] == lines[1]
    assert IDENTIFIER in first.out
    assert f"its name was `{NAME}`" in first.out
    pages = ("report:", "which block")
    assert all(len(line) <= 100 for line in first.out.splitlines() if not line.startswith(pages))


def test_the_shipped_model_finds_it_across_processors(tmp_path: Path) -> None:
    result = run_demo(tmp_path, SearchModel.load("functions"))
    assert [scan.firmware for scan in result.firmwares] == FIRMWARES
    assert result.not_scanned == ()
    for scan in result.firmwares:
        assert scan.suspect is not None
        assert samples.true_names(scan.firmware)[scan.suspect.query.address or 0] == NAME
        assert scan.right > scan.shared / 2
        page = Path(result.comparisons[scan.firmware]).read_text()
        assert scan.suspect.query.function in page
    report = Path(result.report).read_text().replace("<wbr>", "")
    text = result.to_text()
    for processor, file in {"x86-64": samples.FIRMWARE, **samples.CROSS_FIRMWARES}.items():
        assert str(file) in report
        assert f"{file.name} for {processor}, stripped" in text
    assert text.count(f"its name was `{NAME}`") == len(FIRMWARES)
    assert "not scanned" not in text


def test_a_model_of_mnemonics_scans_firmware_for_its_processor_alone(tmp_path: Path) -> None:
    result = run_demo(tmp_path, search_model())
    assert [scan.firmware for scan in result.firmwares] == FIRMWARES[:1]
    sentence = f"{' and '.join(CROSS)} are not scanned: this model knows x86-64 only."
    assert sentence in result.to_text().splitlines()
