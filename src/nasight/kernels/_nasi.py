"""NASI's own search: architecture parameters moved up the trace norm of the NTK (Shu et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.reproducible import generator_for, seeded
from nasight.spaces import Group, Space


def nasi_search(
    space: Space,
    batches: list[tuple[Tensor, Tensor]],
    *,
    classes: int = 10,
    size: Mapping[str, int] | None = None,
    steps: int = 100,
    lr: float = 0.1,
    temperature: float = 1.0,
    bound: float | None = None,
    penalty: float = 2.0,
    seed: int = 0,
) -> Architecture:
    """The arg max of architecture parameters after gradient ascent on the supernet at its initial weights.

    The objective of a step is T - penalty * max(0, T - bound), with T the estimate |sum_i grad L_i|^2 / b of the trace
    norm on a batch (NASI, Sections 3.3 and 3.4): a kernel too large cannot be trained, so beyond the bound T is
    pushed back. Choices are drawn by Gumbel-softmax, arg max forward and softmax backward; of the gradient only its
    direction is used.

    Parameters
    ----------
    space : the space to search.
    batches : examples (b, ...) and their labels (b,); they are used in turn.
    classes : the number of classes.
    size : size settings of the supernet; the space's own by default.
    steps : how many steps are taken.
    lr : learning rate, the length of a step.
    temperature : of the Gumbel-softmax.
    bound : on T; by default what the supernet has at uniform weights.
    penalty : the factor of what exceeds the bound.
    seed : initial weights and draws follow from it.

    >>> from nasight.spaces.mlp import Mlp
    >>> x, y = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
    >>> nasi_search(Mlp(3), [(x, y)], classes=2, size={"width": 8}, steps=2) in Mlp(3)
    True
    """
    groups = space.groups()
    if not batches or any(not group.exclusive or group.ragged for group in groups):
        raise RequestError(f"NASI needs batches, got {len(batches)}, and decisions of equal options in {space.name!r}")
    if batches[0][1].is_floating_point():
        raise RequestError("NASI needs classes, and these data hold numbers or several labels")
    with seeded(seed, "initial weights"):
        supernet = space.supernet(tuple(batches[0][0].shape[1:]), classes, path="plain", **dict[str, Any](size or {}))
    # The architecture parameters stay on the CPU, where choices are drawn; the network is where the examples are.
    supernet.to(batches[0][0].device)
    parameters = [p for p in supernet.parameters() if p.requires_grad]

    def trace_norm(weights: Mapping[str, Tensor], batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        loss = cross_entropy(supernet(x, weights, skip_zeros=False), y, reduction="sum")
        grads = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True)
        return torch.stack([g.square().sum() for g in grads if g is not None]).sum() / len(y)

    limit = bound if bound is not None else trace_norm({g.name: g.uniform() for g in groups}, batches[0]).item()
    alpha = {g.name: torch.zeros(g.shape, requires_grad=True) for g in groups}
    generator = generator_for(seed, "gumbel")
    for step in range(steps):
        weights = {g.name: _drawn(g, alpha[g.name], temperature, generator) for g in groups}
        value = trace_norm(weights, batches[step % len(batches)])
        objective = value - penalty * torch.relu(value - limit)
        slopes = torch.autograd.grad(objective, list(alpha.values()))
        size_of = torch.cat([slope.flatten() for slope in slopes]).norm().clamp_min(1e-30)
        with torch.no_grad():
            for parameter, slope in zip(alpha.values(), slopes, strict=True):
                if bool(torch.isfinite(size_of)):
                    parameter += lr * slope / size_of
    return space.derive({name: parameter.detach() for name, parameter in alpha.items()})


def _drawn(group: Group, alpha: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
    """One-hot rows whose gradient is that of the softmax of (alpha + Gumbel noise) / temperature."""
    uniform = torch.rand(group.shape, generator=generator).clamp_min(1e-20)
    soft = torch.softmax((alpha - (-uniform.log()).log()) / temperature, 1)
    hard = torch.nn.functional.one_hot(soft.argmax(1), soft.shape[1]).to(soft.dtype)
    return hard + soft - soft.detach()
