"""A model folder: written at once, and read without running anything that lies in it.

model.json            classes, inputs, normalization, architecture, accuracy, the checksums of the other files
weights.safetensors   the trained weights
network.py            the network as source that needs torch alone (network.pt2 where there is no source)
predict.py            a program that uses the folder without nasight
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from nasight.errors import RequestError, RunError
from nasight.export import fitted, module_from, predict_source, python_source, same_outputs, to_torch_export
from nasight.runs import write_atomic
from nasight.studies._model import Model
from nasight.studies._model_card import ModelCard, ModelFile, card_fault, card_of
from nasight.studies._model_network import SpaceGiven, bare_network, check_fit, network_of, space_of
from nasight.studies._trained_model import trained_model, training_in

ABOUT, WEIGHTS, SOURCE, PROGRAM, ALONE = "model.json", "weights.safetensors", "network.py", "network.pt2", "predict.py"
OURS = {ABOUT, WEIGHTS, SOURCE, PROGRAM, ALONE, "__pycache__"}
INSIDE = "model"
"""The name of the model folder inside a run."""
MOST_BYTES = 2**22
"""Of model.json."""
HEADER_BYTES = 2**24
"""What a file of weights may have besides eight bytes for each of them."""


def load_model(
    run: str | Path,
    *,
    space: SpaceGiven | None = None,
    data: Any = None,
    data_folder: str | Path | None = None,
) -> Model:
    """The model of a folder, ready to predict; no code that lies in the folder is run.

    Parameters
    ----------
    run : a model folder, a run that has one, or a finished training (of a search: the first finished training of what
        it found; of several seeds: the first).
    space : the space, where it is your own code: such code is never run because a folder names it.
    data, data_folder : for a training of a version that kept no inputs.json; as in `trained_model`.

    >>> import nasight
    >>> from nasight.studies import trained_model, write_model
    >>> done = nasight.train("mlp", "relu,relu,relu/0,0", "digits", preset="tiny", epochs=1, out=tmp / "run")
    >>> _ = write_model(tmp / "run" / "model", trained_model(tmp / "run"))
    >>> model = load_model(tmp / "run")
    >>> model.predict(nasight.data.load("digits").test_x[:3]).shape, len(model.classes)
    ((3,), 10)
    """
    place = Path(run)
    found = next((folder for folder in _places(place) if (folder / ABOUT).is_file()), None)
    if found is not None:
        return _read(found, space)
    if not place.is_dir():
        raise RequestError(f"there is no folder {run}")
    training = training_in(place)
    if training is None:
        raise RequestError(f"{run} holds no model and no finished training; nasight train makes one")
    path, source = training
    return trained_model(path, data, source=source, space=space, data_folder=data_folder)


def write_model(folder: str | Path, model: Model) -> Path:
    """Write a model folder, in place of the one that is there; a kill leaves the old one or the new one.

    The source in network.py is checked against the network first. A space without source (your own module) gets
    network.pt2 of torch.export instead, and where torch cannot trace it model.json says so under "why".

    Parameters
    ----------
    folder : where it goes; a folder that holds anything else, and a link to elsewhere, are refused.
    model : from `trained_model` or `load_model`.
    """
    place = Path(folder)
    _check_place(place)
    new, old = (place.with_name(f".{place.name}.{ending}") for ending in (f"{os.getpid()}.new", "old"))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_halves(place)
        new.mkdir()
        _fill(new, model)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
        new.rename(place)
    except OSError as error:
        raise RunError(f"cannot write {place}: {error.strerror}; what was there before is intact") from error
    finally:
        if old.is_dir() and not place.exists():
            old.rename(place)
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    return place


def _remove_halves(place: Path) -> None:
    """What a kill left while a model was written beside this place."""
    for path in place.parent.iterdir():
        if path.name.startswith(f".{place.name}.") and path.name.endswith(".new"):
            shutil.rmtree(path, ignore_errors=True)


def _fill(folder: Path, model: Model) -> None:
    """All files of a model, model.json last."""
    from safetensors import SafetensorError
    from safetensors.torch import save

    network, card = model.network.eval(), model.card
    kind, why, state = _written_network(folder, model, network)
    try:
        write_atomic(folder / WEIGHTS, save(state))
    except (SafetensorError, KeyError, ValueError) as error:
        raise RunError(f"safetensors cannot write the weights: {error}") from error
    if kind is not None:
        write_atomic(folder / ALONE, predict_source().encode())
    digests = {path.name: _digest(path) for path in sorted(folder.iterdir())}
    about = ModelFile(**dict(card), network=kind, why=why, tensors=tuple(state), files=digests)
    write_atomic(folder / ABOUT, (about.model_dump_json(indent=2) + "\n").encode())


def _written_network(folder: Path, model: Model, network: nn.Module) -> tuple[Any, str | None, dict[str, Tensor]]:
    """The file that holds the network, why it is no source, and the weights under the names that it uses."""
    card, design = model.card, model.design
    try:
        plain = module_from(python_source(design))
    except RequestError as error:
        why, state = str(error).partition("; ")[0], _own_state(network)
        try:
            to_torch_export(network, card.inputs, folder / PROGRAM)
        except RunError as failed:
            return None, f"{why}, and {failed}", state
        return PROGRAM, why, state
    state = fitted(network.state_dict(), plain)
    plain.load_state_dict(state)
    same_outputs(network, plain, card.inputs)
    source = python_source(design, weights=WEIGHTS, statistics=(card.mean, card.std))
    write_atomic(folder / SOURCE, source.encode())
    return SOURCE, None, state


def _own_state(network: nn.Module) -> dict[str, Tensor]:
    state = network.state_dict()
    other = next((name for name, value in state.items() if not isinstance(value, Tensor)), None)
    if other is not None:
        raise RequestError(f"the state of your module is not of tensors alone: {other!r}; such a model cannot be kept")
    return {name: value.detach().clone().contiguous() for name, value in state.items()}


def _check_place(place: Path) -> None:
    if not place.name or place.name == "..":
        raise RequestError(f"a model needs a folder with a name, got {str(place)!r}")
    if place.is_symlink():
        raise RequestError(f"{place} is a link to elsewhere, which is not written; name the folder itself")
    if not place.exists():
        return
    if not place.is_dir():
        raise RequestError(f"{place} is a file; name a folder")
    other = sorted(path.name for path in place.iterdir() if path.name not in OURS)
    if other:
        raise RequestError(f"{place} holds {other[0]!r}, which is no part of a model; choose another folder")


def _places(folder: Path) -> list[Path]:
    """Where a model may lie, and where it lies if a kill came between the two moves that replace it."""
    found = [folder, folder / INSIDE]
    return [*found, *(path.with_name(f".{path.name}.old") for path in found if path.name)]


def _read(folder: Path, space: SpaceGiven | None) -> Model:
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_file

    about, weights = _about(folder), folder / WEIGHTS
    card = card_of({name: getattr(about, name) for name in ModelCard.model_fields}, str(folder / ABOUT))
    found = space_of(card, space, folder)
    what = f"{weights} is damaged"
    try:
        if not weights.is_file():
            raise RequestError(f"{folder} lacks {WEIGHTS}")
        bare = bare_network(card, found, str(folder / ABOUT))
        if weights.stat().st_size > 8 * sum(value.numel() for value in bare.state_dict().values()) + HEADER_BYTES:
            raise RequestError(f"{what}: it is larger than the weights of its network")
        if _digest(weights) != about.files.get(WEIGHTS):
            raise RequestError(f"{what}: its checksum is not the one in {ABOUT}")
        with safe_open(weights, framework="pt") as file:
            if sorted(file.keys()) != sorted(about.tensors):
                raise RequestError(f"{what}: its tensors are not those that {ABOUT} names")
            shapes = {name: torch.empty(file.get_slice(name).get_shape(), device="meta") for name in about.tensors}
        check_fit(shapes, bare, what)
        loaded = load_file(weights)
    except (OSError, SafetensorError) as error:
        raise RequestError(f"{what}: {error}") from error
    state = {name: loaded[name] for name in about.tensors}
    return Model(network_of(card, found, state, what), card, found, folder)


def _about(folder: Path) -> ModelFile:
    path = folder / ABOUT
    try:
        if path.stat().st_size > MOST_BYTES:
            raise RequestError(f"{path} is larger than {MOST_BYTES:,} bytes, so it is no {ABOUT}")
        return ModelFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise RequestError(f"{path} is damaged: {card_fault(error)}") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
