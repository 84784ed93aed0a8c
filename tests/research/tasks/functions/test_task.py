"""The task of functions: splits, protocols, batches, evaluation sets and pools."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs import Graph, PairBatch
from graphkin.models import ModelConfig
from graphkin.models.config import MODEL_NAMES
from graphkin.research.tasks.functions import task as functions
from graphkin.research.tasks.functions.task import FunctionTask, Protocol
from tests.function_samples import BUILDS, LEVEL_WORDS, body, record, records, write_corpus

SPLITS = ("training", "validation", "test")
PROTOCOLS = get_args(Protocol)


@pytest.fixture
def paper(corpus_path: Path) -> FunctionTask:
    return FunctionTask(str(corpus_path), evaluation_size=200)


@pytest.fixture
def clean(corpus_path: Path) -> FunctionTask:
    return FunctionTask(str(corpus_path), protocol="clean", evaluation_size=200)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with more functions, for what needs numbers."""
    path = tmp_path_factory.mktemp("large") / "corpus.graphs"
    write_corpus(path, records(300))
    return path


def keys(task: FunctionTask, split: str) -> set[Any]:
    return {item.key for item in task.classes(split)}


def owners(task: FunctionTask, *splits: str) -> dict[Graph, set[Any]]:
    """The functions that have each graph, as the model sees it."""
    having: dict[Graph, set[Any]] = {}
    for split in splits or SPLITS:
        for item in task.classes(split):
            for number in item.graphs.values():
                having.setdefault(task._graphs[number], set()).add((item.key, item.group))
    return having


def batch_key(batch: PairBatch) -> tuple[Any, ...]:
    graphs = batch.graphs
    labels = None if batch.labels is None else batch.labels.tolist()
    tokens = None if graphs.token_ids is None else graphs.token_ids.tolist()
    edges = graphs.incoming.owners.tolist(), graphs.incoming.neighbours.tolist()
    return labels, graphs.node_offsets.tolist(), edges, tokens


# --- Splits -------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_function_is_in_one_split(large: Path, protocol: Protocol) -> None:
    task = FunctionTask(str(large), protocol=protocol)
    actual = [keys(task, split) for split in SPLITS]
    assert sum(map(len, actual)) == len(set.union(*actual))
    expected = 299 - 2 * (protocol == "clean")  # f030 is not everywhere, two are of a header
    assert len(set.union(*actual)) == expected
    shares = np.array([len(each) for each in actual]) / expected
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.02)


def test_groups_are_never_divided(clean: FunctionTask) -> None:
    where: dict[int, set[str]] = {}
    for split in SPLITS:
        for item in clean.classes(split):
            where.setdefault(item.group, set()).add(split)
    assert all(len(splits) == 1 for splits in where.values())
    assert (
        Counter(item.group for split in SPLITS for item in clean.classes(split)).most_common(1)[0][
            1
        ]
        == 4
    )


def test_no_graph_is_in_two_splits(paper: FunctionTask, clean: FunctionTask) -> None:
    for task in (paper, clean):
        actual = [set(owners(task, split)) for split in SPLITS]
        assert not actual[0] & actual[1]
        assert not actual[0] & actual[2]
        assert not actual[1] & actual[2]


def test_splits_are_the_same_for_all_settings(large: Path) -> None:
    """A model that was trained by one protocol has not seen test functions of another."""
    base = FunctionTask(str(large))
    assert keys(FunctionTask(str(large), seed=7, features="structure"), "test") == keys(
        base, "test"
    )
    wide = FunctionTask(str(large), min_builds=2)
    clean = FunctionTask(str(large), protocol="clean")
    for split in SPLITS:
        assert keys(clean, split) <= keys(base, split) <= keys(wide, split)


def test_splits_hardly_depend_on_what_else_is_there(large: Path, tmp_path: Path) -> None:
    """The same functions in other builds, and half of them, are where they were."""
    write_corpus(tmp_path / "half", records(150, BUILDS[:2]))
    base, half = FunctionTask(str(large)), FunctionTask(str(tmp_path / "half"))
    training = keys(base, "training")
    assert len(keys(half, "test") & training) <= 3
    assert len(keys(half, "test")) == 15


def test_header_functions_are_out_of_the_clean_protocol(
    paper: FunctionTask, clean: FunctionTask
) -> None:
    for task, expected in ((paper, {"f000", "f001"}), (clean, set())):
        actual = {key.name for split in SPLITS for key in keys(task, split)}
        assert actual & {"f000", "f001"} == expected


