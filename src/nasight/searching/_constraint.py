"""The best architecture under limits: the likeliest that keep them compete under the shared weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.searching._judging import correct
from nasight.searching._latency import Latency, quick
from nasight.searching._selection import Likeliest
from nasight.spaces import Group, MultiplyAdds, Parameters, Space

if TYPE_CHECKING:
    from nasight.searching._engine import Engine

COMPETE = 20
"""This many architectures within the limits compete, or as many as the method lets compete anyway."""
ENUMERATED = 20_000
"""Up to this many architectures, all are looked at."""
DRAWS = 2_000
RESAMPLES = 2_000
PROBES, HOPELESS = 10, 10
"""Where PROBES random architectures all take HOPELESS times the latency allowed, a search is not begun."""


def check_limit(engine: Engine) -> None:
    """Refuse a limit that no architecture keeps, before anything is computed.

    A limit on latency is refused where a few random architectures all take many times as long.
    """
    limit, within = engine.settings.max_params, engine.settings.max_latency
    if limit is not None:
        least, certain = parameters(engine).smallest()
        if least > limit and certain:
            raise RequestError(
                f"no architecture of {engine.space.name!r} has at most {limit:,} parameters{_at(engine)}: "
                f"the smallest has {least:,}"
            )
    if within is not None:
        generator, latency = engine.generator("latency"), latencies(engine)
        drawn = [engine.space.sample(generator) for _ in range(PROBES)]
        fastest = min((latency(arch) for arch in drawn if engine.space.usable(arch) is None), default=0.0)
        if fastest > HOPELESS * within:
            raise RequestError(
                f"no architecture of {engine.space.name!r} can be expected to answer within {within:g} ms{_at(engine)}"
                f": the fastest of {len(latency.known)} measured takes {fastest:.3g} ms"
            )


def parameters(engine: Engine) -> Parameters:
    """Counts at the size that the limit is about."""
    return engine.space.parameters(engine.dataset.inputs, engine.dataset.n_classes, **_size(engine))


def multiply_adds(engine: Engine) -> MultiplyAdds:
    """Products at the same size."""
    return engine.space.multiply_adds(engine.dataset.inputs, engine.dataset.n_classes, **_size(engine))


def latencies(engine: Engine) -> Latency:
    """Times at the same size."""
    return Latency(engine.space, engine.dataset.inputs, engine.dataset.n_classes, _size(engine))


def constrained(engine: Engine, unconstrained: Architecture) -> tuple[Architecture, dict[str, Any]]:
    """The pick, and what the run keeps of how it was found."""
    s, space, count = engine.settings, engine.space, parameters(engine)
    latency, products = latencies(engine), multiply_adds(engine)
    log_p = LogProbability(engine.weights(), engine.groups, space)
    generator = engine.generator("constraint")
    number = max(COMPETE, s.candidates)
    looked_at = _looked_at(engine, unconstrained, count, log_p, number, generator)
    within = _small(engine, [a for a in looked_at if space.usable(a) is None], count)
    # Of equally likely ones, random ones.
    order = torch.randperm(len(within), generator=generator).tolist()
    likely = sorted((within[i] for i in order), key=lambda a: -log_p(a))
    kept = likely[:number] if s.max_latency is None else _quick(engine, likely, latency, number, generator)
    right = torch.stack([correct(engine, arch) for arch in kept])  # (candidates, examples)
    accuracy = right.double().mean(1)
    # Equal accuracies: the likelier one, which comes first.
    best = int(accuracy.argmax())
    sure = chances_of_best(right, generator)
    rows = [
        {
            "architecture": space.format(arch),
            "params": count(arch),
            "multiply_adds": products(arch),
            "latency": None if s.max_latency is None else latency(arch),
            "log_probability": log_p(arch),
            "accuracy": 100 * float(accuracy[i]),
            "best_with_probability": float(sure[i]),
        }
        for i, arch in enumerate(kept)
    ]
    known = space.usable(unconstrained) is None
    about = {
        "max_params": s.max_params,
        "max_latency": s.max_latency,
        "size": _size(engine),
        "params": rows[best]["params"],
        "multiply_adds": rows[best]["multiply_adds"],
        "latency": rows[best]["latency"],
        "sure": rows[best]["best_with_probability"],
        "unconstrained": {
            "architecture": space.format(unconstrained),
            "params": count(unconstrained) if known else None,
            "multiply_adds": products(unconstrained) if known else None,
            "latency": latency(unconstrained) if known and s.max_latency is not None else None,
        },
        "candidates": rows,
    }
    return kept[best], about


def _small(engine: Engine, usable: list[Architecture], count: Parameters) -> list[Architecture]:
    """Those with few enough parameters."""
    limit = engine.settings.max_params
    if limit is None:
        return usable
    within = [a for a in usable if count(a) <= limit]
    if not within:
        raise RequestError(
            f"no architecture with at most {limit:,} parameters{_at(engine)} was found in {engine.space.name!r}: "
            f"the smallest looked at has {min(map(count, usable)):,}"
        )
    return within


def _quick(
    engine: Engine, likely: list[Architecture], latency: Latency, number: int, generator: torch.Generator
) -> list[Architecture]:
    """The likeliest that answer fast enough, of those that were measured."""
    s = engine.settings
    assert s.max_latency is not None
    within = quick(likely, latency, s.max_latency, number, generator)
    if not within:
        small = "" if s.max_params is None else f" with at most {s.max_params:,} parameters"
        raise RequestError(
            f"no architecture{small} that answers within {s.max_latency:g} ms{_at(engine)} was found in "
            f"{engine.space.name!r}: the fastest of {len(latency.known)} measured takes "
            f"{min(latency.known.values()):.3g} ms"
        )
    return within


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
        self.pruned = space.pruned
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
    """All architectures, or of a large space the likeliest, the way from the arg max to the limit, and a walk.

    Without a limit on the parameters the way goes on to the lightest: light ones tend to be fast.
    """
    space, limit = engine.space, engine.settings.max_params or 0
    if len(space) <= ENUMERATED:
        return list(space)
    found = list(Likeliest().propose(engine, number, generator))
    way = list(_lightened(space, unconstrained, count, log_p, limit))
    return list(dict.fromkeys([*found, *way, *space.neighbors(way[-1]), *_drawn(space, log_p, generator)]))


def _drawn(space: Space, log_p: LogProbability, generator: torch.Generator) -> Iterator[Architecture]:
    """A walk that proposes one other option at a time and is drawn to likely architectures, less and less so.

    From the sharp distribution to the flat one: so that what is close to the limit is met wherever it lies.
    """
    arch = space.sample(generator)
    here = log_p(arch)
    for step in range(DRAWS):
        heat = 0.5 + 4 * step / DRAWS
        there = space.sample(generator) if step % 50 == 49 else _neighbor(space, arch, generator)
        if there is None:
            continue
        chance = math.exp(min(0.0, (log_p(there) - here) / heat))
        if float(torch.rand((), generator=generator)) < chance:
            arch, here = there, log_p(there)
            yield arch


def _neighbor(space: Space, arch: Architecture, generator: torch.Generator) -> Architecture | None:
    decision = space.decisions[int(torch.randint(len(space.decisions), (), generator=generator))]
    option = decision.options[int(torch.randint(len(decision.options), (), generator=generator))]
    return space.changed(arch, decision.name, option)


def _lightened(
    space: Space, arch: Architecture, count: Parameters, log_p: LogProbability, limit: int
) -> Iterator[Architecture]:
    """From here to the limit, one change at a time: the one that saves most parameters for the likelihood lost."""
    yield arch
    while (here := count(arch)) > limit:
        worth = log_p(arch)
        lighter = [there for there in space.neighbors(arch) if space.usable(there) is None and count(there) < here]
        if not lighter:
            return
        arch = max(lighter, key=lambda a, here=here, worth=worth: (here - count(a)) / max(worth - log_p(a), 1e-9))  # type: ignore[misc]
        yield arch


def _size(engine: Engine) -> dict[str, int]:
    """The size that the limits are about."""
    return engine.settings.params_size or engine.settings.size


def _at(engine: Engine) -> str:
    size = _size(engine)
    return f" at {', '.join(f'{name} {value}' for name, value in size.items())}" if size else ""
