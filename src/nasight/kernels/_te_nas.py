"""TE-NAS's own search: prune the supernet, one operation of every decision per round (Chen et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.compute import double, to_device, to_host
from nasight.errors import RequestError
from nasight.gradients import coupled
from nasight.kernels._patterns import activation_patterns, distinct
from nasight.reproducible import generator_for, seeded
from nasight.spaces import Space, Supernet

Weights = dict[str, Tensor]
Removal = tuple[str, int, int]
"""Group, row and option."""
Progress = Callable[[int, int], None]


def te_nas_prune(
    space: Space,
    x: Tensor,
    *,
    classes: int = 10,
    size: Mapping[str, int] | None = None,
    thin: Mapping[str, int] | None = None,
    noise: int = 500,
    seed: int = 0,
    progress: Progress | None = None,
) -> Architecture:
    """The architecture left when every decision has lost all options but one, judged without training.

    A round removes from each decision the option whose removal lowers the condition number kappa of the supernet's
    NTK most and the number of its linear regions R least, by the sum of the two ranks among all options of the round:
    kappa(N) - kappa(N without o), largest first, and R(N) - R(N without o), smallest first. kappa is measured
    with batch norm coupled (the supernet's only kind), R on noise of 3 x 3 pixels and a thin supernet.

    Parameters
    ----------
    space : the space to search.
    x : the examples on which kappa is measured, (n, ...).
    classes : the number of classes.
    size : size settings of the supernet for kappa; the space's own by default.
    thin : size settings of the supernet for R; 1 channel and 1 cell by default, where the space has these sizes.
    noise : how many images of noise R is measured on.
    seed : initial weights and noise follow from it.
    progress : called with the number of finished removals and of all removals.

    >>> from nasight.spaces.mlp import Mlp
    >>> te_nas_prune(Mlp(2), torch.eye(3, 4), classes=2, size={"width": 8}, thin={"width": 4}, noise=20) in Mlp(2)
    True
    """
    groups = space.groups()
    if any(not group.exclusive or group.ragged for group in groups):
        raise RequestError(f"space {space.name!r} cannot be pruned: its decisions have different options")
    measure = _Measure(space, x, classes, dict(size or {}), thin, noise, seed)
    masks = {group.name: torch.ones(group.shape) for group in groups}
    done, total = 0, sum(rows * (options * (options + 1) // 2 - 1) for rows, options in (g.shape for g in groups))
    while any(float(mask.sum(1).max()) > 1 for mask in masks.values()):
        kappa, regions = measure(masks)
        gains: dict[Removal, tuple[float, float]] = {}
        for removal in _removals(masks):
            after = measure(_without(masks, removal))
            gains[removal] = (kappa - after[0], regions - after[1])
            done += 1
            if progress is not None:
                progress(done, total)
        for name, row, option in _worst(gains):
            masks[name][row, option] = 0
    return space.derive(masks)


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
    """Of every decision the option with the lowest sum of ranks; the earlier one of equals."""
    from scipy.stats import rankdata

    removals = list(gains)
    by_kappa = rankdata([-gains[r][0] for r in removals])
    by_regions = rankdata([gains[r][1] for r in removals])
    best: dict[tuple[str, int], tuple[float, Removal]] = {}
    for removal, total in zip(removals, by_kappa + by_regions, strict=True):
        key = removal[:2]
        if key not in best or total < best[key][0]:
            best[key] = (float(total), removal)
    return [removal for _, removal in best.values()]


class _Measure:
    """kappa and R of the supernet under a mask; its weights are the initial ones of the seed."""

    def __init__(
        self,
        space: Space,
        x: Tensor,
        classes: int,
        size: dict[str, int],
        thin: Mapping[str, int] | None,
        noise: int,
        seed: int,
    ) -> None:
        self.x = x
        self.supernet = self._build(space, tuple(x.shape[1:]), classes, size, seed).to(x.device)
        smallest = {key: value for key, value in {"channels": 1, "cells": 1}.items() if key in space.sizes}
        shape = (1, 3, 3) if x.dim() == 4 else tuple(x.shape[1:])
        # Drawn on the CPU, like the weights; both go where the examples are.
        self.noise = to_device(torch.randn(noise, *shape, generator=generator_for(seed, "noise")), x.device)
        self.thin = self._build(space, shape, classes, dict(thin) if thin is not None else smallest, seed).to(x.device)

    @staticmethod
    def _build(space: Space, inputs: tuple[int, ...], classes: int, size: dict[str, Any], seed: int) -> Supernet:
        with seeded(seed, "initial weights"):
            return space.supernet(inputs, classes, path="plain", **size)

    def __call__(self, masks: Weights) -> tuple[float, float]:
        forward = partial(self.supernet, weights=masks)
        parameters = [p for p in self.supernet.parameters() if p.requires_grad]
        rows = coupled(forward, self.x, lambda logits, y: logits.sum(1)[None], parameters)[0]
        rows = double(rows)
        values = torch.linalg.eigvalsh(to_host(rows @ rows.t()))
        kappa = float(values[-1]) / max(float(values[0]), 1e-12 * float(values[-1]))
        patterns = activation_patterns(partial(self.thin, weights=masks), self.noise)
        return kappa, 0.0 if patterns is None else float(distinct(patterns))
