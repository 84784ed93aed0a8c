"""What the tables look like: their rows, models and measures, by the names that files use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from graphkin.errors import ConfigError

Variant = Literal["paper", "ours"]
"""The paper's architecture, or one that we changed."""

TABLES = ("table1", "table2", "table3", "sweep", "attention", "ablations")
TARGETS = (*TABLES, "all")

PAIRS = ("pair_auc", "triplet_accuracy")
RETRIEVAL = ("recall_at_1", "recall_at_10", "mrr_at_10")
NEIGHBOUR = ("nearest_neighbour",)
METRIC_NAMES = {
    "pair_auc": "pair AUC",
    "triplet_accuracy": "triplet accuracy",
    "recall_at_1": "recall@1",
    "recall_at_10": "recall@10",
    "mrr_at_10": "MRR@10",
    "nearest_neighbour": "nearest is of its class",
    "attention_after_0": "after 0 steps",
    "attention_after_5": "after 5",
    "attention_after_9": "after 9",
}
MODEL_LABELS = {
    "wl": "WL kernel",
    "size": "size alone",
    "tfidf": "TF-IDF",
    "simhash": "SimHash",
    "gcn": "GCN",
    "siamese-gcn": "Siamese-GCN",
    "gnn": "GNN",
    "siamese-gnn": "Siamese-GNN",
    "gmn": "GMN",
    "gnn+gmn": "GNN, 20 reranked by GMN",
    "gnn-evidence": "GNN, with evidence",
    "gnn-evidence-codes": "GNN, with evidence, codes",
}
WITH_EVIDENCE, BY_CODES = "gnn-evidence", "gnn-evidence-codes"
"""An embedder that reads what functions say, and was never trained on ffmpeg: its vectors, and its
codes of 256 bits."""
OURS_ALONE = ("gnn+gmn", WITH_EVIDENCE, BY_CODES)
"""Models that the paper does not have."""
BASELINES = ("size", "wl", "tfidf", "simhash")
"""Models that need no training run."""
LEARNED = ("gcn", "siamese-gcn", "gnn", "siamese-gnn", "gmn")

TABLE1 = tuple(product((20, 50), (0.2, 0.5)))
TABLE3 = tuple(product((100, 200), (0.2, 0.5)))
EDIT_STEPS = (1, 2, 3, 4, 5)
FUNCTION_STEPS = (0, 1, 2, 3, 4, 5)
FEATURES = ("structure", "mnemonics")
MESH_SPLITS = ("class", "graph")
MESH_FOLDS = "COIL-DEL, split by class, ten folds"
ATTENTION_STEPS = (0, 5, 9)
"""After which attention is measured; the pictures show all of 0..9."""

K14, K23, K12 = "k_p=1 k_n=4", "k_p=2 k_n=3", "k_p=1 k_n=2"
TRAINED_K23 = "trained on k_p=2 k_n=3, tested on k_p=1 k_n=2"
CHAINS, ISOMORPHIC = "two isomorphic chains", "isomorphic pair"
DISTANCE1, DISTANCE2 = "edit distance 1", "edit distance 2"
CASES = (CHAINS, ISOMORPHIC, DISTANCE1, DISTANCE2)
BASE = "base: pairs, shared, GRU, Euclidean attention, rate 1e-3"
TRIPLETS, OWN, MLP = "triplets", "own parameters for each step", "MLP update"
DOT, SLOW = "dot-product attention", "learning rate 1e-4"
NO_NORM, NO_ALIGNMENT = "without normalised messages", "graph vectors, no alignment"
ABLATIONS = (BASE, TRIPLETS, OWN, MLP, DOT, SLOW, NO_NORM, NO_ALIGNMENT)


def edit_row(nodes: int, p: float) -> str:
    """The row of a distribution of random graphs."""
    return f"n={nodes} p={p}"


def function_row(protocol: str, negatives: str = "random negatives") -> str:
    """The row of a protocol on functions."""
    name = {"paper": "functions, paper's protocol", "clean": "functions, clean protocol"}[protocol]
    return name if negatives == "random negatives" else f"{name}, {negatives}"


