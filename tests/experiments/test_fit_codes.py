"""Codes that are fitted anew: the vectors stay, and their signs say how near they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphkin.models import GraphEmbedder
from graphkin.models.codes import hamming_distances
from graphkin.research.tasks.projects import ProjectTask
from tests.library.sample_models import evidence_embedder, trained_on
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script

HELD_OUT = {"test": ["libkinbeat"], "validation": ["libkinproto"]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("projects") / "corpus"
    write_projects(corpus)
    return corpus


def test_codes_agree_with_vectors_offsets_included(corpus: Path, tmp_path: Path) -> None:
    codes = script("experiments/fit_codes.py")
    before = evidence_embedder()
    before.trained_on = trained_on(**HELD_OUT)
    after = codes.with_fitted_codes(before, str(corpus))
    after.save_pretrained(tmp_path / "embedder")
    after = GraphEmbedder.from_pretrained(tmp_path / "embedder")
    assert after.config.code_offsets
    assert after.trained_on == before.trained_on
    task = ProjectTask(str(corpus))
    numbers = [build.number for item in task.functions_of(["libkinbeat"]) for build in item.builds]
    graphs = [task.graph(number) for number in numbers]
    vectors = before.encode(graphs)
    np.testing.assert_array_equal(after.encode(graphs), vectors)
    packed, upper = after.codes(graphs), np.triu_indices(len(graphs), 1)
    distances, products = hamming_distances(packed, packed)[upper], (vectors @ vectors.T)[upper]
    assert np.corrcoef(-distances, products)[0, 1] > 0.9
    without = vectors.copy()
    after.part(without, "offsets")[:] = 0
    assert (before.codes_of(without) == before.codes_of(vectors)).all()
    assert (after.codes_of(without) != after.codes_of(vectors)).any()
