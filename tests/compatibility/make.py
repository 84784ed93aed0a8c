"""Writes the files of a version that later ones must open: ``python -m tests.compatibility.make``.

Run once for a version that is released; what is there is never written again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from graphkin import GraphEmbedder, Library, ModelConfig
from graphkin.binaries import samples
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.binaries.extraction import extract
from graphkin.learning.training.config import TrainConfig
from graphkin.learning.training.log import StepReport
from graphkin.learning.training.loop import train
from graphkin.library.indexing.index import index_paths
from graphkin.research.tasks.edits import EditTask
from tests.library.sample_models import evidence_embedder, ranking_model

HERE = Path(__file__).parent
VERSION = "0.1"
KNOWN = ["gcc-O2/libkinproto.so"]
TASK = EditTask(nodes=(8, 8), p=(0.3, 0.3), evaluation_size=10)
COURSE = TrainConfig(steps=4, batch_size=4, evaluate_every=2, report_every=1)


def main() -> None:
    folder = HERE / VERSION
    if folder.exists():
        sys.exit(f"{folder} is there")
    folder.mkdir()
    # Names of files are stored, and this machine's are nobody's business.
    os.chdir(samples.ELF)
    extract(KNOWN, folder / "corpus", features="evidence")
    with Library.create(folder / "library.kin", ranking_model()) as library:
        index_paths(library, KNOWN)
    embedder = evidence_embedder()
    embedder.save_pretrained(folder / "model")
    with contextlib.suppress(InterruptedError):
        train(tiny(), TASK, COURSE, folder / "run", checkpoint_seconds=0, on_report=stop)
    expected = facts(folder)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def tiny() -> GraphEmbedder:
    torch.manual_seed(0)
    return GraphEmbedder(ModelConfig.named("gnn", node_dim=8, graph_dim=8, steps=1))


def stop(report: StepReport) -> None:
    """Ends a run in its middle."""
    if report.step == COURSE.steps - 1:
        raise InterruptedError


def facts(folder: Path) -> dict[str, Any]:
    """What is in the files, and what is computed from them."""
    corpus = FunctionCorpus.open(folder / "corpus")
    model = GraphEmbedder.from_pretrained(folder / "model")
    names = [corpus.entry(number).name for number in range(len(corpus.entries))]
    graph = corpus.graph(0, model.vocabulary)
    with Library.open(folder / "library.kin") as library:
        entries = [stored.entry.function for stored in library.engine.scan()]
    vector = model.encode([graph])[0].tolist()
    return {"functions": names, "vector": vector, "entries": sorted(entries)}


if __name__ == "__main__":
    main()
