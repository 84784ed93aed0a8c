"""The training loop: pairs or triplets of any task, any model, any loss.

A run lives in a folder: ``log.jsonl`` (one line for each report), ``checkpoint.safetensors``
(replaced every few minutes and at the end), ``model/`` (the weights that did best on the
validation set). Every batch, and the learning rate, is a function of the step alone, so that
a resumed run computes what an uninterrupted one would have, to the last bit.

Under ``torchrun`` the same loop trains data-parallel: each process takes its share of every
batch, and gradients are averaged.
"""

from __future__ import annotations

import contextlib
import json
import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from graphkin._support.files import sweep, write_atomically
from graphkin.errors import ConfigError, GraphError, ModelError, TrainingError
from graphkin.graphs import PairBatch
from graphkin.graphs.labels import similarity_labels
from graphkin.learning.evaluation import evaluate
from graphkin.learning.losses import (
    TARGET_LOSSES,
    check_link,
    check_loss,
    contrastive_list_loss,
    contrastive_loss,
    scores_loss,
    target_loss,
)
from graphkin.learning.task import (
    LIST_NEGATIVES,
    EvaluationSet,
    Mode,
    TargetSet,
    Task,
)
from graphkin.learning.training.checkpoints import RunState, load_checkpoint, save_checkpoint
from graphkin.learning.training.config import TrainConfig
from graphkin.learning.training.distributed import (
    agreed,
    mean_over_processes,
    process_group,
    stop_signals,
)
from graphkin.learning.training.log import RunLog, StepReport
from graphkin.learning.training.optimizer import FlatOptimizer
from graphkin.models.model import GraphModel, PairOutput
from graphkin.models.saving import model_files

CHECKPOINT_FILE, MODEL_FOLDER = "checkpoint.safetensors", "model"
WEIGHTS_FILE = "best.safetensors"
"""The best weights of a model with parts of a person's own, which a model folder cannot hold."""
BatchLoss = Callable[[PairOutput, PairBatch], Tensor]
SetMetrics = Callable[[GraphModel, EvaluationSet | TargetSet], Mapping[str, float]]
PREFETCH = 4
"""Batches that a thread of their own keeps ready, so that making them holds nothing back."""


@dataclass(frozen=True)
class TrainingResult:
    """The end of a run."""

    step: int
    seconds: float
    validation: dict[str, float]
    best: float
    """Best score of the validation set: the mean of its metrics, or for targets minus the mean
    squared error. ``model/`` holds its weights, or the last."""


def train(
    model: GraphModel,
    task: Task,
    config: TrainConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    device: str = "cpu",
    checkpoint_seconds: float = 120.0,
    tensorboard: bool = False,
    on_report: Callable[[StepReport], None] | None = None,
    loss: BatchLoss | None = None,
    metrics: SetMetrics | None = None,
    temporary: bool = False,
) -> TrainingResult:
    """Trains ``model`` in place.

    Args:
        model: the network; its weights are initialised by the caller.
        task: where batches and the validation set come from.
        config: the course of the run.
        folder: where log, checkpoint and best weights go.
        resume: go on from the folder's checkpoint; without one, start anew.
        device: where to compute.
        checkpoint_seconds: time between checkpoints.
        tensorboard: also write TensorBoard's event files into the folder.
        on_report: called at every report.
        loss: takes the model's output for a batch and the batch, and gives what to minimise, in
            place of the loss of ``config``.
        metrics: takes the model and the validation set, and gives numbers by name, in place of
            those of the set; the weights with the highest mean of them are the best.
        temporary: whether the folder goes when training ends, so that no message names it.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, once a checkpoint is written.
        TrainingError: where the loss is NaN or infinite; the checkpoint is from before.
    """
    if loss is None:
        check_loss(config.loss, model.config.similarity)
        check_link(config.loss, model.config.link)
    if model.config.similarity == "joint":
        raise ConfigError(
            "a matcher with similarity='joint' is made of two that are trained; train one with "
            "similarity='alignment', and join it with an embedder"
        )
    model.calibration = None  # it belongs to the weights as they were
    if config.mode == "kin" and (model.config.matching or model.config.similarity == "siamese"):
        raise ConfigError(
            "mode='kin' compares every graph of a batch with every other by its vector; a "
            "matcher or a Siamese head sees pairs. Use mode='lists'"
        )
    folder = Path(folder)
    checkpoint = folder / CHECKPOINT_FILE
    if checkpoint.exists() and not resume:
        raise TrainingError(f"{folder} holds a run already; resume it, or name another folder")
    with process_group(config.batch_size) as (rank, world), stop_signals() as stop:
        if world > 1 and device == "cuda":
            device = f"cuda:{torch.cuda.current_device()}"
        run = _TrainingLoop(_on_device(model, device), task, config, folder, device, rank, world)
        run.own_loss, run.own_metrics, run.temporary = loss, metrics, temporary
        if rank == 0:
            for file in (checkpoint, *model_files(folder / MODEL_FOLDER)):
                sweep(file)
        if resume and checkpoint.exists():
            run.restore(checkpoint)
        log = RunLog(folder, run.state.log_bytes, tensorboard) if rank == 0 else None
        closing_log = contextlib.closing(log) if log is not None else contextlib.nullcontext()
        with closing_log, contextlib.closing(run.batches()) as batches:
            _loop(run, batches, log, stop, checkpoint_seconds, on_report)
        state = run.state
        return TrainingResult(state.step, state.seconds, state.validation, state.best)


