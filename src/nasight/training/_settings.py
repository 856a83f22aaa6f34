"""How a network is trained: checked settings, and the presets that fill them."""

from __future__ import annotations

import hashlib
import inspect
import json
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from nasight.errors import RequestError
from nasight.spaces import PRESETS, Space
from nasight.spaces import load as load_space

HELD_OUT = 0.2
"""The share of the training rows that judges a network where the data has no test part."""


class TrainSettings(BaseModel):
    """SGD with momentum and a learning rate that falls along a cosine, epoch by epoch, from `lr` to `lr_min`.

    `drop_path` is the probability at the end; it rises linearly from 0 over the epochs. `auxiliary` adds a
    second head whose loss counts 0.4 (DARTS). `share` is the part of the training rows learned from, and
    `examples` at most how many. `validation` is "test" (the test part, or a fifth of the training rows where
    there is none) or a share of the training rows to hold out and judge by instead. `size` goes to
    `space.network`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: int = Field(600, ge=1)
    batch_size: int = Field(96, ge=2)
    lr: float = Field(0.025, gt=0)
    lr_min: float = Field(0.0, ge=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    nesterov: bool = False
    weight_decay: float = Field(3e-4, ge=0)
    clip: float | None = Field(5.0, gt=0)
    augment: bool = True
    cutout: int = Field(0, ge=0)
    auxiliary: bool = False
    drop_path: float = Field(0.0, ge=0, lt=1)
    examples: int | None = Field(None, ge=2)
    share: float = Field(1.0, gt=0, le=1)
    validation: float | str = "test"
    size: dict[str, int] = Field(default_factory=dict)

    @field_validator("validation")
    @classmethod
    def _part(cls, value: float | str) -> float | str:
        if value == "test":
            return value
        try:
            share = float(value)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            raise ValueError("it must be 'test' or a share between 0 and 1")
        return share

    @model_validator(mode="after")
    def _agree(self) -> TrainSettings:
        if self.lr_min > self.lr:
            raise ValueError(f"lr_min is {self.lr_min:g} but must not be above lr, which is {self.lr:g}")
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0, got 0")
        if self.cutout and not self.augment:
            raise ValueError(f"cutout {self.cutout} is augmentation, which augment=False turns off")
        return self


def settings_for(space: Space | str, preset: str = "small", **changes: Any) -> TrainSettings:
    """The settings of a preset for this space, with these changes; sizes not named keep the preset's.

    >>> settings_for("nasbench201", "paper", epochs=12).batch_size
    256
    """
    space = load_space(space) if isinstance(space, str) else space
    values = _preset(space, preset)
    size = changes.pop("size", {})
    if not isinstance(size, dict):
        raise RequestError(f"setting 'size' must name sizes and their values, got {size!r}")
    sizes = {**values.pop("size", {}), **size}
    settings = _checked({**values, **changes, "size": sizes})
    if settings.auxiliary and not takes_auxiliary(space):
        raise RequestError(f"space {space.name!r} has no auxiliary head; leave auxiliary off")
    return settings.model_copy(update={"size": space.size(**settings.size)})


def label(space: Space, preset: str, settings: TrainSettings) -> str:
    """The folder name of these settings: the preset, with a digest of the settings where they differ from it."""
    if settings == settings_for(space, preset):
        return preset
    content = json.dumps(settings.model_dump(), sort_keys=True)
    return f"{preset}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def takes_auxiliary(space: Space) -> bool:
    return "auxiliary" in inspect.signature(space.network).parameters


def _preset(space: Space, name: str) -> dict[str, Any]:
    if name not in PRESETS and name not in space.train_settings:
        raise RequestError(f"there is no preset {name!r}, only {', '.join(PRESETS)}")
    if name not in space.train_settings:
        raise RequestError(f"space {space.name!r} has no preset {name!r}, only {', '.join(space.train_settings)}")
    return dict(space.train_settings[name])


def _checked(values: dict[str, Any]) -> TrainSettings:
    try:
        return TrainSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
    name, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, TrainSettings.model_fields, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(f"training has no setting {name!r}, only {', '.join(TrainSettings.model_fields)}{hint}")
    if not name:
        raise RequestError(message)
    raise RequestError(f"setting {name!r} cannot be {first['input']!r}: {message[0].lower()}{message[1:]}")
