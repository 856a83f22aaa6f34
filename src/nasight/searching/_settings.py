"""What a search was asked for, checked before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nasight.compute import check_precision, choose_device
from nasight.errors import RequestError
from nasight.geometry import Simplex
from nasight.reproducible import MOST_THREADS
from nasight.runs import first_fault
from nasight.searching._objectives import Objective
from nasight.searching._published import PROTOCOLS, published_for, published_objective
from nasight.searching._relaxations import HardGumbel
from nasight.searching._units import read_count, read_milliseconds
from nasight.searching.methods import Method
from nasight.spaces import Space

# Preset -> epochs and training images; `medium` and `paper` use them all, `imagenet` the share that was published.
AMOUNTS: Mapping[str, dict[str, Any]] = {
    "tiny": {"epochs": 20, "examples": 1_200},
    "small": {"epochs": 10, "examples": 8_000},
    "medium": {"epochs": 25, "examples": None},
    "paper": {"epochs": 50, "examples": None},
    "imagenet": {"epochs": 50, "examples": None},
}
ALL = "all"
"""As a number of examples: all that there are, whatever the preset says."""
ONLY_AS_PUBLISHED = ("imagenet",)
"""Presets that mean nothing where there is no protocol to follow."""

EDITION = 6
"""Counted up when a name comes to mean another computation, so that a run of before keeps what it meant."""
FIRST_EDITION = {
    "objective": {"erm": "erm-joint", "erm-alternating": "erm"},
    "method": {"gdas": "gdas-drawn", "gaea-gdas": "gaea-gdas-drawn"},
}
"""What names of the first edition are called now."""
CHANGED = {"p-darts": 2, "gaea-p-darts": 2, "snas": 4, "gaea-snas": 2, "asng": 3, "enas": 3}
"""Method -> the edition since which it is what it is now. Searches of one before cannot be finished by this one; those
that ended are read as before."""
HELD_BACK = 0.5
"""The part of the epochs before the first architecture step, where the size of a gradient sets the rate and neither the
method nor a protocol says otherwise: at the start gradients are small and say little, and the rate would be high."""
HALF = 0.5
"""The part of the rows that both the shared weights and the architecture have where nothing else is said."""


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
    epochs: int = Field(ge=1, le=10**6)
    schedule_epochs: int = Field(ge=1)
    warmup: int = Field(ge=0)
    batch_size: int = Field(ge=2)
    lr: float = Field(gt=0, allow_inf_nan=False)
    lr_min: float = Field(ge=0, allow_inf_nan=False)
    lr_warmup: int = Field(default=0, ge=0)
    """In the first epochs of a stage the rate is lr * (epoch + 1) / lr_warmup, whatever the cosine says."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    nesterov: bool = False
    weight_decay: float = Field(default=3e-4, ge=0, allow_inf_nan=False)
    clip: float | None = Field(default=5.0, gt=0, allow_inf_nan=False)
    """The largest norm of the gradient of the shared weights; None, in a protocol: any."""
    arch_lr: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    arch_clip: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    edge_floor: float | None = Field(default=None, ge=0, lt=1)
    """What small weights of edges are lifted to in the mirror step, in a protocol; None: as those of operations."""
    coldest: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The temperature of the last epoch where operations are drawn, in a protocol; None: the method's own."""
    noisy_edges: bool = False
    """Whether the weights of edges have Gumbel noise too where operations are drawn, in a protocol."""
    drop_path: float = Field(default=0.0, ge=0, lt=1)
    """The probability with which a training pass drops all that an edge gives, image by image, in a protocol."""
    weights_first: bool = False
    """Whether a step moves the shared weights before the architecture, where the two take turns."""
    partial: int | None = Field(default=None, ge=1)
    """One part in so many of the channels goes through the operations; None: the method's own."""
    examples: int | None = Field(default=None, ge=4)
    share: float | None = Field(default=None, gt=0, le=1)
    arch_share: float = Field(default=HALF, gt=0, lt=1)
    """The part of the searched rows that the architecture learns from, where it has rows of its own (bilevel)."""
    validation: float = Field(default=0.2, ge=0, lt=1)
    """The share held out to measure with; 0: none, as in most papers: figures are of rows that were learned from."""
    resolution: int | None = Field(default=None, ge=4)
    augment: bool = True
    class_weights: Literal["balanced"] | None = None
    candidates: int = Field(default=0, ge=0)
    candidate_rows: int | None = Field(default=None, ge=2)
    """Each candidate is judged on a batch of its own of so many rows; None: all of them on the same rows."""
    max_params: int | None = Field(default=None, ge=1)
    """The architecture found has at most this many parameters, counted at `params_size` (by default at `size`)."""
    max_latency: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """It answers one example within this many milliseconds, at the same size, on one thread of this machine.

    A clock is noisy, and a run that is resumed before its end measures anew: it may pick another architecture.
    """
    params_size: dict[str, int] = {}
    path: str = "fast"
    seed: int = Field(default=0, ge=0)
    device: str = "cpu"
    """Where the supernet is; a resumed run may be on another one."""
    precision: Literal["32", "bf16", "16"] = "32"
    threads: int = Field(ge=1, le=MOST_THREADS)
    slices: int = Field(default=1, ge=1)
    """Every batch passes through the supernet in so many parts, which ranks share; batch norm sees a part."""
    checkpoint_seconds: float = Field(default=60.0, ge=0)


