"""TE-NAS's own search: prune the supernet, one operation of every decision per round (Chen et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.kernels._initial import reinitialize
from nasight.kernels._te_nas_measures import CROPS, condition_number, crops, linear_regions, weights_of
from nasight.reproducible import generator_for, seeded
from nasight.spaces import Space

Weights = dict[str, Tensor]
Removal = tuple[str, int, int]
"""Group, row and option."""
Progress = Callable[[int, int], None]
DIGITS = 3
"""Relative changes are rounded to as many digits, so that small ones are ties."""
NO_KAPPA = 1e5
"""What a kernel without a condition number counts as."""


def te_nas_prune(
    space: Space,
    x: Tensor,
    *,
    images: Tensor | None = None,
    classes: int = 10,
    size: Mapping[str, int] | None = None,
    number: int = CROPS,
    repeats: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> Architecture:
    """The architecture left when every decision has lost all options but one, judged without training.

    A round removes from each decision the option whose removal lowers the condition number kappa of the supernet's
    NTK most and the number R of its linear regions least, by the sum of two ranks among all options of the round: of
    (kappa - kappa without it) / kappa, largest first, and of (R - R without it) / R, smallest first, each the mean over
    draws of weights and crops. Both are the scores `condition` and `regions` of a supernet in which the options that a
    decision has left share its weight equally. Unlike the released code, which draws anew for every removal, all
    removals of a round are judged by the same draws.

    Parameters
    ----------
    space : the space to search.
    x : the examples on which kappa is measured, (n, ...); 72 of them in the paper.
    images : what the crops for R are cut from; `x` by default. Examples that are no images are taken as they are.
    classes : the number of classes.
    size : size settings of the supernet for kappa; the space's `prune_size` by default.
    number : how many crops R is measured on.
    repeats : how many draws of initial weights and crops a round has.
    seed : initial weights and crops follow from it.
    progress : called with the number of finished removals and of all removals.

    >>> from nasight.spaces.mlp import Mlp
    >>> te_nas_prune(Mlp(2), torch.eye(3, 4), classes=2, size={"width": 8}, number=20, repeats=1) in Mlp(2)
    True
    """
    groups = space.groups()
    if any(not group.exclusive or group.ragged for group in groups):
        raise RequestError(f"space {space.name!r} cannot be pruned: its decisions have different options")
    if repeats < 1:
        raise RequestError(f"at least 1 draw of weights is needed, got repeats={repeats}")
    measure = _Measure(space, x, x if images is None else images, classes, size, number, seed)
    masks = {group.name: torch.ones(group.shape) for group in groups}
    done, total = 0, sum(rows * (options * (options + 1) // 2 - 1) for rows, options in (g.shape for g in groups))
    for turn in range(max(group.shape[1] for group in groups) - 1):
        before = [measure(masks, turn, repeat) for repeat in range(repeats)]
        gains: dict[Removal, tuple[float, float]] = {}
        for removal in _removals(masks):
            after = [measure(_without(masks, removal), turn, repeat) for repeat in range(repeats)]
            pairs = list(zip(before, after, strict=True))
            gains[removal] = (_change(pairs, 0), _change(pairs, 1))
            done += 1
            if progress is not None:
                progress(done, total)
        for name, row, option in _worst(gains):
            masks[name][row, option] = 0
    return space.derive(masks)


def _change(pairs: list[tuple[tuple[float, float], tuple[float, float]]], which: int) -> float:
    """The mean of (before - after) / before over the draws."""
    changes = [(a[which] - b[which]) / a[which] if a[which] else 0.0 for a, b in pairs]
    return sum(round(change, DIGITS) for change in changes) / len(changes)


def _removals(masks: Weights) -> list[Removal]:
    return [
        (name, row, int(option))
        for name, mask in masks.items()
        for row in range(len(mask))
        if float(mask[row].sum()) > 1
        for option in mask[row].nonzero().flatten()
    ]


def _without(masks: Weights, removal: Removal) -> Weights:
    name, row, option = removal
    mask = masks[name].clone()
    mask[row, option] = 0
    return {**masks, name: mask}


def _worst(gains: Mapping[Removal, tuple[float, float]]) -> list[Removal]:
    """Of every decision the option with the lowest sum of ranks; of equal ones that which lowers kappa more."""
    from scipy.stats import rankdata

    removals = list(gains)
    by_kappa = rankdata([-gains[r][0] for r in removals], method="dense")
    by_regions = rankdata([gains[r][1] for r in removals], method="dense")
    order = sorted(range(len(removals)), key=lambda i: (by_kappa[i] + by_regions[i], by_kappa[i]))
    first: dict[tuple[str, int], Removal] = {}
    for i in order:
        first.setdefault(removals[i][:2], removals[i])
    return list(first.values())


class _Measure:
    """kappa and R of the supernet under a mask, for a draw of initial weights and crops."""

    def __init__(
        self,
        space: Space,
        x: Tensor,
        images: Tensor,
        classes: int,
        size: Mapping[str, int] | None,
        number: int,
        seed: int,
    ) -> None:
        self.x, self.images, self.number, self.seed = x, images, number, seed
        self.crops = images[:number]
        if images.dim() == 4:
            self.crops = crops(images.cpu(), number, generator_for(seed, "crops"))
        sizes: dict[str, Any] = dict(size if size is not None else space.prune_size or space.score_size)
        self.supernet = space.pruning_supernet(tuple(x.shape[1:]), classes, **sizes)
        self.thin = space.pruning_supernet(tuple(self.crops.shape[1:]), classes, thin=True)
        self.drawn: tuple[int, int] | None = None

    def __call__(self, masks: Weights, turn: int, repeat: int) -> tuple[float, float]:
        if self.drawn != (turn, repeat):
            self._draw(turn, repeat)
        # What a softmax gives options that are left: equal shares.
        shares = {name: mask / mask.sum(1, keepdim=True) for name, mask in masks.items()}
        kappa = condition_number(partial(self.supernet, weights=shares), self.x, weights_of(self.supernet))
        regions = linear_regions(partial(self.thin, weights=shares), self.crops)
        return kappa if isfinite(kappa) else NO_KAPPA, float(regions or 0)

    def _draw(self, turn: int, repeat: int) -> None:
        """Drawn on the CPU; weights and crops then go where the examples are."""
        self.drawn = (turn, repeat)
        with seeded(self.seed, "initial weights", turn, repeat):
            reinitialize(self.supernet.cpu(), "fan-out")
            reinitialize(self.thin.cpu(), "fan-in")
        self.supernet.to(self.x.device)
        self.thin.to(self.x.device)
        if self.images.dim() == 4:
            cut = crops(self.images.cpu(), self.number, generator_for(self.seed, "crops", turn, repeat))
            self.crops = cut.to(self.x.device)
