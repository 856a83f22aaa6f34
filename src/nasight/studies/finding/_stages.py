"""The stages of a leg: speed and plan, recipe, proposals, race, answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

import torch

from nasight.reproducible import generator_for
from nasight.studies.finding._answering import answer
from nasight.studies.finding._capacity import affordable, room, spare
from nasight.studies.finding._leg import Leg, LegResult
from nasight.studies.finding._lengths import FEWEST_EPOCHS, LEAST_PACED, MOST_EPOCHS, training_seconds
from nasight.studies.finding._names import (
    FIRST_OPTIONS,
    ONE_SIZE,
    OWN,
    PLAIN,
    PLAIN_REFERENCE,
    REFERENCE,
    SPACE,
    STAND_IN,
    is_searched,
    shown,
    split_name,
)
from nasight.studies.finding._plan import GRID, GRID_RATES, Plan, Speed
from nasight.studies.finding._planning import (
    FEWEST_PLACES,
    TooSmall,
    control_seeds,
    plan,
    plan_of_trainings,
)
from nasight.studies.finding._proposals import proposals
from nasight.studies.finding._proposers import at_random, mutations
from nasight.studies.finding._race import Candidate, Entry, Race
from nasight.studies.finding._settings import divided, is_own
from nasight.studies.finding._size import Size, choose_size, most_products
from nasight.studies.finding._speed import Probe, TrainingProbe, mean_speed
from nasight.studies.finding._tuning import chooses_changes, tuned_own_rates, tuned_recipe
from nasight.studies.finding._work import BOOSTING, Recipe, Request

TURNS = 3
"""In which changes of the leaders enter a race of whole trainings."""
RENEWED = 2
"""The recipe is chosen again where trainings are so many times as long as those that compared random changes."""
LED = 3
"""So many leaders of a race are changed."""
LARGEST_OF = 10
"""A large architecture is the largest of so many."""


def run_leg(leg: Leg) -> LegResult:
    """All stages of a leg."""
    _take_size(leg)
    speed = Speed(**leg.decide("speed", lambda: _measured(leg))) if leg.budget.seconds is not None else None
    leg.plan = Plan.from_dict(leg.decide("plan", lambda: _planned(leg, speed).to_dict()))
    leg.context.tell("plan", {"leg": leg.number, "plan": leg.plan, "budget": leg.budget.seconds, "speed": speed})
    leg.tell_stage("recipe")
    leg.recipe, leg.tried = tuned_recipe(leg)
    leg.own_rates = tuned_own_rates(leg)
    leg.tell_stage("propose")
    seeds = leg.plan.control_seeds or control_seeds(leg.controls)
    race = Race(list(leg.plan.places), level=leg.settings.level, seeds=seeds)
    race.enter(_controls(leg))
    race.enter(proposals(leg, race))
    leg.tell_stage("race")
    _race(leg, race)
    race.end()
    leg.context.tell(
        "leaders", {"leaders": _leaders(race), "left": leg.left(), "metric": leg.context.task.units.metric}
    )
    leg.tell_stage("answer")
    return LegResult(race, leg.plan, answer(leg, race))


def _take_size(leg: Leg) -> None:
    """The size of the networks: decided once in a find, by its first budget of time."""
    first = leg.number == 0 and leg.budget.seconds is not None and "speed 0" not in leg.journal
    if first or "size 0" in leg.journal:
        found = leg.journal.decide("size 0", lambda: _affordable_size(leg).to_dict())
        # A find of an earlier version had no limit of this kind.
        leg.context.take_size(found["size"], found.get("most_products"))
        leg.epochs = found["epochs"]
    else:
        # A training counts as one however long it takes, so none may be much longer than others.
        leg.context.take_size(leg.context.size, most_products(leg.context, leg.read(leg.reference())))


def _affordable_size(leg: Leg) -> Size:
    """By the usual shares, or, where these do not reach a target, by those of a find that does not."""
    found = _size_by(leg, divided(leg.settings.shares))
    return _size_by(leg, leg.all_shares) if leg.settings.target is not None and found.epochs is None else found


def _size_by(leg: Leg, shares: Mapping[str, float]) -> Size:
    each = training_seconds(leg.left(), leg.context.count, shares["answer"])
    rows = len(leg.data.train_y)

    def limit(size: Mapping[str, int]) -> float | None:
        leg.context.take_size(size)
        reference = leg.reference()
        seconds = rows * _probe_mean(leg, (leg.request(SPACE, reference, 1, 0, Recipe()),))
        return most_products(leg.context, leg.read(reference), each / seconds)

    def measure(size: Mapping[str, int]) -> float:
        leg.context.take_size(size, limit(size))
        usual, large = _probe_mean(leg, _probed(leg)), _probe_mean(leg, (_large(leg),))
        # As the plan has it: of the trainings that answer, half are a leader's.
        return (usual + max(usual, large)) / 2

    found = choose_size(leg.context, each, rows, measure)
    return replace(found, most_products=limit(found.size))


def _probe_mean(leg: Leg, requests: tuple[Request, ...]) -> float:
    """Seconds per row of some trainings, in all processes at once."""
    probe, found = TrainingProbe(leg.context.trainings, requests), list[float]()
    leg.context.workers.each(probe, range(leg.context.count), lambda number, seconds: found.append(seconds))
    return fmean(found)


def _probed(leg: Leg) -> tuple[Request, ...]:
    """Trainings of the reference and of two others, by which speed is measured."""
    drawn = at_random(leg.space, leg.context.allowed, 2, generator_for(leg.seed, "speed"), leg.context.tries)
    texts = dict.fromkeys([leg.reference(), *(leg.space.format(p.architecture) for p in drawn)])
    return tuple(leg.request(SPACE, text, 1, 0, Recipe()) for text in texts)


def _large(leg: Leg) -> Request:
    """A training of the largest of some architectures: leaders of a race are often large, and slow."""
    number = LARGEST_OF if leg.settings.max_latency is None else 2  # each is timed
    drawn = at_random(leg.space, leg.context.allowed, number, generator_for(leg.seed, "large"), leg.context.tries)
    archs = [leg.read(leg.reference()), *(p.architecture for p in drawn)]
    return leg.request(SPACE, leg.space.format(max(archs, key=leg.context.counts)), 1, 0, Recipe())


def _measured(leg: Leg) -> dict[str, float]:
    """All processes at once: they slow each other down, and they must have started first."""
    requests = _probed(leg)
    size = tuple(sorted(leg.settings.search_size.items()))
    found = list[Speed]()
    own = leg.request(OWN, OWN, 1, 0, Recipe()) if leg.has_own else None
    others = leg.controls - (own is not None)
    boosts = BOOSTING in leg.context.spaces and not leg.left_out(BOOSTING)
    boosting = leg.request(BOOSTING, BOOSTING, 1, 0, Recipe()) if boosts else None
    probe = Probe(leg.context.trainings, requests, leg.settings.method, size, own, _large(leg), others, boosting)
    leg.context.workers.each(probe, range(leg.context.count), lambda number, speed: found.append(speed))
    return asdict(mean_speed(found))


def _planned(leg: Leg, speed: Speed | None) -> Plan:
    """The plan at the find's size; a later leg keeps the recipe of the first."""
    size, most = leg.context.size, leg.context.most_products
    return replace(_divided(leg, speed), size=size, most_products=most, paced=leg.counts_seconds)


