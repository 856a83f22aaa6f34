"""One budget's worth of a find: its time, its plan, and the trainings it asks for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from statistics import fmean, median
from typing import Any

from nasight.architecture import Architecture
from nasight.searching import Latency
from nasight.studies.finding._boosting import ALL_TREES, STOPPED_EARLY, TREES
from nasight.studies.finding._budget import Budget
from nasight.studies.finding._context import Context
from nasight.studies.finding._lengths import LEAST_PACED, PER_TRAINING, SLACK, paced_epochs, taught_rows
from nasight.studies.finding._names import OWN, SPACE, split_name
from nasight.studies.finding._pace import TIMED, PaceProbe
from nasight.studies.finding._plan import JUDGE_SHARE, Plan, Speed
from nasight.studies.finding._planning import JUDGING, SHARES, TARGET_SHARES
from nasight.studies.finding._proposers import Proposal, in_turn
from nasight.studies.finding._race import Candidate, Race
from nasight.studies.finding._recipe import Tried
from nasight.studies.finding._settings import divided, leg_seed
from nasight.studies.finding._speed import expected_seconds
from nasight.studies.finding._work import BOOSTING, Recipe, Request, read_architecture

NO_PLAN = Plan(0, 0, (), (), 0, 0, 0, 0)
TOO_SLOW = 1.5
"""A candidate whose fewest epochs take more than so many times the time of a training is not trained."""
BOOSTED = 2.0
"""Gradient boosting may take so many times as long as other trainings, before it has fewer trees."""
FEWEST_TREES = 10
KEPT_SECONDS = 60.0
"""Trainings that take longer are kept in folders of their own, with checkpoints, so that a kill costs little."""


def _pace_key(leg: int, name: str) -> str:
    return f"pace {leg} {name}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:10]


@dataclass(frozen=True)
class LegResult:
    """What a leg leaves behind: its race, and its answer."""

    race: Race
    plan: Plan
    result: dict[str, Any]

    @property
    def number(self) -> int:
        """Of the leg, from 0."""
        return int(self.result["legs"]) - 1


class Leg:
    """One budget's worth of a find."""

    def __init__(
        self, context: Context, number: int, budget: Budget, previous: LegResult | None, began: float = 0.0
    ) -> None:
        self.context, self.number, self.budget, self.previous = context, number, budget, previous
        self.settings, self.journal = context.settings, context.journal
        self.space, self.data = context.space, context.data
        self.began = float(self.journal.decide(f"began {number}", lambda: round(began, 3)))
        """When its time began, by the clock of the find: reading the data counts."""
        self.seed = leg_seed(self.settings.seed, number)
        self.plan: Plan
        self.recipe: Recipe
        self.own_rates: list[tuple[Recipe, float | None]] = []
        """What the user's own network came to with each learning rate; the recipe was tuned on another one."""
        self._counts: dict[str, int] = {}
        self.missing: dict[str, str] = {}
        """Controls that do not run along, and why."""
        self.tried: list[Tried]
        self.epochs: int | None = None
        """Of the target, where the budget reaches it."""
        self.mutated: int
        """Places of the first rung that mutations of the leaders will take."""

    @property
    def tests(self) -> int:
        """Rows of the test part."""
        return 0 if self.data.test_y is None else len(self.data.test_y)

    @property
    def speed(self) -> Speed:
        """What was measured on this machine before the plan was made."""
        found = Speed(**self.journal[f"speed {self.number}"])
        return found.paced(self.controls) if self.plan.paced else found

    @property
    def controls(self) -> int:
        """How many controls run along, the reference among them."""
        return sum(not self.left_out(key) for key in self.context.spaces)

    @property
    def shares(self) -> dict[str, float]:
        """Of the budget, those of all parts. Where an earlier recipe is kept, the others divide its share."""
        shares = self.all_shares
        if self.tunes:
            return shares
        rest = 1 - shares["recipe"]
        return {part: 0.0 if part == "recipe" else share / rest for part, share in shares.items()}

    @property
    def all_shares(self) -> dict[str, float]:
        """Of the budget, those of all parts, with a recipe."""
        return divided(self.settings.shares, TARGET_SHARES if self.longer_is_meant else SHARES)

    @property
    def tunes(self) -> bool:
        """Whether the recipe is chosen in this leg: in the first, and in one whose trainings are far longer."""
        return self.previous is None or "recipe" in getattr(self, "plan", NO_PLAN).seconds

    def length_of(self, leg: int) -> float:
        """Epochs of the reference that the trainings of the answer took in a leg whose answer has begun."""
        # A find of an earlier version kept no length: both sides had the same epochs.
        return float(self.journal.get(f"length {leg}", self.journal[f"epochs {leg}"]))

    def left_out(self, key: str) -> bool:
        """Whether a control has no part: it is over a limit, or has but one size where a larger network is meant."""
        return key != SPACE and (self.longer_is_meant or self.over_limits(key) is not None)

    def over_limits(self, key: str) -> str | None:
        """Why a control is beyond the limits; None: it is not. Boosting has neither parameters nor a network."""
        most, slowest = self.settings.max_params, self.settings.max_latency
        if most is not None and (count := self._counted(key)) > most:
            return f"{count:,} parameters, and at most {most:,} are allowed"
        if slowest is not None and key != BOOSTING:
            space = self.context.trainings.space(key)
            time = Latency(space, self.data.inputs, self.data.n_classes, {})
            took = float(self.decide(f"latency of {key}", lambda: round(time(space.reference), 4)))
            if took > slowest:
                return f"{took:.3g} ms, and at most {slowest:g} are allowed"
        return None

    def _counted(self, key: str) -> int:
        """The parameters of a control, whose network is built once for it: it may be large."""
        if key not in self._counts:
            self._counts[key] = self.context.parameters(key, key)
        return self._counts[key]

    @property
    def has_own(self) -> bool:
        """Whether the user's own network runs along."""
        return OWN in self.context.spaces and not self.left_out(OWN)

    @property
    def counts_seconds(self) -> bool:
        """Whether what counts is what a network comes to in a time, not in a number of epochs that somebody named."""
        return self.budget.seconds is not None and self.settings.target is None

    @property
    def longer_is_meant(self) -> bool:
        """Whether there is a target that the budget does not reach."""
        return self.settings.target is not None and self.epochs is None

    @property
    def front_is_meant(self) -> bool:
        """Whether a limit may be asked of the front later, at the size of a training that is not reached."""
        return self.longer_is_meant and self.settings.max_params is None

    def read(self, text: str) -> Architecture:
        return read_architecture(self.space, text)

    def left(self) -> float:
        """Seconds of the budget that are left; without a clock always enough."""
        if self.budget.seconds is None:
            return math.inf
        return self.began + self.budget.seconds - self.context.clock()

    def decide(self, key: str, value: Callable[[], Any]) -> Any:
        return self.journal.decide(f"{key} {self.number}", value)

    def tell_stage(self, name: str) -> None:
        self.context.tell("stage", {"stage": name, "left": self.left(), "seconds": self.plan.seconds.get(name)})

    def request(
        self,
        key: str,
        architecture: str,
        epochs: int,
        seed: int,
        recipe: Recipe,
        *,
        rows: int | None = None,
        final: bool = False,
    ) -> Request:
        """A training on so many rows, or on all that the plan has."""
        sizes = tuple(sorted(self.context.size.items())) if key == SPACE else ()
        plan = getattr(self, "plan", None)
        examples = None if plan is None else rows or plan.examples
        if key == BOOSTING:
            # It has no epochs, and one training of all rows serves all seeds where chance plays no role in it.
            epochs, seed = self.trees, seed if (examples or 0) > STOPPED_EARLY else self.seed
        request = Request(
            architecture,
            key,
            epochs,
            seed,
            recipe,
            examples=examples,
            validation="test" if final else JUDGE_SHARE if plan is None else plan.judge_share,
            size=sizes,
            batch_size=self.settings.batch_size,
        )
        name = architecture if key == SPACE else f"{key}:"
        if key != BOOSTING and (final or (rows is not None and self._is_long(name, epochs, rows))):
            return replace(request, place=self._place(request))
        return request

    def _place(self, request: Request) -> str:
        """The folder of a training. In one leg those of the answer differ in network and seed alone."""
        name = f"{self.number}-{request.space}-{_digest(request.architecture)}-{request.epochs}-{request.seed}"
        tried = "" if request.final else f"-{_digest(request.key())}"
        return str(self.context.folder.path / "trainings" / (name + tried))

    def _is_long(self, name: str, epochs: int, rows: int) -> bool:
        """Whether a kill in such a training would cost much; where nothing says how long it takes, it may."""
        if not self.context.seen and self.budget.seconds is None:
            return True
        return self._expected(self.passes(epochs, rows) * self.pace(name)) > KEPT_SECONDS

    @property
    def trees(self) -> int:
        """How many rounds gradient boosting has: all, or as many as take about twice as long as other trainings."""
        if self.budget.seconds is None or getattr(self, "plan", None) is None:
            return ALL_TREES
        usual = PER_TRAINING + self.plan.epochs * self.plan.examples * self.speed.train
        whole = self.speed.boosting * self.plan.examples / len(self.data.train_y)
        return ALL_TREES if whole <= BOOSTED * usual else max(FEWEST_TREES, round(TREES * BOOSTED * usual / whole))

    def pace(self, name: str) -> float:
        """How many times as long as one of the reference an epoch of a candidate takes; 1 where epochs count."""
        if not self.plan.paced:
            return 1.0
        keys = (_pace_key(leg, name) for leg in range(self.number, -1, -1))
        return next((float(self.journal[key]) for key in keys if key in self.journal), 1.0)

    def measure_paces(self, names: Iterable[str]) -> None:
        """Time some steps of the candidates whose pace is not known in this leg."""
        new = [name for name in dict.fromkeys(names) if _pace_key(self.number, name) not in self.journal]
        if self.plan.paced:
            for name, pace in self.timed_paces(new).items():
                self.journal.put(_pace_key(self.number, name), pace)
            self.context.clock.keep()

    def timed_paces(self, names: Sequence[str], seconds: float = TIMED, times: int = 1) -> dict[str, float]:
        """The paces of networks as they are now, each the median of so many measurements, in all processes at once."""
        reference, recipe = self.reference(), getattr(self, "recipe", Recipe())
        new = [name for name in names if name != reference and split_name(name)[0] != BOOSTING]
        usual, *requests = (self.request(*split_name(name), 1, self.seed, recipe) for name in (reference, *new))
        found = dict[str, list[float]]()
        self.context.workers.each(
            PaceProbe(self.context.trainings, usual, seconds),
            requests * times,
            lambda request, pace: found.setdefault(request.key(), []).append(pace),
        )
        return {name: median(found[request.key()]) for name, request in zip(new, requests, strict=True)}

    def epochs_of(self, name: str, rung: int) -> int:
        """The epochs of a candidate on a rung."""
        return paced_epochs(self.plan.rungs[rung], self.pace(name))

    def too_slow(self, name: str, rung: int) -> bool:
        """Whether even the fewest epochs of a candidate take far longer than a training of this rung."""
        epochs = self.plan.rungs[rung]
        return min(LEAST_PACED, epochs) * self.pace(name) > TOO_SLOW * epochs

    def recipe_epochs(self, whole: bool) -> int:
        """The epochs of the trainings that choose the recipe: of the short ones, or of the whole ones."""
        return self.plan.rungs[-1] if whole else self.plan.recipe_epochs

    def recipe_of(self, key: str) -> Recipe:
        """How a candidate of this space is trained: as all are, but for the user's own network, with its best rate."""
        worked = [(accuracy, recipe) for recipe, accuracy in self.own_rates if accuracy is not None]
        if key != OWN or not worked:
            return self.recipe
        return max(worked, key=lambda of: of[0])[1]

    def reference(self) -> str:
        """The architecture a person would take, or, where it is over a limit, the closest to it within the limit.

        All legs of a find have the same one.
        """
        return self.space.format(self.context.reference)

    def timing(self) -> float:
        """Seconds that it takes to time an architecture."""

        def measure() -> float:
            space = self.context.trainings.space(SPACE)
            latency = Latency(space, self.data.inputs, self.data.n_classes, self.context.limit_size)
            start = time.perf_counter()
            latency(space.reference)
            return round(time.perf_counter() - start, 4)

        return max(1e-3, float(self.decide("timing", measure)))

    def candidate(self, key: str, architecture: str, by: str, *, control: bool = False) -> Candidate:
        name = architecture if key == SPACE else f"{key}:"
        latency = None
        if self.settings.max_latency is not None and key == SPACE:
            latency = self.context.latency(self.read(architecture))
        parameters = self.context.parameters(key, architecture)
        return Candidate(name, by, parameters, latency, control, seeded=key != BOOSTING)

    def rung_seconds(self, rung: int, among: Sequence[str] = ()) -> float:
        """Seconds of a training on a rung, by those that were seen: of some architectures, or of all."""
        usual = self.passes(self.plan.rungs[rung], self.plan.rows(rung))
        each = [self.passes(self.epochs_of(n, rung), self.plan.rows(rung)) * self.pace(n) for n in among]
        return self._expected(fmean(each) if each else usual, among)

    def _expected(self, passes: float, among: Sequence[str] = ()) -> float:
        """Seconds of a training that passes so many rows through its network."""
        seen = self.seen(among)
        return expected_seconds(passes, seen) if seen else PER_TRAINING + passes * self.speed.train

    def until(self, stage: str) -> float:
        """Seconds until this stage should have ended, of those that were left when the plan was made."""
        shares = self.shares
        order = list(shares)
        later = order[order.index(stage) + 1 :]
        after = sum(shares[name] for name in later) * self.planned_seconds
        planned = sum(self.plan.seconds.get(name, 0.0) for name in later) / SLACK
        # Trainings as long as those of an earlier answer may take more than their share, and so may the shortest of an
        # answer whose share is small: they have what is planned for them.
        fixed = self.previous is not None or self.longer_is_meant
        if self.plan.whole and self.plan.seconds.get("recipe", 0.0) > shares["recipe"] * self.planned_seconds:
            # With many workers whole trainings of the recipe take long, and the plan gives what comes later less.
            after = planned if fixed else min(after, planned)
        elif fixed:
            after = max(after, planned)
        return self.left() - after

    @property
    def planned_seconds(self) -> float:
        """Seconds that were left when the plan was made."""
        return float(self.journal[f"planned {self.number}"])

    def row_seconds(self) -> float:
        """Seconds per row that a training in the searched space learns from once, as they were up to now."""
        seen = self.seen()
        if not seen:
            return self.speed.train
        return sum(seconds for _, seconds in seen) / sum(rows for rows, _ in seen)

    def seen(self, among: Sequence[str] = ()) -> list[tuple[float, float]]:
        """Rows and seconds of the trainings of the race and its recipe: of some architectures, or of all.

        Where time counts, rows are those that the reference would have learned from in the time.
        """
        return [
            (self.passes(r.epochs, r.examples) * self.pace(r.architecture), o.seconds)
            for r, o in self.context.seen
            if r.space == SPACE and not r.final and (not among or r.architecture in among)
        ]

    def passes(self, epochs: int, examples: int | None) -> float:
        """Rows that a training of the race passes through its network, those that judge by what they cost."""
        rows, judges = len(self.data.train_y), self.plan.judge_share
        return epochs * taught_rows(rows, examples or rows, judges) + JUDGING * judges * rows

    def merged(self, proposals: Sequence[Proposal], number: int) -> list[Candidate]:
        """Each form once, at most so many: proposers take turns, so that none crowds the others out."""
        forms: dict[str, Candidate] = {}
        reference = self.reference()
        taken = self.space.canonical(self.read(reference))
        for proposal in in_turn(proposals):
            if len(forms) == number:
                break
            form, text = self.space.canonical(proposal.architecture), self.space.format(proposal.architecture)
            if form == taken and text != reference:
                continue  # it is the reference, written otherwise
            if form not in forms:
                forms[form] = self.candidate(SPACE, text, proposal.by)
            elif proposal.by not in ((known := forms[form]).proposed_by, *known.also):
                forms[form] = replace(known, also=(*known.also, proposal.by))
        return list(forms.values())

    def tell_proposer(self, what: str) -> None:
        self.context.tell("proposer", {"what": what, "left": self.left()})
