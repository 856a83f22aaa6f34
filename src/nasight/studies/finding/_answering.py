"""The end of a leg: winner and baseline trained with new seeds, their difference, and the front."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

import numpy as np

from nasight.data import Units
from nasight.errors import RunError
from nasight.runs import RunFolder
from nasight.studies.finding._answer import Difference, Point, carried_on, difference, front
from nasight.studies.finding._leg import Leg, leg_seed
from nasight.studies.finding._names import OWN, SPACE, STAND_IN, is_searched, shown, split_name
from nasight.studies.finding._plan import SEEDS, rung_text
from nasight.studies.finding._planning import JUDGING, KEPT_EPOCH, taught_rows
from nasight.studies.finding._race import Agreement, Candidate, Outcome, Race
from nasight.studies.finding._settings import is_own
from nasight.studies.finding._shallow import shallow_winner
from nasight.studies.finding._speed import expected_seconds
from nasight.studies.finding._work import BOOSTING, Request

FIRST_SEED = 5_000
"""Seeds of the answer's trainings begin so far above those of their leg: none of them was used before."""
ANSWERED = 0.88
"""The part of the last seconds that trainings take: the model, the page and the times of the front come after them."""
LEAST_EPOCHS = 4
"""However little time is left, the trainings that answer have so many."""
MOST_SEEDS = 10
"""Where there is time for more than the longest trainings with the fewest seeds, there are up to so many."""


def answer_seeds(seed: int, leg: int = 0, number: int = SEEDS) -> tuple[int, ...]:
    """The seeds with which a find of this seed trains winner and baseline in the end.

    >>> answer_seeds(0), answer_seeds(2)
    ((5000, 5001, 5002), (25000, 25001, 25002))
    """
    return tuple(leg_seed(seed, leg) + FIRST_SEED + k for k in range(number))


def makespan(costs: Sequence[float], workers: int) -> float:
    """Seconds until all are done: each goes, in this order, to the worker that is free first.

    >>> makespan([3.0, 3.0, 3.0, 1.0, 1.0, 1.0], 2), makespan([3.0, 3.0, 3.0, 1.0, 1.0, 1.0], 8)
    (6.0, 3.0)
    """
    free = [0.0] * workers
    for cost in costs:
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def answer(leg: Leg, race: Race) -> dict[str, Any]:
    """Winner and baseline, trained alike with new seeds on all rows, and what the test part says of them."""
    ranked = race.ranked()
    # Where a larger network of the space is meant, what has but one size is nothing to compare with.
    controls = [c for c in ranked if c.control and (not race.by_size or is_searched(c))]
    # What the user has named, or the first options of their own model, is what has to be beaten.
    asked = OWN if OWN in leg.f.spaces else SPACE if is_own(leg.s.space) else None
    controls.sort(key=lambda c: split_name(c.architecture)[0] != asked)
    networks = [c for c in ranked if split_name(c.architecture)[0] != BOOSTING]
    winners = [c for c in networks if not c.control and c.architecture not in race.left] or networks
    while controls and winners:
        baseline, winner = controls[0], winners[0]
        epochs, seeds = _decided(leg, race, winner, baseline)
        requests, sides = _trained(leg, race, (winner, baseline), epochs, seeds)
        failed = [name for name, outcomes in sides.items() if any(o is None for o in outcomes)]
        if not failed:
            found = {name: [o for o in outcomes if o is not None] for name, outcomes in sides.items()}
            return _compared(leg, race, winner, baseline, found, requests, epochs)
        # What ended on short schedules can still diverge on the longest: the next best is taken in its place.
        controls = [c for c in controls if c.architecture not in failed]
        winners = [c for c in winners if c.architecture not in failed]
    raise RunError(
        f"no training of {leg.plan.epochs} epochs ended: all diverged; the race is kept in {leg.f.folder.path}"
    )


def _decided(leg: Leg, race: Race, winner: Candidate, baseline: Candidate) -> tuple[int, int]:
    """Epochs and seeds, decided once in a leg."""
    if f"epochs {leg.number}" not in leg.journal:
        epochs, seeds = _affordable(leg, race, winner, baseline)
        leg.journal.put(f"seeds {leg.number}", seeds)
        leg.journal.put(f"epochs {leg.number}", epochs)
    # A find of an earlier version kept no seeds: it had the fewest.
    return int(leg.journal[f"epochs {leg.number}"]), int(leg.journal.get(f"seeds {leg.number}", SEEDS))


