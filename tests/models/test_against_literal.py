"""Every option of the family, on every path through the code, against the plain loops.

Values and the gradients of all parameters, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from graphkin.errors import GraphError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs import packing as packing_module
from graphkin.graphs import pair_groups as grouping_module
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models.kernels import attention_blocks as attention_module
from graphkin.models.kernels import dispatch as kernels_module
from graphkin.models.kernels import propagation as propagation_module
from tests.models.literal import LiteralModel, gru, lstm
from tests.models.samples import SHAPES, SMALL, make_model, random_pairs

PRECISION = 1e-9


class Case(NamedTuple):
    """A configuration, the batch it runs on, and T at inference where it differs."""

    options: tuple[tuple[str, Any], ...]
    shape: str = "uneven"
    directed: bool = False
    unrolled: int | None = None

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.from_dict({**SMALL, **dict(self.options)})

    def __str__(self) -> str:
        options = [f"{name}={value}" for name, value in self.options]
        extra = ["directed"] if self.directed else []
        extra += [f"unrolled={self.unrolled}"] if self.unrolled is not None else []
        return " ".join([self.shape, *extra, *options])


def case(
    shape: str = "uneven", directed: bool = False, unrolled: int | None = None, **options: Any
) -> Case:
    return Case(tuple(options.items()), shape, directed, unrolled)


DENSE = {"node_input": "dense", "node_input_size": 3}
TOKENS = {"node_input": "tokens", "node_input_size": 5}
DENSE_EDGES = {"edge_input": "dense", "edge_input_size": 2}
TYPED_EDGES = {"edge_input": "types", "edge_input_size": 3}

MESSAGE_OPTIONS: list[Case] = [
    *(case(shape) for shape in SHAPES),
    case(**DENSE),
    case(**TOKENS),
    case(**DENSE, **DENSE_EDGES),
    case(**DENSE, **TYPED_EDGES),
    case("bare", **DENSE, **DENSE_EDGES),
    *(case(**DENSE, node_update=kind) for kind in ("mlp", "rnn", "lstm")),
    *(case(**DENSE, message_aggregation=kind) for kind in ("mean", "max", "attention")),
    case(readout="nodes"),
    case("bare", readout="nodes", message_norm="graph", **DENSE),
    case(message_norm="graph"),
    *(case(shape, **DENSE, message_norm="graph") for shape in SHAPES),
    case(message_norm="graph", directed=True, reverse_messages="shared", **TYPED_EDGES),
    case(message_norm="graph", directed=True, reverse_messages="separate", shared=False, **TOKENS),
    *(
        case(**DENSE, message_norm="graph", message_aggregation=kind, node_update="mlp")
        for kind in ("mean", "max", "attention")
    ),
    # Where all nodes and edges start alike, the first step has a path of its own.
    case(steps=1),
    case(shared=False),
    case(steps=1, shared=False),
    case(directed=True),
    case(directed=True, reverse_messages="shared"),
    case(directed=True, reverse_messages="separate", shared=False),
    case(unrolled=5),
    case(**DENSE_EDGES),
    case(message_aggregation="mean", **DENSE_EDGES),
    case("even", message_aggregation="max"),
    *(case("bare", **DENSE, message_aggregation=kind) for kind in ("max", "attention")),
    case(**DENSE, shared=False),
    case(**DENSE, steps=0),
    case(**DENSE, steps=4),
    case(**DENSE, steps=1),
    case(directed=True, **DENSE),
    case(directed=True, reverse_messages="shared", **DENSE),
    case(directed=True, reverse_messages="separate", **DENSE),
    case(directed=True, reverse_messages="shared", **DENSE, **DENSE_EDGES),
    case(directed=True, reverse_messages="separate", **TOKENS, **TYPED_EDGES),
    case(**DENSE, similarity="cosine"),
    case(**DENSE, similarity="hamming"),
    # Several at once.
    case(
        directed=True,
        reverse_messages="separate",
        message_aggregation="max",
        shared=False,
        **TOKENS,
        **DENSE_EDGES,
    ),
    case(
        directed=True,
        reverse_messages="shared",
        message_aggregation="attention",
        node_update="lstm",
        similarity="hamming",
        steps=4,
        **DENSE,
        **TYPED_EDGES,
    ),
    case(
        directed=True,
        reverse_messages="shared",
        message_aggregation="mean",
        node_update="rnn",
        shared=False,
        **TOKENS,
        **TYPED_EDGES,
    ),
    case(
        directed=True,
        reverse_messages="separate",
        message_aggregation="mean",
        node_update="mlp",
        **DENSE,
        **DENSE_EDGES,
    ),
    case(
        directed=True,
        reverse_messages="separate",
        shared=False,
        similarity="cosine",
        **DENSE,
        **DENSE_EDGES,
    ),
    case("even", shared=False, node_update="lstm", **TOKENS, **TYPED_EDGES),
]

MATCHING_CASES = [
    *(
        example._replace(options=(("matching", True), *example.options))
        for example in MESSAGE_OPTIONS
    ),
    *(
        case(
            shape,
            matching=True,
            attention_similarity=similarity,
            attention_projections=projections,
            **DENSE,
        )
        for shape in ("uneven", "even", "lone")
        for similarity in ("euclidean", "dot", "cosine")
        for projections in (False, True)
    ),
    *(
        case(shape, matching=True, similarity="alignment", alignment_pool=pool, **DENSE)
        for shape in ("uneven", "even", "lone")
        for pool in ("sum", "mean")
    ),
    case(matching=True, similarity="alignment", message_norm="graph"),
    *(
        case(shape, matching=True, similarity="joint", readout=readout, embedder_norm=norm, **DENSE)
        for shape in ("uneven", "even", "lone")
        for readout, norm in (("gated", "none"), ("nodes", "graph"))
    ),
    *(
        case(
            matching=True,
            similarity="alignment",
            alignment_sharpness=3.0,
            attention_similarity=similarity,
            attention_projections=projections,
            **DENSE,
        )
        for similarity in ("euclidean", "dot", "cosine")
        for projections in (False, True)
    ),
    case(
        matching=True,
        similarity="alignment",
        attention_projections=True,
        shared=False,
        message_norm="graph",
        **DENSE,
    ),
    case(
        matching=True,
        attention_similarity="dot",
        shared=False,
        directed=True,
        reverse_messages="separate",
        **TOKENS,
        **TYPED_EDGES,
    ),
    case(
        matching=True,
        attention_similarity="cosine",
        attention_projections=True,
        shared=False,
        node_update="lstm",
        message_aggregation="attention",
        **DENSE,
        **TYPED_EDGES,
    ),
]

CONVOLUTION_CASES = [
    *(case(shape, propagation="convolution", **DENSE) for shape in SHAPES),
    case(propagation="convolution"),
    case(propagation="convolution", **TOKENS),
    case(propagation="convolution", shared=False, similarity="hamming", **DENSE),
    case(propagation="convolution", directed=True, **DENSE),
    case(propagation="convolution", directed=True, reverse_messages="shared", **DENSE),
    case(propagation="convolution", similarity="siamese", **DENSE),
    case(propagation="convolution", similarity="cosine", unrolled=5, **DENSE),
]

RESIDUAL_CASES = [
    *(case(shape, propagation="residual", readout="pooled", **DENSE) for shape in SHAPES),
    case(propagation="residual"),
    case(propagation="residual", shared=False, similarity="cosine", **TOKENS),
    case(propagation="residual", token_counts="log", **TOKENS),
    case(propagation="residual", directed=True, reverse_messages="separate", **DENSE),
    case(propagation="residual", node_degrees=True),
    case(propagation="residual", node_degrees=True, directed=True, **TOKENS),
    case(readout="pooled", message_norm="graph", token_counts="log", **TOKENS),
]

LATE: dict[str, Any] = {
    "matching": True,
    "propagation": "residual",
    "similarity": "late",
    # In four dimensions residual steps make all states parallel, and nothing is left to look at.
    "node_dim": 8,
}
SAYING: dict[str, Any] = {"word_dim": 128, "words_known": 9}

LATE_CASES = [
    *(case(shape, **LATE, **DENSE) for shape in SHAPES),
    *(case(shape, **LATE, **SAYING, **DENSE) for shape in SHAPES),
    case(**LATE, **SAYING),
    case(**LATE, **SAYING, steps=0),
    case(unrolled=3, **LATE, **SAYING, **TOKENS),
    case(
        directed=True,
        reverse_messages="separate",
        node_degrees=True,
        token_counts="log",
        shared=False,
        **LATE,
        **SAYING,
        **TOKENS,
    ),
]

EDITS: dict[str, Any] = {"matching": True, "similarity": "edits"}

EDIT_CASES = [
    *(case(shape, **EDITS, **DENSE) for shape in SHAPES),
    case(**EDITS),
    case(**EDITS, steps=0, **TOKENS),
    case(**EDITS, alignment_rounds=1, **TOKENS),
    case(**EDITS, alignment_pool="mean", target_scale=7.0, **DENSE),
    case(**EDITS, propagation="convolution", **DENSE),
    case(**EDITS, propagation="residual", node_degrees=True, shared=False, **TOKENS),
    case(unrolled=3, directed=True, reverse_messages="separate", **EDITS, **DENSE),
    case(**EDITS, message_norm="graph", node_update="mlp", **TOKENS),
]

UNROLLED = [
    case(unrolled=5, **DENSE),
    case(unrolled=0, **DENSE),
    case(unrolled=5, matching=True, **DENSE),
    case(unrolled=5, matching=True, similarity="alignment", message_norm="graph", **DENSE),
    case(unrolled=4, matching=True, node_update="lstm", **DENSE),
]

EMBEDDING_CASES = [
    *MESSAGE_OPTIONS,
    case(**DENSE, similarity="siamese"),
    *CONVOLUTION_CASES,
    *RESIDUAL_CASES,
]

ALL_CASES = [*EMBEDDING_CASES, *MATCHING_CASES, *LATE_CASES, *EDIT_CASES, *UNROLLED]


class Outcome(NamedTuple):
    """What a model computes for a batch, and the gradients of a loss on all of it."""

    scores: Tensor
    left: Tensor
    right: Tensor
    gradients: dict[str, Tensor]


def outcome(model: nn.Module, scores: Tensor, left: Tensor, right: Tensor) -> Outcome:
    """Gradients of a random combination of everything that the model puts out."""
    generator = torch.Generator().manual_seed(7)
    loss = sum(
        (values * torch.randn(values.shape, generator=generator, dtype=values.dtype)).sum()
        for values in (scores, left, right)
    )
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    return Outcome(
        scores.detach(), left.detach(), right.detach(), dict(zip(names, gradients, strict=True))
    )


def prepared(example: Case) -> tuple[GraphEmbedder | GraphMatcher, list[tuple[Graph, Graph]]]:
    return make_model(example.config), random_pairs(
        example.config, example.shape, directed=example.directed
    )


@cache
def by_the_letter(example: Case) -> Outcome:
    model, pairs = prepared(example)
    literal = LiteralModel(model)
    results = [literal.score(left, right, example.unrolled) for left, right in pairs]
    return outcome(model, *(torch.stack(list(values)) for values in zip(*results, strict=True)))


def as_implemented(example: Case) -> Outcome:
    model, pairs = prepared(example)
    output = model(PairBatch.pack(pairs), example.unrolled)
    return outcome(model, output.scores, output.left, output.right)


def assert_same(got: Outcome, expected: Outcome) -> None:
    for name in ("scores", "left", "right"):
        close(getattr(got, name), getattr(expected, name), name)
    for name, gradient in expected.gradients.items():
        close(got.gradients[name], gradient, f"gradient of {name}")


def close(got: Tensor, expected: Tensor, name: str) -> None:
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(
        got,
        expected,
        rtol=PRECISION,
        atol=PRECISION * scale,
        msg=lambda text: f"{name}: {text}",
    )


@pytest.fixture(autouse=True)
def unwritten_memory_is_nan() -> Iterator[None]:
    """So that a path which reads what nobody wrote cannot agree by luck."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (propagation_module, kernels_module):
        monkeypatch.setattr(module, "use_fused", lambda tensor: False)