def _divided(leg: Leg, speed: Speed | None) -> Plan:
    """The plan; where a later leg has far longer trainings, one in which whole ones compare random changes again."""
    usual = _plan(leg, speed, tunes=leg.previous is None)
    if leg.previous is None or not (leg.counts_seconds and chooses_changes(leg)):
        return usual
    long = RENEWED * _chosen_by(leg)
    try:
        again = _plan(leg, speed, tunes=True)
    except TooSmall:
        return usual
    return again if again.recipe_whole and again.rungs[-1] >= long else usual


def _chosen_by(leg: Leg) -> int:
    """The epochs of the trainings that compared random changes of images last, in an earlier leg."""
    kept = [leg.journal[key] for number in range(leg.number) if (key := f"plan {number}") in leg.journal]
    plans = [Plan.from_dict(each) for each in kept]
    last = next((each for each in reversed(plans) if "recipe" in each.seconds), plans[0])
    return last.rungs[-1] if last.recipe_whole else last.recipe_epochs


def _plan(leg: Leg, speed: Speed | None, *, tunes: bool) -> Plan:
    rows, before = len(leg.data.train_y), leg.previous
    if leg.budget.trainings is not None:
        epochs = leg.settings.epochs or (FEWEST_EPOCHS if before is None else round(leg.length_of(before.number)))
        tuned = GRID + (GRID_RATES if leg.has_own else 0)
        how: dict[str, Any] = {"controls": leg.controls, "recipes": tuned if before is None else 0}
        how["changes"] = before is None and chooses_changes(leg)
        return plan_of_trainings(leg.budget.trainings, rows=rows, epochs=epochs, **how)
    assert speed is not None
    assert leg.budget.seconds is not None
    left = float(leg.decide("planned", lambda: round(leg.left(), 3)))
    spent = leg.budget.seconds - left
    speed = speed.paced(leg.controls) if leg.counts_seconds else speed
    return plan(
        speed, left, workers=leg.context.count, rows=rows, classes=leg.data.fewest, tests=leg.tests, spent=spent,
        shares=leg.all_shares if tunes else leg.shares, most_epochs=leg.epochs or MOST_EPOCHS,
        control_seeds=control_seeds(leg.controls),
        own=_own_trainings(leg, speed),
        changes=chooses_changes(leg), whole=leg.counts_seconds or leg.longer_is_meant, paced=leg.counts_seconds,
        answered=None if before is None else (leg.length_of(before.number), before.plan.examples), tunes=tunes,
    )  # fmt: skip