def _trained(
    leg: Leg, race: Race, sides: Sequence[Candidate], epochs: int, seeds: int
) -> tuple[dict[str, list[Request]], dict[str, list[Outcome | None]]]:
    """The trainings of both sides, and their outcomes."""
    requests = {
        c.architecture: [
            leg.request(*split_name(c.architecture), epochs, seed, leg.recipe, final=True)
            for seed in answer_seeds(leg.s.seed, leg.number, seeds)
        ]
        for c in sides
    }
    # The slower ones first, so that no process is left with a long one in the end.
    slower = sorted(requests, key=lambda name: -_seconds(race, name))
    flat = [request for name in slower for request in requests[name]]
    outcomes = dict(zip((r.key() for r in flat), leg.f.workers.train(flat), strict=True))
    return requests, {name: [outcomes[r.key()] for r in asked] for name, asked in requests.items()}


def _compared(
    leg: Leg,
    race: Race,
    winner: Candidate,
    baseline: Candidate,
    sides: Mapping[str, Sequence[Outcome]],
    requests: Mapping[str, Sequence[Request]],
    epochs: int,
) -> dict[str, Any]:
    """The difference of both, and what to take."""
    same = winner.architecture == baseline.architecture
    apart = (
        Difference(0.0, 0.0, 0.0, leg.s.level)
        if same
        else difference(sides[winner.architecture], sides[baseline.architecture], leg.s.level)
    )
    better = False if same else apart.better
    # Gradient boosting is no network that a folder could hold: the best network is kept beside the advice.
    taken = winner if better or split_name(baseline.architecture)[0] == BOOSTING else baseline
    return _result(leg, race, winner, baseline, taken, sides, requests, apart, better, epochs)


def _seconds(race: Race, architecture: str) -> float:
    """What a training of an architecture took on the last rung."""
    return mean(o.seconds for e, o in race.outcomes.items() if (e.architecture, e.rung) == (architecture, race.rung))


def _affordable(leg: Leg, race: Race, winner: Candidate, baseline: Candidate) -> tuple[int, int]:
    """Epochs and seeds of the trainings of both: the longest for which there is time, then as many as there is."""
    if leg.budget.seconds is None:
        return leg.plan.epochs, SEEDS
    last = race.rung
    took = sorted((_seconds(race, c.architecture) for c in (winner, baseline)), reverse=True)
    # More rows learn now: those of the whole plan, and those that judged.
    passes = leg.passes(leg.plan.rungs[last], leg.plan.rows(last))
    usable = ANSWERED * leg.left()

    def fits(epochs: int, seeds: int) -> bool:
        rows = epochs * leg.plan.examples + JUDGING * leg.tests
        each = [expected_seconds(rows, [(passes, t)]) + epochs * KEPT_EPOCH for t in took]
        costs = [cost for cost in each for _ in range(seeds)]
        return makespan(costs, leg.f.count) <= usable

    least, most = min(LEAST_EPOCHS, leg.plan.rungs[0]), 2 * leg.plan.epochs if leg.epochs is None else leg.epochs
    return longest(fits, least, most)


def longest(fits: Callable[[int, int], bool], least: int, most: int) -> tuple[int, int]:
    """The most epochs for which there is time with the fewest seeds; where that is all that is wanted, more seeds.

    >>> longest(lambda epochs, seeds: epochs * seeds <= 60, 6, 100), longest(lambda e, n: e * n <= 60, 6, 8)
    ((20, 3), (8, 7))
    >>> longest(lambda epochs, seeds: False, 6, 100), longest(lambda epochs, seeds: True, 6, 100)
    ((6, 3), (100, 10))
    """
    epochs = max((e for e in range(least, most + 1) if fits(e, SEEDS)), default=least)
    if epochs < most:
        return epochs, SEEDS
    return epochs, max((n for n in range(SEEDS, MOST_SEEDS + 1) if fits(epochs, n)), default=SEEDS)


