"""Functions of a corpus as graphs of one's own: their names, and the words that a model reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphkin.binaries import samples
from graphkin.binaries.extraction import extract
from graphkin.errors import ConfigError, FormatError
from graphkin.library.own_graphs import read_for
from tests.function_samples import body, record, write_corpus
from tests.library.sample_models import search_model

BUILDS = ("gcc-O2", "gcc-O3")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A static function in two builds, and twice in one of them."""
    made = [record("decref", body(1, number), build=name) for number, name in enumerate(BUILDS)]
    made.append(record("decref", body(2), build="gcc-O3", address=0x2000))
    made.append(record("other", body(3), build="gcc-O3", address=0x3000))
    write_corpus(tmp_path / "corpus", made)
    return tmp_path / "corpus"


def test_functions_of_one_name_are_told_apart(corpus: Path) -> None:
    embedder = search_model().embedder
    graphs = read_for(embedder, [corpus], None)
    assert [named.name for named in graphs] == [
        "/builds/gcc-O2/libx.so:decref",
        "/builds/gcc-O3/libx.so:0x1000",
        "/builds/gcc-O3/libx.so:0x2000",
        "/builds/gcc-O3/libx.so:other",
    ]
    assert np.isfinite(embedder.encode([named.graph for named in graphs])).all()
    (one,) = read_for(embedder, [f"{corpus}:{graphs[2].name}"], None)
    assert one.graph.digest() == graphs[2].graph.digest() != graphs[1].graph.digest()
    assert len(read_for(embedder, f"{corpus}:decref", None)) == 3
    with pytest.raises(FormatError, match="has no function 'absent'"):
        read_for(embedder, f"{corpus}:absent", None)
    with pytest.raises(FormatError, match="two graphs are called"):
        read_for(embedder, [corpus, corpus], None)


def test_graphs_are_in_the_words_of_the_model(corpus: Path) -> None:
    """A corpus numbers words in the order they came, a model in its own."""
    model = search_model(words=("ret", "mov", "xor"))
    vocabulary = model.embedder.vocabulary
    assert vocabulary is not None
    (named,) = read_for(model.embedder, f"{corpus}:other", None)
    expected = vocabulary.encode(word for words in body(3)[0] for word in words)
    tokens = named.graph.node_tokens
    assert tokens is not None
    assert sorted(tokens.ids.tolist()) == sorted(expected.tolist())


def test_a_corpus_of_other_features_is_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "evidence"
    extract([samples.path("gcc-O2/libkinbeat.so")], corpus, features="evidence")
    with pytest.raises(ConfigError, match=r"holds evidence of functions, .* reads mnemonics"):
        read_for(search_model().embedder, [corpus], None)
