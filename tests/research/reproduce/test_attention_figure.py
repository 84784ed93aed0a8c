"""The pairs of the attention figures, what is measured of them, and their pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx
import numpy as np
import pytest
from matplotlib import image

from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.models import GraphMatcher, ModelConfig, build_model
from graphkin.research.reproduce import attention_figure
from graphkin.research.reproduce.attention_figure import (
    Case,
    cases,
    find_matcher,
    measure_attention,
)
from graphkin.research.reproduce.cells import fill
from graphkin.research.reproduce.render.png import draw
from graphkin.research.reproduce.results import Result, read_result, write_result
from graphkin.research.reproduce.table_layout import CASES, DISTANCE1, DISTANCE2, ISOMORPHIC

CONFIG = ModelConfig.named("gmn", node_dim=8, message_dim=8, graph_dim=8, steps=5)


@pytest.fixture(scope="module")
def measured() -> Result:
    matcher = build_model(CONFIG, seed=1)
    assert isinstance(matcher, GraphMatcher)
    return measure_attention(matcher, "a test", "graphkin reproduce attention", {})


def by_name() -> dict[str, Case]:
    return {case.name: case for case in cases()}


def test_the_cases_are_those_of_the_paper() -> None:
    assert tuple(by_name()) == CASES
    for case in cases():
        assert 9 <= case.left.num_nodes <= 10
        assert networkx.is_connected(to_networkx(case.left))
        assert len(case.left.edges) == len(case.right.edges)


def test_isomorphic_pairs_are_and_edited_ones_are_not() -> None:
    for case in cases():
        same = networkx.is_isomorphic(to_networkx(case.left), to_networkx(case.right))
        assert same == (case.name not in (DISTANCE1, DISTANCE2))


@pytest.mark.parametrize(("name", "edits"), [(ISOMORPHIC, 0), (DISTANCE1, 1), (DISTANCE2, 2)])
def test_partners_keep_all_edges_but_the_edited(name: str, edits: int) -> None:
    case = by_name()[name]
    if case.partners.sum() == case.left.num_nodes:  # no symmetries
        to = case.partners.argmax(axis=1)
        kept = {frozenset(edge) for edge in to[case.left.edges].tolist()}
        assert len(kept - {frozenset(edge) for edge in case.right.edges.tolist()}) == edits


def test_a_chain_has_two_partners_for_all_but_its_centre() -> None:
    chains = cases()[0]
    assert sorted(chains.partners.sum(axis=1).tolist()) == [1, *[2] * 8]


def test_attention_is_even_before_the_first_step(measured: Result) -> None:
    values = {(cell.row, cell.metric): cell.value for cell in measured.cells}
    assert values[ISOMORPHIC, "attention_after_0"] == pytest.approx(0.1, abs=1e-4)
    assert values[CASES[0], "attention_after_0"] == pytest.approx(17 / 81, abs=1e-4)
    assert len(values) == 12


def test_isomorphic_graphs_look_at_each_other_alike(measured: Result) -> None:
    assert measured.cases is not None
    left_to_right, right_to_left = (
        np.array(measured.cases[1][side]) for side in ("left_to_right", "right_to_left")
    )
    assert left_to_right.shape == right_to_left.shape == (10, 10, 10)
    partners = by_name()[ISOMORPHIC].partners
    if partners.sum() == 10:
        to = partners.argmax(axis=1)
        np.testing.assert_allclose(left_to_right[:, :, to], right_to_left[:, to, :], atol=2e-3)


def test_pictures_come_from_the_file(measured: Result, tmp_path: Path) -> None:
    assert measured.cases is not None
    chains = replace(measured, cases=measured.cases[:1])
    stored = read_result(write_result(chains, tmp_path))
    (file,) = draw("attention", fill("attention", [stored]), [stored], tmp_path / "pictures")
    assert file.name == "attention-two-isomorphic-chains.png"
    red, green, blue = np.moveaxis(image.imread(file)[..., :3], -1, 0)
    assert ((green > red + 0.02) & (green > blue + 0.02)).sum() > 1000, "lines of attention"
    (section,) = fill("attention", [stored])
    assert all(cell.ours is not None and cell.paper is None for cell in section.cells)


def test_a_matcher_is_found_in_its_run_unless_its_steps_have_parameters_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(attention_figure, "SHIPPED", tmp_path / "shipped")
    assert find_matcher(tmp_path / "run") is None
    build_model(CONFIG, seed=1).save_pretrained(tmp_path / "run" / "model")
    matcher = find_matcher(tmp_path / "run")
    assert matcher is not None
    assert matcher[1] == "run"
    own = ModelConfig.from_dict({**CONFIG.to_dict(), "shared": False})
    build_model(own, seed=1).save_pretrained(tmp_path / "run" / "model")
    assert find_matcher(tmp_path / "run") is None
    build_model(CONFIG, seed=1).save_pretrained(tmp_path / "shipped" / "edits" / "matcher")
    matcher = find_matcher(tmp_path / "run")
    assert matcher is not None
    assert matcher[1] == "shipped model edits"
