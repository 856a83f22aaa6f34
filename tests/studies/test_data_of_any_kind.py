"""Every function that takes data takes all that `nasight.data.load` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from nasight.anatomy import landscape_run
from nasight.kernels import eigen_search, score
from nasight.training import train_seeds

X = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
Y = np.arange(40) % 2
FRAME = pd.DataFrame(X, columns=list("abcdef")).assign(label=Y)
KINDS = {"frame": FRAME, "Dataset": TensorDataset(torch.tensor(X), torch.tensor(Y)), "arrays": (X, Y)}


@pytest.mark.parametrize("data", KINDS.values(), ids=KINDS)
def test_data_of_any_kind_is_scored_trained_and_mapped(data: Any, tmp_path: Path) -> None:
    assert len(score("mlp", "params", data, sample=2, workers=1).architectures) == 2
    found = eigen_search(
        "mlp", data, lambda texts: [float(len(t)) for t in texts], metric="params", sample=2, workers=1
    )
    assert found.scored == 2
    how = {"preset": "tiny", "epochs": 1, "examples": 30, "batch_size": 10, "size": {"width": 4}}
    assert len(train_seeds("mlp", "relu,relu,relu/0,0", data, seeds=(0,), workers=1, **how).accuracy) == 1  # type: ignore[arg-type]
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 2))
    seen = landscape_run(
        model, data, out=tmp_path / "l", part="train", hessian=False, variance=False, points=3, workers=1
    )
    assert seen.landscape.losses.shape == (3, 3)
