"""What an answer says: the difference of winner and baseline, what to take, the race, the front, the target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from nasight.data import Units
from nasight.runs import RunFolder
from nasight.studies.finding._answer import baseline_words, figures_network
from nasight.studies.finding._boosting import ALL_TREES, TREES
from nasight.studies.finding._difference import Difference, difference
from nasight.studies.finding._front import Point, carried_on, front
from nasight.studies.finding._leg import Leg
from nasight.studies.finding._lengths import taught_rows
from nasight.studies.finding._names import ONE_SIZE, OWN, is_searched, shown, split_name
from nasight.studies.finding._plan import rung_text
from nasight.studies.finding._race import Agreement, Candidate, Outcome, Race
from nasight.studies.finding._shallow import shallow_winner
from nasight.studies.finding._work import BOOSTING, Request


@dataclass(frozen=True)
class Sides:
    """Winner and baseline after their last trainings."""

    winner: Candidate
    baseline: Candidate
    outcomes: Mapping[str, Sequence[Outcome]]
    """By architecture, one per seed."""
    requests: Mapping[str, Sequence[Request]]
    epochs: Mapping[str, int]
    """By architecture."""

    @property
    def same(self) -> bool:
        """Whether no candidate was left to compare the baseline with."""
        return self.winner.architecture == self.baseline.architecture

    def seconds(self, side: Candidate) -> float:
        """What a training of a side took, the mean over its seeds."""
        return round(mean(o.seconds for o in self.outcomes[side.architecture]), 2)

    def accuracies(self, side: Candidate) -> list[float]:
        return [round(outcome.accuracy, 4) for outcome in self.outcomes[side.architecture]]

    def difference(self, level: float, units: Units) -> Difference:
        """Of winner and baseline, paired over seeds; percentages of rows differ by 100 points at most."""
        if self.same:
            return Difference(0.0, 0.0, 0.0, level)
        winner, baseline = (self.outcomes[side.architecture] for side in (self.winner, self.baseline))
        found = difference(winner, baseline, level)
        return found.within(100.0) if units.percent else found


def result_of(leg: Leg, race: Race, sides: Sides) -> dict[str, Any]:
    """What result.json has of a leg."""
    winner, baseline = sides.winner, sides.baseline
    apart = sides.difference(leg.settings.level, leg.context.task.units)
    better = False if sides.same else apart.better
    # Gradient boosting is no network that a folder could hold: the best network is kept beside the advice.
    taken = winner if better or split_name(baseline.architecture)[0] == BOOSTING else baseline
    # The first seed, whatever came out: the best of three on the test part would be chosen by it.
    place = sides.requests[taken.architecture][0].place
    assert place is not None
    products = {name: leg.context.multiply_adds(*split_name(name)) for name in race.candidates}
    result: dict[str, Any] = {
        "run": str(leg.context.folder.path),
        "space": leg.settings.space,
        "data": leg.settings.data,
        "seed": leg.settings.seed,
        "architecture": shown(winner),
        "parameters": winner.parameters,
        "multiply_adds": products[winner.architecture],
        "accuracy": mean(sides.accuracies(winner)),
        "accuracies": sides.accuracies(winner),
        "baseline": {
            "architecture": shown(baseline),
            "parameters": baseline.parameters,
            "multiply_adds": products[baseline.architecture],
            "accuracy": mean(sides.accuracies(baseline)),
            "accuracies": sides.accuracies(baseline),
            "epochs": None if split_name(baseline.architecture)[0] == BOOSTING else sides.epochs[baseline.architecture],
            "kind": baseline.proposed_by,
            "recipe": asdict(leg.recipe_of(split_name(baseline.architecture)[0])),
        },
        **leg.context.task.units.kept(),
        "figures": (RunFolder(place).result or {}).get("figures", {}),
        "figures_of": shown(taken),
        "difference": apart.mean,
        "interval": [apart.low, apart.high],
        "level": apart.level,
        "rows_vary": rows_vary(sides.outcomes),
        "ahead": _ahead(leg, race, baseline),
        "missing": _missing(leg, race, baseline),
        "better": better,
        "take": shown(winner if better else baseline),
        "trained": Path(place).relative_to(leg.context.folder.path).as_posix(),
        "taken_from": split_name(taken.architecture)[0],
        "proposed_by": winner.proposed_by,
        "also_proposed_by": list(winner.also),
        "trainings": sum(key.startswith("training ") for key in leg.journal),
        "seconds": round(leg.context.clock(), 2),
        "training_seconds": {"winner": sides.seconds(winner), "baseline": sides.seconds(baseline)},
        "budget": leg.budget.seconds,
        "epochs": sides.epochs[winner.architecture],
        "equal": "seconds" if leg.plan.paced else "epochs",
        "examples": leg.plan.examples,
        "most_products": leg.plan.most_products,
        "rows": len(leg.data.train_y),
        "recipe": asdict(leg.recipe),
        "recipes": [
            {**asdict(row.recipe), "accuracy": row.accuracy, "epochs": leg.recipe_epochs(row.whole), "whole": row.whole}
            for row in leg.tried
        ],
        "boosting_trees": _trees(leg),
        "own_rates": [{"recipe": asdict(recipe), "accuracy": accuracy} for recipe, accuracy in leg.own_rates],
        "race": _race_result(leg, race, products),
        "front": [asdict(point) for point in _front(leg, race, products)],
        "target": _target(leg, race, sides.epochs[winner.architecture]),
        "shallow": shallow_winner(leg.space, race, winner),
        "searches": [f"searches/{leg.number}-{k}" for k in range(leg.plan.searches)],
        "legs": leg.number + 1,
        "answers": 1 if leg.previous is None else leg.previous.result["answers"] + 1,
    }
    return {**result, "figures_network": figures_network(result), "sentence": sentence(result)}


def _trees(leg: Leg) -> int | None:
    """Rounds that gradient boosting had; None: it did not run along."""
    if BOOSTING not in leg.context.spaces or leg.left_out(BOOSTING):
        return None
    return TREES if leg.trees == ALL_TREES else leg.trees


def _ahead(leg: Leg, race: Race, baseline: Candidate) -> dict[str, Any] | None:
    """The control that was best in the race, where it is not the baseline."""
    best = next(c for c in race.ranked() if c.control)
    if leg.longer_is_meant or best.architecture == baseline.architecture:
        return None
    mine, its = race.accuracy(baseline.architecture), race.accuracy(best.architecture)
    return {"architecture": shown(best), "accuracy": its, "baseline": mine if math.isfinite(mine) else None}


def _missing(leg: Leg, race: Race, baseline: Candidate) -> str | None:
    """Why the answer compares with another network than the user's own."""
    if OWN not in leg.context.spaces or split_name(baseline.architecture)[0] == OWN:
        return None
    if OWN in leg.missing:
        return leg.missing[OWN]
    # What did not fail in the race failed in the trainings of the answer, unless a larger network is meant.
    return ONE_SIZE if leg.longer_is_meant else "its training failed"


