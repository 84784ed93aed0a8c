"""The network that all models share: encoder, T propagation steps, aggregator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn import functional

from graphkin.errors import GraphError, ModelError
from graphkin.graphs.batch import Adjacency, GraphBatch
from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.alignment import Alignment
from graphkin.models.attention import CrossAttention
from graphkin.models.config import ModelConfig
from graphkin.models.kernels import graph_norm, use_fused
from graphkin.models.kernels.attention_blocks import EUCLIDEAN, PLAIN
from graphkin.models.kernels.composition import StepParameters
from graphkin.models.kernels.propagation import Layout, MessageRoute, propagate
from graphkin.models.layers import (
    Aggregator,
    EdgeEncoder,
    EdgeTerms,
    GraphConvolution,
    Messages,
    NodeEncoder,
    NodeReadout,
    NodeUpdateCell,
)

Observer = Callable[[int, Tensor, CrossAttention | None], None]
"""Called with (t, states after t steps, the attention that step t + 1 would use)."""


class PropagationStep(nn.Module):
    """One propagation step with message passing (eq. 2) and, by option, matching (eq. 5 to 7)."""

    def __init__(self, config: ModelConfig, edges: EdgeEncoder) -> None:
        super().__init__()
        self.reverse = config.reverse_messages
        self.messages = Messages(config, edges)
        if self.reverse == "separate":
            self.reverse_messages = Messages(config, edges)
        if config.matching:
            self.attention = CrossAttention(
                config.node_dim, config.attention_similarity, config.attention_projections
            )
        self.matching = config.matching
        self.update = NodeUpdateCell(config)

    def message_networks(self, batch: GraphBatch) -> list[tuple[Messages, Tensor, Adjacency]]:
        """Message network, weight that takes it into the update, and edges that it runs on."""
        found: list[tuple[Messages, Tensor, Adjacency]] = [
            (self.messages, self.update.input_weight, batch.incoming)
        ]
        if self.reverse == "shared":
            found.append((self.messages, self.update.input_weight, batch.outgoing))
        if self.reverse == "separate":
            found.append((self.reverse_messages, self.update.reverse_weight, batch.outgoing))
        return found

    def edge_terms(self, batch: GraphBatch, edges: EdgeEncoder) -> list[EdgeTerms | None]:
        """What the edges add to each message network: the same in every use of this step."""
        networks = self.message_networks(batch)
        return [messages.terms(batch, edges) for messages, _, _ in networks]

    def fusible(self) -> bool:
        """Whether :mod:`graphkin.models.kernels.propagation` computes this kind of step."""
        if self.update.kind != "gru" or self.messages.aggregation != "sum":
            return False
        return not self.matching or self.attention.fusible()

    def routes(
        self, batch: GraphBatch, terms: Sequence[EdgeTerms | None]
    ) -> tuple[MessageRoute, ...]:
        """The message network of each set of edges, as the fused propagation takes it."""
        found = []
        networks = self.message_networks(batch)
        for (messages, _, adjacency), term in zip(networks, terms, strict=True):
            rows = adjacency.edge_rows if term is None else term.rows(adjacency)
            found.append(MessageRoute(int(messages is not self.messages), adjacency, rows))
        return tuple(found)

    def parameters_for(self, terms: Sequence[EdgeTerms | None]) -> StepParameters:
        """The step's parameters, as the fused propagation takes them."""
        update = self.update
        constant = terms[0] is None
        messages = [self.messages.parameters_for(update.input_weight, constant)]
        if self.reverse == "separate":
            reverse = self.reverse_messages.parameters_for(update.reverse_weight, constant)
            messages.append(reverse)
        none = update.input_bias.new_empty(0, 0)
        return StepParameters(
            messages=tuple(messages),
            state_weight=update.state_weight,
            state_bias=update.state_bias,
            input_bias=update.input_bias,
            match=update.match_weight if self.matching else None,
            tables=tuple(none if term is None else term.table for term in terms),
        )

    def forward(
        self,
        h: Tensor,
        cell: Tensor | None,
        batch: GraphBatch,
        terms: Sequence[EdgeTerms | None],
        groups: Sequence[PairGroup],
    ) -> tuple[Tensor, Tensor | None]:
        """(N, D) -> (N, D), and the cell state where the update is an LSTM."""
        inputs: Tensor | float = 0.0
        for (messages, weight, adjacency), term in zip(
            self.message_networks(batch), terms, strict=True
        ):
            gathered = messages.aggregate(h, adjacency, term)
            if messages.norm == "graph":
                gathered = graph_norm(gathered, batch.node_offsets, batch.node_graph)
            inputs = messages.contribute(gathered, adjacency, weight) + inputs
        if self.matching:
            value, attended = self.attention(h, groups)
            inputs = inputs + functional.linear(value - attended, self.update.match_weight)
        new: tuple[Tensor, Tensor | None] = self.update(inputs, h, cell)
        return new


