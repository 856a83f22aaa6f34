"""Functions of a caller's own in place of built-in parts of a search or a training."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from nasight.errors import RequestError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

PARTS = ("loss", "metric", "optimizer", "augment")


@dataclass(frozen=True)
class OwnParts:
    """A loss, a metric, an optimizer and an augmentation from outside; None for the built-in one.

    A run folder keeps their names, never the functions: a run that is resumed needs them again.

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

    def again(self, kept: Mapping[str, str] | None, where: object) -> OwnParts:
        """These parts for a run that was begun with those that are `kept`; other ones, or none, are refused."""
        kept = dict(kept or {})
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
        return found


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
