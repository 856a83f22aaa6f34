"""Each decision of a found architecture measured against its alternatives, under the shared weights.

Two questions per decision. The discrete one is what discretizing asks: all other decisions as in the architecture
found. The local one holds the others at their weights: as they are for a mixture, and drawn from them, many times, for
methods that sample, whose weights are probabilities of architectures and whose answer is the mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasight.architecture import Architecture
from nasight.compute import to_host
from nasight.data import Task
from nasight.spaces import Alternatives, Group, Space, Supernet

LOCAL = 512
"""Examples of the local question: there a pass evaluates every operation, and it is a second opinion."""
DRAWS = 8
"""Architectures that stand for the others' weights in the local question of a sampling method."""

Batches = Sequence[tuple[Tensor, Tensor]]
Losses = NDArray[np.float64]


@dataclass(frozen=True)
class Alternative:
    """What taking another option would change, in means over examples and their standard errors.

    `loss` and `local_loss` are the loss of this option minus that of the choice, so positive speaks for the choice;
    `accuracy`, in points, likewise the choice's minus this one's.
    """

    option: str
    architecture: str
    loss: float
    error: float
    accuracy: float
    local_loss: float
    local_error: float


@dataclass(frozen=True)
class Evidence:
    """A decision as measured on `examples` examples; the local question on the first of them."""

    name: str
    choice: str
    examples: int
    local_examples: int
    alternatives: tuple[Alternative, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "alternatives": [dict(vars(a)) for a in self.alternatives]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Evidence:
        return cls(**{**value, "alternatives": tuple(Alternative(**a) for a in value["alternatives"])})


def decisions(space: Space, arch: Architecture, weights: Mapping[str, Tensor]) -> list[Alternatives]:
    """The decisions of this architecture that have alternatives.

    These are the space's `alternatives`, less those that are none. An option that leaves no network (`none` on all
    paths) is no alternative, and neither is one whose weight is zero: the search dropped it (P-DARTS, XNAS), and its
    shared weights with it.
    """
    rows = {
        (group.name, row): dict(zip(options, values.tolist(), strict=True))
        for group in space.groups()
        if group.exclusive
        for row, options, values in zip(group.rows, group.options, group.split(weights[group.name]), strict=True)
    }
    usable = []
    for each in space.alternatives(arch, weights):
        weight = rows.get(each.rows[0], {}) if len(each.rows) == 1 else {}
        kept = [
            i
            for i, (option, a) in enumerate(zip(each.options, each.architectures, strict=True))
            if option == each.choice or (weight.get(option, 1.0) > 0 and space.usable(a) is None)
        ]
        if len(kept) > 1:
            options, archs = tuple(each.options[i] for i in kept), tuple(each.architectures[i] for i in kept)
            usable.append(Alternatives(each.name, each.choice, options, archs, each.rows))
    return usable


@torch.no_grad()
def measure(
    supernet: Supernet,
    space: Space,
    arch: Architecture,
    weights: Mapping[str, Tensor],
    batches: Batches,
    *,
    sampled: bool = False,
    local: int = LOCAL,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    task: Task | None = None,
) -> list[Evidence]:
    """Evidence on every decision of `arch`, whose supernet has trained shared weights.

    `sampled` says that the search drew architectures from the weights. `batches` are (examples, labels) that no part of
    the search has learned from. The local question is asked of the first `local` of them; with 0 it is not, and its
    figures are NaN. `task` is what the labels ask for, classes by default.
    """
    edges = any(not group.exclusive for group in supernet.groups)
    asked = decisions(space, arch, weights)
    contexts = _contexts(space, weights, draws, seed, edges) if sampled else [dict(weights)]
    passes = 1 + sum(len(a.options) - 1 for a in asked)
    total = passes + (sum(len(a.options) for a in asked) * len(contexts) if local else 0)
    near, done = first_examples(batches, local), 0

    def losses(given: Mapping[str, Tensor], rows: Batches = batches) -> tuple[Losses, Losses]:
        nonlocal done
        found = example_losses(supernet, given, rows, task)
        done += 1
        if progress is not None:
            progress(done, total)
        return found

    base = losses(space.encode(arch, edges=edges))

    def at_weights(given: Mapping[str, Tensor], rows: Sequence[tuple[str, str]]) -> Losses:
        if not near:
            return np.full(1, np.nan)
        each = [losses(placed(context, given, rows, supernet.groups), near)[0] for context in contexts]
        return np.asarray(np.mean(each, axis=0))

    return [_evidence(space, each, base, losses, at_weights, edges) for each in asked]


def _evidence(
    space: Space,
    asked: Alternatives,
    base: tuple[Losses, Losses],
    losses: Callable[[Mapping[str, Tensor]], tuple[Losses, Losses]],
    at_weights: Callable[[Mapping[str, Tensor], Sequence[tuple[str, str]]], Losses],
    edges: bool,
) -> Evidence:
    encoded = [space.encode(a, edges=edges) for a in asked.architectures]
    at = asked.options.index(asked.choice)
    found = [base if i == at else losses(given) for i, given in enumerate(encoded)]
    near = [at_weights(given, asked.rows) for given in encoded]
    alternatives = []
    for i, option in enumerate(asked.options):
        if i != at:
            loss, error = _mean(found[i][0] - base[0])
            local_loss, local_error = _mean(near[i] - near[at])
            accuracy = 100 * float((base[1] - found[i][1]).mean())
            text = space.format(asked.architectures[i])
            alternatives.append(Alternative(option, text, loss, error, accuracy, local_loss, local_error))
    return Evidence(asked.name, asked.choice, len(base[0]), len(near[0]), tuple(alternatives))


def _mean(values: Losses) -> tuple[float, float]:
    """The mean and its standard error."""
    n = len(values)
    return float(values.mean()), float(values.std(ddof=1) / n**0.5) if n > 1 else float("inf")


def placed(
    context: Mapping[str, Tensor],
    given: Mapping[str, Tensor],
    rows: Sequence[tuple[str, str]],
    groups: tuple[Group, ...],
) -> dict[str, Tensor]:
    """The weights of `context` with these rows (group, row) taken from `given`; rows that no group has are skipped."""
    found = {name: value.clone() for name, value in context.items()}
    for group in groups:
        for name, row in rows:
            if name == group.name:
                i = group.rows.index(row)
                group.split(found[name])[i].copy_(group.split(given[name])[i])
    return found


def first_examples(batches: Iterable[tuple[Tensor, Tensor]], examples: int | None) -> list[tuple[Tensor, Tensor]]:
    """The first `examples` examples, in the batches they come in; one that is left alone is left out (batch norm)."""
    left = sum(len(y) for _, y in batches) if examples is None else examples
    found = []
    for x, y in batches:
        if min(left, len(y)) > 1:
            found.append((x[:left], y[:left]))
        left -= min(left, len(y))
        if not left:
            break
    return found


@torch.no_grad()
def example_losses(
    supernet: Supernet, weights: Mapping[str, Tensor], batches: Batches, task: Task | None = None
) -> tuple[Losses, Losses]:
    """The loss of every example, and its score: for classes the cross-entropy, and 1 where the class is right."""
    training, asked = supernet.training, task or Task()
    among = torch.cat([y for _, y in batches])
    supernet.eval()
    losses, right = [], []
    for x, y in batches:
        logits = supernet(x, weights)
        losses.append(asked.losses(logits, y))
        right.append(asked.rows(logits, y, among))
    supernet.train(training)
    # Read once; a device may have no float64.
    near = to_host((torch.cat(losses), torch.cat(right)))
    return near[0].double().numpy(), near[1].double().numpy()


def _contexts(
    space: Space, weights: Mapping[str, Tensor], draws: int, seed: int, edges: bool
) -> list[dict[str, Tensor]]:
    """Architectures drawn from the weights: with Gumbel noise on their logarithms an arg max is a draw from a row, and
    the largest few are a draw without replacement."""
    generator, found = torch.Generator().manual_seed(seed), []
    for _ in range(draws):
        noisy = {}
        for name, value in weights.items():
            uniform = torch.rand(value.shape, generator=generator, dtype=torch.float64).clamp_min(1e-12)
            noisy[name] = value.double() / -uniform.log()
        found.append(space.encode(space.derive(noisy), edges=edges))
    return found