def test_min_builds(corpus_path: Path) -> None:
    def names(least: int) -> set[str]:
        task = FunctionTask(str(corpus_path), min_builds=least)
        return {key.name for split in SPLITS for key in keys(task, split)}

    assert names(4) == names(0)
    assert names(3) - names(0) == {"f030"}
    with pytest.raises(ConfigError, match=r"0 functions in at least 5 builds.*lower min_builds"):
        names(5)


def test_an_unknown_split(paper: FunctionTask) -> None:
    with pytest.raises(ConfigError, match="'dev'"):
        paper.classes("dev")
    for call in (paper.evaluation_set, paper.evaluation_sets, paper.retrieval):
        with pytest.raises(ConfigError, match="'validation' or 'test', got 'training'"):
            call("training")  # type: ignore[arg-type]


# --- Vocabulary and features --------------------------------------------------------------


def test_the_vocabulary_is_of_the_training_functions(tmp_path: Path) -> None:
    """The mnemonics of the test functions are renamed, which moves no function."""
    made = records(40)
    write_corpus(tmp_path / "plain", made)
    hidden = keys(FunctionTask(str(tmp_path / "plain")), "test")
    names = {key.name for key in hidden}
    made = [
        r._replace(words=tuple(f"rare {word}" for word in r.words)) if r.name in names else r
        for r in made
    ]
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"))
    assert keys(task, "test") == hidden
    assert set(task.vocabulary.words) <= set(LEVEL_WORDS)
    tokens = {
        token
        for graph in owners(task, "test")
        if graph.node_tokens is not None
        for token in graph.node_tokens.ids.tolist()
    }
    assert tokens == {0}
    for graph in owners(task, "training"):
        assert graph.node_tokens is not None
        assert graph.node_tokens.ids.min() > 0


def test_the_most_frequent_words(paper: FunctionTask) -> None:
    corpus = FunctionCorpus.open(paper.corpus)
    counts: Counter[str] = Counter()
    for item in paper.classes("training"):
        for number in item.graphs.values():
            tokens = corpus.store[number].node_tokens
            assert tokens is not None
            counts.update(corpus.words.decode(token) for token in tokens.ids.tolist())
    order = sorted(counts, key=lambda word: (-counts[word], word))
    assert list(paper.vocabulary.words) == order
    small = replace(paper, vocabulary_size=3)
    assert list(small.vocabulary.words) == order[:3]
    assert len(small.vocabulary) == 4


def test_the_words_of_a_model_are_used(paper: FunctionTask) -> None:
    task = replace(paper, words=("ret", "nothing", "mov"))
    assert task.vocabulary.words == ("ret", "nothing", "mov")
    corpus = FunctionCorpus.open(paper.corpus)
    number = next(iter(task.classes("training")[0].graphs.values()))
    ours, stored = task._graphs[number].node_tokens, corpus.store[number].node_tokens
    assert ours is not None
    assert stored is not None
    expected = {"ret": 1, "mov": 3}
    assert ours.ids.tolist() == [
        expected.get(corpus.words.decode(token), 0) for token in stored.ids.tolist()
    ]
    assert replace(paper, words=["ret"]).words == ("ret",)  # type: ignore[arg-type]


def test_structure_has_no_tokens(paper: FunctionTask) -> None:
    task = replace(paper, features="structure")
    batch = task.batch(0, 4, "pairs")
    assert (batch.graphs.node_kind, batch.graphs.token_ids) == ("constant", None)
    both = task.evaluation_set("test"), paper.evaluation_set("test")
    for ours, theirs in zip(*(chain.from_iterable(each.pairs) for each in both), strict=True):
        assert (ours.num_nodes, ours.directed, ours.node_tokens) == (theirs.num_nodes, True, None)
        np.testing.assert_array_equal(ours.edges, theirs.edges)
    assert both[0].digest != both[1].digest


# --- Batches ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_a_batch_is_a_function_of_its_arguments(corpus_path: Path, mode: Any) -> None:
    arguments = [(step, size, rank, 2) for step in (0, 5, 40) for size in (4, 6) for rank in (0, 1)]
    seen = []
    for order in (arguments, arguments[::-1]):
        functions._chunk.cache_clear()
        task = FunctionTask(str(corpus_path), seed=3)
        keys_of_batches = {
            each: batch_key(task.batch(each[0], each[1], mode, rank=each[2], world=each[3]))
            for each in order
        }
        seen.append(keys_of_batches)
    assert seen[0] == seen[1]
    assert len({str(key) for key in seen[0].values()}) == len(arguments)
    other = FunctionTask(str(corpus_path), seed=4)
    assert batch_key(other.batch(0, 4, mode)) != batch_key(task.batch(0, 4, mode))


