"""Mixed precision: products in 16 bits, and what must not be rounded in 32."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from nasight.errors import RequestError

if TYPE_CHECKING:
    import torch

PRECISIONS = ("32", "bf16", "16")


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse a precision that there is not, or not on this device."""
    if precision not in PRECISIONS:
        raise RequestError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    if precision == "16" and device.type == "cpu":
        raise RequestError("precision 16 is for GPUs; on the CPU take bf16 or 32")


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Products and convolutions inside are in this precision; parameters stay float32."""
    import torch

    if precision == "32":
        return nullcontext()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    return torch.autocast(device.type, dtype=dtype)


class LossScale:
    """Keeps small float16 gradients from vanishing: the loss is multiplied, the gradients are divided again.

    A step whose gradients are not finite is left out and the factor halved; after `patience` good steps it doubles.
    All of this stays on the device: nothing waits. With any other precision it does nothing.
    """

    def __init__(self, device: torch.device, precision: str, first: float = 2.0**16, patience: int = 2000) -> None:
        import torch

        self.active, self.patience = precision == "16", patience
        self.factor = torch.full((), first).to(device, non_blocking=True) if self.active else None
        self.good = torch.zeros(()).to(device, non_blocking=True) if self.active else None

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        return loss if self.factor is None else loss * self.factor

    def restored(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        """The gradients of the loss from those of the scaled one; all zero where one of them is not finite."""
        import torch

        if self.factor is None or self.good is None or not grads:
            return grads
        near = [grad.to(self.factor.device, non_blocking=True) for grad in grads]
        fine = torch.stack([grad.isfinite().all() for grad in near]).all()
        scaled = [torch.where(fine, grad / self.factor, 0.0) for grad in near]
        divided = [each.to(grad.device) for each, grad in zip(scaled, grads, strict=True)]
        self.good = torch.where(fine, self.good + 1, 0.0)
        grown = torch.where(self.good >= self.patience, self.factor * 2, self.factor)
        self.factor = torch.where(fine, grown, self.factor / 2)
        self.good = torch.where(self.good >= self.patience, 0.0, self.good)
        return divided

    def restore_gradients(self, parameters: Iterable[torch.Tensor]) -> None:
        """The same for the gradients that parameters have after a backward pass."""
        if self.active:
            moving = [p for p in parameters if p.grad is not None]
            for p, grad in zip(moving, self.restored([p.grad for p in moving if p.grad is not None]), strict=True):
                p.grad = grad

    def state(self) -> dict[str, torch.Tensor]:
        return {} if self.factor is None or self.good is None else {"factor": self.factor, "good": self.good}

    def restore(self, state: dict[str, torch.Tensor]) -> None:
        if self.factor is not None and state:
            device = self.factor.device
            self.factor, self.good = state["factor"].to(device), state["good"].to(device)
