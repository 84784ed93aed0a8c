"""SimHash: codes against plain loops, learning on a small corpus, and files."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given, settings

from graphkin.errors import ConfigError, FormatError, GraphError
from graphkin.graphs import Graph
from graphkin.learning.evaluation import pair_auc
from graphkin.models.codes import hamming_distances
from graphkin.research.baselines.simhash import learning as simhash_learning
from graphkin.research.baselines.simhash.features import KINDS, extract_features
from graphkin.research.baselines.simhash.simhash import SimHash
from graphkin.research.baselines.simhash.weights import RESOLUTION, FeatureWeights
from tests.research.baselines.small_programs import (
    literal_mixed,
    programs_and_orders,
    random_programs,
)


def some_weights(graphs: list[Graph], seed: int = 0) -> FeatureWeights:
    """Weights of their own for half the features of graphs."""
    rng = np.random.default_rng(seed)
    keys = np.unique(extract_features(graphs).keys)[::2]
    defaults, values = rng.normal(size=len(KINDS)), rng.normal(size=len(keys))
    return FeatureWeights(defaults.astype(np.float32), keys, values.astype(np.float32))


def literal_code(graph: Graph, weights: FeatureWeights, bits: int) -> list[int]:
    own = dict(zip(weights.keys.tolist(), weights.values.tolist(), strict=True))
    features = extract_features([graph])
    sums = [0.0] * bits
    for key, kind in zip(features.keys.tolist(), features.kinds.tolist(), strict=True):
        weight = own.get(key, float(weights.defaults[kind]))
        for bit in range(bits):
            word, position = divmod(bit, 64)
            byte, low = divmod(position, 8)
            vote = literal_mixed((key + word + 1) % 2**64) >> (8 * byte + 7 - low) & 1
            sums[bit] += weight if vote else -weight
    return [int(total > 0) for total in sums]


@pytest.mark.parametrize("bits", [8, 72, 128])
def test_codes_are_the_signs_of_weighted_votes(bits):
    graphs = random_programs(15, seed=4)
    model = SimHash(some_weights(graphs), bits)
    codes = model.codes(graphs)
    assert codes.shape == (15, bits // 8)
    assert codes.dtype == np.uint8
    expected = [literal_code(graph, model.weights, bits) for graph in graphs]
    assert np.unpackbits(codes, axis=1).tolist() == expected
    assert model.vectors(graphs).dtype == np.float32
    np.testing.assert_array_equal(model.vectors(graphs) > 0, np.array(expected, dtype=bool))


def test_scores_are_hamming_agreement():
    graphs = random_programs(12, seed=5)
    model = SimHash(some_weights(graphs))
    codes = model.codes(graphs)
    agreement = 1 - 2 * hamming_distances(codes, codes) / 128
    pairs = [(a, b) for a in graphs for b in graphs]
    np.testing.assert_array_equal(model.predict(pairs).reshape(12, 12), agreement)
    assert (np.diag(agreement) == 1).all()
    assert (agreement < 1).any()


def test_weights_are_whole_units():
    """So that sums are exact, and codes the same whatever the order of nodes."""
    graphs = random_programs(10, seed=4)
    weights, features = some_weights(graphs), extract_features(graphs)
    units = weights.units(features)
    assert (units == np.rint(units)).all()
    own = dict(zip(weights.keys.tolist(), weights.values.tolist(), strict=True))
    expected = [
        own.get(key, weights.defaults[kind])
        for key, kind in zip(features.keys.tolist(), features.kinds.tolist(), strict=True)
    ]
    np.testing.assert_allclose(units * RESOLUTION, expected, atol=RESOLUTION)


@given(programs_and_orders())
@settings(max_examples=100, deadline=None)
def test_numbering_of_nodes_does_not_matter(graph_and_order):
    graph, order = graph_and_order
    model = SimHash(some_weights([graph], seed=graph.num_nodes))
    codes = model.codes([graph, graph.permuted(order)])
    assert codes[0].tolist() == codes[1].tolist()


def test_more_graphs_than_a_block_and_none():
    graphs = random_programs(7, seed=6)
    codes = SimHash().codes(graphs * 300)
    np.testing.assert_array_equal(codes, np.tile(SimHash().codes(graphs), (300, 1)))
    assert SimHash().codes([]).shape == (0, 16)
    assert SimHash().predict([]).shape == (0,)
    assert SimHash().scores([], graphs).shape == (0, 7)


def noisy_functions(groups: range, seed: int) -> tuple[list[Graph], list[int]]:
    """Chains of blocks: two tell the function, from words that all functions share, and twelve
    are what the compiler put there, anew in each of four builds, from words of its own."""
    graphs, names = [], []
    for group in groups:
        telling = np.random.default_rng((1, group)).integers(20, size=(2, 5))
        for build in range(4):
            rng = np.random.default_rng((seed, group, build))
            blocks = [*telling, *rng.integers(100, 104, size=(12, 5))]
            rng.shuffle(blocks)
            edges = [(i, i + 1) for i in range(len(blocks) - 1)]
            bags = [block.tolist() for block in blocks]
            graphs.append(Graph(len(blocks), edges, directed=True, node_tokens=bags))
            names.append(group)
    return graphs, names


def held_out_auc(model: SimHash) -> float:
    graphs, names = noisy_functions(range(1000, 1040), seed=9)
    first, second = np.triu_indices(len(graphs), k=1)
    labels = np.where(np.array(names)[first] == np.array(names)[second], 1, -1)
    return pair_auc(model.scores(graphs, graphs)[first, second], labels)


def test_learning_helps_on_functions_never_seen():
    graphs, names = noisy_functions(range(400), seed=8)
    reports = []
    learned = SimHash.fit(
        graphs, names, steps=60, progress=lambda done, total: reports.append((done, total))
    )
    assert reports == [(step, 60) for step in range(1, 61)]
    plain, better = held_out_auc(SimHash()), held_out_auc(learned)
    assert plain < 0.8
    assert better > 0.95


def test_learning_depends_on_the_seed_alone():
    graphs, names = noisy_functions(range(30), seed=8)
    one, same, other = (SimHash.fit(graphs, names, seed=s, steps=5).weights for s in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    np.testing.assert_array_equal(one.defaults, same.defaults)
    assert (one.values != other.values).any()


def test_rare_features_share_the_weight_of_their_kind():
    graphs, names = noisy_functions(range(10), seed=8)
    weights = SimHash.fit(graphs, names, steps=3).weights
    features = extract_features(graphs)
    groups: dict[int, set[int]] = {}
    for key, owner in zip(features.keys.tolist(), features.owners.tolist(), strict=True):
        groups.setdefault(key, set()).add(names[owner])
    frequent = [key for key, actual in groups.items() if len(actual) >= simhash_learning.MIN_GROUPS]
    assert weights.keys.tolist() == sorted(frequent)
    assert 0 < len(frequent) < len(groups)
    assert (weights.defaults[KINDS.index("trigram")] != 1).all()


def test_pairs_are_of_one_group_and_of_two():
    groups = np.array([2, 0, 1, 0, 2, 2, 3])
    usable = np.array([True] * 5 + [False, True])
    sampler = simhash_learning._PairSampler.of(groups, usable)
    pairs, labels = sampler.draw(400, np.random.default_rng(0))
    same = groups[pairs[0]] == groups[pairs[1]]
    assert (same == (labels.numpy() == 1)).all()
    assert same.sum() == 200
    assert (pairs[0] != pairs[1]).all()
    assert {tuple(sorted(pair)) for pair in pairs[:, same].T.tolist()} == {(1, 3), (0, 4)}
    assert set(pairs.ravel().tolist()) == {0, 1, 2, 3, 4, 6}


def test_learning_sees_the_vectors_that_codes_come_from():

    graphs, names = noisy_functions(range(6), seed=8)
    features = extract_features(graphs)
    table = simhash_learning._Table.of(features, np.array(names))
    weights = torch.linspace(-1, 2, table.num_weights)
    chosen = np.array([0, 5, 17])
    vectors = table.vectors(features.offsets, chosen, weights, 128).numpy()
    expected = SimHash(table.named(weights)).vectors([graphs[i] for i in chosen])
    expected /= np.sqrt((expected**2).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(vectors, expected, atol=1e-4)


def test_what_is_loaded_is_what_was_saved(tmp_path):
    graphs, names = noisy_functions(range(8), seed=8)
    model = SimHash.fit(graphs, names, bits=64, steps=2)
    model.save(tmp_path / "model")
    loaded = SimHash.load(tmp_path / "model")
    assert loaded.bits == 64
    np.testing.assert_array_equal(loaded.weights.keys, model.weights.keys)
    np.testing.assert_array_equal(loaded.codes(graphs), model.codes(graphs))


def changed_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def changed_weights(folder, **changes):
    path = folder / "weights.safetensors"
    path.write_bytes(safetensors.numpy.save(safetensors.numpy.load(path.read_bytes()) | changes))


FLOATS = np.zeros(len(KINDS), dtype=np.float32)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "cannot read .*config.json"),
        (lambda f: (f / "config.json").write_text("{"), "is not valid JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "is not a graphkin-simhash file"),
        (lambda f: changed_config(f, format="other"), "is not a graphkin-simhash file"),
        (lambda f: changed_config(f, version=2), "holds .*'version': 2.*reads .*'version': 1"),
        (lambda f: changed_config(f, kinds=["a"]), "holds .*'kinds': \\['a'\\]"),
        (lambda f: changed_config(f, bits=None), "multiple of 8, got None"),
        (lambda f: changed_config(f, extra=1), "holds .*'extra'"),
        (lambda f: changed_config(f, bits=1.5), "bits must be a positive multiple of 8, got 1.5"),
        (lambda f: changed_config(f, bits=12), "bits must be a positive multiple of 8, got 12"),
        (lambda f: (f / "weights.safetensors").unlink(), "cannot read .*weights.safetensors"),
        (lambda f: (f / "weights.safetensors").write_bytes(b"\x08"), "is damaged"),
        (lambda f: changed_weights(f, more=FLOATS), "must hold defaults, keys and values"),
        (lambda f: changed_weights(f, defaults=FLOATS[:2]), "defaults must be float32 of shape"),
        (lambda f: changed_weights(f, values=FLOATS), "values must be float32 of shape"),
        (lambda f: changed_weights(f, defaults=FLOATS + np.inf), "not finite"),
        (
            lambda f: changed_weights(
                f, keys=np.array([3, 3], dtype=np.uint64), values=FLOATS[:2].copy()
            ),
            "keys must rise",
        ),
        (
            lambda f: changed_weights(f, keys=np.array(3, dtype=np.uint64)),
            "keys must be uint64 of shape",
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path, damage, message):
    SimHash(some_weights(random_programs(3, seed=7))).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(FormatError, match=message):
        SimHash.load(tmp_path)


@pytest.mark.parametrize("bits", [0, -8, 12, 1.5, True])
def test_impossible_bits_are_refused(bits):
    with pytest.raises(ConfigError, match=f"bits must be a positive multiple of 8, got {bits}"):
        SimHash(bits=bits)


def test_impossible_fits_are_refused():
    graphs = random_programs(4, seed=1)
    with pytest.raises(ConfigError, match=r"groups of shape \(3,\) for 4 graphs"):
        SimHash.fit(graphs, [1, 2, 3])
    with pytest.raises(ConfigError, match="4 graphs in 4 groups give no similar"):
        SimHash.fit(graphs, [1, 2, 3, 4])
    with pytest.raises(ConfigError, match="4 graphs in 1 groups give no similar or no dissimilar"):
        SimHash.fit(graphs, [1, 1, 1, 1])
    with pytest.raises(ConfigError, match="0 graphs in 0 groups"):
        SimHash.fit([], [])
    with pytest.raises(ConfigError, match="steps must be at least 1, got 0"):
        SimHash.fit(graphs, [1, 1, 2, 2], steps=0)
    with pytest.raises(GraphError, match="graph 1 is a str"):
        SimHash().codes([graphs[0], "graph"])
