"""Who enters a race: searches, open decisions, scores, chance and the leaders of an earlier leg."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from nasight.architecture import Architecture
from nasight.errors import RequestError, RunError
from nasight.kernels import score
from nasight.reproducible import generator_for, torch_threads
from nasight.searching import Run, method_row
from nasight.studies._explain import explain
from nasight.studies.finding._capacity import affordable
from nasight.studies.finding._context import NEAREST
from nasight.studies.finding._leg import Leg, LegResult
from nasight.studies.finding._lengths import least_rows, search_length
from nasight.studies.finding._names import SPACE
from nasight.studies.finding._near import near_in_sizes, near_reference
from nasight.studies.finding._plan import rung_text
from nasight.studies.finding._planning import FEWEST_PLACES, SEARCH_EPOCH
from nasight.studies.finding._proposers import (
    EARLIER,
    Proposal,
    at_random,
    from_scores,
    from_searches,
    known_elsewhere,
    largest,
    of_smaller_sizes,
    rivals,
    runner_ups,
)
from nasight.studies.finding._race import Candidate, Race
from nasight.studies.finding._workers import SearchRequest

# Shares of the first rung's places that each proposer may fill.
LIKELIEST, RIVALS, SCORED, RANDOM, MUTATED, NEAR_SHARE = 0.35, 0.15, 0.05, 0.1, 0.2, 0.35
KNOWN, NEAR_BESIDE = 0.35, 0.15
"""Where it is known what did well on other data, its share of the places, and that of those near the reference, who
also have the second where what is close to it in smaller sizes is proposed too."""
OTHERS = 5
"""Places that those near the reference leave to others in a race of few: a search, the likeliest, an open decision, the
largest, and chance. (Where it is known what did well on other data, that fills a third of the places first.)"""
WHOLE_MUTATED = 0.4
"""Of the places of a race of whole trainings."""
TIMED = 0.3
"""The part of the rest of the proposals' time in which drawn architectures may be timed."""
SEARCHED = 0.7
"""The part of the proposals' time that searches take."""
MOST_JUDGED = 30
"""Options besides those that were chosen: where there are more, trust takes long."""
JUDGED_BY = 256
"""Rows by which trust judges the decisions of a search."""
TRUSTED = 0.04
"""The part of the budget that trust may take."""
LEADERS = 6
"""Candidates that run again in a later leg, if that is at most half of its places."""


def proposals(leg: Leg, race: Race) -> list[Candidate]:
    """The candidates of the first rung, from all proposers; mutations of the leaders enter later.

    They are kept with the find: it goes on with them, whatever a later version would propose.
    """
    kept = leg.decide("proposals", lambda: [[c.architecture, c.proposed_by, *c.also] for c in _proposed(leg, race)])
    race.places[0] = _places(leg, race)
    leg.mutated = _mutated(leg, race.places[0])
    return [replace(leg.candidate(SPACE, text, by), also=tuple(also)) for text, by, *also in kept]


def _places(leg: Leg, race: Race) -> int:
    return max(FEWEST_PLACES + 1, int(leg.decide("places 0", lambda: affordable(leg, race, 0))))


def _mutated(leg: Leg, places: int) -> int:
    """Places of the first rung that mutations of the leaders will take."""
    return max(1, round((WHOLE_MUTATED if leg.plan.whole else MUTATED) * places))


def _first(leg: Leg, race: Race, places: int) -> int:
    """Places that proposals fill, before mutations of the leaders; in a race of whole trainings no worker idles."""
    first = places - _mutated(leg, places)
    if not leg.plan.whole:
        return first
    return full_waves(first, math.ceil(leg.speed.controls * race.seeds), leg.context.count)


def full_waves(candidates: int, beside: int, workers: int) -> int:
    """As many candidates, or some more, so that they and the trainings beside them keep all workers busy.

    >>> full_waves(5, 1, 2), full_waves(4, 1, 2), full_waves(4, 1, 8), full_waves(2, 9, 8)
    (5, 5, 7, 7)
    """
    return math.ceil((candidates + beside) / workers) * workers - beside


