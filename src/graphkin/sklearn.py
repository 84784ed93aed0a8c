"""Estimators of scikit-learn over graphs: vectors for its classifiers, and kernels.

X is a list of graphs, of graphkin, NetworkX or PyG, in place of a matrix; all else is as
scikit-learn has it: ``fit`` returns the estimator, parameters are stored as they were given, and
pipelines, grid searches and ``clone`` work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from graphkin.errors import ConfigError
from graphkin.graphs.collections import listed
from graphkin.models import GraphEmbedder, load_model
from graphkin.models.model import GraphModel


class GraphVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Graphs to vectors, by an embedder that is trained on their classes, or was before.

    Args:
        model: the name of a model, such as ``gnn-strong``, which ``fit`` trains; or the folder of a
            trained one, which ``fit`` leaves as it is.
        steps: of training, at most.
        batch_size: pairs in a batch.
        learning_rate: the highest of its schedule.
        seed: of first weights and training data.
        attributes: of graphs of NetworkX, which attributes are their input, by the names of the
            arguments of ``from_networkx``: ``{"node_labels": "element"}``. A trained model knows
            its own.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> classifier = make_pipeline(GraphVectorizer(steps=100), LogisticRegression())
    """

    def __init__(
        self,
        model: str = "gnn-strong",
        *,
        steps: int = 1_000,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        seed: int = 0,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.attributes = attributes

    def fit(self, X: Iterable[Any], y: Iterable[Any] | None = None) -> Self:
        """Trains on graphs and their classes; a trained model needs neither, and no ``y``."""
        embedder = _trained(self.model)
        if embedder is None:
            if y is None:
                raise ConfigError("a new model learns from classes; give y, or a trained model")
            embedder = GraphEmbedder(self.model)
            embedder.fit(
                X,
                y,
                steps=self.steps,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                seed=self.seed,
                attributes=self.attributes,
                progress=False,
            )
        if not isinstance(embedder, GraphEmbedder):
            raise ConfigError(f"{self.model} is a matcher, and only an embedder has vectors")
        self.embedder_ = embedder
        self.n_features_out_ = embedder.config.vector_dim
        return self

    def transform(self, X: Iterable[Any]) -> NDArray[np.float32]:
        """(N, G) float32, a vector for each graph."""
        vectors: NDArray[np.float32] = _fitted(self, "embedder_").encode(listed(X))
        return vectors

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the components of a vector."""
        _fitted(self, "embedder_")
        return np.array([f"graph{n}" for n in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        return _of_graphs(super().__sklearn_tags__())


class PairwiseSimilarity(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Graphs to their similarities with those of ``fit``, as kernels.

    That is what ``SVC(kernel="precomputed")`` takes, for one.

    Args:
        model: the folder of a trained embedder or matcher, or one that ships.
        positive: whether exp(score - highest) is given in place of the score, so that no similarity
            is below 0, and that of a graph with itself is about 1 for distances. The score of a
            model of distances is minus the distance, as a multiple of its ``target_scale``.
    """

    def __init__(self, model: str, *, positive: bool = True) -> None:
        self.model = model
        self.positive = positive

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:
        """Keeps the graphs; nothing is learned."""
        model = _trained(self.model)
        if model is None:
            raise ConfigError(f"{self.model} is not a trained model; give its folder")
        self.graphs_ = listed(X)
        self.model_ = model
        self.highest_ = float(np.max(_similarities(model, self.graphs_, self.graphs_)))
        return self

    def transform(self, X: Iterable[Any]) -> NDArray[np.float32]:
        """(N, M) float32: the similarity of every graph with every one of ``fit``."""
        scores = _similarities(_fitted(self, "model_"), listed(X), self.graphs_)
        return np.exp(scores - np.float32(self.highest_)) if self.positive else scores

    def __sklearn_tags__(self) -> Any:
        return _of_graphs(super().__sklearn_tags__())


def _similarities(model: GraphModel, queries: list[Any], pool: list[Any]) -> NDArray[np.float32]:
    """(Q, P) higher for graphs more alike: of a model of distances, minus these in its unit."""
    scores = model.scores(queries, pool)
    return -scores / model.config.target_scale if model.config.predicts_distances else scores


def _trained(name: str) -> GraphModel | None:
    """The trained model of a name; None for the name of a kind of model."""
    from graphkin.models.config import MODEL_NAMES

    return None if name in MODEL_NAMES else load_model(name)


def _fitted(estimator: Any, attribute: str) -> Any:
    if not hasattr(estimator, attribute):
        name = type(estimator).__name__
        raise NotFittedError(f"this {name} is not fitted yet; call fit before you use it")
    return getattr(estimator, attribute)


def _of_graphs(tags: Any) -> Any:
    """Tags of an estimator whose X is a list of graphs."""
    tags.input_tags.two_d_array = False
    tags.no_validation = True
    return tags
