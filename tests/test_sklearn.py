"""Estimators of scikit-learn over graphs: parameters, pipelines, grid searches, kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import estimator_checks

from graphkin import GraphEmbedder, GraphMatcher
from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.sklearn import GraphVectorizer, PairwiseSimilarity
from tests.graph_samples import edit_pairs, molecules

SHORT: dict[str, Any] = {"steps": 40, "batch_size": 16}
CHECKS = (
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_mixin_order",
)
"""Those of scikit-learn's own checks that ask for no matrix of numbers."""


@pytest.fixture(scope="module")
def graphs() -> tuple[list[Graph], list[str]]:
    return molecules(80)


@pytest.fixture(scope="module")
def vectorizer(graphs: tuple[list[Graph], list[str]]) -> GraphVectorizer:
    return GraphVectorizer(**SHORT).fit(*graphs)


@pytest.mark.parametrize("check", CHECKS)
def test_checks_of_scikit_learn(check: str) -> None:
    getattr(estimator_checks, check)("GraphVectorizer", GraphVectorizer(**SHORT))


def test_parameters_are_stored_as_given() -> None:
    vectorizer = GraphVectorizer("gnn", steps=7)
    assert vectorizer.get_params()["steps"] == 7
    assert clone(vectorizer.set_params(seed=3)).get_params() == vectorizer.get_params()


def test_vectors(graphs: tuple[list[Graph], list[str]], vectorizer: GraphVectorizer) -> None:
    vectors = vectorizer.transform(tuple(graphs[0]))
    assert vectors.shape == (80, 128)
    assert len(vectorizer.get_feature_names_out()) == 128
    assert np.array_equal(vectors, vectorizer.embedder_.encode(graphs[0]))
    with pytest.raises(NotFittedError):
        GraphVectorizer().transform(graphs[0])
    with pytest.raises(ConfigError, match="give y, or a trained model"):
        GraphVectorizer().fit(graphs[0])


def test_a_pipeline_in_a_grid_search(graphs: tuple[list[Graph], list[str]]) -> None:
    pipeline = make_pipeline(GraphVectorizer(**SHORT), LogisticRegression())
    search = GridSearchCV(pipeline, {"graphvectorizer__seed": [0, 1]}, cv=2)
    given, labels = graphs
    search.fit(given, labels)
    assert search.best_score_ > 0.8
    assert search.predict(given[:5]).shape == (5,)


def test_a_trained_model_is_left_as_it_is(
    graphs: tuple[list[Graph], list[str]], vectorizer: GraphVectorizer, tmp_path: Path
) -> None:
    vectorizer.embedder_.save_pretrained(tmp_path)
    again = GraphVectorizer(str(tmp_path)).fit(graphs[0])
    assert np.array_equal(again.transform(graphs[0][:3]), vectorizer.transform(graphs[0][:3]))


def test_kernels(
    graphs: tuple[list[Graph], list[str]], vectorizer: GraphVectorizer, tmp_path: Path
) -> None:
    given, labels = graphs
    vectorizer.embedder_.save_pretrained(tmp_path)
    kernel = PairwiseSimilarity(str(tmp_path)).fit(given[:60])
    matrix = kernel.transform(given[:60])
    assert matrix.shape == (60, 60)
    assert matrix.min() >= 0
    assert np.allclose(matrix, matrix.T, atol=1e-5)
    classifier = SVC(kernel="precomputed").fit(matrix, labels[:60])
    assert classifier.score(kernel.transform(given[60:]), labels[60:]) > 0.8
    with pytest.raises(ConfigError, match="is not a trained model"):
        PairwiseSimilarity("gmn").fit(given)


def test_attributes_of_networkx(tmp_path: Path) -> None:
    graphs, labels = molecules(40)
    others = [nx.Graph(to_networkx(graph).edges) for graph in graphs]
    for other, graph in zip(others, graphs, strict=True):
        nx.set_node_attributes(other, dict(enumerate(graph.node_labels or ())), "element")
    named = {"node_labels": "element"}
    vectorizer = GraphVectorizer(steps=2, batch_size=8, attributes=named)
    assert clone(vectorizer).get_params()["attributes"] == named
    embedder = vectorizer.fit(others, labels).embedder_
    assert embedder.config.node_input == "tokens"
    assert vectorizer.transform(others[:3]).shape == (3, 128)
    # A saved model knows them.
    embedder.save_pretrained(tmp_path)
    assert GraphVectorizer(str(tmp_path)).fit(others).transform(others[:3]).shape == (3, 128)
    assert PairwiseSimilarity(str(tmp_path)).fit(others[:4]).transform(others[:3]).shape == (3, 4)


def test_distances_become_similarities(tmp_path: Path) -> None:
    pairs, values = edit_pairs(60)
    matcher = GraphMatcher("gmn-strong").fit(pairs, values, steps=60, progress=False)
    matcher.save_pretrained(tmp_path)
    paths = [pair[0] for pair in pairs[:6]]
    matrix = PairwiseSimilarity(str(tmp_path)).fit(paths).transform(paths)
    assert np.allclose(matrix.diagonal(), matrix.max(), atol=1e-3)
    distances = matcher.scores(paths, paths)
    assert matrix.ravel()[distances.argmax()] == matrix.min()


def test_a_matcher_is_a_kernel_but_has_no_vectors(
    graphs: tuple[list[Graph], list[str]], tmp_path: Path
) -> None:
    given, labels = graphs
    matcher = GraphMatcher("gmn-strong").fit(given, labels, steps=1, progress=False)
    matcher.save_pretrained(tmp_path)
    assert PairwiseSimilarity(str(tmp_path)).fit(given[:4]).transform(given[:3]).shape == (3, 4)
    with pytest.raises(ConfigError, match="only an embedder has vectors"):
        GraphVectorizer(str(tmp_path)).fit(given)
    assert isinstance(GraphEmbedder("gnn"), GraphEmbedder)
