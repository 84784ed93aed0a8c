"""Modules of a person's own in a model: trained, used, and not written where nothing reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from graphkin import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.errors import ModelError
from graphkin.graphs import GraphBatch
from graphkin.models import network
from graphkin.models.factory import build_model
from tests.graph_samples import circles, molecules

QUICK: dict[str, Any] = {"progress": False, "steps": 4, "batch_size": 8, "evaluate_every": 2}


class Degrees(nn.Module):
    """Node states out of degrees; it has no parameter called weight."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layer = nn.Linear(1, width)

    def forward(self, batch: GraphBatch) -> Tensor:
        states: Tensor = self.layer(batch.in_degrees[:, None].to(self.layer.weight))
        return states


class Largest(nn.Module):
    """The largest state of a graph's nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 128)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        sizes = batch.node_offsets.diff().tolist()
        vectors: Tensor = self.layer(torch.stack([part.amax(0) for part in h.split(sizes)]))
        return vectors


class Manhattan(GraphEmbedder):
    """Compares by the sum of absolute differences, and scales it."""

    def __init__(self, config: ModelConfig | str, power: float = 1.0) -> None:
        super().__init__(config)
        self.factor = nn.Parameter(torch.tensor(power))

    def compare(self, left: Tensor, right: Tensor) -> Tensor:
        return -self.factor * (left - right).abs().mean(dim=1)


@pytest.mark.parametrize("name", ["gnn", "gmn", "gnn-strong", "gmn-strong", "late", "siamese-gcn"])
def test_a_model_of_its_configuration_has_none(name: str) -> None:
    assert build_model(ModelConfig.named(name)).own_parts == []


@pytest.mark.parametrize("name", ["gnn", "gnn-strong"])
def test_fit_keeps_and_trains_them(name: str) -> None:
    graphs, labels = circles(40)
    embedder = GraphEmbedder(name)
    embedder.network.nodes, embedder.network.aggregator = Degrees(), Largest()  # type: ignore[assignment]
    parts = embedder.network.nodes, embedder.network.aggregator
    before = [part.layer.weight.detach().clone() for part in parts]  # type: ignore[union-attr]
    embedder.fit(graphs, labels, **QUICK)
    assert (embedder.network.nodes, embedder.network.aggregator) == parts
    for part, weight in zip(parts, before, strict=True):
        assert not torch.equal(part.layer.weight, weight)  # type: ignore[union-attr]
    assert embedder.device == torch.device("cpu")
    assert embedder.encode(graphs[:3]).shape == (3, 128)
    assert embedder.trained_on is not None
    # The inputs are still those of the data.
    again = GraphEmbedder(name)
    again.network.aggregator = Largest()  # type: ignore[assignment]
    again.fit(*molecules(40), **QUICK)
    assert again.config.node_input == "tokens"


def test_an_encoder_of_ones_own_tells_nodes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nodes have constant input, no kernel may take their states for one."""
    embedder = GraphEmbedder("gnn")
    embedder.network.nodes = Degrees()  # type: ignore[assignment]
    batch = GraphBatch.pack(circles(6)[0])
    fused = embedder.network.states(batch)
    monkeypatch.setattr(network, "propagate_fused", lambda *_: None)
    assert torch.allclose(fused, embedder.network.states(batch), rtol=1e-4, atol=1e-4)


def test_a_class_of_ones_own(tmp_path: Path) -> None:
    graphs, labels = circles(40)
    model = Manhattan(ModelConfig.named("gnn", similarity="cosine"), power=2.0)
    model.fit(graphs, labels, folder=tmp_path / "run", **QUICK)
    assert model.factor.item() != 2.0
    again = Manhattan(model.config)
    again.load_state_dict(safetensors.torch.load_file(tmp_path / "run" / "best.safetensors"))
    pairs = [(graphs[0], graphs[1])]
    assert np.array_equal(again.predict(pairs), model.predict(pairs))
    with pytest.raises(ModelError, match="Manhattan is a class of your own"):
        Manhattan.from_pretrained(tmp_path / "run")


def test_saving_is_refused_at_once(tmp_path: Path) -> None:
    embedder = GraphEmbedder("gnn")
    embedder.network.nodes = Degrees()  # type: ignore[assignment]
    for model, problem in (
        (embedder, "Degrees at network.nodes"),
        (Manhattan("gnn"), "the class Manhattan"),
    ):
        with pytest.raises(ModelError, match=f"cannot hold {problem}.*load_state_dict"):
            model.save_pretrained(tmp_path / "model")
        assert not (tmp_path / "model").exists()
    assert GraphMatcher("gmn").own_parts == []
