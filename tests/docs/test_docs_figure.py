"""The figure of the models in the documentation is what its script draws."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.paths import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_figure_of_the_models_is_in_step(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("draw_model", DOCS / "draw_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path / "model.svg")
    fresh = (tmp_path / "model.svg").read_bytes()
    assert fresh == (DOCS / "model.svg").read_bytes(), "run: python docs/draw_model.py"
