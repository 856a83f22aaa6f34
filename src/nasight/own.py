"""Functions of a caller's own in place of built-in parts of a search or a training."""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasight.errors import RequestError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

PARTS = ("loss", "metric", "optimizer", "augment")


@dataclass(frozen=True)
class OwnParts:
    """A loss, a metric, an optimizer and an augmentation from outside; None for the built-in one.

    A run folder keeps their names and the checksums of their files, never the functions: a run that is resumed needs
    them again, as they were.

    Parameters
    ----------
    loss : (outputs, y) -> the mean loss of a batch, or one for each row. Numbers come in standard units.
    metric : the score, more is better: a name such as "balanced accuracy", or (predictions, y) -> one number, or one
        for each row. Predictions are probabilities (n, k), or numbers in the units of y.
    optimizer : parameters -> a `torch.optim.Optimizer`. Its learning rates fall and rise in proportion to the schedule.
    augment : a batch of training rows, before they are normalized -> a batch of the same shape. Random numbers of torch
        follow from the seed in it.
    """

    loss: Callable[[Tensor, Tensor], Tensor] | None = None
    metric: str | Callable[[Tensor, Tensor], Any] | None = None
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None
    augment: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if value is not None and not callable(value) and not (part.name == "metric" and isinstance(value, str)):
                raise RequestError(f"{part.name} must be a function, got {value!r}")

    def names(self) -> dict[str, str]:
        """What a run folder keeps: the name of each part that is one's own."""
        return {part: _name(value) for part in PARTS if (value := getattr(self, part)) is not None}

    def about(self) -> dict[str, dict[str, str]]:
        """The part of run.json about them; empty where there are none."""
        kept = {"own": self.names(), "own_sources": self.sources()}
        return {key: value for key, value in kept.items() if value}

    def sources(self) -> dict[str, str]:
        """Part -> the checksum of the file that its function stands in, where that is a file of the user's."""
        found = {part: source_digest(getattr(self, part)) for part in PARTS}
        return {part: digest for part, digest in found.items() if digest is not None}

    @property
    def functions(self) -> bool:
        """Whether any part is a function, which a folder cannot keep."""
        return any(callable(getattr(self, part)) for part in PARTS)

    @property
    def sendable(self) -> bool:
        """Whether other processes can have them: a function that is no module's cannot be sent."""
        try:
            pickle.dumps(self)
        except (pickle.PicklingError, AttributeError, TypeError):
            return False
        return True

    def again(self, about: Mapping[str, Any], where: object) -> OwnParts:
        """These parts for a run that was begun with those in its run.json; other ones, or none, are refused."""
        kept = dict(about.get("own") or {})
        metric = kept.get("metric")
        found = OwnParts(self.loss, metric, self.optimizer, self.augment) if self.metric is None else self
        if metric is not None and "." in metric:
            found = self
        for part in PARTS:
            then, now = kept.get(part), found.names().get(part)
            if then != now:
                begun = f"with {part}={then}" if then else f"without {part}="
                ask = f"give it again as {part}=" if then else f"leave {part}={now} out"
                raise RequestError(f"{where} was begun {begun}: {ask}")
        check_sources(about, found.sources(), where)
        return found


def check_sources(about: Mapping[str, Any], now: Mapping[str, str], where: object) -> None:
    """Refuse functions whose files are not those that run.json has the checksums of; runs of before have none."""
    for part, digest in (about.get("own_sources") or {}).items():
        if now.get(part, digest) != digest:
            raise RequestError(
                f"{part}={about['own'].get(part)} is not the code that {where} was begun with: the checksum of its "
                "file is not the one in run.json; restore the file as it was"
            )


def source_digest(value: Any) -> str | None:
    """The checksum of the file that a function or a class stands in; None for those of installed packages."""
    while isinstance(value, partial):
        value = value.func
    if value is None or isinstance(value, str):
        return None
    named = value if hasattr(value, "__qualname__") else type(value)
    try:
        file = Path(inspect.getsourcefile(named) or "")
        installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
        if any(file.is_relative_to(folder) for folder in installed):
            return None
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, TypeError):  # made by C, or typed at a prompt
        return None


def own_parts(settings: dict[str, Any]) -> OwnParts:
    """The parts of one's own, taken out of the settings of a search or a training."""
    values = {part: settings.pop(part, None) for part in PARTS if part != "augment"}
    if callable(settings.get("augment")):
        values["augment"] = settings.pop("augment")
    return OwnParts(**values)


def own_optimizer(own: OwnParts, parameters: Iterable[nn.Parameter]) -> Optimizer:
    """The optimizer that the caller's function makes."""
    from torch.optim import Optimizer

    assert own.optimizer is not None
    made = own.optimizer(parameters)
    if not isinstance(made, Optimizer):
        raise RequestError(f"optimizer must make a torch.optim.Optimizer, got a {type(made).__name__}")
    return made


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, partial):
        return _name(value.func)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
