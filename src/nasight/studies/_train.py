"""What there is to train: the find of a search on its data, or a named architecture."""

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
from nasight.searching import PUBLISHED
from nasight.spaces import Space, family_of
from nasight.spaces import load as load_space


@dataclass(frozen=True)
class Trainable:
    """An architecture, the data it is trained on, and the folder where its trainings go."""

    space: Space | str
    arch: str
    data: Dataset
    out: Path
    published: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the published training that belong to the method of the search, not to its space."""


def trainable(
    run: str | Path | None = None,
    *,
    space: str | None = None,
    arch: str | None = None,
    data: Any = None,
    out: str | Path | None = None,
    data_folder: str | Path | None = None,
    preset: str = "small",
    label: str | None = None,
    task: str | None = None,
    **options: Any,
) -> Trainable:
    """The find of `run`, or the architecture `arch` of `space`; `data` may be other data than the run's.

    With the preset "paper" it comes with what the publication of the search's method trains otherwise. `options` are
    the space's own. Code that a run was made with is run only where `space` names it again, as "FILE.py:NAME".
    """
    data = None if data is None else with_label(data, label, task)
    if data is None and (label is not None or task is not None):
        raise RequestError("a label and a task are of data that is named with them")
    named = asked_for(run, space, arch, options, "train")
    if named is None:
        return _from_run(Path(str(run)), space, data, out, data_folder, preset)
    space, arch = named
    dataset = load_data(data or "digits", folder=data_folder)
    place = Path(out) if out else Path("runs") / _default_name(space, arch, dataset.fingerprint)
    # A space from a file goes to other processes by its name.
    return Trainable(space if ".py:" in space else load_space(space, **options), arch, dataset, place)


def asked_for(
    run: object, space: str | None, arch: str | None, options: Mapping[str, Any], verb: str
) -> tuple[str, str] | None:
    """The space and architecture that were named, or None where a run was; both, or neither, are refused."""
    if run is not None:
        if arch is not None or options or (space is not None and not is_code(space)):
            raise RequestError(f"give the run {run} or --space and --arch, not both")
        return None
    if space is None or arch is None:
        missing = "a RUN, or --space and --arch" if space is arch else "--space" if space is None else "--arch"
        raise RequestError(f"there is nothing to {verb}: {missing} is missing")
    return space, arch


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
    row = PUBLISHED.get((str(settings.get("method")), family_of(name)))
    published = row.training if row is not None and preset == "paper" else {}
    return Trainable(found, text, dataset, Path(out) if out else path / "train", published)


def _default_name(space: str, arch: str, fingerprint: str) -> str:
    digest = hashlib.sha256(f"{space}\n{arch}\n{fingerprint}".encode()).hexdigest()[:8]
    return f"{folder_name(space)}-train-{digest}"


def folder_name(space: str) -> str:
    """The name of a space, or of the file it is in, as a part of a folder's name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in space.rsplit("/", 1)[-1])
