"""What there is to train: what a search or a find found, on its data, or a named architecture."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any, Unpack

from nasight.data import Dataset, load_at, photo_defaults, with_label
from nasight.errors import RequestError
from nasight.notes import note
from nasight.options import TrainOptions
from nasight.own import own_parts
from nasight.runs import DataRecord, RunFolder, data_of, is_code, named_again
from nasight.searching import published_training, read_count, read_milliseconds
from nasight.spaces import Space, family_of
from nasight.spaces import load as load_space
from nasight.studies._folder_name import folder_name
from nasight.studies._run_or_architecture import named_architecture
from nasight.studies.finding import Answer, with_test_part
from nasight.training import TrainSettings, settings_for


@dataclass(frozen=True)
class Trainable:
    """An architecture, the data it is trained on, and the folder where its trainings go."""

    space: Space | str
    arch: str
    data: Dataset
    out: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the preset: as its method was published, as a find measured it, or as it was `changed`."""
    preset: str = "small"

    def changed(self, **settings: Unpack[TrainOptions]) -> Trainable:
        """The same with these settings; sizes that are not named stay.

        Parameters
        ----------
        settings : any setting of `nasight.training.TrainOptions`.
        """
        kept = dict(self.settings)
        if "epochs" in settings or "share" in settings:
            # The rows of a find are those that there was time for; a training of another length has all of them.
            kept.pop("examples", None)
        sizes = {**kept.get("size", {}), **settings.get("size", {})}
        return replace(self, settings={**kept, **settings, "size": sizes})

    @property
    def resolved(self) -> TrainSettings:
        """Every setting of the training, those of the preset too; functions of one's own left out."""
        settings = {name: value for name, value in self.settings.items() if name not in ("label", "task")}
        own_parts(settings)
        if isinstance(settings.get("augment"), str):  # words for random changes are the data's; a training has them
            settings["augment"] = True
        return settings_for(self.space, self.preset, **settings)


@dataclass(frozen=True)
class _DataRequest:
    """The data that a caller names, None for the run's, and how it is to be read."""

    data: Any
    folder: str | Path | None
    resolution: int | None
    fit: str | None
    strict: bool

    def load(self, pixels: int | None) -> Dataset:
        """The data set where there is no run; photos at `pixels` per side unless a resolution is asked for."""
        return load_at(
            pixels,
            "digits" if self.data is None else self.data,
            folder=self.folder,
            resolution=self.resolution,
            fit=self.fit,
            strict=self.strict,
            training=True,
        )

    def load_again(self, run: RunFolder, source: str, space: Space, preset: str) -> Dataset:
        """The data of a run, or what is named instead: read as is asked for, else as the preset, else as the run did.

        Where a preset changes photos at random, the changes of the run win, and so does none if the run's own preset
        would have changed them. But what searches do unasked gives way to what trainings do.
        """
        record = DataRecord.read(run)
        own = data_of(run, source, data_folder=self.folder, may_differ=True) if self.data is None else None
        named = source if own is not None else self.data
        pixels = space.photo_pixels.get(preset)
        usual, searched = (photo_defaults(named, pixels, training=training) for training in (True, False))
        side = usual.resolution if self.resolution is None else self.resolution
        fit = self.fit or record.reading.get("fit") or usual.fit
        wanted = {key: value for key, value in (("resolution", side), ("fit", fit)) if value is not None}
        decided = own is not None and run.about["settings"].get("preset") in space.photo_pixels
        kept = decided or record.augmentation not in (None, "none")
        changes = record.augmentation if kept and record.augmentation != searched.augment else None
        again = replace(
            record,
            reading={**record.reading, **wanted},
            augmentation=changes or usual.augment or record.augmentation,
        )
        if own is not None and again == record and not self.strict:
            return own
        return again.load(named, self.folder, strict=self.strict)


