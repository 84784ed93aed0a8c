"""Table 2 of the paper with evidence: an embedder of other projects on test functions of ffmpeg.

    python experiments/table2_evidence.py --corpus ffmpeg.graphs --evidence projects.graphs \\
        --embedder RUN [--results FOLDER]

The pairs, triplets and searches are those of every other model in the table: they are drawn from
the corpus of mnemonics, and each graph is then replaced by that of the same function, by file and
address, in a corpus with evidence. The embedder must be trained without ffmpeg:

    graphkin train projects --corpus projects.graphs --kind gnn --recipe strong --steps 1500 \\
        --seed 1 --output RUN --set 'task.validation=["c-ares","flac","jansson","pcre2",
        "libavcodec","libavutil","libswresample","libswscale"]'

Its codes are fitted to its vectors, as those that ship (``fit_codes.py``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from fit_codes import with_fitted_codes
from numpy.typing import NDArray

from graphkin.binaries.corpus import CorpusFunction, FunctionCorpus
from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.models import GraphEmbedder
from graphkin.research.reproduce.cells import fill
from graphkin.research.reproduce.measure import DataPaths, Tasks, measure
from graphkin.research.reproduce.plan.functions import table2_rows
from graphkin.research.reproduce.render.text_tables import to_markdown
from graphkin.research.reproduce.results import CHECKOUT, Measurement, Result, write_result
from graphkin.research.reproduce.run_experiment import versions
from graphkin.research.reproduce.table_layout import BY_CODES, WITH_EVIDENCE
from graphkin.research.tasks.functions.task import FunctionTask

NAME = "table2-functions-evidence"
COMMAND = "python experiments/table2_evidence.py --corpus CORPUS --evidence PROJECTS --embedder RUN"
Floats = NDArray[np.float32]
Features = Callable[[GraphEmbedder, Floats], Floats]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="ffmpeg, by graphkin extract")
    parser.add_argument(
        "--evidence",
        type=Path,
        required=True,
        help="the same files among others, by graphkin extract --evidence --min-blocks 1",
    )
    parser.add_argument("--embedder", type=Path, required=True, help="a run without ffmpeg")
    parser.add_argument("--results", type=Path, default=CHECKOUT, help="folder to write to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    evidence = FunctionCorpus.open(options.evidence)
    embedder = GraphEmbedder.from_pretrained(options.embedder)
    check_unseen(embedder, FunctionCorpus.open(options.corpus), evidence)
    embedder = with_fitted_codes(embedder, str(options.evidence))
    result = result_of(embedder, measured(embedder, DataPaths(corpus=options.corpus), evidence))
    write_result(result, options.results)
    print(to_markdown(fill("table2", [result])))


def check_unseen(embedder: GraphEmbedder, corpus: FunctionCorpus, evidence: FunctionCorpus) -> None:
    """Refuses an embedder that was trained on a file of the corpus that it is measured on."""
    task = (embedder.trained_on or {}).get("task", {})
    held_out = {*task.get("validation", ()), *task.get("test", ())}
    measured_files = {binary.file_hash for binary in corpus.binaries}
    projects = {item.build for item in evidence.binaries if item.file_hash in measured_files}
    if seen := projects - held_out:
        raise ConfigError(
            f"the embedder was trained on {', '.join(sorted(seen))}, which it would be measured "
            "on; name them in task.validation and train it again"
        )


def measured(
    embedder: GraphEmbedder, data: DataPaths, evidence: FunctionCorpus
) -> list[Measurement]:
    """The cells of the table, by vectors and by codes."""
    # The words of our other models, so that equal hashes of the data tell equal pairs.
    vocabulary = GraphEmbedder.from_pretrained("mnemonics").vocabulary
    assert vocabulary is not None
    tasks, twins = Tasks(data, {"words": vocabulary.words}), Twins(embedder, evidence)
    cells: list[Measurement] = []
    for row in table2_rows("gnn"):
        task = tasks[row.task]
        assert isinstance(task, FunctionTask)
        for model, features in ((WITH_EVIDENCE, cosine_features), (BY_CODES, code_features)):
            cells += measure(Products(twins, task, features), model, row, task)
    return cells


class Twins:
    """Vectors of functions, made from their graphs with evidence."""

    def __init__(self, embedder: GraphEmbedder, evidence: FunctionCorpus) -> None:
        self.embedder, self._evidence = embedder, evidence
        self._numbers = {
            (entry.binary.file_hash, entry.binary.part, entry.address): number
            for number, entry in enumerate(evidence.entries)
        }
        self._vectors: dict[int, Floats] = {}

    def number(self, function: CorpusFunction) -> int:
        """Where the corpus with evidence has the same function of the same file."""
        binary = function.binary
        key = binary.file_hash, binary.part, function.address
        if key not in self._numbers:
            raise ConfigError(
                f"{self._evidence.path} lacks {function.name} at {function.address:#x} of "
                f"{binary.path}; extract the same files with --evidence --min-blocks 1"
            )
        return self._numbers[key]

    def vectors(self, numbers: Sequence[int]) -> Floats:
        """(N, V) of graphs with evidence; each is encoded once."""
        if missing := list(dict.fromkeys(n for n in numbers if n not in self._vectors)):
            assert self.embedder.vocabulary is not None, "it reads functions"
            vocabulary = self.embedder.vocabulary
            graphs = [self._evidence.graph(number, vocabulary) for number in missing]
            self._vectors |= zip(missing, self.embedder.encode(graphs), strict=True)
        return np.stack([self._vectors[number] for number in numbers])


def cosine_features(embedder: GraphEmbedder, vectors: Floats) -> Floats:
    """(N, V) whose products are cosines."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    features: Floats = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return features


