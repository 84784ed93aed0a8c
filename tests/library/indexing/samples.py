"""Binaries and a small model for tests of indexing, and what a library holds in the end."""

from __future__ import annotations

import torch

from graphkin import GraphEmbedder, ModelConfig
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.library import Library
from graphkin.library.models import SearchModel
from tests.paths import BINARIES

SAMPLES = BINARIES
BUILDS = {
    "gcc-O0": SAMPLES / "x86" / "gcc-static-O0",
    "gcc-O2": SAMPLES / "x86" / "gcc-static-O2",
    "clang-O1": SAMPLES / "aarch64" / "clang-static-O1",
    "clang-O3": SAMPLES / "arm" / "clang-thumb-shared-O3",
}
WORDS = ("mov", "add", "cmp", "jne", "lea", "call", "xor", "test", "je", "ret", "ldr", "str", "b")

Content = dict[tuple[str, str, int | None], tuple[str, bytes]]
"""Function, file hash and address, to the hash of the graph and the bytes of its vector."""


def search_model() -> SearchModel:
    """Untrained: it tells graphs apart, and that is enough here."""
    torch.manual_seed(0)
    vocabulary = Vocabulary(WORDS)
    config = ModelConfig.named(
        "gnn", similarity="hamming", node_input="tokens", node_input_size=len(vocabulary)
    )
    embedder = GraphEmbedder(config)
    embedder.vocabulary = vocabulary
    return SearchModel.of(embedder)


def content(library: Library) -> Content:
    stored = list(library.engine.scan())
    vectors = library.engine.vectors([item.id for item in stored])
    return {
        (item.entry.function, item.entry.file_hash, item.entry.address): (
            item.graph_hash,
            vector.tobytes(),
        )
        for item, vector in zip(stored, vectors, strict=True)
    }
