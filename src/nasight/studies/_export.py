"""The found network as files that need no nasight: where its weights are, and how its inputs were scaled."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import nn

from nasight.data import load as load_data
from nasight.data import prepare
from nasight.errors import RequestError
from nasight.export import ExportDesign, fitted, module_from, python_source, same_outputs, to_onnx, to_torch_export
from nasight.reproducible import seeded
from nasight.runs import RunFolder, named_again, read_object, write_atomic
from nasight.searching import read_settings
from nasight.spaces import Space, known_multiply_adds
from nasight.spaces import load as load_space
from nasight.studies._run_or_architecture import named_architecture
from nasight.training import kept_settings, load_trained, parts, settings_for

Statistics = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Exportable:
    """What to export, and the trained weights and channel statistics that there are."""

    design: ExportDesign
    trained: nn.Module | None = None
    statistics: Statistics | None = None

    def network(self) -> nn.Module:
        """The trained network, or one with initial weights."""
        if self.trained is not None:
            return self.trained.eval()
        with seeded(0, "export"):
            return self.design.network().eval()


def exportable(
    run: str | Path | None = None,
    *,
    space: str | None = None,
    arch: str | None = None,
    inputs: tuple[int, ...] | None = None,
    classes: int | None = None,
    size: Mapping[str, int] | None = None,
    data_folder: str | Path | None = None,
    **options: Any,
) -> Exportable:
    """The network of a run (trained where it was trained), or of the architecture `arch` of `space`.

    Parameters
    ----------
    run : a search, or one training.
    space, arch : instead of a run; `options` are the space's own. With a run, `space` names code of your own that it
        was made with, "FILE.py:NAME".
    inputs, classes, size : of the network, if not those of the run; a trained network has its own.
    data_folder : the folder of the data sets that have names.
    """
    changes = dict(size or {})
    named = named_architecture(run, space, arch, options, "export")
    if named is None:
        return _from_run(Path(str(run)), space, inputs, classes, changes, data_folder)
    space, arch = named
    found = load_space(space, **options)
    sizes = found.size(**changes) if changes else {}
    return Exportable(
        ExportDesign(found, found.parse(arch), inputs or (3, 32, 32), 10 if classes is None else classes, sizes)
    )


def write_export(
    what: Exportable, *, python: Path | None = None, torch_export: Path | None = None, onnx: Path | None = None
) -> dict[str, Any]:
    """Write these files, each checked against nasight's own network first; what was written, and how far it differs."""
    network, design, apart = what.network(), what.design, list[float]()
    counted = (p.numel() for name, p in network.named_parameters() if not name.startswith("auxiliary."))
    products = known_multiply_adds(network, design.inputs)
    if products is None:
        _check_inputs(network, design.inputs)
    written: dict[str, Any] = {"parameters": sum(counted), "multiply_adds": products}
    if python is not None:
        found, difference = _write_python(what, network, python)
        written |= found
        apart.append(difference)
    if torch_export is not None:
        apart.append(to_torch_export(network, design.inputs, torch_export))
        written["torch_export"] = str(torch_export)
    if onnx is not None:
        apart.append(to_onnx(network, design.inputs, onnx))
        written["onnx"] = str(onnx)
    return {**written, "difference": max(apart)} if apart else written


def _check_inputs(network: nn.Module, inputs: tuple[int, ...]) -> None:
    try:
        with torch.no_grad():
            network(torch.zeros(1, *inputs))
    except RuntimeError as error:
        raise RequestError(f"the network does not take inputs of shape {inputs}") from error


def _write_python(what: Exportable, network: nn.Module, path: Path) -> tuple[dict[str, Any], float]:
    """The file and, where there are trained weights, theirs beside it."""
    weights = path.with_suffix(".pt") if what.trained is not None else None
    named = None if weights is None else weights.name
    plain = module_from(python_source(what.design))
    state = fitted(network.state_dict(), plain)
    plain.load_state_dict(state)
    apart = same_outputs(network, plain, what.design.inputs)
    if weights is not None:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomic(weights, buffer.getvalue())
    write_atomic(path, python_source(what.design, weights=named, statistics=what.statistics).encode())
    return {"python": str(path), "weights": None if weights is None else str(weights)}, apart


def _from_run(
    path: Path,
    code: str | None,
    inputs: tuple[int, ...] | None,
    classes: int | None,
    changes: dict[str, int],
    data_folder: str | Path | None,
) -> Exportable:
    """The trained network where there is one of the size asked for, else a new one of the run's size."""
    about = read_object(path / "run.json") if (path / "run.json").is_file() else {}
    changed = bool(changes) or inputs is not None or classes is not None
    if about.get("kind") == "train":
        if changed:
            raise RequestError(f"{path} is trained, so its sizes, inputs and classes are what they are")
        folder = RunFolder.open(path, kind="train")
        named = named_again(path, about, str(about["space"]), code)
        return _trained(folder, load_space(named, **about.get("space_options", {})), data_folder)
    folder = RunFolder.open(path, kind="search")
    result, settings = folder.result, about.get("settings", {})
    if result is None:
        raise RequestError(
            f"the search in {path} is not finished; resume with: nasight search --resume {quote(str(path))}"
        )
    kept = read_settings(settings)
    space = load_space(named_again(path, about, kept.space, code), **kept.space_options)
    training = training_of(path, str(result["architecture"]))
    if training is not None and not changed:
        return _trained(training, space, data_folder)
    shape = inputs or tuple(about["data"]["inputs"])
    size = space.size(**{**_size(space, settings), **changes})
    found = space.parse(str(result["architecture"]))
    number = len(about["data"]["classes"]) if classes is None else classes
    return Exportable(ExportDesign(space, found, shape, number, size))


def training_of(path: Path, architecture: str) -> RunFolder | None:
    """The first finished training of this search's architecture, by the name of its settings and its seed.

    Those on other data than the search's, which have folders of their own, come last.
    """
    own, other = (sorted(path.glob(f"train/{names}/seed-*/run.json")) for names in ("*", "*/*"))
    for place in (*own, *other):
        folder = RunFolder(place.parent)
        if folder.result is not None and folder.about.get("architecture") == architecture:
            return folder
    return None


def _trained(folder: RunFolder, space: Space, data_folder: str | Path | None) -> Exportable:
    about = folder.about
    network = load_trained(folder.path, space=space)
    shape, number = tuple(about["data"]["inputs"]), len(about["data"]["classes"])
    design = ExportDesign(space, space.parse(about["architecture"]), shape, number, kept_settings(folder).size)
    return Exportable(design, network, _statistics(folder, data_folder))


def _statistics(folder: RunFolder, data_folder: str | Path | None) -> Statistics | None:
    """Mean and deviation of the rows a network was trained on; None where its data is not here."""
    about = folder.about
    try:
        data = load_data(about["data"]["name"], folder=data_folder)
    except RequestError:
        return None
    if data.fingerprint != about["data"]["fingerprint"]:
        return None
    prepared = prepare(data, parts(data, kept_settings(folder))[0])
    return prepared.mean.tolist(), prepared.std.tolist()


def _size(space: Space, settings: dict[str, Any]) -> dict[str, int]:
    """The size that a limit was about, else the one `nasight train` of the same preset builds, else the search's."""
    if settings.get("params_size"):
        return dict(settings["params_size"])
    try:
        return settings_for(space, settings.get("preset", "small")).size
    except RequestError:
        return dict(settings.get("size", {}))
