"""Which rows a training learns from, and which judge it."""

from __future__ import annotations

import torch
from torch import Tensor

from nasight.data import Dataset, split_indices
from nasight.errors import RequestError
from nasight.reproducible import generator_for
from nasight.training._settings import HELD_OUT, TrainSettings


def parts(data: Dataset, settings: TrainSettings) -> tuple[Tensor | None, Tensor | None, str]:
    """The rows to learn from (None: all), the training rows that judge (None: the test part), and its name.

    The split does not depend on the seed, so that seeds differ by their training only.
    """
    rows: Tensor | None = None
    held_out: Tensor | None = None
    judged_by = "the test part"
    if settings.validation != "test" or data.test_y is None:
        share = HELD_OUT if settings.validation == "test" else float(settings.validation)
        held_out, rows = data.split(share, generator_for("training", "held out"))
        judged_by = f"{len(held_out)} held-out training rows ({share:.0%})"
    left = len(data.train_y if rows is None else rows)
    keep = min(round(settings.share * left), settings.examples or left)
    if keep < left:
        if keep < data.fewest:
            raise RequestError(f"{keep} of {left} training rows are too few for {data.outputs_text}")
        rows = torch.arange(left) if rows is None else rows
        (kept,) = split_indices(data.strata[rows], [keep], generator_for("training", "share"))
        rows = rows[kept]
    return rows, held_out, judged_by