def _result(
    leg: Leg,
    race: Race,
    winner: Candidate,
    baseline: Candidate,
    taken: Candidate,
    sides: Mapping[str, Sequence[Outcome]],
    requests: Mapping[str, Sequence[Request]],
    apart: Difference,
    better: bool | None,
    epochs: int,
) -> dict[str, Any]:
    accuracies = {name: [round(o.accuracy, 4) for o in found] for name, found in sides.items()}
    # The first seed, whatever came out: the best of three on the test part would be chosen by it.
    place = requests[taken.architecture][0].place
    assert place is not None
    trained = str(place)[len(str(leg.f.folder.path)) + 1 :]
    products = {name: leg.f.multiply_adds(*split_name(name)) for name in race.candidates}
    result: dict[str, Any] = {
        "run": str(leg.f.folder.path),
        "space": leg.s.space,
        "data": leg.s.data,
        "seed": leg.s.seed,
        "architecture": shown(winner),
        "parameters": winner.parameters,
        "multiply_adds": products[winner.architecture],
        "accuracy": mean(accuracies[winner.architecture]),
        "accuracies": accuracies[winner.architecture],
        "baseline": {
            "architecture": shown(baseline),
            "parameters": baseline.parameters,
            "multiply_adds": products[baseline.architecture],
            "accuracy": mean(accuracies[baseline.architecture]),
            "accuracies": accuracies[baseline.architecture],
            "kind": baseline.proposed_by,
        },
        **leg.f.task.units.kept(),
        "figures": (RunFolder(place).result or {}).get("figures", {}),
        "figures_of": shown(taken),
        "difference": apart.mean,
        "interval": [apart.low, apart.high],
        "level": apart.level,
        "rows_vary": rows_vary(sides),
        "ahead": _ahead(race, baseline),
        "better": better,
        "take": shown(winner if better else baseline),
        "trained": trained,
        "taken_from": split_name(taken.architecture)[0],
        "proposed_by": winner.proposed_by,
        "also_proposed_by": list(winner.also),
        "trainings": sum(key.startswith("training ") for key in leg.journal),
        "seconds": round(leg.f.clock(), 2),
        "budget": leg.budget.seconds,
        "epochs": epochs,
        "examples": leg.plan.examples,
        "rows": len(leg.data.train_y),
        "recipe": asdict(leg.recipe),
        "recipes": [{**asdict(recipe), "accuracy": accuracy} for recipe, accuracy in leg.tried],
        "race": _told_race(leg, race, products),
        "front": [asdict(point) for point in _front(leg, race, products)],
        "target": _target(leg, race, epochs),
        "shallow": shallow_winner(leg.space, race, winner),
        "searches": [f"searches/{leg.number}-{k}" for k in range(leg.plan.searches)],
        "legs": leg.number + 1,
        "answers": 1 if leg.previous is None else leg.previous.result["answers"] + 1,
    }
    return {**result, "sentence": sentence(result)}


def _ahead(race: Race, baseline: Candidate) -> dict[str, Any] | None:
    """The control that was best in the race, where it is not the baseline."""
    best = next(c for c in race.ranked() if c.control)
    if race.by_size or best.architecture == baseline.architecture:
        return None
    mine, its = race.accuracy(baseline.architecture), race.accuracy(best.architecture)
    return {"architecture": shown(best), "accuracy": its, "baseline": mine if math.isfinite(mine) else None}


def rows_vary(sides: Mapping[str, Sequence[Outcome]]) -> bool:
    """Whether rows have scores of their own; a metric of one's own may give one number for all of them."""
    rows = [o.right for found in sides.values() for o in found if o.right is not None]
    return any(right.dtype == bool or len(right) == 1 or float(np.ptp(right)) > 0 for right in rows)


def _target(leg: Leg, race: Race, epochs: int) -> dict[str, Any]:
    """The training that was meant, whether the answer was decided by it, and if not, by what."""
    decided = {"epochs": epochs, "size": dict(leg.f.size), "examples": leg.plan.examples}
    raced = rung_text(leg.plan.rungs[race.rung], leg.plan.rows(race.rung), leg.plan.examples)
    if leg.s.target is None:
        return {"preset": None, **decided, "reached": True}
    meant = {"epochs": leg.space.train_settings[leg.s.target].get("epochs"), "size": leg.f.limit_size}
    reached = leg.epochs == epochs and leg.plan.examples == len(leg.data.train_y)
    target = {"preset": leg.s.target, **meant, "decided_at": decided, "reached": reached}
    return {**target, "says": _target_text(target, raced, race.agreements, by_size=race.by_size)}


