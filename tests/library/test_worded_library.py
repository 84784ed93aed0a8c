"""A library whose model reads what functions say: indexed, copied from corpora, and searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin import GraphEmbedder, Library
from graphkin.binaries import samples
from graphkin.binaries.extraction import extract
from graphkin.errors import ConfigError
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import SearchOptions
from graphkin.library.scan import look_up, read_queries
from tests.library.sample_models import evidence_embedder

KNOWN = [samples.path(f"gcc-O2/{library}") for library in samples.LIBRARIES]
QUERY = samples.path("clang-O1/libkinproto.so")


@pytest.fixture(scope="module")
def embedder() -> GraphEmbedder:
    return evidence_embedder()


def test_functions_are_found_by_what_they_say(embedder: GraphEmbedder, tmp_path: Path) -> None:
    library = Library.create(tmp_path / "worded.kin", embedder)
    index_paths(library, KNOWN)
    right = total = 0
    for result in look_up(library, read_queries(library, [str(QUERY)]), SearchOptions(top=3)):
        total += 1
        right += any(hit.function == result.query.function for hit in result.hits)
    assert total > 5
    assert right / total > 0.6
    reopened = Library.open(tmp_path / "worded.kin")
    assert reopened.model.vocabulary.reads == "evidence"
    assert reopened.model.space.columns == 256 // 8


def test_a_corpus_must_hold_what_the_model_reads(embedder: GraphEmbedder, tmp_path: Path) -> None:
    extract(KNOWN[3:], tmp_path / "plain")
    extract(KNOWN[3:], tmp_path / "worded", features="evidence")
    library = Library.create(tmp_path / "library.kin", embedder)
    with pytest.raises(ConfigError, match="reads evidence"):
        index_paths(library, [tmp_path / "plain"])
    index_paths(library, [tmp_path / "worded"])
    index_paths(library, KNOWN[3:])
    corpus = Library.create(tmp_path / "files.kin", embedder)
    index_paths(corpus, KNOWN[3:])
    assert len(library) == len(corpus) > 5