def _on_device(model: GraphModel, device: str) -> GraphModel:
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built with CUDA
        reason = str(error).splitlines()[0]
        raise ConfigError(f"cannot compute on device {device!r}: {reason}") from error


class _TrainingLoop:
    """The parts of a run, and single steps over them."""

    def __init__(
        self,
        model: GraphModel,
        task: Task,
        config: TrainConfig,
        folder: Path,
        device: str,
        rank: int,
        world: int,
    ) -> None:
        self.model, self.task, self.config, self.folder = model, task, config, folder
        self.device, self.rank, self.world = device, rank, world
        self.state = RunState()
        self.own_loss: BatchLoss | None = None
        self.own_metrics: SetMetrics | None = None
        self.temporary = False
        self.has_own_parts = bool(model.own_parts)
        self.optimizer = FlatOptimizer(model, config)
        self.network: nn.Module = model
        if config.compile:
            self.network = torch.compile(model)  # type: ignore[assignment]
        if world > 1:
            self.network = DistributedDataParallel(self.network)
        self.validation_set = task.evaluation_set("validation") if rank == 0 else None

    def specification(self) -> dict[str, Any]:
        """What a checkpoint must have in common with a run that resumes it."""
        return {
            "model": self.model.config.to_dict(),
            "training": asdict(self.config),
            "task": json.loads(json.dumps(self.task.describe())),
        }

    def restore(self, checkpoint: Path) -> None:
        spec = self.specification()
        self.state = load_checkpoint(checkpoint, self.model, self.optimizer, spec)

    def save(self) -> None:
        path = self.folder / CHECKPOINT_FILE
        save_checkpoint(path, self.model, self.optimizer, self.state, self.specification())

    def batches(self) -> Generator[PairBatch]:
        """The batches from the current step on, made ahead of time by a background thread."""
        config = self.config

        def make(step: int) -> PairBatch:
            size, mode = config.batch_size, config.mode
            batch = self.task.batch(step, size, mode, rank=self.rank, world=self.world)
            signed = self.own_loss is None and config.loss not in TARGET_LOSSES
            return self.model.prepare(checked_batch(batch, mode, signed=signed))

        return prefetch(make, self.state.step, config.steps)

    def advance(self, batch: PairBatch) -> float:
        """One step; returns the loss. A loss that is not finite leaves the weights alone."""
        config = self.config
        self.optimizer.zero_grad()
        batch = batch.to(self.device)
        if self.model.config.dropout:
            # What is dropped depends on the step alone, so that a resumed run drops the same.
            torch.manual_seed(
                (config.seed * config.steps + self.state.step) * self.world + self.rank
            )
        with torch.autocast(
            torch.device(self.device).type, dtype=torch.bfloat16, enabled=config.bf16
        ):
            output: PairOutput = self.network(batch)
        loss = self._loss(output, batch)
        torch.autograd.backward(loss)
        value = float(loss.detach())
        rate = config.learning_rate_at(self.state.step)
        if not (math.isfinite(value) and self.optimizer.step(rate)):
            return math.nan
        self.state.step += 1
        return value

    @torch.no_grad()
    def try_out(self, batch: PairBatch) -> None:
        """Refuses a batch that the model cannot take, before anything is written."""
        self.model(batch.to(self.device))
        if self.own_metrics is not None and self.validation_set is not None:
            self._measured()

    def _loss(self, output: PairOutput, batch: PairBatch) -> Tensor:
        config, similarity, labels = self.config, self.model.config.similarity, batch.labels
        if self.own_loss is not None:
            return _checked_loss(self.own_loss(output, batch))
        if config.loss in TARGET_LOSSES:
            assert labels is not None, "the targets of a batch are its labels"
            scale = self.model.config.target_scale
            values = self.model.link(output.scores.float())
            loss = target_loss(values / scale, labels / scale, config.loss, config.huber_delta)
        elif config.mode == "kin":
            assert labels is not None, "the groups of a batch of kin are its labels"
            vectors = torch.cat([output.left, output.right]).float()
            loss = vectors.new_zeros(())
            for values, compared_by in self.model.lessons(vectors):
                left, right = values.chunk(2)
                loss = loss + contrastive_loss(left, right, labels, config.scale, compared_by)
        elif config.mode == "lists":
            scores = output.scores.float().view(-1, 1 + LIST_NEGATIVES)
            loss = contrastive_list_loss(scores, config.scale)
        else:
            scores = output.scores.float()
            loss = scores_loss(scores, labels, config.loss, config.margin, similarity, config.scale)
        vectors = torch.cat([output.left, output.right]).float()
        return loss + config.regularizer * 0.5 * vectors.square().mean()

    def validate(self) -> None:
        """Evaluates on the validation set, and keeps the weights where they are the best yet."""
        if self.validation_set is None:
            return
        self.state.validation = self._measured()
        if self.own_metrics is None:
            score = self.validation_set.score(self.state.validation)
        else:
            score = sum(self.state.validation.values()) / len(self.state.validation)
        self.model.trained_on = self._record(self.validation_set.digest)
        is_better = score > self.state.best
        self.state.stale = 0 if is_better else self.state.stale + 1
        if is_better or self.config.keep == "last":
            self.state.best = max(score, self.state.best)
            if self.has_own_parts:
                state = self.model.state_dict()
                own = {name: tensor.detach().cpu().clone() for name, tensor in state.items()}
                write_atomically(self.folder / WEIGHTS_FILE, safetensors.torch.save(own))
            else:
                self.model.save_pretrained(self.folder / MODEL_FOLDER)

    def _measured(self) -> dict[str, float]:
        """The model on the validation set, by its measures or those of the person who trains."""
        assert self.validation_set is not None, "the first process has one"
        self.model.eval()
        if self.own_metrics is not None:
            measured = _checked_metrics(self.own_metrics(self.model, self.validation_set))
        else:
            measured = evaluate(self.model, self.validation_set)
        self.model.train()
        return measured

    @property
    def is_stale(self) -> bool:
        """Whether evaluations have not become better for so long that the run ends early."""
        return 0 < self.config.patience <= self.state.stale

    def _record(self, data: str) -> dict[str, Any]:
        """What the weights as they are now were trained on, and how well they do."""
        spec, metrics = self.specification(), dict(self.state.validation)
        return {
            "task": spec["task"],
            "training": spec["training"],
            "step": self.state.step,
            "validation": {"data": data, "metrics": metrics},
        }