def _own_trainings(leg: Leg, speed: Speed) -> float:
    """What a short training of the user's own baseline takes, in those of the space; 0: there is none."""
    if not leg.has_own:
        return 0.0
    return max(1.0, LEAST_PACED * speed.own / FEWEST_EPOCHS if leg.counts_seconds else speed.own * speed.reference)


def _controls(leg: Leg) -> list[Candidate]:
    reference = leg.reference()
    found = [leg.candidate(SPACE, reference, _reference_name(leg), control=True)]
    for key in (PLAIN, OWN, BOOSTING):
        if key not in leg.context.spaces:
            continue
        candidate = leg.candidate(key, key, key, control=True)
        if not leg.left_out(key):
            found.append(candidate)
        elif leg.longer_is_meant and key == OWN:
            leg.context.tell("note", {"text": f"{shown(candidate)} does not run along: {ONE_SIZE}"})
        elif (over := leg.over_limits(key)) is not None:
            leg.missing[key] = over
            leg.context.tell("note", {"text": f"{shown(candidate)} does not run along: {over}"})
    return found


def _reference_name(leg: Leg) -> str:
    """Who proposes the control of the searched space."""
    if not leg.context.allowed(leg.space.reference):
        return STAND_IN
    if is_own(leg.settings.space):
        return FIRST_OPTIONS
    return PLAIN_REFERENCE if leg.space.plain_reference else REFERENCE


def _race(leg: Leg, race: Race) -> None:
    _train(leg, race)
    for turn in range(TURNS if leg.plan.whole else 1):
        _mutate(leg, race, turn)
        _train(leg, race)
    for rung in range(1, len(race.places)):
        places = int(leg.decide(f"places {rung}", lambda rung=rung: affordable(leg, race, rung)))  # type: ignore[misc]
        if places < FEWEST_PLACES:
            # No time for longer trainings of several: the answer is decided by these.
            break
        race.places[rung] = places
        race.close()
        _tell_rung(leg, race)
        _train(leg, race)
    if race.misled():
        # At the end alone: what a race has left before belongs to the longer trainings.
        race.recall(int(leg.decide("spare", lambda: spare(leg, race))))
        _train(leg, race)