def _followed(method: Method, space: Space, preset: str) -> dict[str, Any]:
    """What a preset takes from the published protocol: all, nothing, or what does not depend on length and size."""
    found = published_for(method.name, space.family, preset)
    if found is None and preset in ONLY_AS_PUBLISHED:
        pairs = " or ".join(f"{name!r} on {family!r}" for name, family in PROTOCOLS[preset])
        raise RequestError(
            f"preset {preset!r} is a published search with {pairs}, not with {method.name!r} on {space.name!r}"
        )
    published = {} if found is None else dict(found.settings)
    for key in ("objective", "none", "space_options"):
        published.pop(key, None)
    if preset == "medium":
        published |= {} if found is None else found.medium or {}
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
    everything = given.get("examples") == ALL
    if everything:
        given.pop("examples")
    if isinstance(given.get("max_params"), str):
        given["max_params"] = read_count(given["max_params"])
    if isinstance(given.get("max_latency"), str):
        given["max_latency"] = read_milliseconds(given["max_latency"])
    schedule = method.schedule
    published = _followed(method, space, preset)
    chosen = method.objective(objective or published_objective(method.name, space.family, preset))
    _check_fit(chosen, given)
    if chosen.weights_first is None:
        published.pop("weights_first", None)
    values: dict[str, Any] = {
        "edition": EDITION,
        "space": name or space.name,
        "method": method.name,
        "objective": chosen.name,
        "data": data,
        "preset": preset,
        "batch_size": schedule.batch_size,
        "lr": schedule.lr,
        "lr_min": schedule.lr_min,
        "candidates": method.candidates,
        "weights_first": bool(chosen.weights_first),
        "threads": torch.get_num_threads(),
        "device": "auto",
        "precision": "32",
        **AMOUNTS[preset],
        **published,
        **given,
    }
    values["size"] = {**space.search_sizes.get(preset, {}), **published.get("size", {}), **given.get("size", {})}
    if everything:
        values["examples"] = values["share"] = None
    if "share" in given and "examples" not in given:
        values["examples"] = None
    if "examples" in given and "share" not in given:
        values["share"] = None
    values["device"] = str(device := choose_device(values["device"]))
    check_precision(values["precision"], device)
    if chosen.differences and values["precision"] != "32":
        raise RequestError(
            f"method {method.name!r} takes differences of gradients, which need precision 32, "
            f"got {values['precision']!r}"
        )
    epochs = values["epochs"]
    if isinstance(epochs, int):
        values |= _lengths(epochs, method, space, published, given)
        if 1 <= epochs <= int(values["warmup"]) and method.geometry.moves:
            raise RequestError(f"{epochs} epochs leave none for the architecture after {values['warmup']} of warm-up")
    return checked(values)


def _check_fit(objective: Objective, given: Mapping[str, Any]) -> None:
    """Refuse settings that mean nothing to an objective."""
    if given.get("arch_share", HALF) != HALF and not objective.halves:
        raise RequestError(
            f"arch_share is for objectives that give the architecture rows of its own, such as bilevel, not for "
            f"{objective.name!r}"
        )
    if "weights_first" in given and objective.weights_first is None:
        raise RequestError(
            f"weights_first is for objectives in which the shared weights and the architecture take turns, such as "
            f"bilevel, not for {objective.name!r}"
        )


def _lengths(
    epochs: int, method: Method, space: Space, published: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, int]:
    """The settings counted in epochs that the caller does not say, for a search of this length.

    A search that follows a protocol in fewer or more epochs has them in the same parts; a cosine that is shorter than
    the published search goes down and up, and keeps its length.
    """
    warmup = int(method.schedule.warmup * epochs)
    if not method.schedule.warmup and method.geometry.gradient is not None:
        warmup = min(math.ceil(HELD_BACK * epochs), epochs - 1)
    found = {"schedule_epochs": round(space.cosine_stretch * epochs), "warmup": warmup}
    if (whole := published.get("epochs")) is not None:
        found |= {key: published[key] * epochs // whole for key in ("warmup", "lr_warmup") if key in published}
        cosine = published["schedule_epochs"]
        found["schedule_epochs"] = cosine * epochs // whole if cosine >= whole else cosine
    return {key: value for key, value in found.items() if key not in given}


def as_set(method: Method, settings: SearchSettings) -> Method:
    """The row with its parts as the settings have them, and as they were in the edition of the search."""
    geometry, relaxation = method.geometry, method.relaxation
    if isinstance(geometry, Simplex) and settings.edition < 6:
        geometry = replace(geometry, lift="between")
    if isinstance(geometry, Simplex) and settings.edge_floor is not None:
        geometry = replace(geometry, edge_floor=settings.edge_floor)
    if isinstance(relaxation, HardGumbel):
        coldest = relaxation.coldest if settings.coldest is None else settings.coldest
        noisy = relaxation.noisy_edges or settings.noisy_edges
        relaxation = replace(relaxation, coldest=coldest, noisy_edges=noisy)
    return replace(method, geometry=geometry, relaxation=relaxation)


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
        raise RequestError(first_fault(error, "setting", SearchSettings.model_fields)) from None