def _target_text(target: Mapping[str, Any], raced: str, agreements: Sequence[Agreement], *, by_size: bool) -> str:
    """Whether the target was reached; else what decided, and how well such trainings agree with each other."""

    def training(of: Mapping[str, Any]) -> str:
        return ", ".join([rung_text(of["epochs"], 0, 0), *(f"{name} {value}" for name, value in of["size"].items())])

    if target["reached"]:
        return (
            f"networks of the preset {target['preset']} were trained for as long as it is meant ({training(target)}), "
            "with the recipe of this find; its other settings are those of nasight train"
        )
    told = "there was time for one length only, so nobody knows how well they predict longer ones"
    if agreements:
        last = agreements[-1]
        told = f"shorter ones agree with the longest of the race at tau {last.tau:.2f} ({last.candidates} candidates)"
    size = ", and size as much as accuracy" if by_size else ""
    return (
        f"the preset {target['preset']} ({training(target)}) was not reached: the race was decided by trainings of "
        f"{raced}{size}, the answer by trainings of {training(target['decided_at'])}; {told}"
    )


def _told_race(leg: Leg, race: Race, products: Mapping[str, int | None]) -> dict[str, Any]:
    lines = [
        {
            "architecture": shown(c),
            "proposed_by": c.proposed_by,
            "also": list(c.also),
            "control": c.control,
            "parameters": c.parameters,
            "multiply_adds": products[c.architecture],
            "accuracies": [
                a if math.isfinite(a := race.accuracy(c.architecture, rung)) else None
                for rung in range(len(leg.plan.rungs))
            ],
            "left": None if (left := race.left.get(c.architecture)) is None else asdict(left),
        }
        for c in race.candidates.values()
    ]
    return {
        "rungs": list(leg.plan.rungs),
        "rows": [
            taught_rows(len(leg.data.train_y), leg.plan.rows(rung), leg.plan.judge_share)
            for rung in range(len(leg.plan.rungs))
        ],
        "lines": lines,
        "agreements": [asdict(a) for a in race.agreements],
        "seed_deviation": race.seed_deviation(),
        "by_size": race.by_size,
    }


def _front(leg: Leg, race: Race, products: Mapping[str, int | None]) -> list[Point]:
    """Every candidate, those of earlier legs too, with the accuracy it would have on the last rung.

    From one rung to the next a candidate gains what those gained on average that were trained on both.
    """
    last = race.rung
    gains = [0.0] * (last + 1)
    for rung in range(last):
        both = [
            race.accuracy(c.architecture, rung + 1) - race.accuracy(c.architecture, rung)
            for c in race.ranked(rung + 1)
            if is_searched(c)
        ]
        gains[rung] = mean(both) if both else 0.0
    points = []
    for candidate in race.candidates.values():
        reached = [r for r in range(last + 1) if math.isfinite(race.accuracy(candidate.architecture, r))]
        if reached and split_name(candidate.architecture)[0] == SPACE:
            at = reached[-1]
            latency = candidate.latency
            points.append(
                Point(
                    candidate.architecture,
                    candidate.parameters,
                    leg.f.latency(leg.read(candidate.architecture)) if latency is None else latency,
                    race.accuracy(candidate.architecture, at) + sum(gains[at:last]),
                    leg.plan.rungs[at],
                    candidate.proposed_by,
                    multiply_adds=products[candidate.architecture],
                    estimated=at < last,
                )
            )
    before = () if leg.previous is None else [Point(**point) for point in leg.previous.result["front"]]
    return front(carried_on(points, before))


def sentence(result: Mapping[str, Any]) -> str:
    """The answer in one sentence."""
    low, high = result["interval"]
    base, level = result["baseline"], f"{result['level']:.0%}"
    units = Units(result.get("metric", "accuracy"))
    ends = f"{units.number(low)} to {units.number(high)} at {level}"
    name = {
        "reference": "the space's reference",
        STAND_IN: "the largest of some random architectures within the limits (the space's reference is not)",
        "plain": "a plain network",
        "baseline": "your baseline",
        BOOSTING: "gradient boosting (scikit-learn)",
    }[base["kind"]]
    if result["better"]:
        return (
            f"Better by {units.difference(result['difference'])} than {name} ({ends}): "
            f"{units.text(result['accuracy'])} against {units.text(base['accuracy'])}."
        )
    if result["architecture"] == base["architecture"]:
        return f"Nothing that was raced beats {name}: take it ({units.text(base['accuracy'])})."
    return (
        f"Not better: take {name} ({units.text(base['accuracy'])}). The best that was found has "
        f"{units.text(result['accuracy'])}, a difference of {units.difference(result['difference'], sign=True)} "
        f"({units.number(low, sign=True)} to {units.number(high, sign=True)} at {level})."
        + (" The model in this folder is that network." if base["kind"] == BOOSTING else "")
    )