def _mutate(leg: Leg, race: Race, turn: int) -> None:
    """Let changes of the leaders enter, as many as there are places for.

    In a race of whole trainings they enter turn by turn, each time those of the leaders as they are then. The reference
    may be one of these. Where limits may be asked of the front later, the best of every size is changed.
    """
    number, chance = leg.mutated, generator_for(leg.seed, "mutations", leg.number)
    if leg.plan.whole:
        number = int(leg.decide(f"mutated {turn}", lambda: room(leg, race, TURNS - turn)))
        chance = generator_for(leg.seed, "mutations", leg.number, turn)
    changed = [leg.read(c.architecture) for c in _changed(leg, race, chance)]
    near = mutations(leg.space, changed, leg.context.allowed, _asked_about(leg, number), chance)
    known = {leg.space.canonical(leg.read(c.architecture)) for c in race.candidates.values() if is_searched(c)}
    new = [p for p in near if leg.space.canonical(p.architecture) not in known]
    race.enter(leg.merged(new, number))


def _changed(leg: Leg, race: Race, chance: torch.Generator) -> list[Candidate]:
    """Those of whom changes enter: the first three, or the first and the best of every smaller size in chance order."""
    ranked = [c for c in race.ranked() if is_searched(c) and (not c.control or _may_lead(leg, c))]
    if not leg.front_is_meant or not ranked:
        return ranked[:LED]
    first, *smaller = [c for i, c in enumerate(ranked) if all(c.parameters < other.parameters for other in ranked[:i])]
    return [first, *(smaller[i] for i in torch.randperm(len(smaller), generator=chance).tolist())]


def _asked_about(leg: Leg, number: int) -> int:
    """Changes of the leaders that are looked at to find so many new ones; with a limit of latency each is timed."""
    return 3 * number if leg.settings.max_latency is None else min(3 * number, leg.context.patience)


def _may_lead(leg: Leg, control: Candidate) -> bool:
    """Whether changes of a control may enter: a reference may have options that are not searched."""
    return leg.plan.whole and leg.read(control.architecture) in leg.space


def _train(leg: Leg, race: Race) -> None:
    """Train all that the rung asks for."""
    while asked := race.ask():
        leg.measure_paces(entry.architecture for entry in asked)
        slow = [
            e for e in asked if leg.too_slow(e.architecture, e.rung) and not race.candidates[e.architecture].control
        ]
        for entry in slow:
            race.leave(entry)
        asked = [entry for entry in asked if entry not in slow]
        requests = [_entry(leg, entry) for entry in asked]
        for entry, outcome in zip(asked, leg.context.workers.train(requests), strict=True):
            race.tell(entry, outcome)


def _entry(leg: Leg, entry: Entry) -> Request:
    key, architecture = split_name(entry.architecture)
    epochs, seed = leg.epochs_of(entry.architecture, entry.rung), leg.seed + entry.seed
    return leg.request(key, architecture, epochs, seed, leg.recipe_of(key), rows=leg.plan.rows(entry.rung))


def _tell_rung(leg: Leg, race: Race) -> None:
    leg.context.tell(
        "rung",
        {
            "rung": race.rung,
            "training": leg.plan.rung_text(race.rung),
            "running": len(race.active()),
            "leaders": _leaders(race, race.rung - 1),
            "left": leg.left(),
            "metric": leg.context.task.units.metric,
        },
    )


def _leaders(race: Race, rung: int | None = None) -> list[tuple[str, float]]:
    """The first three of a rung (this one), with their accuracies."""
    return [(shown(c), race.accuracy(c.architecture, rung)) for c in race.ranked(rung)[:3]]
