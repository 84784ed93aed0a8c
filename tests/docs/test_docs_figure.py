"""The figure of the models in the documentation is what its script draws."""

from __future__ import annotations

from pathlib import Path

from tests.paths import REPOSITORY
from tests.scripts import script

DOCS = REPOSITORY / "docs"


def test_figure_of_the_models_is_in_step(tmp_path: Path) -> None:
    script("docs/draw_model.py").write(tmp_path / "model.svg")
    fresh = (tmp_path / "model.svg").read_bytes()
    assert fresh == (DOCS / "model.svg").read_bytes(), "run: python docs/draw_model.py"
