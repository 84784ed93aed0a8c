"""The weights that ship reach the scores of their cards, on small sets that come with the tests."""

from __future__ import annotations

import re
from itertools import product

import pytest

from graphkin import GraphEmbedder, GraphMatcher
from graphkin.learning.evaluation import evaluate
from graphkin.learning.reliability import reliability
from graphkin.learning.task import EvaluationSet
from graphkin.models.model import GraphModel
from graphkin.models.saving import SHIPPED
from graphkin.research.tasks.edits import EditTask
from tests.scripts import script

KINDS = {"embedder": GraphEmbedder, "matcher": GraphMatcher}
PARTS = [*KINDS, "joined"]
"""The columns of a card."""
ROWS = {
    "edits": "200 validation pairs and triplets of n 20..50, p 0.2..0.5",
    "mnemonics": "150 small functions, two builds each",
}
TOLERANCE = 1.0
"""Points, in per cent."""


def card_scores(name: str, part: str) -> list[float]:
    """Pair AUC and triplet accuracy that the card claims for the small set."""
    card = (SHIPPED / name / "README.md").read_text(encoding="utf-8")
    row = next(line for line in card.splitlines() if line.startswith(f"| {ROWS[name]} |"))
    cell = row.split("|")[2 + PARTS.index(part)]
    return [float(number) for number in re.findall(r"\d+\.\d", cell)]


def joined_mnemonics() -> GraphMatcher:
    """As the card says."""
    card = (SHIPPED / "mnemonics" / "README.md").read_text(encoding="utf-8")
    (weight,) = re.findall(r"matcher\.joined\(embedder, (\d+\.\d+)\)", card)
    embedder = GraphEmbedder.from_pretrained("mnemonics")
    return GraphMatcher.from_pretrained("mnemonics").joined(embedder, float(weight))


def small_set(name: str, model: GraphModel) -> EvaluationSet:
    if name == "edits":
        task = EditTask(nodes=(20, 50), p=(0.2, 0.5), evaluation_size=200)
        return task.evaluation_set("validation")
    assert model.vocabulary is not None
    return script("experiments/bundle_functions.py").bundled_functions(model.vocabulary)


@pytest.mark.parametrize(("name", "part"), [*product(ROWS, KINDS), ("mnemonics", "joined")])
def test_scores_are_those_of_the_card(name: str, part: str) -> None:
    model = joined_mnemonics() if part == "joined" else KINDS[part].from_pretrained(name)
    metrics = evaluate(model, small_set(name, model))
    measured = [100 * metrics[key] for key in ("pair_auc", "triplet_accuracy")]
    claimed = card_scores(name, part)
    assert len(claimed) == 2
    assert measured == pytest.approx(claimed, abs=TOLERANCE)


@pytest.mark.parametrize("part", KINDS)
def test_probabilities_of_edits_are_right_about_as_often_as_they_say(part: str) -> None:
    model = KINDS[part].from_pretrained("edits")
    task = EditTask(nodes=(20, 50), p=(0.2, 0.5), evaluation_size=400)
    validation = task.evaluation_set("validation")
    probabilities = model.predict(validation.pairs, probability=True)
    assert reliability(probabilities, validation.labels).expected_calibration_error < 0.08


def test_the_bundled_functions_are_small_and_in_two_builds_each() -> None:
    vocabulary = GraphEmbedder.from_pretrained("mnemonics").vocabulary
    assert vocabulary is not None
    bundled = script("experiments/bundle_functions.py").bundled_functions(vocabulary)
    graphs = {id(graph): graph for pair in bundled.pairs for graph in pair}.values()
    assert len(graphs) == 300
    assert len(bundled.pairs) == 300
    assert len(bundled.triplets) == 150
    assert all(5 <= graph.num_nodes <= 40 for graph in graphs)
    assert all(a.digest() != b.digest() for a, b in bundled.pairs)