def graphs_in(batch: PairBatch) -> list[tuple[int, tuple[int, ...]]]:
    """Each graph by its size and tokens."""
    graphs = batch.graphs
    ends = graphs.node_offsets.tolist()
    assert graphs.token_ids is not None
    assert graphs.token_offsets is not None
    starts = graphs.token_offsets.tolist()
    tokens = graphs.token_ids.tolist()
    return [
        (stop - start, tuple(tokens[starts[start] : starts[stop]]))
        for start, stop in pairwise(ends)
    ]


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_ranks_share_the_joint_batch(paper: FunctionTask, mode: Any) -> None:
    each = 2 if mode == "pairs" else 4
    for step in (0, 33):
        joint = graphs_in(paper.batch(step, 8, mode))
        shares = [graphs_in(paper.batch(step, 8, mode, rank=rank, world=2)) for rank in (0, 1)]
        examples = [joint[start : start + each] for start in range(0, len(joint), each)]
        for rank in (0, 1):
            assert shares[rank] == list(chain.from_iterable(examples[rank::2]))


def test_every_rank_gets_examples(paper: FunctionTask) -> None:
    """Even where a batch has no more examples than there are ranks."""
    for step in range(32):
        sizes = [paper.batch(step, 5, "pairs", rank=r, world=5).num_pairs for r in range(5)]
        assert sizes == [1] * 5


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_labels_are_right(corpus_path: Path, protocol: Protocol) -> None:
    """And by the clean protocol no similar pair is of equal graphs."""
    task = FunctionTask(str(corpus_path), protocol=protocol)
    functions_of: dict[tuple[int, tuple[int, ...]], set[Any]] = {}
    for graph, who in owners(task, "training").items():
        assert graph.node_tokens is not None
        functions_of.setdefault(
            (graph.num_nodes, tuple(graph.node_tokens.ids.tolist())), set()
        ).update(who)
    counts: Counter[int] = Counter()
    for step in range(64):
        batch = task.batch(step, 10, "pairs")
        graphs = graphs_in(batch)
        assert batch.labels is not None
        for label, left, right in zip(
            batch.labels.tolist(), graphs[::2], graphs[1::2], strict=True
        ):
            counts[int(label)] += 1
            keys_left, keys_right = ({key for key, _ in functions_of[g]} for g in (left, right))
            if label > 0:
                assert keys_left & keys_right
                assert protocol == "paper" or left != right
            elif protocol == "clean":
                groups = [{group for _, group in functions_of[g]} for g in (left, right)]
                assert not groups[0] & groups[1]
    assert counts[1] == counts[-1] == 320


def test_triplets_are_right(clean: FunctionTask) -> None:
    groups = {
        (g.num_nodes, tuple(g.node_tokens.ids.tolist())): next(iter(who))[1]
        for g, who in owners(clean, "training").items()
        if g.node_tokens is not None
    }
    batch = clean.batch(2, 20, "triplets")
    assert batch.labels is None
    graphs = graphs_in(batch)
    for first, close, again, far in zip(*(graphs[i::4] for i in range(4)), strict=True):
        assert first == again
        assert groups[first] == groups[close]
        assert groups[first] != groups[far]


def test_batches_hold_about_as_many_nodes(tmp_path: Path) -> None:
    made = []
    rng = np.random.default_rng(0)
    for number in range(80):
        nodes = int(5 + np.exp(rng.normal(2.5, 1.2)))
        made += [
            record(f"f{number}", body(number, v, nodes), build=b) for v, b in enumerate(BUILDS)
        ]
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"))
    for mode in ("pairs", "triplets"):
        batches = [task.batch(step, 10, mode) for step in range(32)]  # type: ignore[arg-type]
        nodes_ = np.array([batch.graphs.num_nodes for batch in batches])
        counts = np.array([batch.num_pairs for batch in batches]) // (1 + (mode == "triplets"))
        assert counts.sum() == 320
        assert counts.min() < 10 < counts.max()
        assert nodes_.max() / nodes_.min() < 1.6


