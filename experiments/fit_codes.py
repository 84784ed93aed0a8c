"""Fits the codes of an embedder anew, on functions that it was trained on; its vectors stay.

    python experiments/fit_codes.py CORPUS --embedder FOLDER -o FOLDER

A code is the signs of a linear map of the vector. Iterative quantization (Gong and Lazebnik, 2011)
turns the directions in which vectors differ most until their signs lose as little as can be.
Offsets of fields take part, with less weight: they help where pointers are of one width, and cost
little where not.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphkin.models import GraphEmbedder
from graphkin.research.tasks.projects import ProjectTask

WEIGHTS = {"graph": 1.0, "words": 0.5, "offsets": 0.3}
"""Of the parts of a vector, chosen on validation projects."""
FUNCTIONS = 12_000
TURNS = 25
"""Of the iterative quantization."""
Floats = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--embedder", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    embedder = GraphEmbedder.from_pretrained(options.embedder)
    with_fitted_codes(embedder, options.corpus).save_pretrained(options.output)


def with_fitted_codes(embedder: GraphEmbedder, corpus: str) -> GraphEmbedder:
    """The same embedder with other codes, from the projects that it was trained on."""
    task = (embedder.trained_on or {}).get("task", {})
    held_out = {name: tuple(task[name]) for name in ("test", "validation") if name in task}
    vectors = vectors_of(embedder, ProjectTask(corpus, **held_out))
    fitted = GraphEmbedder(replace(embedder.config, code_offsets=bool(embedder.config.offset_dim)))
    tensors = {**embedder.state_dict(), "code": torch.from_numpy(quantized(embedder, vectors))}
    fitted.load_tensors(tensors, "the embedder")
    fitted.vocabulary, fitted.trained_on = embedder.vocabulary, embedder.trained_on
    return fitted.eval()


def vectors_of(embedder: GraphEmbedder, task: ProjectTask) -> Floats:
    """(N, V) vectors of functions that are trained on, one build of each."""
    rng = np.random.default_rng(0)
    functions = task.trained()
    chosen = [functions[row] for row in rng.permutation(len(functions))[:FUNCTIONS].tolist()]
    builds = [item.builds[rng.integers(len(item.builds))] for item in chosen]
    return embedder.encode([task.graph(item.number, embedder.vocabulary) for item in builds])


def quantized(embedder: GraphEmbedder, vectors: Floats) -> Floats:
    """(B, V) the map whose signs lose least, by iterative quantization without a mean."""
    weights = np.concatenate(
        [
            np.full(embedder.part(vectors[:1], name).shape[1], np.sqrt(weight))
            for name, weight in WEIGHTS.items()
        ]
    )
    weighted = (vectors * weights).astype(np.float32)
    bits = embedder.config.code_bits
    _, directions = np.linalg.eigh(weighted.T @ weighted)
    kept = directions[:, ::-1][:, :bits]
    projected = weighted @ kept
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(bits, bits)))
    for _ in range(TURNS):
        left, _, right = np.linalg.svd(np.sign(projected @ turn).T @ projected)
        turn = right.T @ left.T
    code: Floats = ((kept @ turn).T * weights).astype(np.float32)
    return code


if __name__ == "__main__":
    main()
