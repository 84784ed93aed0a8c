"""The paper's equations word for word: loops over nodes, edges and pairs, nothing rearranged.

Slow on purpose, and the reference for every fast path. It reads the parameters of a model
(so that gradients arrive at the same tensors) and nothing else of it: no packed batch, no
kernel. A node state is one vector, a message is one call of an MLP on [h_i; h_j; e_ij].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor, nn

from graphkin.graphs import Graph
from graphkin.graphs.words import KIND_SHIFT, KINDS
from graphkin.models.config import ModelConfig

Edge = tuple[int, int, Tensor]
"""Receiving node i, sending node j, edge vector e_ij."""


SUMS = ("sum", "mean")
"""Aggregations after which the message MLP's last layer may come, where messages are normalised."""


class Parameters:
    """The parameters of one part of a model, by their names within it."""

    def __init__(self, parameters: dict[str, Tensor], prefix: str = "") -> None:
        self._found = parameters
        self._prefix = prefix

    def part(self, name: str) -> Parameters:
        return Parameters(self._found, f"{self._prefix}{name}.")

    def __getattr__(self, name: str) -> Tensor:
        return self._found[f"{self._prefix}{name}"]


class LiteralModel:
    """The scores and graph vectors of a model, one pair after the other."""

    def __init__(self, model: nn.Module) -> None:
        self.config: ModelConfig = model.config
        self.parameters = Parameters(dict([*model.named_parameters(), *model.named_buffers()]))
        self.network = self.parameters.part("network")

    def score(self, left: Graph, right: Graph, steps: int | None = None) -> tuple[Tensor, ...]:
        """Similarity of a pair and the vectors of its two graphs."""
        x, y = self.vectors(left, right, steps)
        return self.similarity(x, y), x, y

    def vectors(self, left: Graph, right: Graph, steps: int | None = None) -> tuple[Tensor, Tensor]:
        count = self.config.steps if steps is None else steps
        x, y = self.states(left, right, count)
        if self.config.similarity == "late":
            said = self.said(left), self.said(right)
            return self.seen(x, y, *said), self.seen(y, x, *said[::-1])
        if self.config.similarity == "edits":
            return self.edited(left, right, x, y)
        if self.config.similarity == "alignment":
            return self.misfit(x, y), self.misfit(y, x)
        if self.config.similarity == "joint":
            embedder = copy(self)
            options = {"similarity": "cosine", "message_norm": self.config.embedder_norm}
            embedder.config = replace(self.config, matching=False, **options)
            embedder.network = self.parameters.part("embedding")
            u, v = embedder.vectors(left, right, steps)
            return torch.cat([self.misfit(x, y), u]), torch.cat([self.misfit(y, x), v])
        return self.aggregate(x), self.aggregate(y)

    def states(self, left: Graph, right: Graph, count: int) -> list[list[Tensor]]:
        """The node states of both graphs after ``count`` propagation steps."""
        graphs = (left, right)
        states = [self.encode_nodes(graph) for graph in graphs]
        cells: list[list[Tensor | None]] = [[None] * graph.num_nodes for graph in graphs]
        for t in range(count):
            step = self.step(t)
            if self.config.propagation == "convolution":
                states = [
                    self.convolve(step, graph, h) for graph, h in zip(graphs, states, strict=True)
                ]
                continue
            if self.config.propagation == "residual":
                states = [
                    self.residual(step, graph, h) for graph, h in zip(graphs, states, strict=True)
                ]
                continue
            new_states, new_cells = [], []
            for side, graph in enumerate(graphs):
                inputs = self.node_inputs(step, graph, states[side], states[1 - side])
                updated = [
                    self.update(step.part("update"), x, h, cell)
                    for x, h, cell in zip(inputs, states[side], cells[side], strict=True)
                ]
                new_states.append([h for h, _ in updated])
                new_cells.append([cell for _, cell in updated])
            states, cells = new_states, new_cells
        return states

    def step(self, t: int) -> Parameters:
        return self.network.part("steps").part("0" if self.config.shared else str(t))

    # Encoder, eq. 1.

    def encode_nodes(self, graph: Graph) -> list[Tensor]:
        """h_i = W x_i + b, with node degrees + D [log(1 + edges in), log(1 + edges out)]."""
        nodes = self.network.part("nodes")
        inputs = [self.node_input(graph, i) for i in range(graph.num_nodes)]
        h = [nodes.weight @ x + nodes.bias for x in inputs]
        if not self.config.node_degrees:
            return h
        edges = [(target, source) for target, source, _ in self.edges_along(graph)]
        for i in range(graph.num_nodes):
            arriving = sum(target == i for target, _ in edges)
            leaving = sum(source == i for _, source in edges)
            counts = [math.log(1 + arriving), math.log(1 + leaving)]
            h[i] = h[i] + nodes.degrees @ h[i].new_tensor(counts)
        return h

    def node_input(self, graph: Graph, node: int) -> Tensor:
        like = self.network.part("nodes").weight
        if self.config.node_input == "dense":
            return torch.as_tensor(graph.node_features[node].tolist(), dtype=like.dtype)
        if self.config.node_input == "tokens":
            total = like.new_zeros(self.config.node_dim)
            bag = graph.node_tokens.bag(node)
            for token in set(bag):
                weight = bag.count(token)
                if self.config.token_counts == "log":
                    weight = math.log(1 + weight)
                total = total + weight * self.network.part("nodes").tokens[token]
            return total
        return like.new_ones(1)

    def edge_input(self, graph: Graph, row: int) -> Tensor:
        like = self.network.part("nodes").weight
        if self.config.edge_input == "dense":
            return torch.as_tensor(graph.edge_features[row].tolist(), dtype=like.dtype)
        if self.config.edge_input == "types":
            return self.network.part("edges").types[int(graph.edge_types[row])]
        return like.new_ones(1)

    def edges_along(self, graph: Graph) -> list[Edge]:
        """Messages along the edges; both ways for an undirected edge, once for a self loop."""
        messages = []
        for row, (source, target) in enumerate(graph.edges.tolist()):
            e = self.edge_input(graph, row)
            messages.append((target, source, e))
            if not graph.directed and source != target:
                messages.append((source, target, e))
        return messages

    def edges_against(self, graph: Graph) -> list[Edge]:
        """Messages from the target of a directed edge back to its source."""
        return [(j, i, e) for i, j, e in self.edges_along(graph)]

    # Propagation, eq. 2, and matching, eq. 5 to 9.

    def node_inputs(
        self, step: Parameters, graph: Graph, h: Sequence[Tensor], others: Sequence[Tensor]
    ) -> list[Tensor]:
        """What f_node takes beside h_i: aggregated messages, and the matching vector."""
        forward = self.aggregated_messages(step.part("messages"), self.edges_along(graph), h)
        reverse = self.config.reverse_messages
        inputs = [[m] for m in forward]
        if reverse == "shared":
            back = self.aggregated_messages(step.part("messages"), self.edges_against(graph), h)
            inputs = [[m + r] for m, r in zip(forward, back, strict=True)]
        if reverse == "separate":
            own = step.part("reverse_messages")
            back = self.aggregated_messages(own, self.edges_against(graph), h)
            inputs = [[m, r] for m, r in zip(forward, back, strict=True)]
        if self.config.matching and self.config.similarity != "edits":
            for i, h_i in enumerate(h):
                inputs[i].append(self.matching_vector(step, h_i, others))
        return [torch.cat(parts) for parts in inputs]

    def aggregated_messages(
        self, parameters: Parameters, edges: Sequence[Edge], h: Sequence[Tensor]
    ) -> list[Tensor]:
        weight = torch.cat([parameters.receiver, parameters.sender, parameters.edge], dim=1)
        received: list[list[Tensor]] = [[] for _ in h]
        for i, j, e in edges:
            # f_msg: an MLP with one hidden ReLU layer on the concatenation.
            hidden = torch.relu(weight @ torch.cat([h[i], h[j], e]) + parameters.hidden_bias)
            received[i].append(hidden)
        nothing = h[0].new_zeros(self.config.message_dim)
        if self.config.message_norm == "none" or self.config.message_aggregation not in SUMS:
            received = [
                [parameters.output @ hidden + parameters.output_bias for hidden in some]
                for some in received
            ]
        combined = [self.combine(parameters, some) if some else nothing for some in received]
        if self.config.message_norm == "none":
            return combined
        combined = normalised(combined)
        if self.config.message_aggregation not in SUMS:
            return combined
        return [parameters.output @ m + parameters.output_bias for m in combined]

    def combine(self, parameters: Parameters, messages: Sequence[Tensor]) -> Tensor:
        kind = self.config.message_aggregation
        if kind == "max":
            return torch.stack(list(messages)).amax(dim=0)
        total = torch.zeros_like(messages[0])
        if kind == "attention":
            weights = softmax([leaky_relu(parameters.score[0] @ m) for m in messages])
            for weight, m in zip(weights, messages, strict=True):
                total = total + weight * m
            return total
        for m in messages:
            total = total + m
        return total / len(messages) if kind == "mean" else total

    def matching_vector(
        self, step: Parameters, h_i: Tensor, others: Sequence[Tensor], sharpness: float = 1.0
    ) -> Tensor:
        """sum_j a_ij (v_i - v_j), with v = h where there are no projections."""
        _, _, value = self.projected(step, h_i)
        mu = torch.zeros_like(value)
        for weight, h_j in zip(self.attention(step, h_i, others, sharpness), others, strict=True):
            mu = mu + weight * (value - self.projected(step, h_j)[2])
        return mu

    def attention(
        self, step: Parameters, h_i: Tensor, others: Sequence[Tensor], sharpness: float = 1.0
    ) -> list[Tensor]:
        """a_ij of one node i for every node j of the other graph."""
        query, _, _ = self.projected(step, h_i)
        scores = [
            sharpness * self.state_similarity(query, self.projected(step, h_j)[1]) for h_j in others
        ]
        return softmax(scores)

    def projected(self, step: Parameters, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of a node."""
        if not self.config.attention_projections:
            return h, h, h
        size = self.config.node_dim
        weight = step.part("attention").part("projection").weight
        return weight[:size] @ h, weight[size : 2 * size] @ h, weight[2 * size :] @ h

    def state_similarity(self, x: Tensor, y: Tensor) -> Tensor:
        """s_h of the matching module."""
        kind = self.config.attention_similarity
        if kind == "euclidean":
            return -((x - y) ** 2).sum()
        if kind == "cosine":
            return x @ y / (x.norm() * y.norm())
        return x @ y

    def update(
        self, parameters: Parameters, x: Tensor, h: Tensor, cell: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """f_node of one node; the cell state is for the LSTM."""
        weights = [parameters.input_weight]
        if self.config.reverse_messages == "separate":
            weights.append(parameters.reverse_weight)
        if self.config.matching and self.config.similarity != "edits":
            weights.append(parameters.match_weight)
        from_input = torch.cat(weights, dim=1) @ x + parameters.input_bias
        from_state = parameters.state_weight @ h + parameters.state_bias
        kind = self.config.node_update
        if kind == "gru":
            return gru(from_input, from_state, h), None
        if kind == "lstm":
            return lstm(from_input, from_state, torch.zeros_like(h) if cell is None else cell)
        if kind == "rnn":
            return torch.tanh(from_input + from_state), None
        hidden = torch.relu(from_input + from_state)
        return parameters.output @ hidden + parameters.output_bias, None

    # Graph convolution (Kipf & Welling, eq. 2 of their paper), entry by entry.

    def convolve(self, step: Parameters, graph: Graph, h: Sequence[Tensor]) -> list[Tensor]:
        edges = [(i, j) for i, j, _ in self.edges_along(graph)]
        if self.config.reverse_messages == "shared":
            edges += [(i, j) for i, j, _ in self.edges_against(graph)]
        edges += [(i, i) for i in range(graph.num_nodes)]
        degree = [sum(1 for i, _ in edges if i == node) for node in range(graph.num_nodes)]
        total = [torch.zeros_like(h_i) for h_i in h]
        for i, j in edges:
            total[i] = total[i] + step.weight @ h[j] / (degree[i] * degree[j]) ** 0.5
        return [torch.relu(x + step.bias) for x in total]

    def residual(self, step: Parameters, graph: Graph, h: Sequence[Tensor]) -> list[Tensor]:
        along = [(i, j) for i, j, _ in self.edges_along(graph)]
        against = [(i, j) for i, j, _ in self.edges_against(graph)]

        def mean(edges: list[tuple[int, int]], node: int) -> Tensor:
            near = [h[j] for i, j in edges if i == node]
            return sum(near, torch.zeros_like(h[0])) / max(len(near), 1)

        new = []
        for i, h_i in enumerate(h):
            x = step.own @ h_i + step.bias + step.incoming @ mean(along, i)
            if self.config.reverse_messages == "separate":
                x = x + step.outgoing @ mean(against, i)
            y = h_i + torch.relu(x)
            centred = y - y.mean()
            deviation = torch.sqrt((centred**2).mean() + 1e-5)
            new.append(centred / deviation * step.norm_scale + step.norm_bias)
        return new

    # Aggregator, eq. 3, and the similarity of graph vectors.

    def aggregate(self, h: Sequence[Tensor]) -> Tensor:
        aggregator = self.network.part("aggregator")
        size = self.config.graph_dim
        if self.config.readout == "nodes":
            each = [torch.relu(aggregator.hidden @ h_i + aggregator.hidden_bias) for h_i in h]
            return sum((aggregator.output @ x for x in each), h[0].new_zeros(size))
        total = self.gated_sum(h)
        if self.config.readout == "pooled":
            stacked = torch.stack(list(h))
            parts = [total / len(h) ** 0.5, stacked.mean(dim=0), stacked.amax(dim=0)]
            total = torch.cat(parts)
        hidden = torch.relu(aggregator.hidden @ total + aggregator.hidden_bias)
        return aggregator.output @ hidden + aggregator.output_bias

    def gated_sum(self, h: Sequence[Tensor]) -> Tensor:
        aggregator = self.network.part("aggregator")
        size = self.config.graph_dim
        gate_weight, value_weight = aggregator.nodes[:size], aggregator.nodes[size:]
        gate_bias, value_bias = aggregator.nodes_bias[:size], aggregator.nodes_bias[size:]
        total = h[0].new_zeros(size)
        for h_i in h:
            gate = torch.sigmoid(gate_weight @ h_i + gate_bias)
            total = total + gate * (value_weight @ h_i + value_bias)
        return total

    def misfit(self, h: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor:
        """How far the nodes of a graph lie from what they look at in the other one."""
        alignment = self.network.part("alignment")
        step = self.step(self.config.steps - 1)

        def phi(x: Tensor) -> Tensor:
            return alignment.output @ torch.relu(alignment.hidden @ x + alignment.hidden_bias)

        total = h[0].new_zeros(self.config.graph_dim)
        for h_i in h:
            value = self.projected(step, h_i)[2]
            mu = self.matching_vector(step, h_i, others, self.config.alignment_sharpness)
            distances = phi(value) - phi(value - mu)
            total = total + distances**2
        return total / len(h) if self.config.alignment_pool == "mean" else total

    # Late interaction: nodes that were encoded apart look at each other once.

    def said(self, graph: Graph) -> list[Tensor]:
        """The sum of the words of each node, a word of length rarity times e^scale; no offsets."""
        bag, dim = self.parameters.part("words"), self.config.word_dim
        totals = [self.network.part("nodes").weight.new_zeros(dim) for _ in range(graph.num_nodes)]
        known = bag.hashes.tolist() if dim else []
        for node in range(graph.num_nodes if dim else 0):
            start, end = graph.node_words.offsets[node : node + 2]
            for word in graph.node_words.hashes[start:end].tolist():
                kind = word >> KIND_SHIFT
                signed = word - (1 << 64) if word >> 63 else word
                rarity = bag.rarity[known.index(signed)] if signed in known else bag.unseen[0]
                if KINDS[kind] != "off":
                    direction = totals[node].new_tensor(word_signs(word, dim)) / math.sqrt(dim)
                    scale = torch.exp(bag.kind_scale[kind])
                    totals[node] = totals[node] + rarity * scale * direction
        return totals

    def seen(
        self,
        h: Sequence[Tensor],
        others: Sequence[Tensor],
        words: Sequence[Tensor],
        other_words: Sequence[Tensor],
    ) -> Tensor:
        """x_G of a graph beside another, from what each node is and sees there."""
        late = self.parameters.part("late")
        v, u = ([late.state @ x for x in states] for states in (h, others))
        look, look_at = ([unit(late.look @ x) for x in states] for states in (v, u))
        w, z = ([unit(x) for x in bags] for bags in (words, other_words))
        c = []
        for i, v_i in enumerate(v):
            heat = torch.exp(late.heat)
            scores = [heat[0] * (look[i] @ look_at[j]) for j in range(len(u))]
            if self.config.word_dim:
                scores = [s + heat[1] * (w[i] @ z[j]) for j, s in enumerate(scores)]
            a = softmax(scores)
            s_i = sum(a[j] * u[j] for j in range(len(u)))
            sides = torch.cat([torch.abs(v_i - s_i), v_i * s_i, v_i])
            c_i = late.compared @ sides + late.compared_bias
            if self.config.word_dim:
                kept = w[i] @ sum(a[j] * z[j] for j in range(len(u)))
                strength = torch.log(1 + length(words[i]))
                c_i = c_i + late.agreed @ torch.stack([kept, kept * strength, strength])
            c.append(torch.relu(c_i))
        gates = [torch.sigmoid(late.gate @ c_i + late.gate_bias)[0] for c_i in c]
        gated = sum(gate * c_i for gate, c_i in zip(gates, c, strict=True))
        return torch.cat([sum(c) / len(c), gated / (sum(gates) + 1e-6)])

    def edited(
        self, left: Graph, right: Graph, h: Sequence[Tensor], others: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """x_G of both graphs, from the cost of a soft assignment of their nodes."""
        edits, places = self.parameters.part("edits"), max(len(h), len(others))
        a, b = ([[0.0] * places for _ in range(places)] for _ in range(2))
        for graph, counts in ((left, a), (right, b)):
            for receiver, sender, _ in self.edges_along(graph):
                counts[receiver][sender] += 1
        v, w = ([edits.state @ x + edits.state_bias for x in side] for side in (h, others))
        u, z = ([edits.kind @ x for x in self.encode_nodes(graph)] for graph in (left, right))
        zero = h[0].new_zeros(())
        c, s = ([[zero] * places for _ in range(places)] for _ in range(2))
        for i, j in product(range(places), range(places)):
            if i < len(h) and j < len(others):
                c[i][j] = 1 - torch.exp(-((u[i] - z[j]) ** 2).sum())
                s[i][j] = edits.heat[0] * (v[i] @ w[j]) / math.sqrt(len(v[i]))
                s[i][j] = s[i][j] - edits.mismatch[0] * c[i][j]
            else:
                state = h[i] if i < len(h) else others[j]
                c[i][j] = zero + 1
                s[i][j] = (edits.removal @ state + edits.removal_bias)[0]
        p = self.balanced(s)
        for weight in edits.agreement:
            agreed = [[zero] * places for _ in range(places)]
            for i, j, k, m in product(range(places), repeat=4):
                edges = (a[i][k] * b[j][m] + a[k][i] * b[m][j]) / 2
                if edges:
                    agreed[i][j] = agreed[i][j] + edges * p[k][m]
            p = self.balanced(
                [[s[i][j] + weight * agreed[i][j] for j in range(places)] for i in range(places)]
            )
        turned_p, turned_c = ([list(row) for row in zip(*m, strict=True)] for m in (p, c))
        x, y = self.costs(v, w, p, c, a, b), self.costs(w, v, turned_p, turned_c, b, a)
        share = 2 / (len(h) + len(others)) if self.config.alignment_pool == "mean" else 1
        return x * share, y * share

    @staticmethod
    def balanced(s: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        places = range(len(s))
        rows = [max(s[i][j] for j in places) for i in places]
        columns = [max(s[i][j] for i in places) for j in places]
        p = [[torch.exp(s[i][j] - (rows[i] + columns[j]) / 2) for j in places] for i in places]
        for _ in range(6):
            rows = [sum(p[i][j] for j in places) for i in places]
            columns = [sum(p[i][j] for i in places) for j in places]
            p = [[p[i][j] / torch.sqrt(rows[i] * columns[j]) for j in places] for i in places]
        return p

    def costs(
        self,
        v: Sequence[Tensor],
        w: Sequence[Tensor],
        p: Sequence[Sequence[Tensor]],
        c: Sequence[Sequence[Tensor]],
        a: Sequence[Sequence[float]],
        b: Sequence[Sequence[float]],
    ) -> Tensor:
        """x_G of one of two graphs: what is wrong at each of its places, summed."""
        edits, places = self.parameters.part("edits"), range(len(p))
        n = [sum(p[i][j] * c[i][j] for j in places) for i in places]
        e = []
        for i in places:
            wrong = p[0][0].new_zeros(())
            for k in places:
                moved = sum(p[i][j] * b[j][m] * p[k][m] for j in places for m in places)
                wrong = wrong + torch.abs(a[i][k] - moved)
            e.append(wrong)
        total = edits.hidden_bias.new_zeros(len(edits.hidden_bias))
        for i, v_i in enumerate(v):
            w_i = sum(p[i][j] * w[j] for j in range(len(w)))
            features = torch.cat([torch.abs(v_i - w_i), v_i * w_i, torch.stack([n[i], e[i]])])
            f = torch.relu(edits.compared @ features + edits.compared_bias)
            total = total + torch.relu(edits.hidden @ f + edits.hidden_bias)
        return torch.cat([torch.stack([sum(n), sum(e) / 2]), total])

    def similarity(self, x: Tensor, y: Tensor) -> Tensor:
        kind = self.config.similarity
        if kind == "late":
            late = self.parameters.part("late")
            return (late.output @ torch.relu(late.hidden @ (x + y) + late.hidden_bias))[0]
        if kind == "edits":
            return -(self.parameters.part("edits").output[0] @ (x + y))
        if kind == "alignment":
            return -(x.sum() + y.sum())
        if kind == "joint":
            size = self.config.graph_dim
            u, v = x[size:], y[size:]
            whole = 1 - u @ v / (u.norm() * v.norm())
            weight = self.parameters.part("head").weight[0]
            return -(x[:size].sum() + y[:size].sum() + weight * whole)
        if kind == "euclidean":
            return -((x - y) ** 2).sum()
        if kind == "cosine":
            return x @ y / (x.norm() * y.norm())
        if kind == "hamming":
            return sum(torch.tanh(a) * torch.tanh(b) for a, b in zip(x, y, strict=True)) / len(x)
        return -(self.siamese_distance(x, y) + self.siamese_distance(y, x)) / 2

    def siamese_distance(self, x: Tensor, y: Tensor) -> Tensor:
        head = self.parameters.part("head")
        hidden = torch.relu(head.hidden @ torch.cat([x, y]) + head.hidden_bias)
        return (head.output @ hidden + head.output_bias)[0]


def length(x: Tensor) -> Tensor:
    """Of 0 the gradient is 0."""
    return torch.sqrt((x**2).sum()) if x.any() else x.sum() * 0


def unit(x: Tensor) -> Tensor:
    """Brought to length 1; 0 stays 0."""
    return x / length(x) if x.any() else x


def word_signs(word: int, dim: int) -> list[float]:
    """The bits of SplitMix64, seeded by the hash of a word, in plain integers."""
    out, mask = [], (1 << 64) - 1
    for block in range(1, dim // 64 + 1):
        state = (word + 0x9E3779B97F4A7C15 * block) & mask
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
        state ^= state >> 31
        for byte in state.to_bytes(8, "little"):
            out += [1.0 if byte >> bit & 1 else -1.0 for bit in range(7, -1, -1)]
    return out


def normalised(rows: Sequence[Tensor]) -> list[Tensor]:
    """Every column to mean 0 and variance 1 over the nodes of a graph."""
    mean = sum(rows, torch.zeros_like(rows[0])) / len(rows)
    variance = torch.zeros_like(mean)
    for row in rows:
        variance = variance + (row - mean) ** 2 / len(rows)
    return [(row - mean) / torch.sqrt(variance + 1e-5) for row in rows]


def softmax(scores: Sequence[Tensor]) -> list[Tensor]:
    """exp(s_j) / sum_j' exp(s_j'), shifted by the largest: far below it exp would underflow."""
    highest = max(s.item() for s in scores)
    raised = [torch.exp(s - highest) for s in scores]
    total = sum(raised)
    return [r / total for r in raised]


def leaky_relu(x: Tensor) -> Tensor:
    return x if x > 0 else 0.2 * x


def gru(from_input: Tensor, from_state: Tensor, h: Tensor) -> Tensor:
    """As in torch: gates r, z, n; the reset gate acts after the matrix product."""
    r_input, z_input, n_input = from_input.chunk(3)
    r_state, z_state, n_state = from_state.chunk(3)
    r = torch.sigmoid(r_input + r_state)
    z = torch.sigmoid(z_input + z_state)
    n = torch.tanh(n_input + r * n_state)
    return (1 - z) * n + z * h


def lstm(from_input: Tensor, from_state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """As in torch: gates i, f, g, o."""
    i, f, g, o = (from_input + from_state).chunk(4)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell
