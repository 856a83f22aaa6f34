"""Who suggests architectures to a race: searches, open decisions, scores, chance, and the race's own leaders."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.searching import LogProbability, Run
from nasight.spaces import Space

ENUMERATED = 20_000
"""Spaces of at most so many architectures are looked through whole; of larger ones the neighborhood of an arg max."""
COUNTED = 100
"""So many networks are built at most to find the largest."""
EXPANDED = 400
PATIENCE = 20_000
LEVELS = 4
"""The range of parameter counts, from the lightest architecture on, has so many steps of the same ratio: within each,
likeliest architectures are proposed too, for the front."""
EARLIER = "an earlier leg"
"""Who proposes the leaders of the race before."""
ELSEWHERE = "well on other data"
"""Who proposes what was better than the reference on other data sets."""
NEAR = "near the reference"
"""Who proposes the reference with one decision changed."""
WITHIN = f"{NEAR} within"
"""Who proposes what is closest to the reference within a smaller size."""
Allowed = Callable[[Architecture], bool]


@dataclass(frozen=True)
class Proposal:
    """An architecture, and who proposes it."""

    architecture: Architecture
    by: str


def in_turn(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Those of an earlier leg, those known from other data and those near the reference, at all sizes, come first.

    Then comes one of every proposer, then the second of each, and so on. The searches are one proposer, and so is size.

    >>> names = "search 1", "search 2", "likeliest", "size", "size", f"{WITHIN} 8%", f"{WITHIN} 13%", EARLIER
    >>> [p.by for p in in_turn(Proposal(Architecture("s", ()), name) for name in names)][:3]
    ['an earlier leg', 'near the reference within 8%', 'near the reference within 13%']
    >>> [p.by for p in in_turn(Proposal(Architecture("s", ()), name) for name in names)][3:]
    ['search 1', 'likeliest', 'size', 'search 2', 'size']
    """
    queues: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        one = next((name for name in ("search", WITHIN) if proposal.by.startswith(f"{name} ")), proposal.by)
        queues.setdefault({"largest": "size"}.get(one, one), []).append(proposal)
    for first in (EARLIER, ELSEWHERE, NEAR, WITHIN):
        yield from queues.pop(first, [])
    yield from (proposal for turn in zip_longest(*queues.values()) for proposal in turn if proposal is not None)


def averaged(runs: Sequence[Run]) -> dict[str, Tensor]:
    """The mean of the architecture weights of several searches."""
    weights = [run.weights for run in runs]
    return {name: torch.stack([each[name] for each in weights]).mean(0) for name in weights[0]}


def log_probability(space: Space, runs: Sequence[Run]) -> LogProbability:
    """log p of an architecture under the mean weights of some searches."""
    groups = space.groups(edges=runs[0].method.relaxation.edges)
    return LogProbability(averaged(runs), groups, space)


def likeliest(
    space: Space,
    log_p: LogProbability,
    start: Architecture,
    allowed: Allowed,
    patience: int = PATIENCE,
    within: Allowed = lambda arch: True,
) -> Iterator[Architecture]:
    """Architectures from the likeliest down, each form once; around `start` where the space is large.

    It ends after `patience` that were not allowed, one after the other. Those that are not `within` do not count there.
    """
    seen, refused = set[str](), 0
    for arch in _by_probability(space, log_p, start):
        form = space.canonical(arch)
        if form in seen or space.usable(arch) is not None or not within(arch):
            continue
        if allowed(arch):
            seen.add(form)
            refused = 0
            yield arch
        else:
            refused += 1
            if refused >= patience:
                return


def _by_probability(space: Space, log_p: LogProbability, start: Architecture) -> Iterator[Architecture]:
    if len(space) <= ENUMERATED:
        yield from sorted(space, key=lambda arch: (-log_p(arch), space.format(arch)))
        return
    heap = [(-log_p(start), space.format(start), start)]
    known = {start}
    for _ in range(EXPANDED):
        if not heap:
            return
        _, _, arch = heapq.heappop(heap)
        yield arch
        for near in space.neighbors(arch):
            if near not in known:
                known.add(near)
                heapq.heappush(heap, (-log_p(near), space.format(near), near))


def from_searches(
    space: Space, runs: Sequence[Run], allowed: Allowed, number: int, patience: int = PATIENCE
) -> list[Proposal]:
    """The arg max of every search, then the likeliest under all of them."""
    found = [
        Proposal(run.architecture, f"search {i}")
        for i, run in enumerate(runs, 1)
        if space.usable(run.architecture) is None and allowed(run.architecture)
    ]
    ordered = likeliest(space, log_probability(space, runs), runs[0].architecture, allowed, patience)
    return found + [Proposal(arch, "likeliest") for arch in islice(ordered, number)]


def of_smaller_sizes(
    space: Space,
    runs: Sequence[Run],
    allowed: Allowed,
    count: Callable[[Architecture], int],
    sizes: Sequence[int],
    number: int,
    patience: int = PATIENCE,
) -> list[Proposal]:
    """The likeliest under all searches within limits below the largest of some sizes, so many of each."""
    log_p, start = log_probability(space, runs), runs[0].architecture
    least, most = min(map(count, space.lightest()), default=min(sizes, default=0)), max(sizes, default=0)
    found = []
    for limit in size_steps(least, most):
        ordered = likeliest(space, log_p, start, allowed, patience, smaller(count, limit))
        found += [Proposal(arch, f"likeliest of {limit / most:.0%}") for arch in islice(ordered, number)]
    return found