class GraphNetwork(nn.Module):
    """Graphs to vectors. With matching, a graph's vector depends on its partner."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.nodes = NodeEncoder(config)
        self.edges = EdgeEncoder(config)
        count = min(config.steps, 1) if config.shared else config.steps
        if config.propagation == "convolution":
            self.steps = nn.ModuleList(GraphConvolution(config) for _ in range(count))
        else:
            self.steps = nn.ModuleList(PropagationStep(config, self.edges) for _ in range(count))
        if config.aligns:
            self.alignment = Alignment(config)
        else:
            readout = NodeReadout if config.readout == "nodes" else Aggregator
            self.aggregator = readout(config)

    def forward(
        self,
        batch: GraphBatch,
        groups: Sequence[PairGroup] = (),
        steps: int | None = None,
        observe: Observer | None = None,
    ) -> Tensor:
        """Graph vectors (graphs, G) after ``steps`` propagation steps (default: T)."""
        h: Tensor = self.nodes(batch)
        count = self._count(steps)
        if self.config.propagation == "convolution":
            h = self._convolve(h, batch, count)
        elif count or observe:
            h = self._propagate(h, batch, groups, count, observe)
        vectors: Tensor
        if self.config.aligns:
            attention = self._message_steps()[-1].attention
            value, attended = attention(h, groups, self.config.alignment_sharpness)
            vectors = self.alignment(value, attended, batch)
        else:
            vectors = self.aggregator(h, batch)
        return vectors

    def _count(self, steps: int | None) -> int:
        trained = self.config.steps
        if steps is None or steps == trained:
            return trained
        if not isinstance(steps, int) or steps < 0:
            raise ModelError(f"steps must be at least 0, got {steps}")
        if not self.config.shared or not trained:
            raise ModelError(
                f"this model has parameters for exactly {trained} steps, got steps={steps}; "
                "only shared parameters unroll to another number"
            )
        return steps

    def _check_direction(self, batch: GraphBatch) -> None:
        if self.config.reverse_messages != "none" and not batch.directed:
            raise GraphError(
                "the model sends reverse messages, which are for directed graphs: an "
                "undirected edge carries messages both ways already"
            )

    def _convolve(self, h: Tensor, batch: GraphBatch, count: int) -> Tensor:
        self._check_direction(batch)
        for t in range(count):
            h = self.steps[t % len(self.steps)](h, batch)
        return h

    def _propagate(
        self,
        h: Tensor,
        batch: GraphBatch,
        groups: Sequence[PairGroup],
        count: int,
        observe: Observer | None,
    ) -> Tensor:
        self.edges.check(batch)
        self._check_direction(batch)
        message_steps = self._message_steps()
        terms = [step.edge_terms(batch, self.edges) for step in message_steps]
        if observe is None and use_fused(h) and message_steps[0].fusible():
            return self._propagate_fused(h, batch, groups, count, terms)
        cell: Tensor | None = None
        for t in range(count + 1):
            index = t % len(self.steps) if self.config.shared else min(t, len(self.steps) - 1)
            step = self.steps[index]
            if observe is not None:
                observe(t, h, getattr(step, "attention", None))
            if t < count:
                h, cell = step(h, cell, batch, terms[index], groups)
        return h

    def _propagate_fused(
        self,
        h: Tensor,
        batch: GraphBatch,
        groups: Sequence[PairGroup],
        count: int,
        terms: Sequence[Sequence[EdgeTerms | None]],
    ) -> Tensor:
        if not count:
            return h
        config, steps = self.config, self._message_steps()
        alike = config.node_input == "constant" and config.edge_input == "constant"
        normalised = config.message_norm == "graph"
        classes = None
        if alike and not normalised:
            counts, members = batch.degree_classes
            classes = (counts[:, : 1 if config.reverse_messages == "none" else 2], members)
        layout = Layout(
            steps=count,
            routes=steps[0].routes(batch, terms[0]),
            message_dim=config.message_dim,
            groups=groups if config.matching else (),
            attention=EUCLIDEAN if config.attention_similarity == "euclidean" else PLAIN,
            classes=classes,
            graphs=batch.node_offsets if normalised else None,
        )
        parameters = [step.parameters_for(t) for step, t in zip(steps, terms, strict=True)]
        return propagate(h, layout, parameters)

    def _message_steps(self) -> list[PropagationStep]:
        return [step for step in self.steps if isinstance(step, PropagationStep)]
