"""The training loop: it learns, it says what it does, and it stops before weights are lost."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graphkin.errors import ConfigError, GraphkinError, TrainingError
from graphkin.graphs import PairBatch
from graphkin.learning.evaluation import evaluate
from graphkin.learning.losses import scores_loss
from graphkin.learning.training import StepReport, TrainConfig, loop, train
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, load_model
from graphkin.research.tasks.edits import EditTask
from tests.learning.training.runs import (
    CONFIG,
    TASK,
    Crash,
    checkpoint_document,
    checkpoint_weights,
    crash_at,
    finished,
    log_lines,
    make_model,
    same,
    weights,
)

EASY = EditTask(
    nodes=(14, 14), p=(0.25, 0.25), positive_edits=1, negative_edits=8, evaluation_size=300
)


@pytest.mark.parametrize(
    ("name", "options", "course", "gain"),
    [
        # Without weights to speak of the cosine of all pairs is 1: chance is where it starts.
        (
            "gmn",
            {"similarity": "cosine"},
            {"steps": 200, "loss": "hamming", "learning_rate": 1e-2},
            0.1,
        ),
        # Random weights and Euclidean distance are a fair start already.
        (
            "gnn",
            {"message_scale": 1.0},
            {"steps": 250, "mode": "triplets", "margin": 1.0, "learning_rate": 5e-3},
            0.01,
        ),
    ],
    ids=["gmn", "gnn"],
)
def test_training_learns(
    tmp_path: Path, name: str, options: dict[str, Any], course: dict[str, Any], gain: float
) -> None:
    torch.manual_seed(0)
    sizes = {"node_dim": 16, "message_dim": 16, "graph_dim": 32, "steps": 3}
    config = ModelConfig.named(name, **sizes, **options)
    model = GraphMatcher(config) if config.matching else GraphEmbedder(config)
    before = evaluate(model, EASY.evaluation_set("test"))
    train(model, EASY, TrainConfig(batch_size=20, report_every=25, **course), tmp_path)
    after = evaluate(model, EASY.evaluation_set("test"))
    assert after["pair_auc"] > before["pair_auc"] + gain
    assert after["triplet_accuracy"] > before["triplet_accuracy"] + gain
    losses = [line["loss"] for line in log_lines(tmp_path)]
    assert losses[-1] < 0.7 * losses[0]


def test_a_run_leaves_log_checkpoint_and_model(tmp_path: Path) -> None:
    model = make_model()
    config = dataclasses.replace(CONFIG, evaluate_every=20)
    result = train(model, TASK, config, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "checkpoint.safetensors",
        "log.jsonl",
        "model",
    ]
    lines = log_lines(tmp_path)
    assert [line["step"] for line in lines] == [10, 20, 30]
    assert ["validation" in line for line in lines] == [False, True, True]
    assert [line["learning_rate"] for line in lines] == [
        config.learning_rate_at(step) for step in (9, 19, 29)
    ]
    assert result.step == 30
    assert result.seconds > 0
    assert result.validation == lines[-1]["validation"]
    assert same(checkpoint_weights(tmp_path), weights(model))
    document = checkpoint_document(tmp_path)
    assert document["specification"] == {
        "model": model.config.to_dict(),
        "training": dataclasses.asdict(config),
        "task": TASK.describe(),
    }
    assert document["state"]["step"] == 30
    assert document["state"]["log_bytes"] == (tmp_path / "log.jsonl").stat().st_size


def test_reports(tmp_path: Path) -> None:
    reports: list[StepReport] = []
    config = dataclasses.replace(CONFIG, steps=25, evaluate_every=12)
    finished("gnn", config, tmp_path, on_report=reports.append)
    # Every 10 steps, at each evaluation, and at the end.
    assert [report.step for report in reports] == [10, 12, 20, 24, 25]
    assert [bool(report.validation) for report in reports] == [False, True, True, True, True]
    assert {report.steps for report in reports} == {25}
    assert all(math.isfinite(report.loss) for report in reports)
    assert all(report.steps_per_second > 0 for report in reports)
    for report in reports:
        left = (25 - report.step) / report.steps_per_second
        assert report.seconds_left == pytest.approx(left)
    assert [(line["step"], line["loss"]) for line in log_lines(tmp_path)] == [
        (report.step, report.loss) for report in reports
    ]


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_the_loss_of_a_report_is_the_mean_since_the_last(tmp_path: Path, mode: Any) -> None:
    config = dataclasses.replace(CONFIG, mode=mode, steps=20)
    finished("gnn", dataclasses.replace(config, report_every=1), tmp_path / "each")
    finished("gnn", dataclasses.replace(config, report_every=8), tmp_path / "some")
    each = [line["loss"] for line in log_lines(tmp_path / "each")]
    some = {line["step"]: line["loss"] for line in log_lines(tmp_path / "some")}
    assert some.keys() == {8, 16, 20}
    for first, last in pairwise((0, 8, 16, 20)):
        assert some[last] == pytest.approx(sum(each[first:last]) / (last - first), rel=1e-12)


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_the_first_step_by_hand(tmp_path: Path, name: str, mode: Any) -> None:
    """Loss of the first batch, with the regularizer, and Adam's first step along its gradient."""
    config = dataclasses.replace(
        CONFIG, steps=1, mode=mode, margin=0.3, regularizer=0.5, schedule="constant"
    )
    model = make_model(name)
    batch = TASK.batch(0, 4, mode)
    output = model(batch)
    vectors = torch.cat([output.left, output.right])
    assert len(vectors) == (8 if mode == "pairs" else 16)
    loss = scores_loss(output.scores, batch.labels, "margin", 0.3, "euclidean")
    loss = loss + 0.5 * vectors.square().sum() / (2 * vectors.numel())
    loss.backward()
    trained = make_model(name)
    train(trained, TASK, config, tmp_path)
    assert log_lines(tmp_path)[0]["loss"] == pytest.approx(loss.item(), rel=1e-5)
    for parameter, new in zip(model.parameters(), trained.parameters(), strict=True):
        grad = parameter.grad
        clear = grad.abs() > 1e-4
        step = -config.learning_rate * grad.sign()
        assert torch.allclose((new - parameter).detach()[clear], step[clear], rtol=1e-2)


