"""The best architecture under a limit: the likeliest that keep it compete under the shared weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.search._parameters import Parameters
from nasight.search._selection import Likeliest
from nasight.spaces import Group, Space

if TYPE_CHECKING:
    from nasight.search._engine import Engine

COMPETE = 20
"""So many architectures within the limit compete, or as many as the method lets compete anyway."""
ENUMERATED = 20_000
"""Up to so many architectures all are looked at."""
DRAWS = 2_000
RESAMPLES = 2_000


def check_limit(engine: Engine) -> None:
    """Refuse a limit that no architecture keeps, before anything is computed."""
    limit = engine.settings.max_params
    if limit is None:
        return
    least, certain = parameters(engine).smallest()
    if least > limit and certain:
        raise RequestError(
            f"no architecture of {engine.space.name!r} has at most {limit:,} parameters{_at(engine)}: "
            f"the smallest has {least:,}"
        )


def parameters(engine: Engine) -> Parameters:
    """Counts at the size that the limit is about."""
    s = engine.settings
    return Parameters(engine.space, engine.dataset.inputs, engine.dataset.n_classes, s.params_size or s.size)


def constrained(engine: Engine, unconstrained: Architecture) -> tuple[Architecture, dict[str, Any]]:
    """The pick, and what the run keeps of how it was found."""
    s, space, count = engine.settings, engine.space, parameters(engine)
    assert s.max_params is not None
    log_p = LogProbability(engine.weights(), engine.groups, space)
    generator = engine.generator("constraint")
    number = max(COMPETE, s.candidates)
    looked_at = _looked_at(engine, unconstrained, count, log_p, number, generator)
    within = [a for a in looked_at if space.usable(a) is None and count(a) <= s.max_params]
    if not within:
        least = min(map(count, filter(lambda a: space.usable(a) is None, looked_at)))
        raise RequestError(
            f"no architecture with at most {s.max_params:,} parameters{_at(engine)} was found in {space.name!r}: "
            f"the smallest looked at has {least:,}"
        )
    # Of equally likely ones, random ones.
    order = torch.randperm(len(within), generator=generator).tolist()
    kept = sorted((within[i] for i in order), key=lambda a: -log_p(a))[:number]
    right = torch.stack([engine.correct(arch) for arch in kept])  # (candidates, examples)
    accuracy = right.double().mean(1)
    # Equal accuracies: the likelier one, which comes first.
    best = int(accuracy.argmax())
    sure = chances_of_best(right, generator)
    rows = [
        {
            "architecture": space.format(arch),
            "params": count(arch),
            "log_probability": log_p(arch),
            "accuracy": 100 * float(accuracy[i]),
            "best_with_probability": float(sure[i]),
        }
        for i, arch in enumerate(kept)
    ]
    about = {
        "max_params": s.max_params,
        "size": s.params_size or s.size,
        "params": rows[best]["params"],
        "sure": rows[best]["best_with_probability"],
        "unconstrained": {
            "architecture": space.format(unconstrained),
            "params": count(unconstrained) if space.usable(unconstrained) is None else None,
        },
        "candidates": rows,
    }
    return kept[best], about


def chances_of_best(right: Tensor, generator: torch.Generator) -> Tensor:
    """In what share of resamples of the examples each candidate is the best: right (candidates, n) -> (candidates,).

    Equal ones share a resample.

    >>> right = torch.tensor([[True] * 90 + [False] * 10, [True] * 10 + [False] * 90])
    >>> chances_of_best(right, torch.Generator().manual_seed(0))
    tensor([1., 0.])
    """
    scores, n = right.float(), right.shape[1]
    chances = torch.zeros(len(right))
    for _ in range(RESAMPLES // 100):
        drawn = torch.randint(n, (100, n), generator=generator)
        counts = torch.zeros(100, n).scatter_add_(1, drawn, torch.ones(100, n))
        hits = scores @ counts.T
        first = (hits == hits.max(0).values).float()
        chances += (first / first.sum(0)).sum(1)
    return chances / (RESAMPLES // 100 * 100)


class LogProbability:
    """log p of an architecture under the weights, row by row.

    Where a space keeps some edges of a node (DARTS) these count, with their edge weight if there is one; of a place
    with several inputs (1Shot1) each input counts. As many count in every architecture, so they compare.
    """

    def __init__(self, weights: Mapping[str, Tensor], groups: Iterable[Group], space: Space) -> None:
        self.pruned = "none" if space.name == "darts" else None
        self.rows = dict[str, dict[str, float]]()
        self.edges = dict[str, float]()
        decided = {d.name for d in space.decisions}
        for group in groups:
            for name, options, row in zip(
                group.rows, group.options, group.split(weights[group.name].detach()), strict=True
            ):
                logs = {o: math.log(max(w, 1e-300)) for o, w in zip(options, row.tolist(), strict=True)}
                if name in decided:
                    self.rows[name] = logs
                else:
                    self.edges |= logs

    def __call__(self, arch: Architecture) -> float:
        total = 0.0
        for name, option in arch.choices:
            if name in self.rows and option != self.pruned:
                row = self.rows[name]
                total += row[option] if option in row else sum(row[part] for part in option.split("+"))
                total += self.edges.get(name, 0.0)
        return total


def _looked_at(
    engine: Engine,
    unconstrained: Architecture,
    count: Parameters,
    log_p: LogProbability,
    number: int,
    generator: torch.Generator,
) -> list[Architecture]:
    """All architectures, or of a large space the likeliest, the way from the arg max to the limit, and a walk."""
    space, limit = engine.space, engine.settings.max_params or 0
    if len(space) <= ENUMERATED:
        return list(space)
    found = list(Likeliest().propose(engine, number, generator))
    way = list(_lightened(space, unconstrained, count, log_p, limit))
    around = [a for d in space.decisions for o in d.options if (a := _changed(space, way[-1], d.name, o)) is not None]
    return list(dict.fromkeys([*found, *way, *around, *_drawn(space, log_p, generator)]))


def _drawn(space: Space, log_p: LogProbability, generator: torch.Generator) -> Iterator[Architecture]:
    """A walk that proposes one other option at a time and is drawn to likely architectures, less and less so.

    From the sharp distribution to the flat one: so that what is close to the limit is met wherever it lies.
    """
    arch = space.sample(generator)
    here = log_p(arch)
    for step in range(DRAWS):
        heat = 0.5 + 4 * step / DRAWS
        there = space.sample(generator) if step % 50 == 49 else _neighbour(space, arch, generator)
        if there is None:
            continue
        chance = math.exp(min(0.0, (log_p(there) - here) / heat))
        if float(torch.rand((), generator=generator)) < chance:
            arch, here = there, log_p(there)
            yield arch


def _neighbour(space: Space, arch: Architecture, generator: torch.Generator) -> Architecture | None:
    decision = space.decisions[int(torch.randint(len(space.decisions), (), generator=generator))]
    option = decision.options[int(torch.randint(len(decision.options), (), generator=generator))]
    return _changed(space, arch, decision.name, option)


def _changed(space: Space, arch: Architecture, name: str, option: str) -> Architecture | None:
    """The architecture with this one change, if that is one of the space."""
    if arch[name] == option or (space.name == "darts" and "none" in (arch[name], option)):
        return None
    return space.architecture({**dict(arch.choices), name: option})


def _lightened(
    space: Space, arch: Architecture, count: Parameters, log_p: LogProbability, limit: int
) -> Iterator[Architecture]:
    """From here to the limit, one change at a time: the one that saves most parameters for the likelihood lost."""
    yield arch
    while (here := count(arch)) > limit:
        worth = log_p(arch)
        lighter = [
            there
            for d in space.decisions
            for option in d.options
            if (there := _changed(space, arch, d.name, option)) is not None
            and space.usable(there) is None
            and count(there) < here
        ]
        if not lighter:
            return
        arch = max(lighter, key=lambda a, here=here, worth=worth: (here - count(a)) / max(worth - log_p(a), 1e-9))  # type: ignore[misc]
        yield arch


def _at(engine: Engine) -> str:
    size = engine.settings.params_size or engine.settings.size
    return f" at {', '.join(f'{name} {value}' for name, value in size.items())}" if size else ""
