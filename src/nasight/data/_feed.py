"""Rows of a data set on their way to a device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from nasight.compute import fits, is_device, to_device

Read = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Numbers of rows -> examples and labels, on the CPU."""


class Feed:
    """Rows by their numbers, on a device.

    Data that fit into half of the free memory of the device are kept there, and only the numbers travel. Of larger
    data each batch is read into pinned memory, which is copied while the device computes, and a thread reads the next
    batch in the meantime.

    Parameters
    ----------
    read : gives rows, on the CPU.
    count, size : how many rows there are, and the bytes of one.
    device : where the rows are wanted.

    >>> x, y = torch.arange(6).view(3, 2), torch.arange(3)
    >>> rows, labels = Feed(lambda n: (x[n], y[n]), 3, 24, torch.device("cpu"))(torch.tensor([2, 0]))
    >>> rows.tolist(), labels.tolist()
    ([[4, 5], [0, 1]], [2, 0])
    """

    def __init__(self, read: Read, count: int, size: int, device: torch.device) -> None:
        self.read, self.device = read, device
        self.kept: tuple[Tensor, Tensor] | None = None
        self._ahead: tuple[Tensor, Future[tuple[Tensor, Tensor]]] | None = None
        self._reader: ThreadPoolExecutor | None = None
        if is_device(device):
            if fits(count * size, device):
                self.kept = to_device(read(torch.arange(count)), device)
            else:
                self._reader = ThreadPoolExecutor(1, "nasight-feed")

    def __call__(self, rows: Tensor, ahead: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """These rows; `ahead` are the numbers that will be asked for next."""
        if self.kept is not None:
            near = to_device(rows, self.device)
            return self.kept[0][near], self.kept[1][near]
        if self._reader is None:
            return self.read(rows)
        began, self._ahead = self._ahead, None
        found = began[1].result() if began is not None and torch.equal(began[0], rows) else self._pinned(rows)
        if ahead is not None and len(ahead):
            self._ahead = ahead, self._reader.submit(self._pinned, ahead)
        return to_device(found, self.device)

    def _pinned(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        x, y = self.read(rows)
        # Pinned memory is CUDA's; other devices copy from any.
        return (x.pin_memory(), y.pin_memory()) if self.device.type == "cuda" else (x, y)