def test_the_best_weights_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.6, 0.9, 0.7])
    seen: list[dict[str, Tensor]] = []

    def scripted(model: nn.Module, _: Any) -> dict[str, float]:
        assert not model.training
        seen.append(weights(model))
        score = next(scores)
        return {"pair_auc": score - 0.1, "triplet_accuracy": score + 0.1}

    monkeypatch.setattr(loop, "evaluate", scripted)
    model = make_model()
    result = train(model, TASK, dataclasses.replace(CONFIG, evaluate_every=10), tmp_path)
    assert result.best == pytest.approx(0.9)
    assert result.validation == pytest.approx({"pair_auc": 0.6, "triplet_accuracy": 0.8})
    assert same(weights(load_model(tmp_path)), seen[1])
    assert not same(seen[1], weights(model))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "after 20 steps" in card
    assert "| pair_auc | 0.8000 |" in card
    assert TASK.evaluation_set("validation").digest in card
    assert model.training


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    finished("gnn", CONFIG, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    with pytest.raises(TrainingError, match=r"holds a run already; resume it, or name another"):
        finished("gnn", CONFIG, tmp_path)
    assert before == {f.name: f.read_bytes() for f in tmp_path.iterdir() if f.is_file()}


def test_a_loss_that_does_not_fit_the_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Hamming loss needs Hamming or cosine similarity"):
        finished("gnn", dataclasses.replace(CONFIG, loss="hamming"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_the_hamming_loss_trains(tmp_path: Path, mode: Any) -> None:
    torch.manual_seed(0)
    model = GraphEmbedder(dataclasses.replace(make_model().config, similarity="hamming"))
    config = dataclasses.replace(CONFIG, mode=mode, loss="hamming", report_every=1, regularizer=0)
    train(model, TASK, config, tmp_path)
    assert all(0 <= line["loss"] <= 1 for line in log_lines(tmp_path))


def test_an_error_in_the_data_ends_the_run(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Broken(EditTask):
        def batch(self, step: int, *arguments: Any, **options: Any) -> Any:
            if step == 12:
                raise RuntimeError("no more graphs")
            return super().batch(step, *arguments, **options)

    with pytest.raises(RuntimeError, match="no more graphs"):
        train(make_model(), Broken(**dataclasses.asdict(TASK)), CONFIG, tmp_path)
    assert "graphkin-batches" not in [thread.name for thread in threading.enumerate()]


# --- Losses and gradients that are not finite ---------------------------------------------


def break_the_loss(monkeypatch: pytest.MonkeyPatch, step: int, value: float) -> None:
    calls = 0

    def broken(scores: Tensor, *arguments: Any) -> Tensor:
        nonlocal calls
        calls += 1
        return scores_loss(scores, *arguments) * (value if calls == step + 1 else 1.0)

    monkeypatch.setattr(loop, "scores_loss", broken)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    expected = finished("gnn", CONFIG, tmp_path / "whole")
    after: list[dict[str, Tensor]] = []
    model = make_model()
    each = dataclasses.replace(CONFIG, report_every=1)
    train(model, TASK, each, tmp_path / "each", on_report=lambda _: after.append(weights(model)))

    folder = tmp_path / "broken"
    break_the_loss(monkeypatch, 17, value)
    with pytest.raises(TrainingError) as caught:
        finished("gnn", CONFIG, folder)
    assert str(caught.value) == (
        f"the loss of step 17 is NaN or infinite; the last finite weights are in "
        f"{folder / 'checkpoint.safetensors'}. Try a lower learning_rate or clip in a new run"
    )
    assert same(checkpoint_weights(folder), after[16])
    assert checkpoint_document(folder)["state"]["step"] == 17
    monkeypatch.undo()
    assert same(finished("gnn", CONFIG, folder, resume=True), expected)


@pytest.mark.parametrize("end", ["success", "failure"])
def test_the_log_is_closed_however_a_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    closed: list[loop.RunLog] = []
    close = loop.RunLog.close
    monkeypatch.setattr(loop.RunLog, "close", lambda log: (closed.append(log), close(log)))
    if end == "success":
        finished("gnn", CONFIG, tmp_path)
    else:
        with pytest.raises(Crash):
            finished("gnn", CONFIG, tmp_path, on_report=crash_at(10))
    assert len(closed) == 1


def test_training_computes_nothing_from_a_batch_that_was_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The background thread prepares batches; the training thread takes over what it made."""
    prepared: list[Any] = []
    used: list[Any] = []
    prepare, forward = GraphMatcher.prepare, GraphMatcher.forward

    def noting_prepare(model: GraphMatcher, batch: PairBatch) -> PairBatch:
        prepared.append(prepare(model, batch).groups)
        return batch

    def noting_forward(model: GraphMatcher, batch: PairBatch, *arguments: Any) -> Any:
        if model.training:
            used.append(batch.groups)
        return forward(model, batch, *arguments)

    monkeypatch.setattr(GraphMatcher, "prepare", noting_prepare)
    monkeypatch.setattr(GraphMatcher, "forward", noting_forward)
    finished("gmn", CONFIG, tmp_path)
    assert len(prepared) == CONFIG.steps
    assert {id(groups) for groups in used} == {id(groups) for groups in prepared}


def test_a_gradient_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scores: Tensor, *arguments: Any) -> Tensor:
        # The value is 0, but the slope of the root at 0 is infinite.
        return scores_loss(scores, *arguments) + (scores - scores.detach()).abs().sqrt().sum()

    initial = weights(make_model())
    monkeypatch.setattr(loop, "scores_loss", broken)
    with pytest.raises(TrainingError, match="step 0 is NaN or infinite"):
        finished("gnn", CONFIG, tmp_path)
    assert same(checkpoint_weights(tmp_path), initial)


def test_a_learning_rate_far_too_high(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, learning_rate=1e30, clip=1e30)
    with pytest.raises(TrainingError, match=r"is NaN or infinite.*Try a lower learning_rate"):
        finished("gnn", config, tmp_path)
    assert all(tensor.isfinite().all() for tensor in checkpoint_weights(tmp_path).values())


def test_weights_that_break_before_a_validation(tmp_path: Path) -> None:
    """The validation notices first; it is the same failure, and leaves a checkpoint too."""
    config = dataclasses.replace(CONFIG, learning_rate=1e30, clip=1e30, evaluate_every=1)
    with pytest.raises(TrainingError, match="Try a lower learning_rate"):
        finished("gnn", config, tmp_path)
    assert all(tensor.isfinite().all() for tensor in checkpoint_weights(tmp_path).values())


@pytest.mark.parametrize("seconds", [0.0, 120.0], ids=["saved often", "saved at the end"])
@pytest.mark.parametrize("rate", [3e38, 1e39, math.inf])
def test_a_learning_rate_past_the_numbers(tmp_path: Path, rate: float, seconds: float) -> None:
    """Refused as a setting, or while training: in no case infinite weights are saved."""

    def attempt() -> None:
        config = TrainConfig(steps=5, batch_size=4, learning_rate=rate)
        finished("gnn", config, tmp_path, checkpoint_seconds=seconds)

    with pytest.raises(GraphkinError, match="learning_rate"):
        attempt()
    if (tmp_path / "checkpoint.safetensors").exists():
        assert all(tensor.isfinite().all() for tensor in checkpoint_weights(tmp_path).values())


# --- Options ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_bf16(tmp_path: Path, name: str) -> None:
    config = dataclasses.replace(CONFIG, report_every=1)
    exact = finished(name, config, tmp_path / "f32")
    rough = finished(name, dataclasses.replace(config, bf16=True), tmp_path / "bf16")
    assert all(t.dtype == torch.float32 and bool(t.isfinite().all()) for t in rough.values())
    f32, bf16 = (
        [line["loss"] for line in log_lines(tmp_path / folder)] for folder in ("f32", "bf16")
    )
    assert all(math.isfinite(loss) for loss in bf16)
    assert bf16[0] == pytest.approx(f32[0], rel=0.05)
    assert bf16 != f32
    assert not same(exact, rough)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool) -> None:
    compiled: list[Any] = []
    used: list[int] = []

    def record(module: nn.Module) -> Any:
        compiled.append(module)

        def call(batch: Any) -> Any:
            used.append(batch.num_pairs)
            return module(batch)

        return call

    monkeypatch.setattr(torch, "compile", record)
    model = make_model()
    train(model, TASK, dataclasses.replace(CONFIG, steps=3, compile=is_compiled), tmp_path)
    assert compiled == ([model] if is_compiled else [])
    assert used == ([4] * 3 if is_compiled else [])


@pytest.mark.parametrize("seconds", [0.0, 1000.0])
def test_time_between_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    saved: list[int] = []
    save = loop.save_checkpoint

    def watched(path: Path, model: Any, optimizer: Any, state: Any, specification: Any) -> None:
        saved.append(state.step)
        save(path, model, optimizer, state, specification)

    monkeypatch.setattr(loop, "save_checkpoint", watched)
    finished("gnn", dataclasses.replace(CONFIG, steps=5), tmp_path, checkpoint_seconds=seconds)
    assert saved == ([0, 1, 2, 3, 4, 5] if seconds == 0 else [0, 5])


# --- The world around ---------------------------------------------------------------------


@pytest.mark.parametrize("how", ["whole", "crash"])
def test_signals_are_handled_as_before_once_a_run_ends(tmp_path: Path, how: str) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    during: list[Any] = []

    def on_report(report: StepReport) -> None:
        during.extend(signal.getsignal(number) for number in numbers)
        if how == "crash":
            raise Crash

    try:
        finished("gnn", CONFIG, tmp_path, on_report=on_report)
    except Crash:
        assert how == "crash"
    assert during[:2] != before
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_crash_ends_the_thread_that_makes_batches(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        finished("gnn", CONFIG, tmp_path, on_report=crash_at(10))
    assert "graphkin-batches" not in [thread.name for thread in threading.enumerate()]


def test_training_in_a_thread_of_its_own(tmp_path: Path) -> None:
    expected = finished("gnn", CONFIG, tmp_path / "main")
    weights: list[dict[str, Tensor]] = []
    worker = threading.Thread(
        target=lambda: weights.append(finished("gnn", CONFIG, tmp_path / "thread"))
    )
    worker.start()
    worker.join()
    assert same(weights[0], expected)