@pytest.fixture
def sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention takes a row or two at a time."""
    monkeypatch.setattr(attention_module, "MAX_CELLS", 5)


@pytest.fixture
def coarsely_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs share one block of attention, however much of it is padding."""
    monkeypatch.setattr(grouping_module, "MAX_PADDING", 1.0)


@pytest.fixture
def finely_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of different shapes do not share a block of attention."""
    monkeypatch.setattr(grouping_module, "GROUP_OVERHEAD", 1)


@pytest.mark.parametrize("example", ALL_CASES, ids=str)
def test_default_path(example: Case) -> None:
    assert_same(as_implemented(example), by_the_letter(example))


@pytest.mark.parametrize("example", ALL_CASES, ids=str)
@pytest.mark.parametrize("frozen", [False, True], ids=["no_grad", "frozen"])
def test_without_gradients(example: Case, frozen: bool) -> None:
    """Where no backward pass can come, less is kept, and the values are the same."""
    model, pairs = prepared(example)
    model.requires_grad_(not frozen)
    with torch.set_grad_enabled(frozen):
        output = model(PairBatch.pack(pairs), example.unrolled)
    expected = by_the_letter(example)
    close(output.scores, expected.scores, "scores")
    close(output.left, expected.left, "left")
    close(output.right, expected.right, "right")


@pytest.mark.usefixtures("plain_torch")
@pytest.mark.parametrize("example", ALL_CASES, ids=str)
def test_plain_torch_path(example: Case) -> None:
    assert_same(as_implemented(example), by_the_letter(example))


@pytest.mark.usefixtures("sliced")
@pytest.mark.parametrize("example", MATCHING_CASES, ids=str)
def test_sliced_attention(example: Case) -> None:
    assert_same(as_implemented(example), by_the_letter(example))


@pytest.mark.usefixtures("sliced", "plain_torch")
@pytest.mark.parametrize("example", MATCHING_CASES, ids=str)
def test_sliced_attention_on_plain_torch(example: Case) -> None:
    assert_same(as_implemented(example), by_the_letter(example))


UNEVEN_MATCHING_CASES = [example for example in MATCHING_CASES if example.shape == "uneven"]


@pytest.mark.usefixtures("coarsely_grouped")
@pytest.mark.parametrize("example", UNEVEN_MATCHING_CASES, ids=str)
def test_padded_attention(example: Case) -> None:
    assert_one_padded_group(example)
    assert_same(as_implemented(example), by_the_letter(example))


@pytest.mark.usefixtures("coarsely_grouped", "sliced")
@pytest.mark.parametrize("example", UNEVEN_MATCHING_CASES, ids=str)
def test_padded_and_sliced_attention(example: Case) -> None:
    assert_one_padded_group(example)
    assert_same(as_implemented(example), by_the_letter(example))


def assert_one_padded_group(example: Case) -> None:
    """Padding on both sides, or the comparison is not about it."""
    _, pairs = prepared(example)
    (group,) = PairBatch.pack(pairs).groups
    assert group.row_sizes.min() < group.rows.shape[1]
    assert group.column_sizes.min() < group.columns.shape[1]


@pytest.mark.usefixtures("finely_grouped")
@pytest.mark.parametrize("example", UNEVEN_MATCHING_CASES, ids=str)
def test_many_groups_of_pairs(example: Case) -> None:
    _, pairs = prepared(example)
    assert len(PairBatch.pack(pairs).groups) > 1
    assert_same(as_implemented(example), by_the_letter(example))


@pytest.mark.parametrize("cells", [1, 40])
@pytest.mark.parametrize("example", [*LATE_CASES, *EDIT_CASES], ids=str)
def test_many_blocks_of_pairs_encoded_apart(
    example: Case, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing_module, "BLOCK_CELLS", cells)
    assert_same(as_implemented(example), by_the_letter(example))


@pytest.mark.parametrize(
    ("example", "fused"),
    [
        (case(), True),
        (case(**DENSE), True),
        (case(matching=True), True),
        (case(matching=True, attention_similarity="dot"), True),
        (case(matching=True, attention_similarity="cosine"), False),
        (case(node_update="lstm"), False),
        (case(message_aggregation="max"), False),
    ],
    ids=str,
)
def test_the_defaults_run_as_one_fused_function(example: Case, fused: bool) -> None:
    """Else the comparisons above would not be about the fused path at all."""
    model, pairs = prepared(example)
    waiting, names = [model(PairBatch.pack(pairs)).scores.grad_fn], set()
    while waiting:
        function = waiting.pop()
        names.add(function.name())
        waiting += [parent for parent, _ in function.next_functions if parent is not None]
    assert ("_PropagateBackward" in names) == fused


def test_every_parameter_of_every_case_has_a_gradient() -> None:
    """A comparison of zeros with zeros proves nothing."""
    for example in ALL_CASES:
        if example.shape == "bare" or 0 in (example.unrolled, example.config.steps):
            continue
        expected = by_the_letter(example)
        vanishing = {n for n, g in expected.gradients.items() if g.abs().max() < 1e-6}
        if example.config.node_input == "constant":  # equal nodes match, whatever the weights
            vanishing -= {"network.steps.0.update.match_weight", "edits.kind", "edits.mismatch"}
        if example.shape == "even":  # graphs of one size lose no node
            vanishing -= {"edits.removal", "edits.removal_bias"}
        assert not vanishing, f"{example}: {vanishing}"


@pytest.mark.parametrize("kind", ["gru", "lstm", "rnn"])
def test_recurrent_cells_are_those_of_torch(kind: str) -> None:
    """The loops above are only as good as their idea of a GRU."""
    torch.manual_seed(0)
    cell = {"gru": nn.GRUCell, "lstm": nn.LSTMCell, "rnn": nn.RNNCell}[kind](6, 4).double()
    x, h, memory = torch.randn(3, 6).double(), torch.randn(3, 4).double(), torch.randn(3, 4)
    memory = memory.double()
    from_input, from_state = x @ cell.weight_ih.T + cell.bias_ih, h @ cell.weight_hh.T
    from_state = from_state + cell.bias_hh
    for row in range(3):
        inputs = from_input[row], from_state[row]
        if kind == "gru":
            torch.testing.assert_close(gru(*inputs, h[row]), cell(x, h)[row])
        elif kind == "rnn":
            torch.testing.assert_close(torch.tanh(sum(inputs)), cell(x, h)[row])
        else:
            new, kept = lstm(*inputs, memory[row])
            expected = cell(x, (h, memory))
            torch.testing.assert_close(new, expected[0][row])
            torch.testing.assert_close(kept, expected[1][row])


def test_weights_may_be_frozen() -> None:
    """Fine-tuning of the aggregator alone gives it the same gradients as training of all."""
    example = case(matching=True, **DENSE)
    model, pairs = prepared(example)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("aggregator" in name)
    output = model(PairBatch.pack(pairs))
    trained = [p for p in model.parameters() if p.requires_grad]
    got = torch.autograd.grad(output.scores.sum(), trained)

    full, _ = prepared(example)
    scores = full(PairBatch.pack(pairs)).scores
    expected = [p for n, p in full.named_parameters() if "aggregator" in n]
    for ours, theirs in zip(got, torch.autograd.grad(scores.sum(), expected), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_graphs_may_take_part_in_several_pairs_of_an_embedder() -> None:
    example = case(**DENSE)
    model, pairs = prepared(example)
    batch = PairBatch.pack(pairs).graphs
    left, right = torch.tensor([0, 0, 3]), torch.tensor([1, 2, 3])
    output = model(PairBatch(batch, left, right))
    graphs = [graph for pair in pairs for graph in pair]
    literal = LiteralModel(model)
    for row, (i, j) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        expected = literal.score(graphs[i], graphs[j])[0]
        torch.testing.assert_close(output.scores[row], expected, rtol=PRECISION, atol=PRECISION)


def test_a_graph_without_partner_is_refused_by_a_matcher() -> None:
    """Its nodes would meet no attention, and so have no value."""
    config = case(matching=True, **DENSE).config
    packed = PairBatch.pack(random_pairs(config, "even")[:2]).graphs
    with pytest.raises(GraphError, match="exactly one pair"):
        make_model(config)(PairBatch(packed, torch.tensor([0]), torch.tensor([1])))
