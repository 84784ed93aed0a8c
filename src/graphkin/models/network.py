"""The network that all models share: encoder, T propagation steps, readout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn import functional

from graphkin.errors import GraphError, ModelError
from graphkin.graphs.batch import GraphBatch
from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.attention import CrossAttention
from graphkin.models.config import ModelConfig
from graphkin.models.kernels.propagation import propagate_fused, starts_alike
from graphkin.models.layers import (
    READOUTS,
    EdgeEncoder,
    EdgeVectors,
    GraphConvolution,
    Messages,
    NodeEncoder,
    NodeUpdateCell,
    ResidualStep,
)
from graphkin.models.similarity import Alignment

Observer = Callable[[int, Tensor, CrossAttention], None]
"""Called with (t, states after t steps, the attention that step t + 1 would use)."""


class PropagationStep(nn.Module):
    """One propagation step with message passing (eq. 2) and, by option, matching (eq. 5 to 7)."""

    def __init__(self, config: ModelConfig, edges: EdgeEncoder) -> None:
        super().__init__()
        self.reverse = config.reverse_messages
        self.messages = Messages(config, edges)
        if self.reverse == "separate":
            self.reverse_messages = Messages(config, edges)
        if config.attends:
            self.attention = CrossAttention(
                config.node_dim, config.attention_similarity, config.attention_projections
            )
        self.attends = config.attends
        self.update = NodeUpdateCell(config)
        self.residual = config.residual
        self.norm = nn.LayerNorm(config.node_dim) if config.state_norm == "layer" else None

    def forward(
        self,
        h: Tensor,
        cell: Tensor | None,
        batch: GraphBatch,
        edges: EdgeVectors | None,
        groups: Sequence[PairGroup],
    ) -> tuple[Tensor, Tensor | None]:
        """(N, D) -> (N, D), and the cell state where the update is an LSTM."""
        m = self.messages(h, batch, batch.incoming, edges)  # m_i = sum_j f_msg(h_i, h_j, e_ij)
        reverse_m = None
        if self.reverse == "shared":
            m = m + self.messages(h, batch, batch.outgoing, edges)
        if self.reverse == "separate":
            reverse_m = self.reverse_messages(h, batch, batch.outgoing, edges)
        mu = self.attention(h, groups) if self.attends else None  # mu_i = sum_j a_ij (h_i - h_j)
        new, cell = self.update(h, m, reverse_m, mu, cell)  # h_i' = f_node(h_i, m_i, mu_i)
        if self.residual:
            new = h + new
        return (new if self.norm is None else self.norm(new)), cell


class GraphNetwork(nn.Module):
    """Graphs to vectors. With matching, a graph's vector depends on its partner."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.nodes = NodeEncoder(config)
        self.edges = EdgeEncoder(config)
        count = min(config.steps, 1) if config.shared else config.steps
        if config.propagation == "message":
            self.steps = nn.ModuleList(PropagationStep(config, self.edges) for _ in range(count))
        else:
            step = GraphConvolution if config.propagation == "convolution" else ResidualStep
            self.steps = nn.ModuleList(step(config) for _ in range(count))
        if config.aligns:
            self.alignment = Alignment(config)
        elif not config.encodes_apart:
            self.aggregator = READOUTS[config.readout](config)

    def forward(
        self,
        batch: GraphBatch,
        groups: Sequence[PairGroup] = (),
        steps: int | None = None,
        observe: Observer | None = None,
    ) -> Tensor:
        """Graph vectors (graphs, G) after ``steps`` propagation steps (default: T)."""
        h = self.states(batch, groups, steps, observe)
        count = self._count(steps)
        vectors: Tensor
        if self.config.aligns:
            sharpness = self.config.alignment_sharpness
            value, attended = self._step(count).attention.attend(h, groups, sharpness)
            vectors = self.alignment(value, attended, batch)
        else:
            h = functional.dropout(h, self.config.dropout, self.training)
            vectors = self.aggregator(h, batch)
        return vectors

    @property
    def starts_alike(self) -> bool:
        """Whether all nodes start alike: not with an encoder of a person's own."""
        own = type(self.nodes) is not NodeEncoder or type(self.edges) is not EdgeEncoder
        return not own and starts_alike(self.config)

    def states(
        self,
        batch: GraphBatch,
        groups: Sequence[PairGroup] = (),
        steps: int | None = None,
        observe: Observer | None = None,
    ) -> Tensor:
        """Node states (N, D) after ``steps`` propagation steps (default: T)."""
        h: Tensor = self.nodes(batch)  # (N, D)
        count = self._count(steps)
        if self.config.propagation != "message":
            return self._convolve(h, batch, count)
        return self._propagate(h, batch, groups, count, observe) if count or observe else h

    def _propagate(
        self,
        h: Tensor,
        batch: GraphBatch,
        groups: Sequence[PairGroup],
        count: int,
        observe: Observer | None,
    ) -> Tensor:
        edges: EdgeVectors | None = self.edges(batch)
        self._check_direction(batch)
        is_own = any(type(step) is not PropagationStep for step in self.steps)
        fused = None
        if not (observe or is_own):
            fused = propagate_fused(self, h, batch, edges, groups, count)
        if fused is not None:
            return fused
        cell: Tensor | None = None
        for t in range(count):
            step = self._step(t)
            if observe is not None:
                observe(t, h, step.attention)
            h, cell = step(h, cell, batch, edges, groups)
        if observe is not None:
            observe(count, h, self._step(count).attention)
        return h

    def _step(self, t: int) -> PropagationStep:
        """Step t + 1; past the last one, where each has its own parameters, the last."""
        step = self.steps[0 if self.config.shared else min(t, len(self.steps) - 1)]
        assert isinstance(step, PropagationStep)
        return step

    def _convolve(self, h: Tensor, batch: GraphBatch, count: int) -> Tensor:
        self._check_direction(batch)
        for t in range(count):
            h = self.steps[t % len(self.steps)](h, batch)
        return h

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
