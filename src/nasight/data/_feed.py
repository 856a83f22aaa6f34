"""Rows of a data set on their way to a device."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from nasight.compute import fits, is_device, to_device


class Feed:
    """Rows by their numbers, on a device.

    Data that fit into half of the free memory of the device are kept there, and only the numbers travel. Of larger
    data each batch is read into pinned memory, which is copied while the device computes; `ahead` lets a thread read
    the next batch in the meantime.

    >>> rows, labels = Feed()(torch.arange(6).view(3, 2), torch.arange(3), torch.tensor([2, 0]))
    >>> rows.tolist(), labels.tolist()
    ([[4, 5], [0, 1]], [2, 0])
    """

    def __init__(self, device: torch.device | None = None, x: Tensor | None = None, y: Tensor | None = None) -> None:
        self.device = device or torch.device("cpu")
        self.kept: tuple[Tensor, Tensor] | None = None
        self._ahead: tuple[tuple[int, ...], Future[tuple[Tensor, Tensor]]] | None = None
        self._reader: ThreadPoolExecutor | None = None
        if x is not None and y is not None and is_device(self.device):
            size = sum(part.numel() * part.element_size() for part in (x, y))
            if fits(size, self.device):
                self.kept = to_device((x, y), self.device)
            else:
                self._reader = ThreadPoolExecutor(1, "nasight-feed")

    def __call__(self, x: Tensor, y: Tensor, rows: Tensor, ahead: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The rows of x and y; `ahead` are those that will be asked for next."""
        if self._reader is None:
            if self.kept is not None:
                x, y = self.kept
                rows = to_device(rows, self.device)
            return x[rows], y[rows]
        key = tuple(rows.tolist())
        if self._ahead is not None and self._ahead[0] == key:
            found = self._ahead[1].result()
        else:
            found = self._pinned(x, y, rows)
        self._ahead = None
        if ahead is not None and len(ahead):
            self._ahead = tuple(ahead.tolist()), self._reader.submit(self._pinned, x, y, ahead)
        return to_device(found, self.device)

    def _pinned(self, x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        found = x[rows], y[rows]
        # Pinned memory is CUDA's; other devices copy from any.
        return (found[0].pin_memory(), found[1].pin_memory()) if self.device.type == "cuda" else found
