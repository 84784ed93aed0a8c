"""A model's own calibration: from its score to a probability, kept with its weights."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin.errors import FormatError, ModelError
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, load_model
from graphkin.models.calibration import Logistic
from graphkin.models.saving import model_folder, save_calibration
from tests.models.samples import SMALL, make_model, random_pairs

LINE = Logistic((0.5,), 1.0)
DAMAGED: list[Any] = [
    None,
    [1.0, 2.0],
    {"slope": 1.0},
    {"slope": 1.0, "offset": 0.0, "colour": 3},
    {"slope": "1", "offset": 0.0},
    {"slope": True, "offset": 0.0},
    {"slope": 0.0, "offset": 0.0},
    {"slope": -1.0, "offset": 0.0},
    {"slope": math.inf, "offset": 0.0},
    {"slope": 1.0, "offset": math.nan},
    {"slope": 10**400, "offset": 0.0},
]


def calibrated(name: str) -> GraphEmbedder | GraphMatcher:
    model = make_model(ModelConfig.named(name, **SMALL), double=False)
    model.calibration = LINE
    return model


@pytest.mark.parametrize("name", ["gnn", "gmn", "siamese-gnn"])
def test_probabilities_by_the_formula(name: str) -> None:
    model = calibrated(name)
    pairs = random_pairs(model.config)
    scores = model.predict(pairs)
    probabilities = model.predict(pairs, probability=True)
    expected = [1 / (1 + math.exp(-(0.5 * score + 1.0))) for score in scores.tolist()]
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities, expected, rtol=1e-6)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert (np.argsort(probabilities, kind="stable") == np.argsort(scores, kind="stable")).all()
    assert model.predict([], probability=True).shape == (0,)
    # The flag alone decides.
    np.testing.assert_array_equal(model.predict(pairs), scores)
    model.calibration = None
    np.testing.assert_array_equal(model.predict(pairs), scores)


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_without_a_calibration_the_error_says_how_to_get_one(name: str) -> None:
    model = make_model(ModelConfig.named(name, **SMALL), double=False)
    assert model.calibration is None
    with pytest.raises(ModelError, match="graphkin calibrate"):
        model.predict(random_pairs(model.config), probability=True)


def test_other_propagation_steps_have_other_scores() -> None:
    model = calibrated("gmn")
    pairs = random_pairs(model.config)
    same = model.predict(pairs, steps=SMALL["steps"], probability=True)
    np.testing.assert_array_equal(same, model.predict(pairs, probability=True))
    with pytest.raises(ModelError, match="2 propagation steps, not for 3"):
        model.predict(pairs, steps=3, probability=True)


def test_progress_is_told() -> None:
    model = calibrated("gmn")
    pairs = random_pairs(model.config)
    told: list[tuple[int, int]] = []
    model.predict(pairs, probability=True, progress=lambda *where: told.append(where))
    assert told[-1] == (len(pairs), len(pairs))


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_a_calibration_is_saved_with_the_model(name: str, tmp_path: Path) -> None:
    model = calibrated(name)
    model.save_pretrained(tmp_path)
    again = load_model(tmp_path)
    assert again.calibration == LINE
    pairs = random_pairs(model.config)
    probabilities = again.predict(pairs, probability=True)
    np.testing.assert_array_equal(probabilities, model.predict(pairs, probability=True))
    model.calibration = None
    model.save_pretrained(tmp_path)
    assert load_model(tmp_path).calibration is None
    assert "calibration" not in json.loads((tmp_path / "config.json").read_text())


def test_writing_a_calibration_leaves_the_rest_alone(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    make_model(ModelConfig.named("gnn", **SMALL), double=False).save_pretrained(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert model_folder(tmp_path) == model_folder(folder) == folder
    save_calibration(folder, LINE)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    config = json.loads(after["config.json"])
    assert config.pop("calibration") == {"slope": 0.5, "offset": 1.0}
    assert config == json.loads(before["config.json"])
    del before["config.json"], after["config.json"]
    assert after == before
    second = Logistic((2.0,), -3.0)
    save_calibration(folder, second)
    assert load_model(folder).calibration == second
    with pytest.raises(ModelError, match="above 0"):
        save_calibration(folder, Logistic((-2.0,), 0.0))
    assert load_model(folder).calibration == second


@pytest.mark.parametrize("values", DAMAGED, ids=lambda values: str(values)[:40])
def test_a_damaged_calibration_is_refused(values: Any, tmp_path: Path) -> None:
    calibrated("gnn").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"calibration": values}))
    with pytest.raises(FormatError, match=r"config\.json.*calibration"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "calibration",
    [Logistic((0.0,), 1.0), Logistic((1.0, 2.0), 0.0), Logistic((math.nan,), 0.0), "line"],
    ids=str,
)
def test_a_model_takes_no_other_calibration(calibration: Any) -> None:
    model = calibrated("gnn")
    with pytest.raises(ModelError, match="above 0"):
        model.calibration = calibration
    assert model.calibration == LINE


def test_other_weights_have_no_calibration() -> None:
    model, other = calibrated("gnn"), calibrated("gnn")
    model.start_from(other)
    assert model.calibration is None
    assert other.calibration == LINE
