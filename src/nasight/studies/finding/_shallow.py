"""A warning: the winner may only start fast, because its cell is shallow."""

from __future__ import annotations

import math
from statistics import median

from scipy import stats

from nasight.anatomy import Design
from nasight.spaces import Space
from nasight.studies.finding._names import SPACE, split_name
from nasight.studies.finding._race import Candidate, Race
from nasight.studies.finding._work import read_architecture

FEWEST = 5
"""Candidates on two rungs by which it is measured whether depth gains from longer trainings."""
SURE = 0.1


def shallow_winner(space: Space, race: Race, winner: Candidate) -> str | None:
    """What to know of a winner whose cell is less deep than most that raced; None where it is not, or has no cells."""
    depths = {c.architecture: found for c in race.candidates.values() if (found := depth(space, c)) is not None}
    if winner.architecture not in depths:
        return None
    own, usual = depths[winner.architecture], median(depths.values())
    if own >= usual:
        return None
    return (
        f"the winner's cell is shallow (depth {own:g}, those that raced have {usual:g} in the median); shallow cells "
        f"train faster, which does not make them better after longer trainings. {_measured(race, depths)}"
    )


def depth(space: Space, candidate: Candidate) -> int | None:
    """Of the cell that its network repeats; None where it has none."""
    key, text = split_name(candidate.architecture)
    if key != SPACE:
        return None
    arch = read_architecture(space, text)
    cells = space.cells(arch)
    if not cells:
        return None
    design = Design.of(text, space, cells, arch)
    return design[design.main].depth


def _measured(race: Race, depths: dict[str, int]) -> str:
    """Whether deeper cells gained more from one rung to the next, on the last pair of rungs with enough of them."""
    for rung in range(race.rung - 1, -1, -1):
        gains = {
            name: gain
            for name in depths
            if math.isfinite(gain := race.accuracy(name, rung + 1) - race.accuracy(name, rung))
        }
        if len(gains) >= FEWEST and len({depths[name] for name in gains}) > 1:
            found = stats.kendalltau([depths[name] for name in gains], list(gains.values()))
            says = "gained no more than others" if found.statistic <= 0 or found.pvalue >= SURE else "gained more"
            return (
                f"In this race deeper cells {says} from longer trainings "
                f"(tau {found.statistic:.2f}, p {found.pvalue:.2f}, {len(gains)} candidates)"
            )
    if len(race.places) == 1:
        return "All trainings of this race had one length, so it does not say whether deeper cells gain more from more"
    return "Too few were trained on two rungs to see whether deeper cells gain more"