def code_features(embedder: GraphEmbedder, vectors: Floats) -> Floats:
    """(N, B) of 1 and -1, whose products tell how many bits of two codes are equal."""
    bits = np.unpackbits(embedder.codes_of(vectors), axis=1)
    return 2 * bits.astype(np.float32) - 1


class Products:
    """Scores graphs of a task by products of features of their twins."""

    def __init__(self, twins: Twins, task: FunctionTask, features: Features) -> None:
        self._twins, self._features = twins, features
        self._corpus = task.data.corpus
        # By identity: different functions may have equal graphs, and differ in what they say.
        graphs = task.graphs_of(range(len(self._corpus)))
        self._numbers = {id(graph): number for number, graph in enumerate(graphs)}

    def predict(self, pairs: Sequence[tuple[Graph, Graph]], /) -> Floats:
        """(P,) one score for each pair."""
        left, right = (self._of(side) for side in zip(*pairs, strict=True))
        return np.einsum("pf,pf->p", left, right)

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph], /) -> Floats:
        """(Q, P) the score of every query with every graph of a pool."""
        return self._of(queries) @ self._of(pool).T

    def _of(self, graphs: Sequence[Graph]) -> Floats:
        entries = (self._corpus.entry(self._numbers[id(graph)]) for graph in graphs)
        vectors = self._twins.vectors([self._twins.number(entry) for entry in entries])
        return self._features(self._twins.embedder, vectors)


def result_of(embedder: GraphEmbedder, cells: Sequence[Measurement]) -> Result:
    """The result, with how the embedder was trained."""
    record = embedder.trained_on or {}
    training = record.get("training", {})
    return Result(
        name=NAME,
        group=NAME,
        variant="ours",
        seed=training.get("seed"),
        command=COMMAND,
        cells=tuple(cells),
        steps=record.get("step"),
        config={
            "model": embedder.config.to_dict(),
            "training": training,
            "task": record.get("task", {}),
        },
        versions=versions(),
    )


if __name__ == "__main__":
    main()
