"""Graphs with evidence in the place of those of mnemonics: the same functions, other scores."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from graphkin.binaries import samples
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.binaries.extraction import extract
from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.models import GraphEmbedder
from graphkin.models.codes import hamming_distances
from graphkin.research.reproduce.cells import fill
from graphkin.research.reproduce.measure import DataPaths
from graphkin.research.reproduce.render.text_tables import to_markdown
from graphkin.research.reproduce.results import (
    CHECKOUT,
    Result,
    read_result,
    read_results,
    write_result,
)
from graphkin.research.reproduce.table_layout import BY_CODES, PAIRS, WITH_EVIDENCE, function_row
from graphkin.research.tasks.functions.task import FunctionTask
from tests.library.sample_models import evidence_embedder, trained_on
from tests.paths import REPOSITORY
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script

PROJECTS = tuple(library.removesuffix(".so") for library in samples.LIBRARIES)


@pytest.fixture(scope="module")
def table2() -> Iterator[ModuleType]:
    folder = str(REPOSITORY / "experiments")
    sys.path.insert(0, folder)
    yield script("experiments/table2_evidence.py")
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> FunctionCorpus:
    path = tmp_path_factory.mktemp("evidence") / "corpus"
    write_projects(path)
    return FunctionCorpus.open(path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mnemonics") / "corpus"
    extract([samples.ELF / build for build in samples.BUILDS], path)
    return path


@pytest.fixture(scope="module")
def embedder() -> GraphEmbedder:
    embedder = evidence_embedder()
    embedder.trained_on = trained_on(validation=list(PROJECTS), test=[])
    return embedder


def by_hand(
    task: FunctionTask, evidence: FunctionCorpus, graph: Graph, vocabulary: Vocabulary
) -> Graph:
    """The graph with evidence of the same build, library and name, whose places differ."""
    corpus = task.data.corpus
    (number,) = [n for n in range(len(corpus)) if task.graphs_of([n])[0] is graph]
    entry = corpus.entry(number)
    (twin,) = [
        n
        for n, other in enumerate(evidence.entries)
        if other.name == entry.name
        and other.binary.build == entry.binary.library
        and other.binary.library == f"x86_64-{entry.binary.build}"
    ]
    return evidence.graph(twin, vocabulary)


def test_scores_are_those_of_the_same_functions_with_evidence(
    table2: ModuleType, plain: Path, evidence: FunctionCorpus, embedder: GraphEmbedder
) -> None:
    task = FunctionTask(str(plain), min_builds=2, evaluation_size=4)
    pairs = task.evaluation_set("test").pairs
    words = embedder.vocabulary
    assert words is not None
    assert words.words != evidence.words.words
    twins = [tuple(by_hand(task, evidence, graph, words) for graph in pair) for pair in pairs]
    left, right = zip(*twins, strict=True)
    source = table2.Twins(embedder, evidence)
    vectors = table2.Products(source, task, table2.cosine_features)
    np.testing.assert_allclose(vectors.predict(pairs), embedder.predict(twins), atol=1e-5)
    codes = table2.Products(source, task, table2.code_features)
    distances = hamming_distances(embedder.codes(left), embedder.codes(right))
    bits = embedder.config.code_bits
    np.testing.assert_allclose(codes.predict(pairs), bits - 2 * np.diag(distances))
    queries, pool = zip(*pairs, strict=True)
    np.testing.assert_allclose(codes.scores(queries, pool), bits - 2 * distances)
    np.testing.assert_allclose(
        vectors.scores(queries, pool), embedder.scores(left, right), atol=1e-5
    )


def test_a_function_that_is_missing_is_named(
    table2: ModuleType, plain: Path, evidence: FunctionCorpus, embedder: GraphEmbedder
) -> None:
    twins = table2.Twins(embedder, evidence)
    entries = FunctionCorpus.open(plain).entries
    known = next(entry for entry in entries if entry.binary.library in PROJECTS)
    assert evidence.entry(twins.number(known)).name == known.name
    missing = next(entry for entry in entries if entry.binary.library not in PROJECTS)
    with pytest.raises(ConfigError, match=rf"lacks {missing.name} at {missing.address:#x} of"):
        twins.number(missing)


def test_an_embedder_that_saw_the_functions_is_refused(
    table2: ModuleType, plain: Path, evidence: FunctionCorpus, embedder: GraphEmbedder
) -> None:
    corpus = FunctionCorpus.open(plain)
    table2.check_unseen(embedder, corpus, evidence)
    seen = evidence_embedder()
    seen.trained_on = trained_on(validation=list(PROJECTS[1:]), test=[])
    with pytest.raises(ConfigError, match=f"trained on {PROJECTS[0]}, which"):
        table2.check_unseen(seen, corpus, evidence)


def test_cells_are_those_of_the_table(
    table2: ModuleType,
    plain: Path,
    evidence: FunctionCorpus,
    embedder: GraphEmbedder,
    tmp_path: Path,
) -> None:
    cells = table2.measured(embedder, DataPaths(corpus=plain), evidence)
    result: Result = table2.result_of(embedder, cells)
    assert read_result(write_result(result, tmp_path)) == result
    vocabulary = GraphEmbedder.from_pretrained("mnemonics").vocabulary
    assert vocabulary is not None
    sets = FunctionTask(str(plain), words=vocabulary.words).evaluation_sets("test")
    own = {cell.data for cell in cells if cell.row == function_row("paper")}
    assert own == {sets["random negatives"].digest}
    for model in (WITH_EVIDENCE, BY_CODES):
        rows = {cell.row for cell in cells if cell.model == model}
        assert {function_row(*both) for both in product(("paper", "clean"), sets)} <= rows
    shown = to_markdown(fill("table2", [result]))
    assert "| GNN, with evidence, codes | - |" in shown


def test_the_stored_result_is_of_the_pairs_of_our_other_models() -> None:
    """And of a model that was not trained on ffmpeg."""
    stored = read_result(CHECKOUT / "reproduce" / "table2-functions-evidence.json")
    known = {
        (cell.row, cell.metric): cell.data
        for other in read_results(CHECKOUT)
        if other.name == "functions-search-gnn"
        for cell in other.cells
        if cell.metric in PAIRS
    }
    own = {(cell.row, cell.metric): cell.data for cell in stored.cells if cell.metric in PAIRS}
    assert len(known) == 8
    assert own == known
    ffmpeg = {"libavcodec", "libavutil", "libswresample", "libswscale"}
    assert ffmpeg <= set(stored.config["task"]["validation"])