def retrieval_row(pools: str) -> str:
    """The row of a search on functions, by the clean protocol."""
    return f"retrieval, {pools}"


def mesh_row(split: str) -> str:
    """The row of a split of COIL-DEL."""
    return f"COIL-DEL, split by {split}"


def sweep_row(data: str, steps: int) -> str:
    """The row of a number of propagation steps; ``data`` is ``edits`` or features of functions."""
    return f"{data} T={steps}" if data == "edits" else f"functions, {data} T={steps}"


RETRIEVAL_POOLS = ("pools of 100", "all functions")
HARDEST = ("gcc-O0", "clang-O3")
"""The two builds that differ most, by the endings of their names."""
HARDEST_POOLS = {
    100: "gcc-O0 to clang-O3, pools of 100",
    0: "gcc-O0 to clang-O3, all functions",
    1000: "gcc-O0 to clang-O3, pool of 1,000",
}
"""Size of a pool to what it is called; 0 takes all functions."""
SIZE_MATCHED = "size-matched negatives"


SWEEP_FOUND = {
    "structure": "It stays below, probably because it is joined by the cosine of vectors that were "
    "trained to be codes.",
    "mnemonics": "With one seed, differences of a point mean little.",
}
"""What the sweep over functions says of GMN and GNN, by features."""


@dataclass(frozen=True)
class TableLine:
    """A model in a row."""

    row: str
    model: str


@dataclass(frozen=True)
class Section:
    """A part of a table whose cells have the same measures."""

    table: str
    title: str
    lines: tuple[TableLine, ...]
    metrics: tuple[str, ...] = PAIRS
    digits: int = 1
    note: str = ""
    protocol: str | None = None
    prefix: str | None = None
    """Further rows that begin so, and were measured with these metrics, belong here too."""


def sections_of(target: str) -> list[Section]:
    """The sections of a table, or of all."""
    if target not in TARGETS:
        raise ConfigError(f"there is no {target!r} to reproduce; choose {', '.join(TARGETS)}")
    return [section for section in SECTIONS if target in ("all", section.table)]


def _lines(rows: Sequence[str], models: Sequence[str]) -> tuple[TableLine, ...]:
    return tuple(TableLine(row, model) for row, model in product(rows, models))


_FUNCTION_MODELS = (*BASELINES, *LEARNED, WITH_EVIDENCE, BY_CODES)