def trainable(
    run: str | Path | None = None,
    *,
    space: str | None = None,
    arch: str | None = None,
    data: Any = None,
    out: str | Path | None = None,
    data_folder: str | Path | None = None,
    preset: str | None = None,
    label: str | None = None,
    task: str | None = None,
    resolution: int | None = None,
    fit: str | None = None,
    strict: bool = False,
    max_params: int | str | None = None,
    max_latency: float | str | None = None,
    **options: Any,
) -> Trainable:
    """What a search or a find found, or a named architecture: with its data, ready for `train_found`.

    Parameters
    ----------
    run : a finished search, or a find: then what its answer says to take, at the size at which its limits count, or the
        winner of its race where that is no architecture of the searched space; a note says which of the two.
    space : without `run` a space by name, or "FILE.py:NAME". With `run` the code that it was made with, which is run
        only where it is named again.
    arch : without `run` the architecture, as its space writes it.
    data : the run's by default, without a run digits; see `nasight.data.load`.
    out : where trainings go. By default RUN/train, and a folder of their own in there where the data is not the run's.
    data_folder : the folder of the data sets that have names.
    preset : "small" by default; of a find its target, or what the find itself did: its size, its recipe, and as many
        epochs as the longest training of this architecture had there. With "paper" a search, or a published cell by
        its name, comes with what the publication of its method trains otherwise.
    label, task : of `data`, where it is a table.
    resolution, fit, strict : as in `nasight.data.load`; by default images are read as the preset was published, or as
        the run read them.
    max_params, max_latency : of a find: take the best point of its front within these limits.
    options : the space's own, such as `layers=3` for mlp.
    """
    data = None if data is None else with_label(data, label, task)
    if data is None and (label is not None or task is not None):
        raise RequestError("a label and a task are of data that is named with them")
    request = _DataRequest(data, data_folder, resolution, fit, strict)
    named = named_architecture(run, space, arch, options, "train")
    limits = {
        "max_params": read_count(max_params) if isinstance(max_params, str) else max_params,
        "max_latency": read_milliseconds(max_latency) if isinstance(max_latency, str) else max_latency,
    }
    if named is None and RunFolder(str(run)).kind == "find":
        return _from_find(Path(str(run)), space, request, out, preset, limits)
    if any(limit is not None for limit in limits.values()):
        raise RequestError("limits choose from the front of a find: give one as RUN")
    if named is None:
        return _from_run(Path(str(run)), space, request, out, preset or "small")
    name, arch = named
    found, preset = _space(name, options), preset or "small"
    dataset = request.load(found.photo_pixels.get(preset))
    place = Path(out) if out else Path("runs") / _default_name(name, arch, dataset.fingerprint)
    methods = {known.lower(): method for known, method in found.found_by.items()}
    published = _published(methods.get(arch.strip().lower()), found.family, preset)
    return Trainable(_sendable(name, found), arch, dataset, place, published, preset)


def _from_run(path: Path, code: str | None, request: _DataRequest, out: str | Path | None, preset: str) -> Trainable:
    folder = RunFolder.open(path, kind="search")
    about, result = folder.about, folder.result
    if result is None:
        raise RequestError(
            f"the search in {path} is not finished; resume with: nasight search --resume {quote(str(path))}"
        )
    try:
        name, text, settings = str(result["space"]), str(result["architecture"]), about["settings"]
        source, options = str(settings["data"]), settings["space_options"]
    except (KeyError, TypeError) as error:
        raise RequestError(f"the search in {path} is damaged: its files lack {error}") from None
    named = named_again(path, about, name, code)
    space = _space(named, options)
    dataset = request.load_again(folder, source, space, preset)
    published = _published(settings.get("method"), family_of(name), preset)
    place = Path(out) if out else _place(path / "train", folder, dataset)
    return Trainable(_sendable(named, space), text, dataset, place, published, preset)


def _published(method: str | None, family: str, preset: str) -> Mapping[str, Any]:
    """What the publication of a method trains otherwise than the preset."""
    return published_training(str(method), family) if preset == "paper" else {}


