"""Text, Markdown and pictures of made-up results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from graphkin.errors import ConfigError
from graphkin.research.reproduce.cells import fill
from graphkin.research.reproduce.render.png import check_destination, draw
from graphkin.research.reproduce.render.text_tables import QUICK, to_markdown, to_text
from graphkin.research.reproduce.table_layout import FUNCTION_STEPS, TABLES, sweep_row
from tests.research.reproduce.made_up import result

GROUP = "table1-n20-p0.2-gmn-paper"
RUNS = [result(GROUP, seed, (auc, 0.957)) for seed, auc in enumerate((0.951, 0.971))]
SEVERAL = "96.1 ±1.4 / 95.7 ±0.0 (2 seeds)"
OURS = result("general-gmn-ours", 0, (0.975, 0.978), variant="ours")


def lines_of(text: str, *parts: str) -> list[str]:
    return [line for line in text.splitlines() if all(part in line for part in parts)]


def test_text_has_both_values_and_the_seeds() -> None:
    text = to_text(fill("table1", [*RUNS, OURS]))
    line = lines_of(text, "GMN", "95.0 / 95.6")[0]
    assert SEVERAL in line
    assert "97.5 / 97.8 (1 seed)" in line
    assert "not measured" not in line
    other = lines_of(text, "GMN", "96.6 / 98.0")[0]
    assert other.count("not measured") == 2


def test_text_says_how_values_were_made() -> None:
    text = to_text(fill("table1", RUNS))
    (line,) = lines_of(text, "--only")
    assert "seeds 0, 1, 40,000 steps, 1,800 s each" in line
    assert line.strip().endswith(f"graphkin reproduce table1 --rerun --only {GROUP}")
    assert "Of 16 values that the paper prints for learned models, 0 are measured" in text
    assert "2 with the paper's architecture, of which 2 do." in " ".join(text.split())


def test_a_baseline_without_seed_says_so() -> None:
    measured = result("table1-wl", None, (0.79, 0.84), model="wl")
    assert lines_of(to_text(fill("table1", [measured])), "WL kernel", "79.0 / 84.0 (no seed)")


def test_a_half_measured_line_leaves_a_gap() -> None:
    measured = result(GROUP, 0, (0.961,), metrics=("pair_auc",))  # type: ignore[arg-type]
    assert lines_of(to_text(fill("table1", [measured])), "96.1 / - (1 seed)")


def test_quick_output_is_labelled() -> None:
    filled = fill("table1", RUNS)
    assert to_text(filled, quick=True).startswith(QUICK)
    assert QUICK in to_markdown(filled, quick=True)
    assert "reach it" not in to_text(filled, quick=True)
    assert QUICK not in to_text(filled)


def test_markdown_is_a_table() -> None:
    text = to_markdown(fill("table1", [*RUNS, OURS]))
    (line,) = lines_of(text, "95.0 / 95.6")
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["", "GMN", "95.0 / 95.6", SEVERAL, "97.5 / 97.8 (1 seed)"]
    assert lines_of(text, "| --- |")
    assert text.startswith("## Table 1")


@pytest.mark.parametrize("target", TABLES)
def test_every_table_is_shown_where_nothing_is_measured(target: str) -> None:
    text = to_text(fill(target, []))
    assert "not measured" in text
    assert "seed)" not in text


def test_pictures_of_tables(tmp_path: Path) -> None:
    filled = fill("table1", RUNS)
    assert draw("table1", filled, RUNS, tmp_path / "one.png") == [tmp_path / "one.png"]
    (file,) = draw("table1", filled, RUNS, tmp_path / "folder")
    assert file == tmp_path / "folder" / "table1.png"
    pixels = image.imread(file)
    assert min(pixels.shape[:2]) > 300
    assert (pixels[..., :3] < 0.5).mean() > 0.01, "there is text"
    rows = np.flatnonzero((pixels[..., :3] < 0.5).any(axis=(1, 2)))
    columns = np.flatnonzero((pixels[..., :3] < 0.5).any(axis=(0, 2)))
    assert rows.max() < pixels.shape[0] - 5, "nothing is cut off below"
    assert columns.max() < pixels.shape[1] - 5, "nor on the right"


def test_picture_of_the_sweep_shows_what_was_measured(tmp_path: Path) -> None:
    runs = [
        result(
            f"sweep-{t}",
            0,
            (0.8 + t / 50, 0.9),
            row=sweep_row("mnemonics", t),
            table="sweep",
            variant="ours",
        )
        for t in FUNCTION_STEPS
    ]
    files = [
        draw("sweep", fill("sweep", actual), actual, tmp_path / f"{len(actual)}.png")[0]
        for actual in ([], runs)
    ]
    empty, drawn = (image.imread(file)[..., :3] for file in files)
    blue = [((p[..., 2] - p[..., 0]) > 0.2).sum() for p in (empty, drawn)]
    assert blue[0] == 0
    assert blue[1] > 200


def test_several_pictures_need_a_folder(tmp_path: Path) -> None:
    check_destination("table1", tmp_path / "a.png")
    with pytest.raises(ConfigError, match="name a folder"):
        check_destination("all", tmp_path / "a.png")


def test_a_file_of_an_unknown_kind_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ending \.jpg"):
        check_destination("table1", tmp_path / "a.jpg")
    folder = tmp_path / "pictures.2026"
    folder.mkdir()
    check_destination("all", folder)


def test_no_picture_of_attention_that_was_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draw("attention", [], [], tmp_path) == []
    assert "not measured" in capsys.readouterr().err
