"""At which size a find trains its networks: the largest for which there is time, within limits and up to the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.reproducible import generator_for
from nasight.searching import Latency
from nasight.spaces import Space
from nasight.studies.finding._context import Context
from nasight.studies.finding._names import SPACE

PRESETS = ("tiny", "small", "paper")
ENOUGH = 20
"""Epochs that the answer must have time for at a size, before it is taken in place of a smaller one."""
FEWEST_EPOCHS = 20
"""Epochs that the answer must have time for with every candidate, unless it is hardly larger than the reference."""
LEAST_TIMES = 3.0
"""A candidate may have so many times the multiply-adds of the reference in any case."""
DRAWN = 20
EFFICIENT = 4.0
"""A larger network takes fewer seconds per multiply-add, but not so many times fewer."""


@dataclass(frozen=True)
class Size:
    """The size of all networks of a find, and the epochs of the target, where the budget reaches it."""

    size: Mapping[str, int]
    epochs: int | None = None
    most_products: float | None = None
    """Multiply-adds per example that a candidate may have; None: all of them can be trained."""

    def to_dict(self) -> dict[str, Any]:
        return {"size": dict(self.size), "epochs": self.epochs, "most_products": self.most_products}


def sizes(space: Space, target: str | None = None) -> list[dict[str, int]]:
    """The sizes at which networks of a space are trained, from small to large, none beyond that of the target.

    >>> from nasight.spaces import load
    >>> sizes(load("nasbench201"), "small")
    [{'channels': 8, 'cells': 1}, {'channels': 16, 'cells': 2}]
    """
    names = PRESETS[: PRESETS.index(target) + 1] if target in PRESETS else PRESETS
    found = list[dict[str, int]]()
    for name in (*names, *(() if target is None or target in PRESETS else (target,))):
        size = space.train_size(name)
        if size is not None and size not in found:
            found.append(size)
    return found or [space.size()]


def choose_size(context: Context, seconds: float, rows: int, measure: Callable[[Mapping[str, int]], float]) -> Size:
    """The size for trainings of the answer that may take so many seconds each.

    Parameters
    ----------
    context : the find.
    seconds : of one process, for one training.
    rows : that it learns from in an epoch.
    measure : the seconds that one row takes at a size.
    """
    ladder, target = sizes(context.space, context.settings.target), context.settings.target
    wanted = None if target is None else context.space.train_settings[target].get("epochs")
    if wanted is None and len(ladder) == 1:
        return Size(ladder[0])
    first, needed = measure(ladder[0]), min(ENOUGH, wanted or ENOUGH)
    costs = {0: first}

    def epochs(step: int) -> float:
        """Those that there is time for; a size for which there surely is none is not measured."""
        if step not in costs:
            guess = first * max(
                1.0, _multiply_adds(context, ladder[step]) / _multiply_adds(context, ladder[0]) / EFFICIENT
            )
            costs[step] = measure(ladder[step]) if seconds >= needed * rows * guess else guess
        return seconds / (rows * costs[step])

    if wanted is not None and ladder[-1] == context.space.train_size(str(target)) and epochs(len(ladder) - 1) >= wanted:
        return Size(ladder[-1], int(wanted))
    fitting = (
        step for step in range(len(ladder) - 1, 0, -1) if _within(context, ladder[step]) and epochs(step) >= ENOUGH
    )
    return Size(ladder[next(fitting, 0)])


def most_products(context: Context, reference: Architecture, epochs: float = 0.0) -> float | None:
    """The multiply-adds per example that a candidate may have; None where hardly any has more.

    A space may hold networks that cost twenty times as much as its reference. One for which the answer would not have
    time for a few epochs is no candidate.

    Parameters
    ----------
    context : the find, which has taken its size.
    reference : of the space, or what stands for it.
    epochs : of the reference, for which the answer has time.
    """
    base = context.own_products(reference)
    if base is None:
        return None
    most = base * max(LEAST_TIMES, epochs / FEWEST_EPOCHS)
    chance = generator_for(context.settings.seed, "costs")
    drawn = [context.own_products(context.space.sample(chance)) or 0 for _ in range(DRAWN)]
    return float(round(most)) if max(drawn) > most else None


def _within(context: Context, size: Mapping[str, int]) -> bool:
    """Whether the reference of this size is within the limits, where these count at the size of the find."""
    space, s = context.space, context.settings
    if s.target is not None:
        return True
    inputs, classes = context.data.inputs, context.data.n_classes
    if s.max_params is not None and space.parameters(inputs, classes, **size)(space.reference) > s.max_params:
        return False
    return s.max_latency is None or Latency(space, inputs, classes, size)(space.reference) <= s.max_latency


def _multiply_adds(context: Context, size: Mapping[str, int]) -> int:
    space = context.trainings.space(SPACE)
    try:
        return max(1, space.multiply_adds(context.data.inputs, context.data.n_classes, **size).built(space.reference))
    except RequestError:  # those of a model that cannot be counted
        return 1
