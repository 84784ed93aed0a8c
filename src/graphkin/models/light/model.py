"""What embedders and matchers without torch have in common."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.graph import Graph
from graphkin.models.input_graphs import attribute_names, read_graphs
from graphkin.models.saving import Description


class LightModel:
    """What config.json says of a model."""

    def __init__(self, description: Description) -> None:
        self.config, self.vocabulary, self.calibration, self.trained_on = description

    @property
    def attribute_names(self) -> AttributeNames:
        """Which attributes of graph files and NetworkX graphs the model was trained on."""
        return attribute_names(self.trained_on)

    def read(self, graphs: Iterable[Graph]) -> list[Graph]:
        """Graphs as the model takes them."""
        return read_graphs(graphs, self.vocabulary, self.attribute_names)

    def linked(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores themselves: models that were trained on targets answer by torch."""
        return scores