def _loop(
    run: _TrainingLoop,
    batches: Iterator[PairBatch],
    log: RunLog | None,
    stop: threading.Event,
    checkpoint_seconds: float,
    on_report: Callable[[StepReport], None] | None,
) -> None:
    config, state = run.config, run.state
    losses = state.losses
    began = saved = reported = time.monotonic()
    reported_step = state.step
    before = state.seconds

    def fail(what: str) -> TrainingError:
        if run.optimizer.is_finite():
            save()
        kept = f"the last finite weights are in {run.folder / CHECKPOINT_FILE}. "
        return TrainingError(
            f"{what}; {'' if run.temporary else kept}Try a lower learning_rate or clip in a new run"
        )

    def save() -> None:
        if log is None:
            return
        if not run.optimizer.is_finite():
            raise fail(f"the weights after step {state.step} are not finite")
        state.seconds = before + time.monotonic() - began
        state.log_bytes = log.size()
        run.save()

    if agreed(run.is_stale, run.world):
        return
    run.model.train()
    for batch in batches:
        if state.step == 0:
            run.try_out(batch)
            save()
        loss = run.advance(batch)
        if not math.isfinite(loss):
            raise fail(f"the loss of step {state.step} is NaN or infinite")
        losses.append(mean_over_processes(loss, run.world))
        last = state.step == config.steps
        evaluated = last or state.step % config.evaluate_every == 0
        trained = time.monotonic()
        if evaluated:
            try:
                run.validate()
            except ModelError as error:
                raise fail(f"validation after step {state.step} failed: {error}") from error
            last = last or agreed(run.is_stale, run.world)
        if evaluated or state.step % config.report_every == 0:
            # The rate is that of training; evaluations are left out of it.
            rate = (state.step - reported_step) / max(1e-9, trained - reported)
            report = StepReport(
                step=state.step,
                steps=config.steps,
                loss=sum(losses) / len(losses),
                learning_rate=config.learning_rate_at(state.step - 1),
                steps_per_second=rate,
                seconds_left=(config.steps - state.step) / rate,
                validation=dict(state.validation),
            )
            losses.clear()
            reported, reported_step = time.monotonic(), state.step
            if log is not None:
                log.write(report, evaluated)
                if on_report is not None:
                    on_report(report)
        stopping = agreed(stop.is_set(), run.world)
        if last or stopping or time.monotonic() - saved > checkpoint_seconds:
            save()
            saved = time.monotonic()
        if stopping and not last:
            raise KeyboardInterrupt
        if last:
            return


