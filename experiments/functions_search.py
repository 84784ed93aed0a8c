"""Search and rerank on functions that no model has seen; and the model that ships with graphkin.

    python experiments/functions_search.py --corpus corpus.graphs --embedder runs/embedder \\
        --matcher runs/matcher --output runs/functions

fits the calibration on validation functions, half of which the searched library holds, puts
embedder, matcher and calibration into ``--output``, and measures on test functions: through
libraries made for it, recall at 1 and MRR at 10, by codes alone and reranked, in pools of 100 and
of all functions, and from gcc -O0 to clang -O3; how often a best hit of some probability is right;
and pairs and triplets, also of matcher and embedder joined. The result is also written to
``experiments/results/functions-search.json``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from bundle_functions import bundled_functions

from graphkin import Graph, GraphEmbedder, GraphMatcher, Library
from graphkin._support.files import write_atomically
from graphkin._support.progress import counter
from graphkin.learning.evaluation import evaluate
from graphkin.learning.reliability import fit_calibration
from graphkin.learning.task import RetrievalPool
from graphkin.library.code_distance import features_of
from graphkin.library.models import CALIBRATION_FILE, EMBEDDER, MATCHER, SearchModel
from graphkin.models import load_model
from graphkin.models.calibration import Calibration, Logistic
from graphkin.models.joining import join
from graphkin.models.saving import WEIGHTS_FILE
from graphkin.research.reproduce.table_layout import HARDEST, HARDEST_POOLS
from graphkin.research.tasks.functions.pools import build_named, pools_between
from graphkin.research.tasks.functions.task import FunctionTask
from graphkin.results.document import Hit

RESULT = Path(__file__).parent / "results" / "functions-search.json"
PACKAGES = ("graphkin", "numpy", "torch", "scikit-learn", "faiss-cpu")
CANDIDATES = 20
"""Of each query, for the calibration: what a scan reranks."""
BINS = 10


@dataclass(frozen=True)
class Examples:
    """Candidates that searches found: are they the function that was looked for?"""

    features: np.ndarray
    """(N, 4)"""
    scores: np.ndarray
    """(N,) of the matcher."""
    labels: np.ndarray
    """(N,) whether they are."""
    numbers: np.ndarray
    """(N,) of their queries."""
    pool: int
    queries: int

    @property
    def matched(self) -> np.ndarray:
        """(N, 5) features and scores."""
        return np.column_stack([self.features, self.scores])

    def best(self, probabilities: np.ndarray) -> np.ndarray:
        """(Q,) the places of the likeliest candidate of each query."""
        order = np.lexsort([-probabilities, self.numbers])
        return order[np.unique(self.numbers[order], return_index=True)[1]]


def fitted(model: Logistic, features: np.ndarray, examples: Examples) -> Logistic:
    """Probabilities for the best hit of each query, by the order that a model gives.

    The order stays, and the probabilities are right on those hits (Platt scaling).
    """
    best = examples.best(model(features))
    sums = features[best] @ np.array(model.weights) + model.bias
    line = Logistic.fit(sums[:, None], examples.labels[best])
    (slope,) = line.weights
    return Logistic(tuple(slope * w for w in model.weights), slope * model.bias + line.bias)


def one_build_each(
    task: FunctionTask, split: str, rng: np.random.Generator
) -> list[tuple[int, Graph, Graph]]:
    """(group, query, candidate) of each group of a split: two builds, whose graphs may be equal."""
    chosen = []
    seen: set[int] = set()
    for item in task.classes(split):
        if item.group not in seen:
            seen.add(item.group)
            query, answer = rng.permutation(list(item.graphs.values()))[:2].tolist()
            chosen.append((item.group, *task.graphs_of([query, answer])))
    return chosen


def examples(model: SearchModel, task: FunctionTask, split: str, seed: int) -> Examples:
    """Searches for every function of a split in a library that holds every second one of them.

    The others of the library are training functions, one build of each.
    """
    rng = np.random.default_rng(seed)
    queries, known = (one_build_each(task, name, rng) for name in (split, "training"))
    pool = [(group, graph) for group, _, graph in known]
    pool += [(group, graph) for number, (group, _, graph) in enumerate(queries) if number % 2]
    with TemporaryDirectory() as folder, Library.create(Path(folder) / "l.kin", model) as index:
        index.add([g for _, g in pool], [{"function": str(group)} for group, _ in pool])
        with counter(f"calibrating on {split}") as progress:
            hits_of_each = index.search_many(
                [query for _, query, _ in queries],
                CANDIDATES,
                rerank=CANDIDATES,
                progress=progress,
            )
    rows, scores, labels, numbers = [], [], [], []
    for number, ((group, query, _), hits) in enumerate(zip(queries, hits_of_each, strict=True)):
        distances = np.array([hit.distance for hit in hits], dtype=np.float32)
        others = [(hit.blocks, hit.graph_hash) for hit in hits]
        rows.append(features_of(model.space, query, others, distances))
        scores += [hit.score for hit in hits]
        labels += [hit.function == str(group) for hit in hits]
        numbers += [number] * len(hits)
    columns = [np.concatenate(rows), *map(np.array, (scores, labels, numbers))]
    return Examples(*columns, pool=len(pool), queries=len(queries))


def reliability(probabilities: np.ndarray, examples: Examples) -> dict[str, Any]:
    """How far the probabilities of best hits are from the share that is right, by bins."""
    best = examples.best(probabilities)
    probabilities, labels = probabilities[best], examples.labels[best]
    places = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    bins = []
    for place in range(BINS):
        chosen = places == place
        if chosen.any():
            said, right = float(probabilities[chosen].mean()), float(labels[chosen].mean())
            bins.append({"count": int(chosen.sum()), "said": said, "right": right})
    error = sum(part["count"] * abs(part["said"] - part["right"]) for part in bins) / len(labels)
    return {
        "queries": examples.queries,
        "pool": examples.pool,
        "right": float(labels.mean()),
        "expected_calibration_error": error,
        "brier": float(np.square(probabilities - labels).mean()),
        "bins": bins,
    }


def pools(task: FunctionTask) -> dict[str, list[RetrievalPool]]:
    """Test functions to look for, and what to look for them in."""
    pools = {
        "pools of 100": replace(task, pool=100).retrieval("test"),
        "all functions": replace(task, pool=0).retrieval("test"),
    }
    query_build, pool_build = (build_named(task, name) for name in HARDEST)
    if query_build is not None and pool_build is not None:
        for size, name in HARDEST_POOLS.items():
            pools[name] = pools_between(replace(task, pool=size), "test", query_build, pool_build)
    return pools


def ranks(hits_of_each: Sequence[Sequence[Hit]], reranked: bool) -> np.ndarray:
    """(Q,) place of the right hit, from 1; what ties with it counts as ahead."""
    positions = []
    for number, hits in enumerate(hits_of_each):
        keys = [-(hit.probability or 0.0) if reranked else hit.distance for hit in hits]
        own = next(
            (key for key, hit in zip(keys, hits, strict=True) if hit.function == str(number)),
            np.inf,
        )
        positions.append(sum(key <= own for key in keys) if own < np.inf else np.inf)
    return np.array(positions, dtype=np.float64)


def search_quality(
    model: SearchModel, blocks: Sequence[RetrievalPool], rerank: int, name: str
) -> dict[str, Any]:
    """Recall at 1 and MRR at 10, by codes and reranked, over libraries of these pools."""
    before, after = [], []
    with counter(f"searching {name}, rerank {rerank}") as progress:
        for done, block in enumerate(blocks):
            with (
                TemporaryDirectory() as folder,
                Library.create(Path(folder) / "l.kin", model) as index,
            ):
                numbers = [{"function": str(number)} for number in range(len(block.pool))]
                index.add(block.pool, numbers)
                count = len(block.pool)
                before.append(ranks(index.search_many(block.queries, count), reranked=False))
                hits = index.search_many(block.queries, rerank, rerank=rerank)
                after.append(ranks(hits, reranked=True))
            progress(done + 1, len(blocks))
    return {
        "queries": sum(len(block.queries) for block in blocks),
        "pool": max(len(block.pool) for block in blocks),
        "rerank": rerank,
        "codes": retrieval(np.concatenate(before)),
        "reranked": retrieval(np.concatenate(after)),
    }


def retrieval(places: np.ndarray) -> dict[str, float]:
    return {
        "recall_at_1": float((places == 1).mean()),
        "mrr_at_10": float(np.where(places <= 10, 1 / places, 0).mean()),
    }


def pair_scores(model: Any, task: FunctionTask) -> dict[str, Any]:
    """Pair AUC and triplet accuracy by both protocols."""
    measured = {}
    for protocol in ("paper", "clean"):
        sets = replace(task, protocol=protocol, min_builds=0).evaluation_sets("test")
        for name, evaluation_set in sets.items():
            measured[f"{protocol}, {name}"] = {
                "data": evaluation_set.digest,
                "metrics": evaluate(model, evaluation_set),
            }
    return measured


def both(metrics: dict[str, float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in metrics.values())


def table(measured: dict[str, Any]) -> str:
    lines = [
        "| looked for in | pool | rerank | recall@1, codes | reranked | MRR@10, codes | reranked |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in measured["search"].items():
        for one in rows:
            cells = [
                f"{100 * one[side][metric]:.1f}"
                for metric in ("recall_at_1", "mrr_at_10")
                for side in ("codes", "reranked")
            ]
            lines.append(f"| {name} | {one['pool']} | {one['rerank']} | {' | '.join(cells)} |")
    sides = list(measured["pairs"])
    lines += [
        "",
        f"| pairs, triplets of test functions | {' | '.join(sides)} |",
        "|---|---|---|---|",
    ]
    for name in measured["pairs"]["embedder"]:
        metrics = [measured["pairs"][side][name]["metrics"] for side in sides]
        lines.append(f"| {name} | {' | '.join(map(both, metrics))} |")
    small = (both(measured["bundled"][side]) for side in sides)
    lines.append(f"| 150 small functions, two builds each | {' | '.join(small)} |")
    for name, one in measured["calibration"].items():
        error, brier = one["expected_calibration_error"], one["brier"]
        lines += ["", f"Calibration {name}: expected error {error:.3f}, Brier score {brier:.3f}"]
        lines += [
            f"- said {row['said']:.2f}, right {row['right']:.2f} ({row['count']:,} queries)"
            for row in one["bins"]
        ]
    return "\n".join(lines)


LIMITS = """\
- Trained on ffmpeg alone, built by gcc 12 and clang 14 for x86-64. On other code it works less
  well; on other processors it sees mnemonics that it does not know.