def rows_vary(sides: Mapping[str, Sequence[Outcome]]) -> bool:
    """Whether rows have scores of their own; a metric of one's own may give one number for all of them."""
    rows = [o.right for found in sides.values() for o in found if o.right is not None]
    return any(right.dtype == bool or len(right) == 1 or float(np.ptp(right)) > 0 for right in rows)


def _target(leg: Leg, race: Race, epochs: int) -> dict[str, Any]:
    """The training that was meant, whether the answer was decided by it, and if not, by what."""
    decided = {"epochs": epochs, "size": dict(leg.context.size), "examples": leg.plan.examples}
    raced = rung_text(leg.plan.rungs[race.rung], leg.plan.rows(race.rung), leg.plan.examples)
    if leg.settings.target is None:
        return {"preset": None, **decided, "reached": True}
    meant = {"epochs": leg.space.train_settings[leg.settings.target].get("epochs"), "size": leg.context.limit_size}
    reached = leg.epochs == epochs and leg.plan.examples == len(leg.data.train_y)
    target = {"preset": leg.settings.target, **meant, "decided_at": decided, "reached": reached}
    return {**target, "says": _target_text(target, raced, race.agreements)}


def _target_text(target: Mapping[str, Any], raced: str, agreements: Sequence[Agreement]) -> str:
    """Whether the target was reached; else what decided, and how well such trainings agree with each other."""

    def training(of: Mapping[str, Any]) -> str:
        return ", ".join([rung_text(of["epochs"], 0, 0), *(f"{name} {value}" for name, value in of["size"].items())])

    if target["reached"]:
        return (
            f"networks of the preset {target['preset']} were trained for as long as it is meant ({training(target)}), "
            "with the recipe of this find; its other settings are those of nasight train"
        )
    told = "all had one length, so nobody knows how well they predict longer ones"
    if agreements:
        last = agreements[-1]
        told = f"shorter ones agree with the longest of the race at tau {last.tau:.2f} ({last.candidates} candidates)"
    return (
        f"the preset {target['preset']} ({training(target)}) was not reached: the race was decided by trainings of "
        f"{raced}, the answer by trainings of {training(target['decided_at'])}; {told}"
    )


