"""Stand-alone training: one architecture, from scratch, once or with several seeds."""

from nasight.training._result import EpochRow, Summary, TrainingResult
from nasight.training._seeds import train_seeds
from nasight.training._settings import PRESETS, TrainSettings, settings_for
from nasight.training._train import load_trained, train

__all__ = [
    "PRESETS",
    "EpochRow",
    "Summary",
    "TrainSettings",
    "TrainingResult",
    "load_trained",
    "settings_for",
    "train",
    "train_seeds",
]
