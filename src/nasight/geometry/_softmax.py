"""Parameters that are logits: the softmax of DARTS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.geometry._base import Geometry, Params
from nasight.geometry._rows import map_rows
from nasight.spaces._base import Group


@dataclass(frozen=True)
class Softmax(Geometry):
    """Logits under a softmax, moved by Adam or by plain stochastic gradient descent (DARTS).

    `rule` is "adam" or "sgd" (which takes no `betas`). The rate 3e-4 is that of DARTS: 50 epochs of 25,000 images,
    64 a step. Adam moves a logit by about the rate whatever the gradient is, so a rate far above 0.1 makes no sense;
    `default_lr` is not capped there, but with the published `lr` it reaches no more than 0.042, in a single step.
    """

    rule: str = "adam"
    lr: float = 3e-4
    steps: int = 19_550
    betas: tuple[float, float] = (0.5, 0.999)
    weight_decay: float = 1e-3
    spread: float = 1e-3

    def __post_init__(self) -> None:
        if self.rule not in ("adam", "sgd"):
            raise RequestError(f"rule {self.rule!r} is not one of adam, sgd")

    def initial(self, groups: Iterable[Group], generator: torch.Generator) -> dict[str, nn.Parameter]:
        """Normal logits of deviation `spread`."""
        return {
            g.name: nn.Parameter(self.spread * torch.randn(g.shape, generator=generator, device=generator.device))
            for g in groups
        }

    def weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        return _by_row(lambda x: x.softmax(-1), params, groups)

    def log_weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        return _by_row(lambda x: x.log_softmax(-1), params, groups)

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float) -> torch.optim.Optimizer:
        logits = [params[g.name] for g in groups]
        if self.rule == "adam":
            return torch.optim.Adam(logits, lr, betas=self.betas, weight_decay=self.weight_decay)
        return torch.optim.SGD(logits, lr, weight_decay=self.weight_decay)


def _by_row(function: Callable[[Tensor], Tensor], params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
    return {g.name: map_rows(function, g.sizes if g.ragged else None, params[g.name]) for g in groups}
