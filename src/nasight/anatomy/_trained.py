"""A design trained once and kept, for what is measured around a trained network."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from torch import nn

from nasight.anatomy._convergence import judged_part
from nasight.anatomy._curves import Protocol, Training, initial_network, train_curve
from nasight.anatomy._read import Design
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.reproducible import torch_threads
from nasight.runs import RunFolder
from nasight.spaces import load

KIND = "cell"


def trained(
    design: Design,
    data: Dataset | str | Path,
    *,
    out: str | Path,
    protocol: Protocol | None = None,
    lr: float = 0.025,
    seed: int = 0,
    data_folder: str | Path | None = None,
) -> tuple[Training, nn.Module, Dataset]:
    """The curve, the trained network and the rows it learned from and was judged by; a second call reads `out`."""
    protocol = protocol or Protocol()
    dataset = judged_part(load_data(data, folder=data_folder) if isinstance(data, str | Path) else data, protocol)
    arch = design.architecture()
    settings = {
        "space": design.space,
        "architecture": load(design.space).format(arch),
        "data": dataset.name,
        "fingerprint": dataset.fingerprint,
        "lr": lr,
        "seed": seed,
        **asdict(protocol),
    }
    folder = RunFolder.go_on(out, kind=KIND, holds="a trained cell", settings=settings)
    with folder.writing():
        state, result = folder.load(), folder.result
        if state is not None and result is not None:
            network = initial_network(design.space, arch, dataset, protocol, seed)
            network.load_state_dict(state["network"])
            return Training.from_dict(result["training"]), network, dataset
        with torch_threads(1):
            training, network = train_curve(design.space, arch, dataset, protocol, lr=lr, seed=seed)
        folder.save({"network": network.state_dict()}, mark="trained")
        folder.write_result({"training": training.to_dict()})
    return training, network, dataset