def test_graphs_that_are_too_large_are_left_out_of_training(paper: FunctionTask) -> None:
    limited = replace(paper, max_nodes=12)
    sizes = [
        np.diff(limited.batch(step, 10, "pairs").graphs.node_offsets.numpy()).max()
        for step in range(40)
    ]
    assert max(sizes) == 12
    assert limited.evaluation_set("test").digest == paper.evaluation_set("test").digest
    assert max(g.num_nodes for pair in limited.evaluation_set("test").pairs for g in pair) > 12
    for hard in (0.0, 0.5):
        with pytest.raises(ConfigError, match="too few"):
            replace(paper, max_nodes=4, hard_negatives=hard).batch(0, 4, "pairs")


def test_hard_negatives_are_harder(large: Path) -> None:
    """Dissimilar graphs are nearer in size and words; similar ones are as before."""

    def distances(share: float) -> tuple[float, float]:
        task = FunctionTask(str(large), hard_negatives=share)
        near, far = [], []
        for step in range(30):
            graphs = graphs_in(task.batch(step, 20, "triplets"))
            for first, close, _, distant in zip(*(graphs[i::4] for i in range(4)), strict=True):
                counts = [np.bincount(g[1], minlength=11) for g in (first, close, distant)]
                near.append(np.abs(counts[0] - counts[1]).sum() / counts[0].sum())
                far.append(np.abs(counts[0] - counts[2]).sum() / counts[0].sum())
        return float(np.mean(near)), float(np.median(far))

    (plain_near, plain_far), (hard_near, hard_far) = distances(0.0), distances(1.0)
    assert hard_far < 0.75 * plain_far
    assert hard_near == pytest.approx(plain_near, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((-1, 4, "pairs"), {}),
        ((0, 0, "pairs"), {}),
        ((0, 4, "couples"), {}),
        ((0, 4, "pairs"), {"rank": 1}),
        ((0, 4, "pairs"), {"rank": -1, "world": 2}),
        ((0, 4, "pairs"), {"rank": 0, "world": 5}),
    ],
)
def test_batches_that_cannot_be(
    paper: FunctionTask, arguments: tuple[Any, ...], options: dict[str, int]
) -> None:
    with pytest.raises(ConfigError, match=r"no batch|mode"):
        paper.batch(*arguments, **options)


# --- Evaluation sets ----------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("split", ["validation", "test"])
def test_evaluation_sets_hold_what_they_say(large: Path, protocol: Protocol, split: Any) -> None:
    task = FunctionTask(str(large), protocol=protocol, evaluation_size=200)
    actual = owners(task, split)
    sets = task.evaluation_sets(split)
    assert list(sets) == ["random negatives", "size-matched negatives"]
    for each in sets.values():
        assert len(each.pairs) == len(each.triplets) == 200
        assert each.labels.tolist() == [1, -1] * 100
        similar = [pair for pair, label in zip(each.pairs, each.labels, strict=True) if label > 0]
        dissimilar = [p for p, label in zip(each.pairs, each.labels, strict=True) if label < 0]
        similar += [(a, b) for a, b, _ in each.triplets]
        dissimilar += [(a, c) for a, _, c in each.triplets]
        for left, right in similar:
            assert {key for key, _ in actual[left]} & {key for key, _ in actual[right]}
            assert protocol == "paper" or left != right
        for left, right in dissimilar:
            if protocol == "clean":
                assert not {g for _, g in actual[left]} & {g for _, g in actual[right]}
            assert actual[left] != actual[right] or len(actual[left]) > 1
    assert task.evaluation_set(split).digest == sets["random negatives"].digest


def test_negatives_matched_in_size(large: Path) -> None:
    task = FunctionTask(str(large), evaluation_size=600, min_builds=2)
    matched = task.evaluation_sets("test")["size-matched negatives"].triplets
    ratios = np.array([abs(np.log(c.num_nodes / b.num_nodes)) for _, b, c in matched])
    assert np.median(ratios) <= np.log(1.1)
    assert ratios.mean() < 0.15
    loose = task.evaluation_set("test").triplets
    assert np.mean([abs(np.log(c.num_nodes / b.num_nodes)) for _, b, c in loose]) > 0.3


def test_evaluation_sets_are_fixed(paper: FunctionTask, clean: FunctionTask) -> None:
    """These hashes are part of published results: a change of them is a change of the task."""
    digests = {
        (task.protocol, split): [each.digest[:12] for each in task.evaluation_sets(split).values()]
        for task in (paper, clean)
        for split in ("validation", "test")
    }
    assert digests == PINNED
    for task in (paper, clean):
        other = replace(task, seed=9, hard_negatives=0.5, max_nodes=20)
        assert other.evaluation_set("test").digest == task.evaluation_set("test").digest