def size_steps(least: int, most: int, levels: int = LEVELS) -> list[float]:
    """Limits between the lightest and the largest, each the same part of the next; none where all have one size.

    >>> [round(limit) for limit in size_steps(100, 1_600)], size_steps(5, 5), [round(x) for x in size_steps(0, 16)]
    ([200, 400, 800], [], [2, 4, 8])
    """
    if least >= most:
        return []
    ratio = most / max(1, least)
    return [most / ratio ** (1 - step / levels) for step in range(1, levels)]


def smaller(count: Callable[[Architecture], int], limit: float) -> Allowed:
    """Whether an architecture has at most so many parameters."""
    return lambda arch: count(arch) <= limit


def rivals(space: Space, decisions: Iterable[Mapping[str, object]], allowed: Allowed, number: int) -> list[Proposal]:
    """For decisions that trust calls open, the found architecture with the best other option."""
    found = []
    for decision in decisions:
        others = decision.get("alternatives")
        if decision.get("verdict") == "safe" or not isinstance(others, list | tuple) or not others:
            continue
        best = min(others, key=lambda other: float(other["loss"]))
        arch = space.parse(str(best["architecture"]))
        if space.usable(arch) is None and allowed(arch):
            found.append((float(best["loss"]), Proposal(arch, "open decision")))
    return [proposal for _, proposal in sorted(found, key=lambda pair: pair[0])][:number]


def runner_ups(space: Space, run: Run, allowed: Allowed) -> list[Proposal]:
    """The found architecture with its second option, where the weights of first and second are closest."""
    found, arch, weights = [], run.architecture, run.weights
    decided = {decision.name for decision in space.decisions}
    for group in space.groups():
        for name, options, row in zip(group.rows, group.options, group.split(weights[group.name]), strict=True):
            order = row.argsort(descending=True).tolist()
            if len(order) < 2 or not group.exclusive or name not in decided:
                continue
            other = space.changed(arch, name, options[order[1]])
            if other is not None and other != arch and space.usable(other) is None and allowed(other):
                found.append((float(row[order[0]] - row[order[1]]), Proposal(other, "close decision")))
    return [proposal for _, proposal in sorted(found, key=lambda pair: pair[0])]


def from_scores(
    space: Space, scores: Mapping[str, float], count: Callable[[Architecture], int], number: int
) -> list[Proposal]:
    """Of scored architectures the best by score, by parameters, and by the sum of both ranks."""
    if not scores:
        return []
    archs = {text: space.parse(text) for text in scores}
    size = {text: float(count(arch)) for text, arch in archs.items()}

    def ranks(values: Mapping[str, float]) -> dict[str, float]:
        order = sorted(values, key=lambda text: (values[text], text))
        return {text: float(place) for place, text in enumerate(order)}

    by_score, by_size = ranks(scores), ranks(size)
    both = {text: by_score[text] + by_size[text] for text in scores}
    found = []
    for by, values in (("score and size", both), ("score", by_score), ("size", by_size)):
        best = sorted(values, key=lambda text: (-values[text], text))[:number]
        found += [Proposal(archs[text], by) for text in best]
    return found


def largest(
    space: Space, allowed: Allowed, count: Callable[[Architecture], int], patience: int, most: int | None = None
) -> list[Proposal]:
    """The architecture with the most parameters, at most `most`, of a space that can be looked through whole.

    None where more than a few networks would have to be built to count them.
    """
    if len(space) > ENUMERATED or len({space.counts_alike(arch) for arch in space}) > COUNTED:
        return []
    sizes = {arch: count(arch) for arch in space if space.usable(arch) is None}
    fitting = [arch for arch, size in sizes.items() if most is None or size <= most]
    order = sorted(fitting, key=lambda arch: (-sizes[arch], space.format(arch)))
    return [Proposal(arch, "largest") for arch in islice(filter(allowed, order[:patience]), 1)]


def at_random(
    space: Space, allowed: Allowed, number: int, generator: torch.Generator, tries: int = 200
) -> list[Proposal]:
    """Uniformly drawn architectures; fewer where `tries` draws for each do not find one that is allowed."""
    found = list[Proposal]()
    for _ in range(tries * number):
        if len(found) == number:
            break
        arch = space.sample(generator)
        if space.usable(arch) is None and allowed(arch) and all(p.architecture != arch for p in found):
            found.append(Proposal(arch, "chance"))
    return found


def known_elsewhere(space: Space, data: str, allowed: Allowed, number: int) -> list[Proposal]:
    """What did better than the reference on data sets other than this one, the best first."""
    known = (arch for arch in space.well_elsewhere(data) if arch in space and space.usable(arch) is None)
    return [Proposal(arch, ELSEWHERE) for arch in islice(filter(allowed, known), number)]


def mutations(
    space: Space, leaders: Sequence[Architecture], allowed: Allowed, number: int, generator: torch.Generator
) -> list[Proposal]:
    """The leaders with one decision changed, turn by turn."""
    around = []
    for leader in leaders:
        near = [a for a in space.neighbors(leader) if space.usable(a) is None]
        around.append([near[i] for i in torch.randperm(len(near), generator=generator).tolist()])
    found = dict[Architecture, Proposal]()
    turns = chain.from_iterable(zip_longest(*around))
    # Whether one is allowed may have to be measured, so no more are asked about than are wanted.
    for arch in turns:
        if len(found) == number:
            break
        if arch is not None and arch not in found and allowed(arch):
            found[arch] = Proposal(arch, "mutation")
    return list(found.values())