- Functions of fewer than 5 basic blocks were not part of training, and tell little.
- Probabilities are those of the best hit, in a library of the size named above. In a larger one
  more functions look alike by chance.
- A hit says that the code is kin, not that an error is still in it: a patched function looks much
  like a vulnerable one."""


NOTE = """
A search orders its candidates by the matcher's score, the distance of codes and the sizes of the
graphs together. `predict(..., probability=True)` is a logistic of one model's score, fitted on
validation pairs of the clean protocol, as many similar as dissimilar.

Joined is `matcher.joined(embedder, {weight:.2f})`: the matcher with the distance of the embedder's
vectors added, by a weight that is fitted on the same pairs. It is the best of the three on pairs. A
search does without it: it orders by the codes as well, and need not embed every candidate again.
For probabilities it needs a calibration of its own, by `graphkin.learning.reliability`.
"""


def card(measured: dict[str, Any]) -> str:
    """The model card."""
    tried = measured["calibration"]["reranked"]
    return f"""\
# functions

An embedder (128-bit codes) and a matcher for functions of x86-64 binaries: control-flow graphs
whose nodes are basic blocks with their mnemonics. Is this the same function, compiled by another
compiler or at another level?

## Command

```sh
graphkin extract ffmpeg-5.1.9 -o corpus.graphs
graphkin train functions --corpus corpus.graphs --kind gnn --recipe strong --steps 10000 \\
    --set model.message_norm=graph --set task.min_builds=3 --output runs/embedder
graphkin train functions --corpus corpus.graphs --kind gmn --start-from runs/embedder/model \\
    --mode pairs --batch-size 20 --steps 12000 --hard-negatives 0.3 --set task.min_builds=3 \\
    --set task.max_nodes=300 --set model.similarity=alignment --set model.alignment_pool=mean \\
    --set model.message_norm=none --set train.loss=margin --set train.margin=0.5 \\
    --set train.learning_rate=5e-4 --set train.evaluate_every=1000 --output runs/matcher
python experiments/functions_search.py --corpus corpus.graphs --embedder runs/embedder \\
    --matcher runs/matcher --output src/graphkin/models/shipped/functions
```