PINNED = {
    ("paper", "validation"): ["b5d34e394b9e", "4175c7663eca"],
    ("paper", "test"): ["66224bdbcea0", "28e5769e44d2"],
    ("clean", "validation"): ["139684f3be74", "79fa13aa0482"],
    ("clean", "test"): ["f1ade9f5e000", "f9815c64c570"],
}


def test_identical_pairs_are_counted(paper: FunctionTask) -> None:
    for split in SPLITS:
        classes = paper.classes(split)
        equal = sum(20 <= int(item.key.name[1:]) < 30 for item in classes)
        assert paper.identical_share(split) == pytest.approx(  # type: ignore[arg-type]
            equal / (6 * len(classes))
        )


def test_graphs_of_a_split(paper: FunctionTask) -> None:
    graphs, numbers = paper.graphs("training")
    classes = paper.classes("training")
    assert len(graphs) == len(numbers) == 4 * len(classes)
    for graph, number in zip(graphs, numbers.tolist(), strict=True):
        assert graph in [paper._graphs[g] for g in classes[number].graphs.values()]


# --- Retrieval ----------------------------------------------------------------------------


def place(task: FunctionTask, graph: Graph) -> set[tuple[str, str, int]]:
    """Function, build and group of a graph of the test split."""
    return {
        (item.key.name, build, item.group)
        for item in task.classes("test")
        for build, number in item.graphs.items()
        if task._graphs[number] is graph
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("pool", [0, 5, 13, 1000])
def test_pools(large: Path, protocol: Protocol, pool: int) -> None:
    task = FunctionTask(str(large), protocol=protocol, pool=pool)
    blocks = task.retrieval("test")
    available = len(task.classes("test"))
    assert {len(block.pool) for block in blocks} == {min(pool or available, available)} or (
        protocol == "clean" and len(blocks) == 1
    )
    used: set[str] = set()
    for block in blocks:
        queries = [next(iter(place(task, graph))) for graph in block.queries]
        answers = [next(iter(place(task, graph))) for graph in block.pool]
        assert [name for name, _, _ in queries] == [name for name, _, _ in answers]
        (queries_list,), (known,) = ({build for _, build, _ in each} for each in (queries, answers))
        assert queries_list != known
        assert len({group for _, _, group in queries}) == len(queries)
        names = {name for name, _, _ in queries}
        assert not names & used
        used |= names
        if protocol == "clean":
            assert all(q != a for q, a in zip(block.queries, block.pool, strict=True))
    again = FunctionTask(str(large), protocol=protocol, pool=pool, seed=5).retrieval("test")
    assert [b.queries for b in again] == [b.queries for b in blocks]


def test_one_function_of_a_group(tmp_path: Path) -> None:
    """Thirty functions, of which each shares a graph with the next: ten groups of three."""
    made = []
    for number in range(90):
        for variant, build in enumerate(BUILDS):
            same = variant == 0
            seed = number // 3 if same else 100 + number
            made.append(record(f"f{number}", body(seed, variant), build=build))
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"), protocol="clean", pool=0)
    (block,) = task.retrieval("test")
    assert len(task.classes("test")) == 9
    assert len(block.pool) == 3
    paper = FunctionTask(str(tmp_path / "c"), pool=0)
    assert len(paper.retrieval("test")[0].pool) == 9


def test_equal_graphs_are_no_queries_by_the_clean_protocol(tmp_path: Path) -> None:
    """Every second function is equal in both builds."""
    made = [
        record(f"f{n}", body(n, variant * (n % 2)), build=build)
        for n in range(200)
        for variant, build in enumerate(("gcc-O2", "gcc-O3"))
    ]
    write_corpus(tmp_path / "c", made)
    pools = {}
    for protocol in PROTOCOLS:
        task = FunctionTask(str(tmp_path / "c"), protocol=protocol, pool=0)
        (block,) = task.retrieval("test")
        pools[protocol] = len(block.pool)
        odd = sum(int(item.key.name[1:]) % 2 for item in task.classes("test"))
        equal = sum(q == a for q, a in zip(block.queries, block.pool, strict=True))
        assert equal == (20 - odd if protocol == "paper" else 0)
    assert pools == {"paper": 20, "clean": odd}


def test_functions_that_are_not_in_both_builds(tmp_path: Path) -> None:
    """Each function is in two of four builds: a pool takes those that fit."""
    made = []
    for number in range(400):
        for variant in (number % 4, (number // 4) % 4):
            made.append(record(f"f{number}", body(number, variant), build=BUILDS[variant]))
    made = list({(r.name, r.binary.build): r for r in made}.values())
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"), min_builds=2, pool=3)
    blocks = task.retrieval("test")
    assert {len(block.pool) for block in blocks} == {3}
    assert 3 * len(blocks) > len(task.classes("test")) / 2
    (most,) = replace(task, pool=1000).retrieval("test")
    assert 3 < len(most.pool) < 20


def test_pools_that_cannot_be(tmp_path: Path) -> None:
    made = [
        record(f"f{n}", body(n, v), build=b)
        for n in range(30)
        for v, b in enumerate((f"only{n}-a", f"only{n}-b"))
    ]
    write_corpus(tmp_path / "c", made)
    task = FunctionTask(str(tmp_path / "c"), min_builds=2, pool=100)
    with pytest.raises(ConfigError, match="no two builds share two test functions"):
        task.retrieval("test")


# --- Description and settings -------------------------------------------------------------


def test_the_description_names_data_and_not_places(corpus_path: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus_path, tmp_path / "elsewhere")
    here, there = (FunctionTask(str(path)) for path in (corpus_path, tmp_path / "elsewhere"))
    described = here.describe()
    assert described == there.describe()
    assert str(corpus_path) not in json.dumps(described)
    assert described["corpus"] == FunctionCorpus.open(corpus_path).digest()
    assert described["protocol"] == "paper"
    assert json.loads(json.dumps(described)) == described
    assert replace(here, words=here.vocabulary.words).describe() == described
    assert replace(here, words=("mov",)).describe() != described


def test_a_corpus_that_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before under the same name does not come back."""
    monkeypatch.chdir(tmp_path)
    described = []
    for functions_ in (40, 50):
        write_corpus(tmp_path / "c", records(functions_))
        task = FunctionTask("c")
        described.append((task.describe(), batch_key(task.batch(0, 4, "pairs"))))
        assert sum(len(task.classes(split)) for split in SPLITS) == functions_ - 1
        shutil.rmtree(tmp_path / "c")
    assert described[0][0] != described[1][0]
    assert described[0][1] != described[1][1]


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "dirty"},
        {"features": "bytes"},
        {"min_builds": -1},
        {"min_builds": 1.5},
        {"vocabulary_size": -1},
        {"max_nodes": "many"},
        {"hard_negatives": 1.1},
        {"hard_negatives": float("nan")},
        {"seed": -1},
        {"evaluation_size": 1},
        {"pool": -1},
        {"words": 3},
        {"words": "mov"},
        {"words": [1, 2]},
    ],
    ids=str,
)
def test_settings_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        FunctionTask("anywhere", **options)


def test_corpora_that_are_too_small(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="graphkin extract"):
        FunctionTask(str(tmp_path / "absent")).batch(0, 4, "pairs")
    write_corpus(tmp_path / "one", records(60, ["gcc-O2"]))
    with pytest.raises(ConfigError, match="0 functions in at least 2 builds"):
        FunctionTask(str(tmp_path / "one")).batch(0, 4, "pairs")
    write_corpus(tmp_path / "few", records(8))
    with pytest.raises(ConfigError, match="8 functions in at least 4 builds, too few to split"):
        FunctionTask(str(tmp_path / "few")).evaluation_set("test")
    write_corpus(tmp_path / "none", [])
    with pytest.raises(ConfigError, match="0 functions"):
        FunctionTask(str(tmp_path / "none")).describe()


@pytest.mark.parametrize("name", sorted(MODEL_NAMES.keys() - {"late"}))
@pytest.mark.parametrize("features", ["mnemonics", "structure"])
def test_recipes_fit_their_models(paper: FunctionTask, name: str, features: Any) -> None:
    from graphkin.learning.training import TrainConfig
    from graphkin.models import build_model

    task = replace(paper, features=features)
    recipe = task.recipe(name)
    config = ModelConfig.named(name, **recipe.model)
    TrainConfig.from_dict(dict(recipe.training))
    with torch.no_grad():
        output = build_model(config, 0)(task.batch(0, 3, "pairs"))
    assert output.scores.isfinite().all()
    assert recipe.vocabulary == (task.vocabulary if features == "mnemonics" else None)
    with pytest.raises(ConfigError, match="unknown recipe 'weak'; choose one of paper, strong"):
        task.recipe(name, "weak")