SECTIONS = (
    Section(
        "table1",
        "Table 1: graph edit distance, trained and tested on one distribution",
        _lines([edit_row(*distribution) for distribution in TABLE1], ("wl", "gnn", "gmn")),
        note="Ours at n=50 (GNN: at n=50, p=0.5) is one model for all distributions, trained on n "
        "in 20..50, p in 0.2..0.5; the others are trained on theirs, matchers from its weights.",
    ),
    Section(
        "table2",
        "Table 2, left: functions by the paper's protocol",
        _lines([function_row("paper")], _FUNCTION_MODELS),
        digits=2,
        protocol="paper",
        note="The paper's corpus has 7,940 functions of ffmpeg, ours about half as many; the WL "
        "kernel sees structure alone. Our GMN is a matcher joined with our GNN. With evidence, a "
        "model reads operations in place of mnemonics, and strings, imports, constants and offsets "
        "of fields. It was trained on other projects and never saw ffmpeg; the other learned "
        "models were trained on functions of ffmpeg. Its codes have 256 bits.",
    ),
    Section(
        "table2",
        "Table 2, left: functions by the paper's protocol, negatives matched in size",
        _lines([function_row("paper", SIZE_MATCHED)], _FUNCTION_MODELS),
        digits=2,
        protocol="paper",
    ),
    Section(
        "table2",
        "Table 2, left: functions by the clean protocol",
        _lines(
            [function_row("clean"), function_row("clean", SIZE_MATCHED)],
            _FUNCTION_MODELS,
        ),
        digits=2,
        protocol="clean",
    ),
    Section(
        "table2",
        "Functions: retrieval by the clean protocol",
        _lines(
            [retrieval_row(pools) for pools in (*RETRIEVAL_POOLS, *HARDEST_POOLS.values())],
            ("simhash", "gnn", "gmn", "gnn+gmn", WITH_EVIDENCE, BY_CODES),
        ),
        RETRIEVAL,
        protocol="clean",
        prefix="retrieval, ",
        note="All functions are the test functions that all builds have, one of each group of "
        "equal ones. A pool of 1,000 is these and others that nobody looks for: test and "
        "validation functions of fewer builds, then training functions. A dash stands for what "
        "was not measured.",
    ),
    Section(
        "table2",
        "Table 2, right: COIL-DEL",
        _lines([mesh_row(split) for split in MESH_SPLITS], LEARNED),
        digits=2,
        note="The paper does not say how it split; its values stand beside both.",
    ),
    Section(
        "table2",
        "COIL-DEL: every class tested once",
        _lines([MESH_FOLDS], ("gnn",)),
        digits=2,
        note="Ten models, each tested on ten other classes. A seed is the number of a fold; 0 is "
        "the one above. The deviation says how much the choice of ten classes decides.",
    ),
    Section(
        "table2",
        "COIL-DEL: the nearest graph",
        _lines(
            [mesh_row(split) for split in MESH_SPLITS],
            [model for model in LEARNED if model != "gmn"],
        ),
        NEIGHBOUR,
        note="By class, among all other test graphs; by graph, among the training graphs.",
    ),
    Section(
        "table3",
        "Table 3: trained on n in 20..50 and p in 0.2..0.5, tested on larger graphs",
        _lines([edit_row(*distribution) for distribution in TABLE3], ("wl", "gnn", "gmn")),
    ),
    Section(
        "table3",
        "Other numbers of edits, n in 20..50 and p in 0.2..0.5",
        _lines([K12, K14, K23, TRAINED_K23], ("gnn", "gmn")),
        note="Trained on k_p=1 k_n=2 but for the last row, where our GMN was trained on both, one "
        "after the other. The paper, in words: k_p=2 k_n=3 is harder, and a model trained on it is "
        "the better one on k_p=1 k_n=2 too.",
    ),
    Section(
        "sweep",
        "Propagation steps T: graph edit distance, n=20 p=0.2",
        _lines([sweep_row("edits", steps) for steps in EDIT_STEPS], ("gnn", "gmn")),
        note="The paper gives no values; it found more steps consistently better. All rows have "
        "the same short budget.",
    ),
    *(
        Section(
            "sweep",
            f"Propagation steps T: functions, {features}",
            _lines([sweep_row(features, steps) for steps in FUNCTION_STEPS], ("gnn", "gmn")),
            protocol="paper",
            note="The paper draws a figure without values: more steps are better, GMN is above "
            "GNN everywhere. Here a GNN is trained for 1,000 steps; a GMN begins with its weights, "
            "is trained for 1,500 steps, and joined with it. At T=0 it has no attention, and is "
            "the GNN trained further. " + SWEEP_FOUND[features],
        )
        for features in FEATURES
    ),
    Section(
        "attention",
        "Attention: what a node pays its true partner in the other graph",
        _lines(CASES, ("gmn",)),
        tuple(f"attention_after_{steps}" for steps in ATTENTION_STEPS),
        note="Mean over the nodes of both graphs; where a graph has symmetries, over all partners "
        "together. Evenly spread, attention is 10 a node. The paper shows pictures.",
    ),
    Section(
        "ablations",
        "Ablations: graph edit distance, n=20 p=0.2, equal short budgets",
        _lines(ABLATIONS, ("gmn",)),
        note="The paper, in words. Edit distance: pairs slightly better than triplets, shared "
        "parameters better more often than not. Functions: triplets slightly better, own "
        "parameters better, GRU better than MLP, the lower rate more stable.",
    ),
)
