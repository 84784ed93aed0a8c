"""Training: configuration, the loop, checkpoints, the log."""

from graphkin.learning.training.config import TrainConfig
from graphkin.learning.training.log import Report
from graphkin.learning.training.loop import Result, train

__all__ = ["Report", "Result", "TrainConfig", "train"]
