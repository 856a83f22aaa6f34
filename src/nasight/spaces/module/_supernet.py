"""The supernet of a user's own module: its choices mix their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from nasight.errors import RequestError, RunError
from nasight.spaces._groups import Group
from nasight.spaces._placed import zeros_of
from nasight.spaces._supernet import Supernet
from nasight.spaces.module._choice import Choice, Handed, handing


class ModuleSupernet(Supernet):
    """The model, called while its choices are handed the weights.

    All paths are one: what the options of a user's choice share is not known here. Batch norms are the model's
    own and follow `train()` and `eval()`.
    """

    compiles: ClassVar[bool] = False

    def __init__(
        self, groups: tuple[Group, ...], model: nn.Module, choices: Mapping[str, Choice], *, path: str
    ) -> None:
        super().__init__(groups, path)
        self.model = model
        self.choices = tuple(choices.values())

    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        (group,) = self.groups
        rows, known = group.split(weights[group.name]), group.split(zeros_of(weights, group.name, skip_zeros))
        handed = {
            choice: Handed(label, row, tuple((zeros != 0).tolist()) if skip_zeros else None)
            for choice, label, row, zeros in zip(self.choices, group.rows, rows, known, strict=True)
        }
        try:
            with handing(handed):
                logits: Tensor = self.model(x)
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            if isinstance(error, RequestError | RunError) or "allocate" in str(error):
                raise
            first = str(error).partition("\n")[0]
            raise RequestError(f"the model does not take a batch of shape {tuple(x.shape)}: {first}") from error
        return logits