def _race_result(leg: Leg, race: Race, products: Mapping[str, int | None]) -> dict[str, Any]:
    """The race with the rungs that were run; what else was planned stands beside them."""
    run, rungs = race.rung + 1, list(leg.plan.rungs)
    rows = [taught_rows(len(leg.data.train_y), leg.plan.rows(i), leg.plan.judge_share) for i in range(len(rungs))]
    lines = [
        {
            "architecture": shown(c),
            "proposed_by": c.proposed_by,
            "also": list(c.also),
            "control": c.control,
            "parameters": c.parameters,
            "multiply_adds": products[c.architecture],
            "epochs": [_epochs(leg, race, c, rung) for rung in range(run)],
            "accuracies": [
                a if math.isfinite(a := race.accuracy(c.architecture, rung)) else None for rung in range(run)
            ],
            "left": None if (left := race.left.get(c.architecture)) is None else asdict(left),
        }
        for c in race.candidates.values()
    ]
    return {
        "rungs": rungs[:run],
        "rows": rows[:run],
        "planned": {"rungs": rungs, "rows": rows},
        "lines": lines,
        "agreements": [asdict(a) for a in race.agreements],
        "seed_deviation": race.seed_deviation() or None,
    }


def _epochs(leg: Leg, race: Race, candidate: Candidate, rung: int) -> int | None:
    """Those of a candidate on a rung; None where it was not trained, or has none."""
    trained = math.isfinite(race.accuracy(candidate.architecture, rung))
    network = split_name(candidate.architecture)[0] != BOOSTING
    return leg.epochs_of(candidate.architecture, rung) if trained and network else None


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
        if reached and is_searched(candidate):
            at = reached[-1]
            latency = candidate.latency
            points.append(
                Point(
                    candidate.architecture,
                    candidate.parameters,
                    leg.context.latency(leg.read(candidate.architecture)) if latency is None else latency,
                    race.accuracy(candidate.architecture, at) + sum(gains[at:last]),
                    leg.epochs_of(candidate.architecture, at),
                    candidate.proposed_by,
                    multiply_adds=products[candidate.architecture],
                    estimated=at < last,
                )
            )
    before = () if leg.previous is None else [Point(**point) for point in leg.previous.result["front"]]
    return front(carried_on(points, before))


def sentence(result: Mapping[str, Any]) -> str:
    """The answer in one sentence; a second one where a longer training is meant than those that judged."""
    target = result.get("target") or {}
    if target.get("reached", True):
        return _judged(result)
    length = rung_text(target["decided_at"]["epochs"], 0, 0)
    return f"{_judged(result)} So say trainings of {length}; those of {target['preset']} may say otherwise."


def _judged(result: Mapping[str, Any]) -> str:
    """What the trainings that judged say."""
    low, high = result["interval"]
    base, interval = result["baseline"], f"{100 * result['level']:g} % interval"
    units = Units.of(result)
    name = baseline_words(result)
    if result["better"]:
        return (
            f"Better by {units.difference(result['difference'])} than {name} "
            f"({interval}: {units.number(low)} to {units.number(high)}): "
            f"{units.text(result['accuracy'])} against {units.text(base['accuracy'])}."
        )
    if result["architecture"] == base["architecture"]:
        it = "them" if name.endswith("options") else "it"
        return f"Nothing that was raced beats {name}: take {it} ({units.text(base['accuracy'])})."
    return (
        f"Not better: take {name} ({units.text(base['accuracy'])}). The best that was found has "
        f"{units.text(result['accuracy'])}, a difference of {units.difference(result['difference'], sign=True)} "
        f"({interval}: {units.number(low, sign=True)} to {units.number(high, sign=True)})."
        + (" The model in this folder is the best network that was found." if base["kind"] == BOOSTING else "")
    )
