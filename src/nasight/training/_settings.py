"""How a network is trained: checked settings, and the presets that fill them."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from nasight.errors import RequestError
from nasight.runs import RunFolder, first_fault
from nasight.spaces import PRESETS, Space
from nasight.spaces import load as load_space

LATER = ("schedule", "lr_warmup", "label_smoothing", "class_weights", "precision")
"""Settings that run folders of version 0.1 do not have."""
DECAY, TAIL = 0.97, 5
HELD_OUT = 0.2
"""The share of the training rows that judges a network where the data has no test part."""


class TrainSettings(BaseModel):
    """SGD with momentum and a learning rate that falls epoch by epoch from `lr`.

    `schedule`: along a "cosine" to `lr_min`; "linear" as PC-DARTS trains on ImageNet, a straight line to zero whose
    last five epochs are a fifth of it; or "exponential", 0.97 times the rate before (DARTS on ImageNet). In the first
    `lr_warmup` epochs it rises in a straight line instead. `label_smoothing` is the part of the target that all
    classes share in training. `class_weights` "balanced" lets every class count alike in the loss.

    `drop_path` is the probability at the end; it rises linearly from 0 over the epochs. `auxiliary` adds a
    second head whose loss counts 0.4 (DARTS). `share` is the part of the training rows learned from, and
    `examples` at most how many. `validation` is "test" (the test part, or a fifth of the training rows where
    there is none) or a share of the training rows to hold out and judge by instead. `precision` "bf16" or "16"
    computes products in 16 bits. `size` goes to `space.network`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: int = Field(600, ge=1, le=10**6)
    batch_size: int = Field(96, ge=2)
    lr: float = Field(0.025, gt=0)
    lr_min: float = Field(0.0, ge=0)
    schedule: Literal["cosine", "linear", "exponential"] = "cosine"
    lr_warmup: int = Field(0, ge=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    nesterov: bool = False
    weight_decay: float = Field(3e-4, ge=0)
    clip: float | None = Field(5.0, gt=0)
    augment: bool = True
    cutout: int = Field(0, ge=0)
    auxiliary: bool = False
    drop_path: float = Field(0.0, ge=0, lt=1)
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    class_weights: Literal["balanced"] | None = None
    examples: int | None = Field(None, ge=2)
    share: float = Field(1.0, gt=0, le=1)
    validation: float | str = "test"
    precision: Literal["32", "bf16", "16"] = "32"
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

    def kept(self) -> dict[str, Any]:
        """The settings as a run folder keeps them: those that came later are left out where they change nothing."""
        usual = {name: type(self).model_fields[name].default for name in LATER}
        return {name: value for name, value in self.model_dump().items() if usual.get(name, ...) != value}

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if epoch < self.lr_warmup:
            return self.lr * (epoch + 1) / self.lr_warmup
        if self.schedule == "exponential":
            return float(self.lr * DECAY**epoch)
        if self.schedule == "linear":
            whole = max(self.epochs - TAIL, 1)
            left = self.epochs - epoch
            return self.lr * ((whole - epoch) / whole if left > TAIL else left / (whole * TAIL))
        return self.lr_min + (self.lr - self.lr_min) * (1 + math.cos(math.pi * epoch / self.epochs)) / 2


def settings_for(space: Space | str, preset: str = "small", **changes: Any) -> TrainSettings:
    """The settings of a preset for this space, with these changes; sizes not named keep the preset's.

    >>> settings_for("nasbench201", "paper", epochs=12).batch_size
    256
    """
    space = load_space(space) if isinstance(space, str) else space
    values = _preset(space, preset)
    if changes.get("examples") == "all":
        changes["examples"] = None
    size = changes.pop("size", {})
    if not isinstance(size, dict):
        raise RequestError(f"setting 'size' must name sizes and their values, got {size!r}")
    sizes = {**values.pop("size", {}), **size}
    settings = checked_settings({**values, **changes, "size": sizes})
    if settings.auxiliary and not takes_auxiliary(space):
        raise RequestError(f"space {space.name!r} has no auxiliary head; leave auxiliary off")
    return settings.model_copy(update={"size": space.size(**settings.size)})


def kept_settings(run: RunFolder) -> TrainSettings:
    """The settings in the run.json of a training."""
    try:
        return checked_settings(run.about["settings"])
    except RequestError as error:
        raise RequestError(f"{run.path}/run.json is damaged: {error}") from None


def label(space: Space, preset: str, settings: TrainSettings, changes: str | None = None) -> str:
    """The folder name of these settings: the preset, with a digest of the settings where they differ from it.

    `changes` are words for random changes of images that were asked for.
    """
    if settings == settings_for(space, preset) and changes is None:
        return preset
    content = json.dumps(settings.kept(), sort_keys=True) + (changes or "")
    return f"{preset}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def takes_auxiliary(space: Space) -> bool:
    return "auxiliary" in inspect.signature(space.network).parameters


def _preset(space: Space, name: str) -> dict[str, Any]:
    if name not in PRESETS and name not in space.train_settings:
        raise RequestError(f"there is no preset {name!r}, only {', '.join(PRESETS)}")
    if name not in space.train_settings:
        raise RequestError(f"space {space.name!r} has no preset {name!r}, only {', '.join(space.train_settings)}")
    return dict(space.train_settings[name])


def checked_settings(values: dict[str, Any]) -> TrainSettings:
    """Settings from plain values; what is wrong with them is one sentence."""
    try:
        return TrainSettings(**values)
    except ValidationError as error:
        raise RequestError(first_fault(error, "training setting", TrainSettings.model_fields)) from None
