"""Training: configuration, the loop, checkpoints, the log."""

from graphkin.learning.training.config import TrainConfig
from graphkin.learning.training.log import StepReport
from graphkin.learning.training.loop import TrainingResult, train

__all__ = ["StepReport", "TrainConfig", "TrainingResult", "train"]
