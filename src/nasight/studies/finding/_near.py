"""What is close to the reference: a person's choice is a good place to start from, at any size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, product, zip_longest

from nasight.architecture import Architecture
from nasight.spaces import Space
from nasight.studies.finding._proposers import NEAR, PATIENCE, WITHIN, Allowed, Proposal, size_steps, smaller

NEAR_SIZES = 5
"""Within so many sizes below the largest, at most, the closest to the reference is proposed."""


def near_reference(
    space: Space,
    reference: Architecture,
    allowed: Allowed,
    rank: Callable[[Architecture], float],
    number: int,
    patience: int = PATIENCE,
    *,
    turns: Sequence[str] | None = None,
) -> list[Proposal]:
    """The reference with one decision changed, the lowest rank first.

    What a person would have used is a good place to start from. Where it has options that are not searched, all of
    these give way to searched ones, and nothing else changes. Decisions take turns in the order of `turns`, if there
    is one: each has its first option, then each its second, and so on.
    """
    around = space.neighbors(reference) if reference in space else filled(space, reference)
    near = [arch for arch in around if space.usable(arch) is None]
    order = sorted(near, key=lambda arch: (rank(arch), space.format(arch)))
    if turns is not None:
        of = {name: [arch for arch in order if arch[name] != reference[name]] for name in turns}
        order = list(dict.fromkeys(arch for turn in zip_longest(*of.values()) for arch in turn if arch is not None))
    return [Proposal(arch, NEAR) for arch in islice(filter(allowed, order[:patience]), number)]


def near_in_sizes(
    space: Space,
    reference: Architecture,
    allowed: Allowed,
    count: Callable[[Architecture], int],
    sizes: Sequence[int],
    patience: int,
    number: int = NEAR_SIZES,
) -> list[Proposal]:
    """What is closest to the reference within so many limits below the largest of some sizes: for the front."""
    least, most = min(map(count, space.lightest()), default=min(sizes, default=0)), max(sizes, default=0)
    found = list[Proposal]()
    for limit in size_steps(least, most, min(number, NEAR_SIZES) + 1):
        fits = smaller(count, limit)
        arch = closest(space, reference, lambda arch, fits=fits: fits(arch) and allowed(arch), count, patience)  # type: ignore[misc]
        if arch is not None and arch != reference and all(arch != proposal.architecture for proposal in found):
            found.append(Proposal(arch, f"{WITHIN} {limit / most:.0%}"))
    return found


def closest(
    space: Space, reference: Architecture, allowed: Allowed, count: Callable[[Architecture], int], patience: int
) -> Architecture | None:
    """What is allowed and differs from the reference in the fewest decisions; of several the one of most parameters.

    Of equal ones, that with the fewest options which the reference does not have. None where none of the first
    `patience` is allowed.
    """
    usual: dict[tuple[str, ...], set[str]] = {}
    for decision in space.decisions:
        usual.setdefault(decision.options, set()).add(reference[decision.name])

    def foreign(arch: Architecture) -> int:
        return sum(arch[decision.name] not in usual[decision.options] for decision in space.decisions)

    ring = [reference] if reference in space else filled(space, reference, patience)
    seen = set(ring)
    while ring and patience > 0:
        asked = [arch for arch in ring if space.usable(arch) is None][:patience]
        patience -= len(asked)
        order = sorted(asked, key=lambda arch: (-count(arch), foreign(arch), space.format(arch)))
        if (found := next(filter(allowed, order), None)) is not None:
            return found
        # Rings grow fast: no more of the next one is made than will be looked at.
        ring = list(islice(_around(space, ring, seen), patience))
    return None


def filled(space: Space, arch: Architecture, most: int = PATIENCE) -> list[Architecture]:
    """An architecture with a searched option in place of each that is not searched: all ways, up to so many."""
    options = [d.options if arch[d.name] not in d.options else (arch[d.name],) for d in space.decisions]
    ways = islice(product(*options), most)
    return [space.architecture(dict(zip((d.name for d in space.decisions), way, strict=True))) for way in ways]


def _around(space: Space, ring: Iterable[Architecture], seen: set[Architecture]) -> Iterator[Architecture]:
    """The neighbors of some architectures that were not seen yet, each once."""
    for near in chain.from_iterable(map(space.neighbors, ring)):
        if near not in seen:
            seen.add(near)
            yield near
