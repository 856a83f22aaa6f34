"""Mirror descent over stacks of simplices, as an optimizer for any loop (GAEA, algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from nasight.errors import RequestError, RunError
from nasight.geometry._potentials import NegativeEntropy, Potential
from nasight.geometry._rows import map_rows

ENTROPY = NegativeEntropy()
TOLERANCE = 1e-4
"""How far from 1 the sum of a row may be when a parameter takes its first step."""


class MirrorDescent(Optimizer):
    """Moves parameters whose rows (the last dimension) are points of the simplex, and keeps them there.

    A step is `potential.mirror_step` on every row; then weights under `floor` are lifted to it and the row is divided
    by its sum. A parameter group with `sizes=(2, 3, 4)` holds flat parameters: rows of these lengths, one behind the
    other. A gradient that is not finite raises `RunError` and leaves every parameter as it was. Where parameters are on
    a device, the error waits for `check`, since to look at a gradient would wait for the device.

    Parameters
    ----------
    params : tensors or parameter groups, as torch's optimizers take them.
    lr : learning rate.
    potential : the distance-generating function; the negative entropy by default, which is exponentiated gradient.
    floor : what a weight is lifted to; 0 for nothing.
    pull : what is minimized has so much of each row's relative entropy to the uniform row added, sum x log(k x) for k
        weights.

    >>> theta = torch.full((1, 4), 0.25, requires_grad=True)
    >>> descent = MirrorDescent([theta], lr=1.0)
    >>> (theta @ torch.tensor([0.0, 1.0, 1.0, 1.0])).sum().backward()
    >>> descent.step()
    >>> theta.detach()
    tensor([[0.4754, 0.1749, 0.1749, 0.1749]])
    """

    def __init__(
        self, params: ParamsT, lr: float, potential: Potential = ENTROPY, floor: float = 0.0, pull: float = 0.0
    ) -> None:
        self.potential = potential
        self._went_well: Tensor | None = None
        super().__init__(params, {"lr": lr, "floor": floor, "pull": pull, "sizes": None})

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "potential": self.potential}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        try:
            _check_group(self.param_groups[-1])
        except RequestError:
            self.param_groups.pop()
            raise

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Move every parameter that has a gradient, or, if one of them cannot move, none."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(p, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        moved = [self._moved(p, p.grad, group) for p, group in moving]
        fine = self._fine([*(p.grad for p, _ in moving), *moved])
        for (p, _), value in zip(moving, moved, strict=True):
            p.copy_(value if fine is None else torch.where(fine, value, p))
            self.state[p]["step"] = self.state[p].get("step", 0) + 1
        return loss

    def _fine(self, tensors: list[Tensor]) -> Tensor | None:
        """Where parameters are on a device: whether all is finite, which is not read before `check`."""
        if not tensors or tensors[0].device.type == "cpu":
            return None
        starts = [_on_simplex(p, group) for group in self.param_groups for p in group["params"] if p not in self.state]
        fine = torch.stack([*starts, *(t.isfinite().all() for t in tensors)]).all()
        self._went_well = fine if self._went_well is None else self._went_well & fine
        return fine

    def waiting(self) -> list[Tensor]:
        """Whether all steps since the last check were finite, where parameters are on a device; else empty."""
        return [] if self._went_well is None else [self._went_well]

    def arrived(self, values: list[Tensor]) -> None:
        """What `waiting` gave, on the CPU: `RunError` where a step was not finite."""
        self._went_well = None
        if not all(values):
            raise RunError("architecture weights did not move: a gradient was not finite, or they were on no simplex")

    def check(self) -> None:
        """Raise `RunError` where a step since the last check was not finite; needed on a device alone."""
        self.arrived([value.cpu() for value in self.waiting()])

    def _moved(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        near = p.device.type == "cpu"
        if near and p not in self.state:
            _check_start(p, group)
        if near and (wrong := int((~grad.isfinite()).sum())):
            raise RunError(
                f"the gradient of {_name(p, group)} is not finite in {wrong} of {p.numel()} places; none moved"
            )

        pull = group.get("pull", 0.0)  # states of version 0.1 have none

        def rows(x: Tensor, grad: Tensor) -> Tensor:
            if pull:
                grad = grad + pull * (1 + (x.clamp(min=torch.finfo(x.dtype).tiny) * x.shape[-1]).log())
            return self._row_step(x, grad, group["lr"], group["floor"])

        value = map_rows(rows, group["sizes"], p, grad)
        if near and not value.isfinite().all():
            raise RunError(f"the step of {_name(p, group)} by {self.potential!r} is not finite; none moved")
        return value

    def _row_step(self, x: Tensor, grad: Tensor, lr: float, floor: float) -> Tensor:
        """Rows (..., k) after one step."""
        u = self.potential.mirror_step(x, grad, lr).clamp(min=floor)
        return u / u.sum(-1, keepdim=True)


def _check_group(group: dict[str, Any]) -> None:
    if not group["lr"] > 0:
        raise RequestError(f"lr must be greater than 0, got {group['lr']!r}")
    if group["sizes"] is not None:
        group["sizes"] = tuple(group["sizes"])
    if not group["pull"] >= 0:
        raise RequestError(f"pull must be at least 0, got {group['pull']!r}")
    for p in group["params"]:
        sizes = group["sizes"] if group["sizes"] is not None else tuple(p.shape[-1:])
        if p.dtype not in (torch.float32, torch.float64):
            raise RequestError(f"{_name(p, group)} must be float32 or float64, got {p.dtype}")
        if not sizes or min(sizes) < 1:
            raise RequestError(f"{_name(p, group)} must have rows of at least one weight")
        if group["sizes"] is not None and tuple(p.shape) != (sum(sizes),):
            raise RequestError(f"{_name(p, group)} must be flat with sizes {sizes}, that is of shape ({sum(sizes)},)")
        if not 0 <= group["floor"] < 1 / max(sizes):
            raise RequestError(
                f"floor must be at least 0 and less than 1/{max(sizes)} for rows of {max(sizes)} weights, "
                f"got {group['floor']!r}"
            )


def _on_simplex(p: Tensor, group: dict[str, Any]) -> Tensor:
    sums = map_rows(lambda x: x.sum(-1, keepdim=True).expand_as(x), group["sizes"], p)
    return ((p >= 0) & ((sums - 1).abs() <= TOLERANCE)).all()


def _check_start(p: Tensor, group: dict[str, Any]) -> None:
    if not p.isfinite().all() or (p < 0).any():
        raise RequestError(f"{_name(p, group)} is not on the simplex: it has a weight of {float(p.min()):g}")
    sums = map_rows(lambda x: x.sum(-1, keepdim=True).expand_as(x), group["sizes"], p)
    far = (sums - 1).abs()
    if (far > TOLERANCE).any():
        worst = float(sums.reshape(-1)[far.argmax()])
        raise RequestError(f"{_name(p, group)} is not on the simplex: each row must sum to 1, one sums to {worst:g}")


def _name(p: Tensor, group: dict[str, Any]) -> str:
    name = f" {group['name']!r}" if "name" in group else ""
    return f"parameter{name} of shape {tuple(p.shape)}"
