"""Stand-alone training: one architecture, from scratch, once or with several seeds."""

from nasight.options import TrainOptions
from nasight.training._curve import Point, TrainingCurve, train_curve
from nasight.training._loop import Diverged, Job, Trainer, build
from nasight.training._result import EpochRow, Summary, TrainingResult
from nasight.training._resume import resume_train
from nasight.training._rows import parts
from nasight.training._seeds import train_seeds
from nasight.training._settings import TrainSettings, kept_settings, settings_for
from nasight.training._train import INPUTS, load_trained, moved, run_job, train

__all__ = [
    "INPUTS",
    "Diverged",
    "EpochRow",
    "Job",
    "Point",
    "Summary",
    "TrainOptions",
    "TrainSettings",
    "Trainer",
    "TrainingCurve",
    "TrainingResult",
    "build",
    "kept_settings",
    "load_trained",
    "moved",
    "parts",
    "resume_train",
    "run_job",
    "settings_for",
    "train",
    "train_curve",
    "train_seeds",
]
