"""What there is to train: what a search or a find found, on its data, or a named architecture."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from nasight.data import Dataset, with_label
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.runs import RunFolder, data_of, is_code, named_again
from nasight.searching import published_training, read_count, read_milliseconds
from nasight.spaces import Space, family_of
from nasight.spaces import load as load_space
from nasight.studies._asked import asked_for
from nasight.studies.finding import Answer, with_test_part


@dataclass(frozen=True)
class Trainable:
    """An architecture, the data it is trained on, and the folder where its trainings go."""

    space: Space | str
    arch: str
    data: Dataset
    out: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that belong to the run: of the published training of its method, or those that a find measured."""
    preset: str = "small"


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
    max_params: int | str | None = None,
    max_latency: float | str | None = None,
    **options: Any,
) -> Trainable:
    """What `run` found, or the architecture `arch` of `space`; `data` may be other data than the run's.

    Of a find it is the winner of the race, or the best point of its front within `max_params` and `max_latency`, at the
    size at which these count: without a preset that of the find's target, or the find's own. With the preset "paper" a
    search comes with what the publication of its method trains otherwise. `options` are the space's own. Code that a
    run was made with is run only where `space` names it again, as "FILE.py:NAME".
    """
    data = None if data is None else with_label(data, label, task)
    if data is None and (label is not None or task is not None):
        raise RequestError("a label and a task are of data that is named with them")
    named = asked_for(run, space, arch, options, "train")
    limits = {
        "max_params": read_count(max_params) if isinstance(max_params, str) else max_params,
        "max_latency": read_milliseconds(max_latency) if isinstance(max_latency, str) else max_latency,
    }
    if named is None and RunFolder(str(run)).kind == "find":
        return _from_find(Path(str(run)), space, data, out, data_folder, preset, limits)
    if any(limit is not None for limit in limits.values()):
        raise RequestError("limits choose from the front of a find: give one as RUN")
    if named is None:
        return _from_run(Path(str(run)), space, data, out, data_folder, preset or "small")
    space, arch = named
    dataset = load_data(data or "digits", folder=data_folder)
    place = Path(out) if out else Path("runs") / _default_name(space, arch, dataset.fingerprint)
    # A space from a file goes to other processes by its name.
    found = space if ".py:" in space else load_space(space, **options)
    return Trainable(found, arch, dataset, place, preset=preset or "small")


def _from_run(
    path: Path,
    code: str | None,
    data: Any,
    out: str | Path | None,
    data_folder: str | Path | None,
    preset: str,
) -> Trainable:
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
    dataset = data_of(folder, source, data, data_folder=data_folder, may_differ=True)
    named = named_again(path, about, name, code)
    found: Space | str = named if is_code(named) else load_space(named, **options)
    published = published_training(str(settings.get("method")), family_of(name)) if preset == "paper" else {}
    return Trainable(found, text, dataset, Path(out) if out else path / "train", published, preset)


def _from_find(
    path: Path,
    code: str | None,
    data: Any,
    out: str | Path | None,
    data_folder: str | Path | None,
    preset: str | None,
    limits: Mapping[str, Any],
) -> Trainable:
    answer = Answer(path)
    about, result = answer.folder.about, answer.result
    text = answer.architecture if not any(limits.values()) else answer.within(**limits).architecture
    settings = about["settings"]
    dataset = data_of(answer.folder, str(settings["data"]), data, data_folder=data_folder, may_differ=True)
    named = named_again(path, about, str(settings["space"]), code)
    found: Space | str = named if is_code(named) else load_space(named, **settings["space_options"])
    # Which random changes of images help was measured; rates belong to a size and a length.
    changes = str(result["recipe"]["augmentation"])
    own: dict[str, Any] = {"augment": False if changes == "none" else changes.replace(" and ", ",")}
    target = result["target"]
    if preset is None and target["preset"] is None:
        own["size"] = target["size"]
    place = Path(out) if out else path / "train" / hashlib.sha256(text.encode()).hexdigest()[:8]
    return Trainable(found, text, with_test_part(dataset), place, own, preset or target["preset"] or "small")


def _default_name(space: str, arch: str, fingerprint: str) -> str:
    digest = hashlib.sha256(f"{space}\n{arch}\n{fingerprint}".encode()).hexdigest()[:8]
    return f"{folder_name(space)}-train-{digest}"


def folder_name(space: str) -> str:
    """The name of a space, or of the file it is in, as a part of a folder's name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in space.rsplit("/", 1)[-1])