def _proposed(leg: Leg, race: Race) -> list[Candidate]:
    runs, allowed, counts = _searched(leg), leg.context.allowed, leg.context.counts
    scores = leg.decide("scores", lambda: _scored(leg))
    rivals_found = _open(leg, runs) if runs else []
    places = _places(leg, race)
    before = [] if leg.previous is None else [c for c in leg.previous.race.ranked() if not c.control]
    found = [Proposal(leg.read(c.architecture), EARLIER) for c in before[: min(LEADERS, places // 2)]]
    known = max(1, round(KNOWN * places))
    elsewhere = known_elsewhere(leg.space, leg.data.name, allowed, known) if leg.plan.paced else []
    first, share = _first(leg, race, places), NEAR_BESIDE if elsewhere or leg.front_is_meant else NEAR_SHARE
    free = first - len(found) - OTHERS
    near = max(1, min(round(share * places), free))
    found += elsewhere
    center, patience = leg.read(leg.reference()), leg.context.patience
    found += near_reference(leg.space, center, allowed, _nearness(leg), near, patience, turns=_turns(leg))
    number = max(2, round(LIKELIEST * places))
    if runs:
        found += from_searches(leg.space, runs, allowed, number, leg.context.patience)
        found += rivals_found[: max(1, round(RIVALS * places))]
    found += largest(leg.space, allowed, counts, leg.context.patience, leg.settings.max_params)
    chance = generator_for(leg.seed, "chance", leg.number)
    # Before the scores: what nobody recommends is compared with, in a race of few places too.
    found += at_random(leg.space, allowed, max(1, round(RANDOM * places)), chance, leg.context.tries)
    found += from_scores(leg.space, scores, counts, max(1, round(SCORED * places)))
    if runs:
        # Last, so that a race of few places has one of every other proposer.
        sizes = [counts(proposal.architecture) for proposal in found]
        found += of_smaller_sizes(leg.space, runs, allowed, counts, sizes, max(1, number // 4), leg.context.patience)
    if leg.front_is_meant:
        # Limits are asked of the front at the size of the later training, where short trainings say little.
        sizes = [counts(proposal.architecture) for proposal in found]
        usual, few = leg.space.reference, max(0, free - near)
        found += near_in_sizes(leg.space, usual, allowed, counts, sizes, min(NEAREST, leg.context.patience), few)
    merged = leg.merged(found, first)
    return merged if leg.previous is None else [_carried(c, leg.previous) for c in merged]


def _nearness(leg: Leg) -> Callable[[Architecture], float]:
    """By which those near the reference have their order, the lowest first.

    At equal epochs more parameters are a better guess than none. At equal time a slow network has few epochs, and a
    small one learns less: those that cost about as much as the reference are the first.
    """
    context = leg.context
    usual = context.own_products(leg.read(leg.reference()))
    if not leg.plan.paced or not usual:
        return lambda arch: -float(context.counts(arch))
    return lambda arch: abs(math.log((context.own_products(arch) or 1) / usual))


def _turns(leg: Leg) -> list[str] | None:
    """The decisions that take turns where few of those near the reference can enter; None: all are in one order."""
    if not leg.plan.whole:
        return None
    names = [decision.name for decision in leg.space.decisions]
    return [names[i] for i in torch.randperm(len(names), generator=generator_for(leg.seed, "turns")).tolist()]


def _carried(candidate: Candidate, previous: LegResult) -> Candidate:
    """A leader of the race before with those who proposed it there; others stay as they are."""
    old = previous.race.candidates.get(candidate.architecture)
    if candidate.proposed_by != EARLIER or old is None:
        return candidate
    first, *others = (_of_leg(name, previous.result["legs"]) for name in (old.proposed_by, *old.also))
    also = dict.fromkeys([*others, EARLIER, *candidate.also])
    return replace(candidate, proposed_by=first, also=tuple(name for name in also if name != first))


def _of_leg(name: str, leg: int) -> str:
    """A proposer of an earlier leg: every leg counts its searches from 1."""
    return f"{name} of leg {leg}" if re.fullmatch(r"search \d+", name) else name


def _searched(leg: Leg) -> list[Run]:
    place = leg.context.folder.path / "searches"
    row = method_row(leg.settings.method)
    epochs, rows = leg.decide("search length", lambda: _search_length(leg))
    requests = [
        SearchRequest(
            str(place / f"{leg.number}-{k}"),
            {
                "method": row.name,
                "epochs": epochs,
                "examples": rows,
                "size": dict(leg.settings.search_size),
                "seed": leg.seed + k,
                "threads": 1,
                "device": leg.settings.device,
                "precision": leg.settings.precision,
                "preset": "tiny",
                "augment": leg.recipe.words or False,
                **({} if leg.settings.class_weights is None else {"class_weights": leg.settings.class_weights}),
            },
        )
        for k in range(leg.plan.searches)
    ]
    leg.tell_proposer(f"{len(requests)} searches of {rung_text(epochs, rows, leg.plan.examples)}")
    folders = leg.context.workers.search(leg.context.searches, requests)
    for why, number in Counter(leg.context.workers.failures(requests)).items():
        leg.context.tell("note", {"text": f"{number} of {len(requests)} searches propose nothing: {why}"})
    runs = [Run(folder, space=leg.space) for folder in folders]
    return [run for run in runs if not run.result.get("unusable")]


def _search_length(leg: Leg) -> tuple[int, int]:
    """Epochs and rows as planned, or as many as there is still time for."""
    planned = leg.plan.search_epochs, leg.plan.search_rows or leg.plan.examples
    if leg.budget.seconds is None:
        return planned
    speed = leg.speed
    pace = max(0.5, leg.row_seconds() / speed.train)
    time = SEARCHED * leg.until("propose") * leg.context.count / leg.plan.searches
    passes = max(0.0, time) / (pace * speed.search)
    least = least_rows(len(leg.data.train_y), leg.data.fewest)
    beside = SEARCH_EPOCH / (pace * speed.search)
    return search_length(passes, leg.plan.examples, least, 2 * leg.plan.search_epochs, beside)


def _open(leg: Leg, runs: Sequence[Run]) -> list[Proposal]:
    """Rivals where trust calls a decision open; none where the shared weights cannot be judged.

    Trust passes rows through the supernet for every other option. It judges as many of the searches as a small part of
    the budget has time for; where that is none, the smallest margins of the weights say what is open.
    """
    leg.tell_proposer("open decisions of the searches")
    others = sum(len(d.options) - 1 for d in leg.space.decisions)
    judged = runs if others <= MOST_JUDGED else []
    if leg.budget.seconds is not None:
        each = (others + 1) * JUDGED_BY * leg.speed.search
        judged = judged[: int(TRUSTED * leg.budget.seconds / each)]
    if not judged:
        return runner_ups(leg.space, runs[0], leg.context.allowed)
    found = list[Proposal]()
    for run in judged:
        try:
            # One thread, as speeds were measured: several wait for each other where other programs run.
            with torch_threads(1):
                decisions = explain(run, data=leg.data, examples=JUDGED_BY, device=leg.settings.device).decisions
        except (RequestError, RunError):
            continue
        found += rivals(leg.space, decisions, leg.context.allowed, len(decisions))
        leg.context.clock.keep()
    return found


def _scored(leg: Leg) -> dict[str, float]:
    number = leg.plan.scored
    if leg.budget.seconds is not None:
        each = leg.speed.score
        left = max(leg.until("propose"), 0.0)
        number = min(number, int(0.7 * left * leg.context.count / each))
        if leg.settings.max_latency is not None:
            # Every draw is timed, here and alone; with several draws for one that is fast enough.
            number = min(number, int(TIMED * left / leg.timing() / leg.context.tries))
    generator = generator_for(leg.seed, "scored", leg.number)
    drawn = at_random(leg.space, leg.context.allowed, number, generator, leg.context.tries)
    if not drawn:
        return {}
    leg.tell_proposer(f"{len(drawn)} architectures are scored")
    executor = leg.context.workers.executor
    archs = [p.architecture for p in drawn]
    found = score(
        leg.space,
        "naswot",
        leg.data,
        architectures=archs,
        executor=executor,
        workers=1,
        device=leg.settings.device,
    )
    leg.context.clock.keep()
    values = zip(found.architectures, found.goodness("naswot"), strict=True)
    return {text: value for text, value in values if text not in found.failed and math.isfinite(value)}
