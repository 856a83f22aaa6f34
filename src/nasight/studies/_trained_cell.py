"""A design trained once and kept, for what is measured around a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from nasight.anatomy import Design
from nasight.compute import choose_device
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.reproducible import torch_threads
from nasight.runs import RunFolder
from nasight.spaces import load
from nasight.studies._convergence import judged_part
from nasight.studies._protocol import Protocol
from nasight.training import TrainingCurve, build, train_curve

KIND = "cell"


def trained_cell(
    design: Design,
    data: Any,
    *,
    out: str | Path,
    protocol: Protocol | None = None,
    lr: float = 0.025,
    seed: int = 0,
    data_folder: str | Path | None = None,
    device: str = "auto",
) -> tuple[TrainingCurve, nn.Module, Dataset]:
    """The curve, the trained network and the rows it learned from and was judged by; a second call reads `out`."""
    protocol = protocol or Protocol()
    dataset = judged_part(load_data(data, folder=data_folder), protocol)
    space, arch = load(design.space), design.architecture()
    job = protocol.job(space, arch, dataset, lr=lr, seed=seed, device=str(choose_device(device)))
    settings = {
        "space": design.space,
        "architecture": space.format(arch),
        "data": dataset.name,
        "fingerprint": dataset.fingerprint,
        "lr": lr,
        "seed": seed,
        **protocol.kept(),
    }
    folder = RunFolder.create_or_open(out, kind=KIND, holds="a trained cell", settings=settings)
    with folder.writing():
        state, result = folder.load(), folder.result
        if state is not None and result is not None:
            network = build(job, auxiliary=False)
            network.load_state_dict(state["network"])
            return TrainingCurve.from_dict(result["training"]), network, dataset
        with torch_threads(1):
            training, network = train_curve(job, evaluations=protocol.evaluations)
        folder.save({"network": network.state_dict()}, mark="trained")
        folder.write_result({"training": training.to_dict()})
    return training, network, dataset
