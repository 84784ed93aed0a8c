"""Learning from many projects: splits by project, pairs of builds, words that are dropped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from graphkin.binaries import samples
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.binaries.extraction import extract
from graphkin.errors import ConfigError
from graphkin.graphs.words import KINDS, word_hash
from graphkin.learning.recipes import assemble
from graphkin.learning.task import LIST_NEGATIVES
from graphkin.models import GraphEmbedder
from graphkin.research.tasks.project_lists import ProjectLists
from graphkin.research.tasks.projects import ProjectTask, source_functions
from tests.research.tasks.sample_projects import write_projects


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("projects") / "corpus"
    write_projects(corpus)
    return corpus


@pytest.fixture
def task(corpus: Path) -> ProjectTask:
    return ProjectTask(
        str(corpus), test=("libkinbeat",), validation=("libkinproto",), evaluation_size=40
    )


def test_a_project_is_in_one_split(task: ProjectTask) -> None:
    projects = {
        split: {item.project for item in task.functions(split)}
        for split in ("training", "validation", "test")
    }
    assert projects == {
        "training": {"libkinmedia", "libkinparse"},
        "validation": {"libkinproto"},
        "test": {"libkinbeat"},
    }


def test_functions_are_known_by_project_and_name(corpus: Path) -> None:
    functions = source_functions(FunctionCorpus.open(corpus))
    heartbeat = next(item for item in functions if item.name == "process_heartbeat")
    assert heartbeat.project == "libkinbeat"
    assert [build.configuration for build in heartbeat.builds] == [
        f"x86_64-{build}" for build in sorted(samples.BUILDS)
    ]


def test_a_batch_holds_two_builds_of_each_function(task: ProjectTask) -> None:
    batch = task.batch(3, 16, "kin")
    again = task.batch(3, 16, "kin")
    assert batch.labels is not None
    assert again.labels is not None
    assert batch.labels.tolist() == again.labels.tolist()
    assert 8 < batch.num_pairs <= 16
    assert batch.graphs.words is not None
    assert not np.array_equal(batch.labels, task.batch(4, 16, "kin").labels)
    shares = [task.batch(3, 16, "kin", rank=rank, world=2).labels for rank in (0, 1)]
    joined = [label for share in shares if share is not None for label in share.tolist()]
    assert Counter(joined) == Counter(batch.labels.tolist())
    with pytest.raises(ConfigError, match="mode='kin'"):
        task.batch(0, 16, "pairs")


def test_kinds_of_words_are_dropped_in_training_alone(corpus: Path) -> None:
    def kinds(dropped: float) -> set[int]:
        task = ProjectTask(str(corpus), ("libkinbeat",), ("libkinproto",), dropped_kinds=dropped)
        words = task.batch(0, 30, "kin").graphs.words
        assert words is not None
        return set((words.hashes >> 60).unique().tolist())

    assert KINDS.index("str") in kinds(0.0)
    assert not kinds(0.999)


def test_a_graph_holds_what_its_function_says(task: ProjectTask) -> None:
    """A string of the source, in every build."""
    said = []
    for item in task.functions("test"):
        for build in item.builds:
            words = task.graph(build.number).node_words
            assert words is not None
            if word_hash("imp", "memcpy") in words.hashes.tolist():
                said.append(build.configuration)
    assert {name.rpartition("-")[0] for name in said} == {"x86_64-gcc", "x86_64-clang"}


def test_an_embedder_learns_from_projects(task: ProjectTask, tmp_path: Path) -> None:
    options = {"node_dim": 16, "graph_dim": 32, "word_dim": 64, "offset_dim": 64, "code_bits": 64}
    training = {"steps": 30, "batch_size": 24, "evaluate_every": 30}
    run = assemble("gnn", task, recipe="strong", model_options=options, training=training)
    assert isinstance(run.model, GraphEmbedder)
    before = run.model.words.rarity_of(np.array([word_hash("str", "never met")], dtype=np.uint64))
    assert before[0] == pytest.approx(task.statistics.unseen)
    result = run.train(tmp_path / "run")
    assert result.validation["pair_auc"] > 0.9
    read = GraphEmbedder.from_pretrained(tmp_path / "run")
    assert read.vocabulary is not None
    assert read.vocabulary.reads == "evidence"
    assert read.trained_on is not None
    assert read.trained_on["task"]["projects"] == 2


@pytest.mark.parametrize("kind", ["late", "gmn"])
def test_matchers_learn_what_an_embedder_confuses(task: ProjectTask, kind: str) -> None:
    """A late matcher encodes a graph once for its list; in a GMN every pair has its own."""
    small = {"node_dim": 16, "graph_dim": 32}
    words = {"word_dim": 64, "offset_dim": 64, "code_bits": 64}
    embedder = assemble("gnn", task, recipe="strong", model_options=small | words).model
    assert isinstance(embedder, GraphEmbedder)
    run = assemble(kind, task, recipe="strong", model_options=small)
    lists = ProjectLists(task, embedder, apart=kind == "late")
    batch = lists.batch(0, 6, run.config.mode)
    assert batch.num_pairs % (1 + LIST_NEGATIVES) == 0
    assert (batch.graphs.num_graphs < 2 * batch.num_pairs) == (kind == "late")
    assert run.model(batch).scores.shape == (batch.num_pairs,)
    assert (run.model.config.word_dim > 0) == (kind == "late")


def test_a_corpus_of_mnemonics_is_refused(tmp_path: Path) -> None:
    extract([samples.FIRMWARE], tmp_path / "plain")
    with pytest.raises(ConfigError, match="extract --evidence"):
        ProjectTask(str(tmp_path / "plain")).functions("test")
