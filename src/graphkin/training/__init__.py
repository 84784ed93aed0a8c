"""Training: configuration, the loop, checkpoints, the log."""

from graphkin.training.config import TrainConfig
from graphkin.training.log import Report
from graphkin.training.loop import Result, train

__all__ = ["Report", "Result", "TrainConfig", "train"]
