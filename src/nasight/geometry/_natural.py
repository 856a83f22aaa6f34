"""Independent categorical distributions moved by natural gradient with an adaptive step (ASNG)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from nasight.errors import RequestError, RunError
from nasight.geometry._base import Params
from nasight.geometry._distribution import Choose, Distribution
from nasight.geometry._rows import map_rows
from nasight.spaces import Group


@dataclass(frozen=True)
class Categorical(Distribution):
    """One probability per option, the questions independent; `NaturalGradient` moves them (Akimoto et al. 2019).

    `lr` is the length of the first step in the Fisher metric. It adapts itself, so the number of steps does not
    enter, and `threshold` is the ratio of signal to noise at which it neither grows nor shrinks.
    """

    lr: float = 1.0
    steps: int = 1
    threshold: float = 1.5

    def initial(self, groups: Iterable[Group], generator: torch.Generator) -> dict[str, nn.Parameter]:
        return {g.name: nn.Parameter(g.uniform(device=generator.device)) for g in groups}

    def walk(self, params: Params, groups: Iterable[Group], number: int, choose: Choose) -> tuple[Tensor, list[Tensor]]:
        (group,) = groups
        rows = [row.log().expand(number, -1) for row in group.split(params[group.name])]
        return torch.stack([choose(question, row) for question, row in enumerate(rows)], 1), rows

    def weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        """The probabilities themselves."""
        return {g.name: params[g.name] for g in groups}

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> Optimizer:
        rows: list[dict[str, Any]] = [
            {"params": [params[g.name]], "sizes": g.sizes if g.ragged else None} for g in groups
        ]
        return NaturalGradient(rows, lr, self.threshold)

    def default_lr(self, steps: int, gradient: float | None = None) -> float:
        return self.lr


class NaturalGradient(Optimizer):
    """Moves probabilities along the natural gradient, a step of length `delta` in the Fisher metric.

    For p.grad = g, a row x of probabilities has the natural gradient F^-1 g = x * (g - <x, g>) and a tangent v the
    length |v / sqrt(x)|. The step is delta = lr / Delta; Delta follows the signal-to-noise ratio of the recent
    directions (ASNG, algorithm 1), each of length 1 and brought to one common point by `transported`:

        s <- (1 - beta) s + sqrt(beta (2 - beta)) direction,  gamma <- (1 - beta)^2 gamma + beta (2 - beta)
        Delta <- Delta exp(beta (gamma - |s|^2 / threshold)),  beta = delta / sqrt(degrees of freedom), at most 1

    After a step no probability of a row of k is under 1 / (rows (k - 1)), as in the released code. Where that leaves
    the row no room to move (rows (k - 1) <= k: a single row, or two rows of 2), the least is 1 / (2 k). A gradient
    without a direction leaves everything as it is.

    Parameters
    ----------
    params : tensors or parameter groups, whose rows (the last dimension) are probabilities.
    lr : the length of the first step in the Fisher metric.
    threshold : the ratio of signal to noise at which the step neither grows nor shrinks.

    >>> p = torch.full((1, 4), 0.25, requires_grad=True)
    >>> optimizer = NaturalGradient([p], lr=0.1)
    >>> p.grad = torch.tensor([[0.0, 1.0, 1.0, 1.0]])
    >>> optimizer.step()
    >>> p.detach().round(decimals=3)
    tensor([[0.2930, 0.2360, 0.2360, 0.2360]])
    """

    def __init__(self, params: ParamsT, lr: float = 1.0, threshold: float = 1.5) -> None:
        super().__init__(params, {"lr": lr, "threshold": threshold, "sizes": None})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state; one of version 0.1 is refused, its path cannot be brought to the common point."""
        if any("path" in entry for entry in state_dict["state"].values()):
            raise RequestError(
                "its natural gradient is that of version 0.1, which summed up its steps in another way; "
                "start the search anew"
            )
        super().load_state_dict(state_dict)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(p, group["sizes"]) for group in self.param_groups for p in group["params"] if p.grad is not None]
        downhill = [-natural_gradient(p, p.grad, sizes) for p, sizes in moving]
        length = math.sqrt(sum(float((v.square() / p).sum()) for v, (p, _) in zip(downhill, moving, strict=True)))
        if not math.isfinite(length):
            raise RunError("the natural gradient is not finite; none moved")
        if length == 0:
            return loss
        lr, threshold = self.param_groups[0]["lr"], self.param_groups[0]["threshold"]
        rows = [size for p, sizes in moving for size in _sizes(p, sizes) if size > 1]
        memory = self.state[moving[0][0]]
        trust = memory.get("trust", 1.0)
        delta = lr / trust
        beta = min(1.0, delta / math.sqrt(sum(size - 1 for size in rows)))
        signal = 0.0
        for (p, sizes), v in zip(moving, downhill, strict=True):
            path = self.state[p].get("transported_path", torch.zeros_like(p))
            path = (1 - beta) * path + math.sqrt(beta * (2 - beta)) * map_rows(transported, sizes, p, v) / length
            self.state[p]["transported_path"] = path
            signal += float(path.square().sum())
            p.copy_(map_rows(lambda x: _lifted(x, len(rows)), sizes, p + delta * v / length))
        memory["gamma"] = (1 - beta) ** 2 * memory.get("gamma", 0.0) + beta * (2 - beta)
        memory["trust"] = trust * math.exp(beta * (memory["gamma"] - signal / threshold))
        return loss


def natural_gradient(x: Tensor, grad: Tensor, sizes: tuple[int, ...] | None = None) -> Tensor:
    """F^-1 grad for rows of probabilities, a tangent of the simplex: x * (grad - <x, grad>)."""
    return map_rows(lambda x, g: x * (g - (x * g).sum(-1, keepdim=True)), sizes, x, grad)


def transported(x: Tensor, v: Tensor) -> Tensor:
    """Tangents v at rows x of probabilities, as tangents of the sphere at its last pole: (..., k), the last entry 0.

    sqrt(x) is a point of the unit sphere and u = v / sqrt(x) a tangent there, as long as v is in the Fisher metric.
    Parallel transport along the great circle to the pole e keeps its length: u - (u_k / (1 + sqrt(x_k))) (sqrt(x) + e).
    Tangents at different x can be added there. It is the root of the Fisher matrix that ASNG's released code takes.

    >>> x, v = torch.tensor([0.25, 0.25, 0.5]), torch.tensor([0.1, 0.1, -0.2])
    >>> s = transported(x, v)
    >>> s.round(decimals=4), bool((s.square().sum() - (v.square() / x).sum()).abs() < 1e-6)
    (tensor([0.2828, 0.2828, 0.0000]), True)
    """
    root = x.sqrt()
    u = v / root
    pole = torch.zeros_like(root)
    pole[..., -1] = 1
    return u - u[..., -1:] / (1 + root[..., -1:]) * (root + pole)


def _sizes(p: Tensor, sizes: tuple[int, ...] | None) -> tuple[int, ...]:
    return sizes if sizes is not None else (p.shape[-1],) * (p.numel() // p.shape[-1])


def _lifted(x: Tensor, rows: int) -> Tensor:
    """Rows with no probability under the smallest one, what is above it scaled so that they sum to 1."""
    k = x.shape[-1]
    if k == 1:
        return torch.ones_like(x)
    least = 1 / (rows * (k - 1)) if rows * (k - 1) > k else 1 / (2 * k)
    above = x.clamp(min=least) - least
    return least + above * ((1 - k * least) / above.sum(-1, keepdim=True))
