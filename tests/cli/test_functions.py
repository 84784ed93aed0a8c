"""The verbs for functions: extract, corpus stats, train functions and eval functions."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.learning.evaluation import evaluate, retrieval_metrics
from graphkin.models import load_model
from graphkin.research.baselines.size import GraphSize
from graphkin.research.tasks.functions.task import FunctionTask
from tests.command_line import Graphkin, Outcome
from tests.function_samples import body, record, records, write_corpus
from tests.paths import BINARIES

PROGRAM = Path(sysconfig.get_path("scripts")) / "graphkin"
SAMPLES = BINARIES
SMALL = ["node_dim=8", "message_dim=8", "graph_dim=8", "model.steps=2", "evaluation_size=40"]
SETTINGS = [word for setting in SMALL for word in ("--set", setting)]
QUICK = ["--size", "40", "--pool", "4"]


def refused(outcome: Outcome, code: int, *parts: str) -> None:
    """One line on stderr that says why, and nothing else."""
    assert outcome.code == code, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("graphkin: ")
    assert outcome.err.count("\n") == 1
    for part in parts:
        assert part in outcome.err


def document(outcome: Outcome, code: int = 0) -> Any:
    """The one line of JSON on stdout."""
    assert outcome.code == code, outcome.err
    assert outcome.out.count("\n") == 1
    return json.loads(outcome.out)


# --- extract ------------------------------------------------------------------------------


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    for level in ("O0", "O2"):
        (tmp_path / "builds" / f"gcc-{level}").mkdir(parents=True)
        target = tmp_path / "builds" / f"gcc-{level}" / "libshapes.so"
        shutil.copyfile(SAMPLES / "x86" / f"gcc-static-{level}", target)
    return tmp_path / "builds"


def test_extract(run: Graphkin, builds: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no binary")
    arguments = ["extract", builds, tmp_path / "text", "--jobs", 2, "--min-blocks", 3]
    outcome = run(*arguments, "-o", tmp_path / "c.graphs", "--json")
    answer = document(outcome, 21)
    corpus = FunctionCorpus.open(tmp_path / "c.graphs")
    assert answer["corpus"] == str(tmp_path / "c.graphs")
    assert (answer["files"], answer["functions"]) == (3, len(corpus))
    assert answer["small"] > 0
    (skip,) = answer["skipped"]
    assert skip["binary"] == str(tmp_path / "text")
    assert "not an ELF" in skip["reason"]
    assert outcome.err.startswith(f"graphkin: {tmp_path / 'text'} skipped: ")
    text = run(*arguments, "-o", tmp_path / "d.graphs")
    assert text.code == 21, "the text is not a binary"
    assert text.out.startswith(f"{tmp_path / 'd.graphs'}: {len(corpus)} functions of 3 files")
    assert FunctionCorpus.open(tmp_path / "d.graphs").digest() == corpus.digest()


def test_extract_shows_some_warnings(run: Graphkin, builds: Path, tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"bad{number}").write_bytes(b"\x7fELF")
    bad = [tmp_path / f"bad{number}" for number in range(25)]
    outcome = run("extract", *bad, builds, "--jobs", 1, "-o", tmp_path / "c.graphs")
    assert outcome.code == 21, "some input could not be read"
    lines = outcome.err.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "graphkin: and 5 more skipped; --json lists them all"


def test_extract_by_the_real_program(builds: Path, tmp_path: Path) -> None:
    """With workers, whose server imports the program anew."""
    arguments = ["extract", builds, "-o", tmp_path / "c.graphs", "--json"]
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["functions"] > 0
    assert result.stderr == ""


def test_extractions_that_are_refused(run: Graphkin, builds: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.graphs"
    (tmp_path / "text").write_text("no binary")
    refused(run("extract", tmp_path / "text", "-o", out), 11, "no function to keep", "not an ELF")
    (tmp_path / "empty").mkdir()
    refused(run("extract", tmp_path / "empty", "-o", out), 11, "no binary found in", "empty")
    refused(run("extract", builds, "-o", out, "--backend", "ida"), 12, "'ida'", "smda")
    refused(run("extract", builds, "-o", out, "--jobs", 0), 12, "--jobs", "0")
    refused(run("extract", builds, "-o", out, "--seconds", "inf"), 12, "finite", "inf")
    refused(run("extract", builds, "-o", tmp_path / "text"), 15, "exists already", "text")
    refused(run("extract", builds, "-o", tmp_path / "text" / "c"), 15, "cannot write")
    assert not out.exists()
    assert run("extract", builds).code == 2
    assert run("extract", builds, "-o", out, "--min-blocks", 0).code == 2


# --- corpus stats -------------------------------------------------------------------------


def test_corpus_stats(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    answer = document(run("corpus", "stats", corpus_path, "--json"))
    assert (answer["graphs"], answer["binaries"]) == (239, 4)
    picture = tmp_path / "sizes.png"
    outcome = run("corpus", "stats", corpus_path, "--plot", picture)
    assert outcome.code == 0
    assert "functions in all 4 builds:" in outcome.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in outcome.err


def test_stats_of_what_is_no_corpus(run: Graphkin, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        refused(run("corpus", "stats", path), 11, "not a corpus of functions", "graphkin extract")


def test_a_picture_that_cannot_be_written(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    outcome = run("corpus", "stats", corpus_path, "--plot", tmp_path / "sizes.xyz", "--json")
    refused(outcome, 12, "sizes.xyz", "name a file that ends in .png")


# --- train --------------------------------------------------------------------------------


def trained_with(run: Graphkin, corpus: Path, out: Path, *arguments: Any) -> Any:
    words = ["--corpus", corpus, "--output", out, "--steps", 3, "--batch-size", 4, *SETTINGS]
    return document(run("train", "functions", *words, *arguments, "--json"))


@pytest.mark.parametrize("model", ["gnn", "gmn", "gcn", "siamese-gnn", "siamese-gcn", "deepset"])
@pytest.mark.parametrize("features", ["mnemonics", "structure"])
def test_every_model_trains_and_evaluates(
    run: Graphkin, corpus_path: Path, tmp_path: Path, model: str, features: str
) -> None:
    settings = ["--set", "model.steps=0"] if model == "deepset" else []
    arguments = ["--kind", model, "--features", features, "--protocol", "clean", *settings]
    answer = trained_with(run, corpus_path, tmp_path / "run", *arguments)
    assert answer["steps"] == 3
    assert set(answer["validation"]) == {"pair_auc", "triplet_accuracy"}
    loaded = load_model(tmp_path / "run")
    task = FunctionTask(str(corpus_path), protocol="clean", evaluation_size=40)
    assert loaded.vocabulary == (task.vocabulary if features == "mnemonics" else None)
    arguments = [tmp_path / "run", "--corpus", corpus_path, "--protocol", "clean"]
    (result,) = document(
        run("eval", "functions", *arguments, "--split", "validation", *QUICK, "--json")
    )["results"]
    # The best of the run, which is that of the last step: there was no other evaluation.
    assert result["sets"]["random negatives"]["metrics"] == answer["validation"]
    assert result["task"]["features"] == features


def test_triplets_and_hard_negatives(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    answer = trained_with(
        run, corpus_path, tmp_path / "run", "--kind", "gmn", "--mode", "triplets",
        "--hard-negatives", 0.5, "--propagation-steps", 1, "--seed", 4,
        "--set", "vocabulary_size=5", "--set", "max_nodes=30",
    )  # fmt: skip
    assert answer["steps"] == 3
    model = load_model(tmp_path / "run")
    # The setting for all tests comes after the option, and wins.
    assert model.config.steps == 2
    assert model.vocabulary is not None
    assert len(model.vocabulary) == 6


def test_a_matcher_that_begins_with_an_embedder(
    run: Graphkin, corpus_path: Path, tmp_path: Path
) -> None:
    """What its weights were trained with is taken over."""
    unusual = ["--set", "message_norm=graph", "--set", "readout=nodes"]
    trained_with(run, corpus_path, tmp_path / "one", "--kind", "gnn", *unusual)
    begun = ["--kind", "gmn", "--start-from", tmp_path / "one"]
    aligning = ["--set", "similarity=alignment", "--set", "loss=margin"]
    trained_with(run, corpus_path, tmp_path / "two", *begun, *aligning)
    actual = load_model(tmp_path / "two").config
    assert (actual.message_norm, actual.readout, actual.similarity) == (
        "graph",
        "nodes",
        "alignment",
    )
    # Unless it is said otherwise.
    trained_with(run, corpus_path, tmp_path / "three", *begun, "--set", "message_norm=none")
    assert load_model(tmp_path / "three").config.message_norm == "none"


def test_a_joint_matcher_is_not_trained(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    words = ["--corpus", corpus_path, "--output", tmp_path / "no", "--steps", 1, *SETTINGS]
    outcome = run("train", "functions", *words, "--set", "similarity=joint", "--set", "loss=margin")
    refused(outcome, 12, "train one with similarity='alignment'")


def test_propagation_steps(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    words = ["--corpus", corpus_path, "--output", tmp_path, "--steps", 1, "--propagation-steps", 3]
    small = ["--set", "node_dim=8", "--set", "evaluation_size=10", "--batch-size", 4]
    assert run("train", "functions", *words, *small).code == 0
    assert load_model(tmp_path).config.steps == 3


def test_a_resumed_run_is_the_same(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    """Interrupted after its first evaluation, and resumed from a copy of the corpus."""
    settings = ["--kind", "gnn", "--set", "evaluate_every=1", "--steps", 40]
    whole = trained_with(run, corpus_path, tmp_path / "whole", *settings)
    shutil.copytree(corpus_path, tmp_path / "moved.graphs")
    words = ["train", "functions", "--corpus", corpus_path, "--output", tmp_path / "parts"]
    process = subprocess.Popen(
        [PROGRAM, *words, "--batch-size", "4", *SETTINGS, *map(str, settings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "step 1/40" not in (line := process.stderr.readline()):
        assert line, "the run ended before its first report"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    resumed = trained_with(
        run, tmp_path / "moved.graphs", tmp_path / "parts", *settings, "--resume"
    )
    assert resumed["validation"] == whole["validation"]
    assert resumed["best"] == whole["best"]


def test_another_corpus_does_not_resume(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    trained_with(run, corpus_path, tmp_path / "run", "--kind", "gnn")
    write_corpus(tmp_path / "other", records(50))
    words = ["--corpus", tmp_path / "other", "--output", tmp_path / "run", "--steps", 3]
    outcome = run("train", "functions", *words, "--batch-size", 4, *SETTINGS, "--kind", "gnn",
                  "--resume")  # fmt: skip
    refused(outcome, 14, "corpus")


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--kind", "rnn"], 12, ["'rnn'"]),
        (["--features", "bytes"], 12, ["features", "'bytes'"]),
        (["--protocol", "dirty"], 12, ["protocol", "'dirty'"]),
        (["--hard-negatives", "2"], 12, ["hard_negatives", "2"]),
        (["--mode", "quads"], 12, ["mode", "'quads'"]),
        (["--set", "max_nodes=3"], 12, ["too few"]),
        (["--set", "max_nodes=3", "--hard-negatives", "0.5"], 12, ["too few"]),
        (["--set", "words=3"], 12, ["words"]),
        (["--set", "min_builds=9"], 12, ["min_builds", "9 builds"]),
        (["--set", "evaluation_size=1"], 12, ["evaluation_size"]),
        (["--set", "colour=red"], 12, ["'colour'"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else str(value),
)
def test_training_that_is_refused(
    run: Graphkin, corpus_path: Path, tmp_path: Path, arguments: list[str], code: int,
    parts: list[str],
) -> None:  # fmt: skip
    words = ["--corpus", corpus_path, "--output", tmp_path / "run", "--steps", 1, *SETTINGS]
    refused(run("train", "functions", *words, *arguments), code, *parts)
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_corpora_that_cannot_be_trained_on(run: Graphkin, tmp_path: Path) -> None:
    write_corpus(tmp_path / "one", records(60, ["gcc-O2"]))
    words = ["train", "functions", "--output", tmp_path / "run", "--steps", 1, "--corpus"]
    refused(run(*words, tmp_path / "absent"), 11, "not a corpus of functions", "graphkin extract")
    refused(run(*words, tmp_path / "one"), 12, "0 functions in at least 2 builds")
    assert not (tmp_path / "run").exists()


def test_mnemonics_are_not_trained_on_where_a_corpus_has_operations(
    run: Graphkin, builds: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "evidence"
    assert run("extract", builds, "-o", corpus, "--evidence").code == 0
    words = ["train", "functions", "--output", tmp_path / "run", "--steps", 1, "--corpus", corpus]
    parts = ["holds evidence", "without --evidence", "--features structure"]
    refused(run(*words, "--features", "mnemonics"), 12, *parts)
    refused(run(*words), 12, *parts)
    assert not (tmp_path / "run").exists()
    assert "holds evidence" not in run(*words, "--features", "structure").err


# --- eval ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["size", "tfidf", "wl", "simhash"])
def test_baselines(run: Graphkin, corpus_path: Path, model: str) -> None:
    arguments = ["eval", "functions", model, "--corpus", corpus_path, *QUICK]
    # Learning takes some seconds for each protocol.
    protocol = ["--protocol", "clean"] if model == "simhash" else []
    answer = document(run(*arguments, *protocol, "--json"))
    assert (answer["model"], answer["split"]) == (model, "test")
    protocols = [result["protocol"] for result in answer["results"]]
    assert protocols == (["clean"] if protocol else ["paper", "clean"])
    for result in answer["results"]:
        task = FunctionTask(
            str(corpus_path), protocol=result["protocol"], evaluation_size=40, pool=4
        )
        assert result["task"] == task.describe()
        assert result["identical_positives"] == task.identical_share("test")
        sets = task.evaluation_sets("test")
        assert list(result["sets"]) == [*sets, "retrieval"]
        for name, each in sets.items():
            measured = result["sets"][name]
            assert measured["data"] == each.digest
            assert set(measured["metrics"]) == {"pair_auc", "triplet_accuracy"}
            if model == "size":
                assert measured["metrics"] == evaluate(GraphSize(), each)
        blocks = task.retrieval("test")
        assert result["sets"]["retrieval"]["pools"] == [len(block.pool) for block in blocks]
        if model == "size":
            expected = retrieval_metrics(GraphSize(), blocks)
            assert result["sets"]["retrieval"]["metrics"] == expected
        assert ("iterations" in result) == (model == "wl")
    # The functions differ in their words, and hardly in their size.
    if model == "tfidf":
        assert answer["results"][0]["sets"]["size-matched negatives"]["metrics"]["pair_auc"] > 0.8


def test_eval_prints_text(run: Graphkin, corpus_path: Path) -> None:
    arguments = ["size", "--corpus", corpus_path, *QUICK]
    outcome = run("eval", "functions", *arguments)
    assert outcome.code == 0
    assert outcome.out.startswith(f"size on the test functions of {corpus_path}\n")
    lines = [line.strip() for line in outcome.out.splitlines()]
    assert "the paper's protocol" in lines
    assert "clean protocol" in lines
    assert sum(line.startswith("random negatives") for line in lines) == 2
    assert sum(line.startswith("retrieval") for line in lines) == 2
    without = run("eval", "functions", *arguments, "--no-retrieval", "--protocol", "clean")
    assert without.out.count("random negatives") == 1
    assert "retrieval" not in without.out


def test_structure_only(run: Graphkin, corpus_path: Path) -> None:
    arguments = ["--corpus", corpus_path, "--features", "structure", *QUICK, "--json"]
    answer = document(run("eval", "functions", "wl", *arguments))
    assert all(result["task"]["features"] == "structure" for result in answer["results"])
    outcome = run("eval", "functions", "tfidf", *arguments)
    refused(outcome, 10, "node_tokens")


@pytest.fixture(scope="module")
def trained(corpus_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of an embedder on mnemonics."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    words = ["train", "functions", "--corpus", corpus_path, "--output", folder, "--kind", "gnn"]
    result = subprocess.run(
        [PROGRAM, *words, "--steps", "2", "--batch-size", "4", *SETTINGS],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return folder


def test_a_trained_model_brings_its_words(run: Graphkin, trained: Path, tmp_path: Path) -> None:
    """On a corpus that has other mnemonics, in another order."""
    made = [
        record(f"g{n}", body(n, variant), build=build)
        for n in range(2000, 2060)
        for variant, build in enumerate(("x-O0", "x-O1"))
    ]
    words, edges = body(7)
    made.insert(0, record("first", ([("zzz", *block) for block in words], edges), build="x-O0"))
    write_corpus(tmp_path / "other", made)
    arguments = [trained, "--corpus", tmp_path / "other", *QUICK, "--json"]
    answer = document(run("eval", "functions", *arguments))
    model = load_model(trained)
    assert model.vocabulary is not None
    task = FunctionTask(str(tmp_path / "other"), evaluation_size=40, words=model.vocabulary.words)
    expected = evaluate(model, task.evaluation_set("test"))
    result = answer["results"][0]["sets"]["random negatives"]
    assert result["metrics"] == expected
    assert result["data"] == task.evaluation_set("test").digest
    assert task.vocabulary == model.vocabulary


def test_another_number_of_steps(run: Graphkin, trained: Path, corpus_path: Path) -> None:
    arguments = [trained, "--corpus", corpus_path, *QUICK, "--json", "--no-retrieval"]
    sets = [
        document(run("eval", "functions", *arguments, *steps))["results"][0]["sets"]
        for steps in ([], ["--propagation-steps", 2], ["--propagation-steps", 0])
    ]
    assert sets[0] == sets[1]
    assert sets[0] != sets[2]


def test_models_that_are_refused(
    run: Graphkin, trained: Path, corpus_path: Path, tmp_path: Path
) -> None:
    words = ["eval", "functions", "--corpus", corpus_path]
    refused(run(*words, tmp_path / "absent"), 13, "is neither a model folder nor")
    refused(run(*words, trained, "--features", "structure"), 12, "trained on mnemonics")
    shutil.copytree(trained / "model", tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    del config["vocabulary"]
    (tmp_path / "plain" / "config.json").write_text(json.dumps(config))
    refused(run(*words, tmp_path / "plain"), 12, "has no vocabulary", str(tmp_path / "plain"))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--split", "training"], ["split", "'training'"]),
        (["--protocol", "dirty"], ["protocol", "'dirty'"]),
        (["--features", "bytes"], ["features", "'bytes'"]),
        (["--min-builds", "9"], ["9 builds"]),
        (["--seed", "-1"], ["seed must be at least 0, got -1"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_evaluations_that_are_refused(
    run: Graphkin, corpus_path: Path, arguments: list[str], parts: list[str]
) -> None:
    words = ["eval", "functions", "simhash", "--corpus", corpus_path]
    refused(run(*words, *arguments), 12, *parts)


def test_evaluations_of_no_corpus(run: Graphkin, tmp_path: Path) -> None:
    words = ["eval", "functions", "size", "--corpus"]
    refused(run(*words, tmp_path / "absent"), 11, "graphkin extract")
    write_corpus(tmp_path / "one", records(60, ["gcc-O2"]))
    refused(run(*words, tmp_path / "one"), 12, "0 functions in at least 2 builds")
