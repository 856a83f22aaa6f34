"""What a search was asked for, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nasight.errors import RequestError
from nasight.searching._published import PUBLISHED, published_objective
from nasight.searching._units import read_count, read_milliseconds
from nasight.searching.methods import Method
from nasight.spaces import Space

# Preset -> epochs and training images; `medium` and `paper` use them all.
AMOUNTS: Mapping[str, dict[str, Any]] = {
    "tiny": {"epochs": 20, "examples": 1_200},
    "small": {"epochs": 10, "examples": 8_000},
    "medium": {"epochs": 25, "examples": None},
    "paper": {"epochs": 50, "examples": None},
}
AS_PUBLISHED = ("medium", "paper")
"""Presets that follow the published protocol, where there is one: `medium` in 25 epochs and at the size of `small`."""

EDITION = 2
"""Counted up when a name comes to mean another computation, so that a run of before keeps what it meant."""
FIRST_EDITION = {
    "objective": {"erm": "erm-joint", "erm-alternating": "erm"},
    "method": {"gdas": "gdas-drawn", "gaea-gdas": "gaea-gdas-drawn"},
}
"""What names of the first edition are called now."""
CHANGED = ("p-darts", "gaea-p-darts", "snas", "gaea-snas")
"""Methods whose searches of the first edition cannot be finished by this one; those that ended are read as before."""


class SearchSettings(BaseModel):
    """Every setting of a search, resolved: this is what a run folder keeps and a resumed run obeys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    edition: int = Field(default=1, ge=1, le=EDITION)
    """Which edition of the methods: version 0.1 wrote none, which is the first."""
    space: str
    space_options: dict[str, Any] = {}
    size: dict[str, int] = {}
    method: str
    objective: str
    data: str
    preset: str = "small"
    epochs: int = Field(ge=1)
    schedule_epochs: int = Field(ge=1)
    warmup: int = Field(ge=0)
    batch_size: int = Field(ge=2)
    lr: float = Field(gt=0, allow_inf_nan=False)
    lr_min: float = Field(ge=0, allow_inf_nan=False)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    nesterov: bool = False
    weight_decay: float = Field(default=3e-4, ge=0, allow_inf_nan=False)
    clip: float = Field(default=5.0, gt=0, allow_inf_nan=False)
    arch_lr: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    examples: int | None = Field(default=None, ge=4)
    share: float | None = Field(default=None, gt=0, le=1)
    validation: float = Field(default=0.2, ge=0, lt=1)
    """The share held out to measure with; 0: none, as in most papers: figures are of rows that were learned from."""
    resolution: int | None = Field(default=None, ge=4)
    augment: bool = True
    candidates: int = Field(default=0, ge=0)
    max_params: int | None = Field(default=None, ge=1)
    """The architecture found has at most this many parameters, counted at `params_size` (by default at `size`)."""
    max_latency: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """It answers one example within this many milliseconds, at the same size, on one thread of this machine.

    A clock is noisy, and a run that is resumed before its end measures anew: it may pick another architecture.
    """
    params_size: dict[str, int] = {}
    path: str = "fast"
    seed: int = Field(default=0, ge=0)
    threads: int = Field(ge=1)
    checkpoint_seconds: float = Field(default=60.0, ge=0)


def protocol_of(method: Method, space: Space) -> dict[str, Any]:
    """The settings under which a method was published on such a space; empty where none are known."""
    found = PUBLISHED.get((method.name, space.family))
    return {} if found is None else dict(found.settings)


def _followed(method: Method, space: Space, preset: str) -> dict[str, Any]:
    """What a preset takes from the published protocol: all, nothing, or what does not depend on length and size."""
    published = protocol_of(method, space) if preset in AS_PUBLISHED else {}
    for key in ("objective", "none"):
        published.pop(key, None)
    if preset == "medium":
        published["size"] = dict(space.search_sizes.get("small", {}))
        if published.get("epochs") != AMOUNTS["medium"]["epochs"]:
            for key in ("epochs", "schedule_epochs", "warmup", "arch_lr"):
                published.pop(key, None)
    return published


def resolve(
    method: Method,
    space: Space,
    *,
    name: str | None = None,
    data: str,
    objective: str | None = None,
    preset: str = "small",
    **given: Any,
) -> SearchSettings:
    """The settings of a search: the method's row, then the preset, then what was `given` (None: not given).

    `name` is what the run calls the space, by default the space's own name.
    """
    if preset not in AMOUNTS:
        raise RequestError(f"preset must be one of {', '.join(AMOUNTS)}, got {preset!r}")
    given = {key: value for key, value in given.items() if value is not None}
    if isinstance(given.get("max_params"), str):
        given["max_params"] = read_count(given["max_params"])
    if isinstance(given.get("max_latency"), str):
        given["max_latency"] = read_milliseconds(given["max_latency"])
    schedule = method.schedule
    published = _followed(method, space, preset)
    values: dict[str, Any] = {
        "edition": EDITION,
        "space": name or space.name,
        "method": method.name,
        "objective": method.objective(objective or published_objective(method.name, space.family)).name,
        "data": data,
        "preset": preset,
        "batch_size": schedule.batch_size,
        "lr": schedule.lr,
        "lr_min": schedule.lr_min,
        "candidates": method.candidates,
        "threads": torch.get_num_threads(),
        **AMOUNTS[preset],
        **published,
        **given,
    }
    values["size"] = {**space.search_sizes.get(preset, {}), **published.get("size", {}), **given.get("size", {})}
    if given.get("share") is not None and "examples" not in given:
        values["examples"] = None
    epochs = values["epochs"]
    if isinstance(epochs, int):
        known = given if "epochs" in given else {**published, **given}
        if "schedule_epochs" not in known:
            values["schedule_epochs"] = round(space.cosine_stretch * epochs)
        if "warmup" not in known:
            values["warmup"] = int(schedule.warmup * epochs)
        if 1 <= epochs <= int(values["warmup"]) and method.geometry.moves:
            raise RequestError(f"{epochs} epochs leave none for the architecture after {values['warmup']} of warm-up")
    return checked(values)


def read_settings(values: Mapping[str, Any]) -> SearchSettings:
    """Settings as a run keeps them, with the names that they have in this edition."""
    if isinstance(values, Mapping) and values.get("edition", 1) == 1:
        kept = {key: values[key] for key in FIRST_EDITION if isinstance(values.get(key), str)}
        values = {**values, **{key: FIRST_EDITION[key].get(value, value) for key, value in kept.items()}}
    return checked(values)


def checked(values: Mapping[str, Any]) -> SearchSettings:
    """Settings from a mapping; a wrong or unknown key is named in one sentence."""
    try:
        return SearchSettings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(SearchSettings.model_fields))
            raise RequestError(f"there is no setting {key!r}; the settings are {known}") from None
        message = str(first["msg"]).replace("Input should be", "should be")
        raise RequestError(f"setting {key!r} {message}, got {first.get('input')!r}") from None
