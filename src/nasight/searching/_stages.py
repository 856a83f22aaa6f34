"""Stages of a search: each with a network of its own depth, and fewer operations than the one before (P-DARTS)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

import torch
from torch import Tensor

from nasight.spaces import Group

Options = dict[str, list[list[int]]]
"""Group -> row -> the options that are left, by their places in the whole group."""


@dataclass(frozen=True)
class Stage:
    """How the network of one stage differs from the one that was asked for."""

    depth: float = 1.0
    """So many times the cells."""
    operations: float = 1.0
    """The share of a row's options that is left, rounded up."""
    dropout: float = 0.0
    """The probability that a number behind a skip connection is dropped, at the start of the stage."""


@dataclass(frozen=True)
class Span:
    """The epochs of one stage; the first `warmup` of them train the shared weights alone."""

    first: int
    epochs: int
    warmup: int

    def learns(self, epoch: int) -> bool:
        return epoch >= self.first + self.warmup

    def progress(self, epoch: int) -> float:
        """0 at the first epoch with architecture steps, 1 at the last."""
        return min(1.0, max(epoch - self.first - self.warmup, 0) / max(self.epochs - 1 - self.warmup, 1))

    def since(self, epoch: int) -> float:
        """Epochs with architecture steps before this one, over all epochs of the stage but one."""
        return min(1.0, max(epoch - self.first - self.warmup, 0) / max(self.epochs - 1, 1))

    def elapsed(self, epoch: int) -> float:
        """The share of the stage that is over when this epoch ends: 1 in the last."""
        return min(1.0, max(epoch - self.first + 1, 0) / self.epochs)


def spans(stages: int, epochs: int, warmup: int) -> list[Span]:
    """The epochs cut into stages, and the warm-up with them; stages for which no epoch is left are left out."""
    firsts = [first for first in (ceil(epochs * i / stages) for i in range(stages)) if first < epochs]
    ends = [*firsts[1:], epochs]
    return [Span(a, b - a, int(warmup * (b - a) / epochs)) for a, b in zip(firsts, ends, strict=True)]


def strongest(weights: Mapping[str, Tensor], groups: tuple[Group, ...], share: float) -> Options:
    """The options with the largest weights, a share of each row in which one is chosen."""
    kept = Options()
    for group in groups:
        if group.exclusive:
            rows = group.split(weights[group.name].detach())
            kept[group.name] = [sorted(row.topk(ceil(share * len(row))).indices.tolist()) for row in rows]
    return kept


class Reduced:
    """The groups of a supernet with some of their options, and the way back to all of them."""

    def __init__(self, groups: tuple[Group, ...], options: Options) -> None:
        self.whole, self.options = groups, options
        self.groups = tuple(self._reduced(group) for group in groups)
        self._places = {group.name: self._place(group) for group in groups if group.name in options}
        self._moved = dict[tuple[str, torch.device], Tensor]()

    def expand(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights for the supernet: exactly zero where an option is gone."""
        found = dict(weights)
        for group in self.whole:
            if group.name in self._places:
                short = weights[group.name].reshape(-1)
                flat = short.new_zeros(sum(group.sizes)).index_copy(0, self._place_on(group, short.device), short)
                found[group.name] = flat.reshape(group.shape)
        return found

    def _reduced(self, group: Group) -> Group:
        kept = self.options.get(group.name)
        if kept is None:
            return group
        pairs = zip(group.options, kept, strict=True)
        return replace(group, options=tuple(tuple(options[i] for i in places) for options, places in pairs))

    def _place_on(self, group: Group, device: torch.device) -> Tensor:
        if (group.name, device) not in self._moved:
            self._moved[group.name, device] = self._places[group.name].to(device, non_blocking=True)
        return self._moved[group.name, device]

    def _place(self, group: Group) -> Tensor:
        starts = [sum(group.sizes[:row]) for row in range(len(group.sizes))]
        rows = zip(starts, self.options[group.name], strict=True)
        return torch.tensor([start + i for start, places in rows for i in places])