def _from_find(
    path: Path,
    code: str | None,
    request: _DataRequest,
    out: str | Path | None,
    preset: str | None,
    limits: Mapping[str, Any],
) -> Trainable:
    answer = Answer(path)
    about, result = answer.folder.about, answer.result
    if any(limits.values()):
        text = answer.within(**limits).architecture
    else:
        text, which = answer.advised()
        note(f"what is trained of {path} is {which}")
    settings = about["settings"]
    named = named_again(path, about, str(settings["space"]), code)
    space = _space(named, settings["space_options"])
    if space.reference not in space and text == space.format(space.reference):
        # It has an option that was not searched; the space with its own options has it.
        space = _space(named, {})
    target = result["target"]
    # Which random changes of images help was measured. Rates belong to a size and a length: those of the find go with
    # its own size, those of a preset or a target with theirs.
    changes = str(result["recipe"]["augmentation"])
    own: dict[str, Any] = {"augment": False if changes == "none" else changes.replace(" and ", ",")}
    own |= {key: settings[key] for key in ("class_weights", "precision") if settings.get(key) not in (None, "32")}
    own |= _own_parts(path, about)
    if preset is None and target["preset"] is None:
        own |= _as_in(answer, text)
    preset = preset or target["preset"] or "small"
    dataset = request.load_again(answer.folder, str(settings["data"]), space, preset)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    place = Path(out) if out else _place(path / "train" / digest, answer.folder, dataset)
    return Trainable(_sendable(named, space), text, with_test_part(dataset), place, own, preset)


def _own_parts(path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """The metric of a find where it has a name; a note names the functions of one's own, which no file keeps."""
    own: Mapping[str, str] = about.get("own") or {}
    functions = [part for part, value in own.items() if "." in value]
    if functions:
        note(f"{path} was made with your own {' and '.join(functions)}, which this training does not have")
    return {part: value for part, value in own.items() if part == "metric" and part not in functions}


def _as_in(answer: Answer, text: str) -> dict[str, Any]:
    """How a find trained one of its architectures: size, rates, rows, and the epochs to which its accuracy belongs."""
    result = answer.result
    return {
        **({"examples": result["examples"]} if result["examples"] < result["rows"] else {}),
        "size": result["target"]["size"],
        "lr": result["recipe"]["lr"],
        "weight_decay": result["recipe"]["weight_decay"],
        "batch_size": answer.folder.about["settings"]["batch_size"],
        "epochs": _epochs_in(answer, text),
    }


def _epochs_in(answer: Answer, text: str) -> int:
    """The epochs that an architecture had in the longest trainings of a find, or would have had there."""
    result, base = answer.result, answer.baseline
    # Finds of before kept the epochs of both sides once.
    sides = {base["architecture"]: base.get("epochs", result["epochs"]), answer.architecture: result["epochs"]}
    point = next((point for point in answer.front if point.architecture == text), None)
    if text in sides or point is None:
        return int(sides[text])
    line = next((line for line in result["race"]["lines"] if line["architecture"] == text), None)
    if not point.estimated or line is None:
        return point.epochs
    # Its accuracy is that of the last rung, which it did not reach.
    rungs, had = result["race"]["rungs"], [epochs for epochs in line["epochs"] if epochs is not None]
    return max(1, round(had[-1] * rungs[-1] / rungs[len(had) - 1])) if had else point.epochs


def _space(name: str, options: Mapping[str, Any]) -> Space:
    """The space of this name; one from a file has no options."""
    return load_space(name) if is_code(name) else load_space(name, **options)


def _sendable(name: str, space: Space) -> Space | str:
    """The space as other processes can have it: one from a file goes by its name."""
    return name if is_code(name) else space


def _place(folder: Path, run: RunFolder, data: Dataset) -> Path:
    """Where trainings on this data go: the folder itself, or one inside it where it is not the data of the run."""
    if data.fingerprint == DataRecord.read(run).fingerprint:
        return folder
    return folder / f"{folder_name(data.name)}-{data.fingerprint[:8]}"


def _default_name(space: str, arch: str, fingerprint: str) -> str:
    digest = hashlib.sha256(f"{space}\n{arch}\n{fingerprint}".encode()).hexdigest()[:8]
    return f"{folder_name(space)}-train-{digest}"