The cards in `embedder/` and `matcher/` have every setting.

## Seed

{measured["seed"]}, one run of each.

## Data

ffmpeg 5.1.9 (libavcodec, libavutil, libswresample, libswscale) by gcc 12 and clang 14 at -O0 to
-O3. SHA-256 of the corpus: `{measured["corpus"]}`. Training functions, four fifths of those in at
least three builds; the calibrations were fitted on validation functions. SHA-256 of the weights:
embedder `{measured["hashes"][EMBEDDER]}`,
matcher `{measured["hashes"][MATCHER]}`.

## Scores

On test functions, in per cent; a tie counts against the model. The calibration was tried on
searches for {tried["queries"]} test functions in a library of {tried["pool"]:,}, which held half of
them.

{table(measured)}
{NOTE.format(weight=measured["join_weight"])}
## Limits

{LIMITS}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--embedder", type=Path, required=True)
    parser.add_argument("--matcher", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit-only", action="store_true", help="leave the test functions alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    embedder, matcher = load_model(options.embedder), load_model(options.matcher)
    assert isinstance(embedder, GraphEmbedder)
    assert isinstance(matcher, GraphMatcher)
    assert embedder.vocabulary is not None
    task = FunctionTask(
        str(options.corpus), protocol="clean", min_builds=2, words=embedder.vocabulary.words
    )
    plain = SearchModel.of(embedder, matcher, name="functions")
    seen = examples(plain, task, "validation", options.seed)
    calibration = Calibration(
        distance=fitted(Logistic.fit(seen.features, seen.labels), seen.features, seen),
        matched=fitted(Logistic.fit(seen.matched, seen.labels), seen.matched, seen),
        pool=seen.pool,
        queries=seen.queries,
        data=task.data.digest,
    )
    pairs = replace(task, min_builds=0).evaluation_set("validation")
    for member in (embedder, matcher):
        member.calibration = fit_calibration(member, pairs)
    embedder.save_pretrained(options.output / EMBEDDER)
    matcher.save_pretrained(options.output / MATCHER)
    write_atomically(options.output / CALIBRATION_FILE, calibration.to_json().encode())
    if options.fit_only:
        return
    model = SearchModel.of(embedder, matcher, calibration, name="functions")
    tested = examples(model, task, "test", options.seed)
    whole = replace(task, min_builds=0)
    with counter("joining matcher and embedder") as progress:
        joined = join(matcher, embedder, pairs.pairs, pairs.labels, progress=progress)
    models = {"embedder": embedder, "matcher": matcher, "joined": joined}
    measured: dict[str, Any] = {
        "corpus": task.data.digest,
        "seed": options.seed,
        "hashes": {
            part: hashlib.sha256((options.output / part / WEIGHTS_FILE).read_bytes()).hexdigest()
            for part in (EMBEDDER, MATCHER)
        },
        "search": {
            name: [search_quality(model, blocks, rerank, name) for rerank in (20, 100)]
            for name, blocks in pools(whole).items()
        },
        "pairs": {name: pair_scores(member, whole) for name, member in models.items()},
        "bundled": {
            name: evaluate(member, bundled_functions(embedder.vocabulary))
            for name, member in models.items()
        },
        "join_weight": float(joined.head.weight),
        "calibration": {
            "by codes": reliability(calibration.distance(tested.features), tested),
            "reranked": reliability(calibration.matched(tested.matched), tested),
        },
        "versions": {name: version(name) for name in PACKAGES},
        "machine": platform.processor() or platform.machine(),
    }
    write_atomically(options.output / "README.md", card(measured).encode())
    write_atomically(RESULT, json.dumps(measured, indent=1).encode())
    print(table(measured))


if __name__ == "__main__":
    main()
