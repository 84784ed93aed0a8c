"""The curve over numbers of projects: which are trained on, and that each run is of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.paths import REPOSITORY
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script


@pytest.fixture
def curve(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "experiments"))
    module = script("experiments/project_curve.py")
    monkeypatch.setattr(module, "TEST", ())
    monkeypatch.setattr(module, "VALIDATION", ("libkinparse",))
    import project_search

    monkeypatch.setitem(project_search.DIRECTIONS, "levels", ("x86_64-gcc-O0", "x86_64-clang-O1"))
    return module


def test_a_point_for_each_number(
    curve: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    corpus, runs, file = tmp_path / "corpus", tmp_path / "runs", tmp_path / "curve.json"
    write_projects(corpus)
    projects = curve.ordered_projects(str(corpus), ["libkinbeat"])
    assert not {"libkinparse", "libkinbeat"} & {*projects}
    arguments = ["CURVE", str(corpus), "-o", str(runs), "--steps", "2", "--json", str(file)]
    monkeypatch.setattr(
        sys, "argv", [*arguments, "--leave-out", "libkinbeat", "--counts", "2", "1000"]
    )
    curve.main()
    counts = [*dict.fromkeys(["2", str(len(projects))])]
    assert list(json.loads(file.read_text())) == counts
    printed = capsys.readouterr().out
    for count in counts:
        config = json.loads((runs / f"{count}-projects/model/config.json").read_text())
        assert config["trained_on"]["task"]["projects"] == int(count)
        assert f"| {count} | " in printed
