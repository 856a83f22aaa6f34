"""Parameters that are logits: the softmax of DARTS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.geometry._base import Geometry, Params
from nasight.geometry._rows import Sizes, map_rows
from nasight.spaces import Group


@dataclass(frozen=True)
class Softmax(Geometry):
    """Logits under a softmax, moved by Adam or by plain stochastic gradient descent (DARTS).

    The learning rate 3e-4 is that of DARTS: 50 epochs of 25,000 images, 64 per step. Adam moves a logit by about the
    learning rate whatever the gradient is, so one far above 0.1 makes no sense; `default_lr` is not capped there, but
    with the published `lr` it reaches no more than 0.042, in a single step.

    Parameters
    ----------
    rule : "adam" or "sgd".
    lr, steps : the published learning rate, and the steps of the search that it is for; see `Geometry`.
    betas : Adam's; not read by "sgd".
    weight_decay : of the logits.
    spread : the deviation of the first logits.
    hold_others : whether a step leaves the weights of options without a gradient as they were: the logits that moved
        are shifted together, so that their joint weight stays (ProxylessNAS, section 3.2.1).
    """

    rule: str = "adam"
    lr: float = 3e-4
    steps: int = 19_550
    betas: tuple[float, float] = (0.5, 0.999)
    weight_decay: float = 1e-3
    spread: float = 1e-3
    hold_others: bool = False

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

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> torch.optim.Optimizer:
        groups = tuple(groups)
        logits = [params[g.name] for g in groups]
        optimizer: torch.optim.Optimizer
        if self.rule == "adam":
            optimizer = torch.optim.Adam(logits, lr, betas=self.betas, weight_decay=self.weight_decay)
        else:
            optimizer = torch.optim.SGD(logits, lr, weight_decay=self.weight_decay)
        if self.hold_others:
            _hold_others(optimizer, {params[g.name]: g.sizes if g.ragged else None for g in groups})
        return optimizer


def _hold_others(optimizer: torch.optim.Optimizer, sizes: Mapping[Tensor, Sizes | None]) -> None:
    """After every step, shift the logits that have a gradient so that their logsumexp is what it was."""
    before = dict[Tensor, Tensor]()

    def remember(*_: Any) -> None:
        before.update((p, p.detach().clone()) for p in sizes)

    def rows(new: Tensor, old: Tensor, grad: Tensor) -> Tensor:
        moving = grad != 0
        # A row in which nothing moves has no joint weight to keep.
        joint = [x.masked_fill(~moving, -torch.inf).logsumexp(-1, keepdim=True) for x in (old, new)]
        shift = torch.where(moving.any(-1, keepdim=True), joint[0] - joint[1], 0.0)
        return torch.where(moving, new + shift, old)

    @torch.no_grad()
    def shift(*_: Any) -> None:
        for p, lengths in sizes.items():
            if p.grad is not None:
                p.copy_(map_rows(rows, lengths, p.detach(), before[p], p.grad))

    optimizer.register_step_pre_hook(remember)
    optimizer.register_step_post_hook(shift)


def _by_row(function: Callable[[Tensor], Tensor], params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
    return {g.name: map_rows(function, g.sizes if g.ragged else None, params[g.name]) for g in groups}
