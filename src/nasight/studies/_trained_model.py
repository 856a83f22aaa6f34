"""The model of a finished training."""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from torch import Tensor

from nasight.data import input_record, prepare
from nasight.errors import RequestError
from nasight.runs import DataRecord, RunFolder, data_of, read_json
from nasight.studies._export import training_of
from nasight.studies._model import Model
from nasight.studies._model_card import card_of
from nasight.studies._model_network import SpaceGiven, network_of, space_of
from nasight.training import INPUTS, kept_settings, parts
from nasight.version import VERSION


def trained_model(
    training: str | Path,
    data: Any = None,
    *,
    source: str | None = None,
    space: SpaceGiven | None = None,
    data_folder: str | Path | None = None,
) -> Model:
    """The model of a finished training: its network, and the statistics of the rows that it learned from.

    Parameters
    ----------
    training : the run folder of one training, as `nasight.train(..., out=...)` writes it.
    data : the data that it was trained on, in any form that `nasight.data.load` takes; other data is refused. It is
        needed where the training was made by a version that kept no inputs.json, and cannot be found by its name.
    source : where the data may be found, if not by its name.
    space : the space, where it is your own code: such code is never run because a folder names it.
    data_folder : the folder of the data sets that have names.
    """
    run = RunFolder.open(training, kind="train")
    result = run.result
    if result is None:
        raise RequestError(f"the training in {run.path} is not finished; train it again to go on")
    about, record = run.about, DataRecord.read(run)
    what = f"the training in {run.path} cannot become a model"
    settings = kept_settings(run)
    values = {
        "nasight": VERSION,
        "classes": record.classes,
        "inputs": record.inputs,
        "data": {"name": record.name, "fingerprint": record.fingerprint},
        "space": about["space"],
        "space_options": about.get("space_options", {}),
        "architecture": about["architecture"],
        "size": settings.size,
        **{name: result[name] for name in ("parameters", "accuracy", "judged_by", "epochs", "seed")},
        "multiply_adds": result.get("multiply_adds"),
    }
    kept = read_json(run.path / INPUTS) if data is None and (run.path / INPUTS).is_file() else None
    if kept is None:
        dataset = data_of(run, source or record.name, data, data_folder=data_folder)
        kept = input_record(prepare(dataset, parts(dataset, settings)[0]))
    if not isinstance(kept, dict) or not isinstance(kept.get("task"), dict):
        raise RequestError(f"{what}: {INPUTS} is damaged")
    task = {**kept["task"], "metric": result.get("metric", "accuracy")}
    card = card_of({**kept, **values, "task": task}, what)
    found = space_of(card, space, run.path)
    return Model(network_of(card, found, _state(run), what), card, found, run.path)


def _state(run: RunFolder) -> dict[str, Tensor]:
    """The weights of the last checkpoint, which is read as plain tensors."""
    try:
        state = (run.load() or {}).get("network")
    except (UnpicklingError, RuntimeError, EOFError, AttributeError) as error:
        first = str(error).partition("\n")[0]
        raise RequestError(f"the checkpoint in {run.path} cannot be read as tensors: {first}") from error
    if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise RequestError(f"the checkpoint in {run.path} holds no weights")
    return state


def training_in(folder: Path) -> tuple[Path, str | None] | None:
    """The training that this folder is, or the first finished one inside it; and where its data is, if that is kept."""
    about = read_json(folder / "run.json") if (folder / "run.json").is_file() else {}
    kind = about.get("kind") if isinstance(about, dict) else None
    if kind == "train":
        return folder, None
    if kind == "search":
        return _of_search(RunFolder.open(folder, kind="search"))
    seeds = (path for pattern in ("seed-*", "*/seed-*") for path in sorted(folder.glob(pattern)))
    found = next((path for path in seeds if (path / "result.json").is_file()), None)
    return None if found is None else (found, None)


def _of_search(search: RunFolder) -> tuple[Path, str | None] | None:
    """A search keeps the path of its data, a training only the name."""
    result, settings = search.result, search.about.get("settings")
    training = training_of(search.path, str(result.get("architecture"))) if isinstance(result, dict) else None
    if training is None:
        return None
    same = DataRecord.read(search).fingerprint == DataRecord.read(training).fingerprint
    source = settings.get("data") if isinstance(settings, dict) and same else None
    return training.path, source if isinstance(source, str) else None
