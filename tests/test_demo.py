"""The demo, with a few steps on small graphs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from graphkin import cli, demo
from graphkin.baselines.wl import WLKernel
from graphkin.evaluation import evaluate

SMALL = replace(demo.TASK, nodes=(10, 10), p=(0.4, 0.4), evaluation_size=20)


@pytest.fixture(autouse=True)
def small_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TASK", SMALL)


def test_the_demo(tmp_path: Path) -> None:
    own = tmp_path / "new" / "folder" / "run" / "notes.txt"
    own.parent.mkdir(parents=True)
    own.touch()
    result = demo.run_demo(tmp_path / "new" / "folder", steps=3)
    assert own.exists()
    test = SMALL.evaluation_set("test")
    assert result.steps == 3
    assert result.data == test.digest
    assert all(0 <= result.gmn[key] <= 1 for key in ("pair_auc", "triplet_accuracy"))
    kernels = [evaluate(WLKernel(iterations), test) for iterations in range(6)]
    assert result.wl in kernels
    assert result.wl["pair_auc"] == max(metrics["pair_auc"] for metrics in kernels)

    picture = Path(result.picture)
    assert picture.parent == tmp_path / "new" / "folder"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = image.imread(picture)
    assert min(pixels.shape[:2]) > 300
    assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 50

    text = result.to_text()
    rows = {line.split(",")[0]: line for line in text.splitlines()}
    for name, metrics in (("GMN", result.gmn), ("WL kernel", result.wl)):
        expected = [f"{100 * metrics[key]:.1f}" for key in ("pair_auc", "triplet_accuracy")]
        assert rows[name].split()[-2:] == expected
    assert result.picture in text
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


def test_the_demo_runs_again_in_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for _ in range(2):
        command = ["graphkin", "demo", "--output", str(tmp_path), "--steps", "2", "--json"]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert not caught.value.code
        results.append(json.loads(capsys.readouterr().out))
    first, second = ({**result, "seconds": 0} for result in results)
    assert first == second
    assert first["steps"] == 2
    assert first["gmn"].keys() == first["wl"].keys() == {"pair_auc", "triplet_accuracy"}
    assert Path(first["picture"]).exists()