def _checked_loss(loss: Any) -> Tensor:
    """What a loss of a person's own gave, where gradients can be taken of it."""
    if not isinstance(loss, Tensor) or loss.ndim:
        got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise ConfigError(
            f"the loss must give a tensor of one number, such as a mean over the batch; got {got}"
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise ConfigError(
            "the loss does not depend on the weights of the model, so that nothing can be learned; "
            "compute it from the scores or vectors of the output, without detach or numpy"
        )
    return loss


def _checked_metrics(metrics: Any) -> dict[str, float]:
    """What measures of a person's own gave: finite numbers by name, at least one."""
    numbers: dict[str, float] = {}
    if isinstance(metrics, Mapping):
        with contextlib.suppress(TypeError, ValueError):
            numbers = {str(name): float(value) for name, value in metrics.items()}
    if not numbers or not all(map(math.isfinite, numbers.values())):
        raise ConfigError(
            "metrics must give finite numbers by name, at least one, such as {'auc': 0.9}; got "
            f"{metrics!r}"
        )
    return numbers


def checked_batch(batch: PairBatch, mode: Mode, *, signed: bool) -> PairBatch:
    """The batch, where it holds what its mode says; labels of 1 and 0 become +1 and -1.

    Args:
        batch: what a task made.
        mode: what it was asked for.
        signed: whether labels of pairs say that these are similar or not.
    """
    labels, pairs = batch.labels, batch.num_pairs
    if mode in ("pairs", "kin") and labels is None:
        raise GraphError(f"a batch of mode {mode!r} needs a label for each pair, and has none")
    if mode in ("triplets", "lists"):
        size = 2 if mode == "triplets" else 1 + LIST_NEGATIVES
        if labels is not None or pairs % size:
            raise GraphError(
                f"a batch of mode {mode!r} is made of {size} pairs for each example, without "
                f"labels; got {pairs} pairs {'without' if labels is None else 'with'} labels"
            )
    if labels is not None and not bool(labels.isfinite().all()):
        raise GraphError("the labels of a batch must be finite; one is NaN or infinite")
    if mode != "pairs" or not signed or labels is None or bool((labels.abs() == 1).all()):
        return batch
    signs = torch.from_numpy(similarity_labels(labels.cpu().numpy()))
    return replace(batch, labels=signs.to(labels.device))


def prefetch(make: Callable[[int], PairBatch], start: int, stop: int) -> Generator[PairBatch]:
    """make(start), ..., make(stop - 1), computed ahead by a thread of their own."""
    ready: queue.Queue[PairBatch | BaseException] = queue.Queue(maxsize=PREFETCH)
    closed = threading.Event()

    def put(item: PairBatch | BaseException) -> None:
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for step in range(start, stop):
                if closed.is_set():
                    return
                put(make(step))
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=work, name="graphkin-batches", daemon=True)
    worker.start()
    try:
        for _ in range(start, stop):
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        closed.set()
        worker.join()
