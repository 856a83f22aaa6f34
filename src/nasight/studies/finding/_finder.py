"""A find, stage by stage: speed and plan, recipe, proposals, race, answer.

Everything that a clock or another process decides is kept in the journal, so a find that was killed takes the same way
again, without training anything twice. A later budget begins another leg: the leaders of the one before run again, in
longer trainings, beside new proposals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from shlex import quote
from statistics import mean
from typing import Any

from torch import nn

from nasight.architecture import Architecture
from nasight.compute import process_pool
from nasight.data import Dataset, SentData, Units, select_rows, split_indices
from nasight.errors import RequestError, RunError
from nasight.kernels import score
from nasight.own import OwnParts
from nasight.reproducible import generator_for
from nasight.runs import RunFolder
from nasight.searching import Interrupted, Latency, Run, method_row
from nasight.spaces import FixedSpace, ModuleSpace, PlainSpace, Space
from nasight.spaces import load as load_space
from nasight.studies._explain import explain
from nasight.studies._model_folder import write_model
from nasight.studies._trained_model import trained_model
from nasight.studies.finding._answer import Answer, Difference, Point, difference, front
from nasight.studies.finding._budget import Budget
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._page import find_page
from nasight.studies.finding._plan import (
    PER_TRAINING,
    SEEDS,
    SHARES,
    Plan,
    Speed,
    TooSmall,
    plan,
    plan_of_trainings,
)
from nasight.studies.finding._propose import (
    PATIENCE,
    Proposal,
    at_random,
    close_seconds,
    from_scores,
    from_searches,
    mutations,
    rivals,
)
from nasight.studies.finding._race import Candidate, Entry, Outcome, Race
from nasight.studies.finding._recipe import choose_recipe
from nasight.studies.finding._speed import Probe, mean_speed
from nasight.studies.finding._work import BOOSTING, Recipe, Request, Trainings, read_architecture, shared
from nasight.studies.finding._workers import Clock, Searches, SearchRequest, Workers

Event = Callable[[str, Mapping[str, Any]], None]
"""Told of what happens: "note", "plan", "stage", "training", "rung", "answer", each with values."""
TEST_SHARE = 0.2
JUDGE_SHARE = 0.25
"""Of the training rows, those by which recipe and race are judged."""
FIRST_SEED = 1_000
"""Seeds of the answer's trainings begin here, so that none of them was used before."""
SPACE, PLAIN, OWN = "space", "plain", "baseline"
"""Keys of the spaces that candidates come from."""
# Shares of the first rung's places that each proposer may fill.
LIKELIEST, RIVALS, SCORED, RANDOM, MUTATED = 0.35, 0.15, 0.05, 0.1, 0.2
SEARCHED = 0.7
"""The part of the proposals' time that searches take."""
ANSWERED = 0.88
"""The part of the last seconds that trainings take: the model, the page and the times of the front come after them."""
FEWEST_PLACES = 2
MOST_JUDGED, JUDGING_SECONDS = 30, 600.0
JUDGED_BY = 256
"""Rows by which trust judges the decisions of a search."""
LEADERS = 6
"""Candidates that run again in a later leg."""
DATA_SEED = 0
NOTHING = Budget()
"""In place of a budget that was too small."""


@dataclass(frozen=True)
class FindSettings:
    """What a find was asked for; a resumed one obeys it."""

    space: str
    space_options: dict[str, Any]
    data: str
    method: str
    seed: int
    size: dict[str, int]
    search_size: dict[str, int]
    target: str | None
    baseline: str | None
    max_params: int | None
    max_latency: float | None
    level: float
    workers: int
    batch_size: int
    trainings: int | None
    epochs: int | None
    device: str = "cpu"
    augment: str | None = None
    """The random changes of images that were asked for; None: those that help the baseline."""
    class_weights: str | None = None
    precision: str = "32"


def with_test_part(data: Dataset) -> Dataset:
    """The data set with a test part; where it has none, a fifth of its training rows, set aside first of all."""
    if data.test_x is not None:
        return data
    rows = len(data.train_y)
    held = max(round(TEST_SHARE * rows), data.fewest)
    if rows - held < 4 * data.fewest:
        raise RequestError(f"{rows} rows are too few for {data.outputs_text}: a find sets a fifth of them aside")
    test, train = split_indices(data.strata, [held, rows - held], generator_for(DATA_SEED, "test part"))
    # The units of numbers are those of the rows that are left to learn from.
    return replace(select_rows(data, train, test), task=data.task.fitted(data.train_y[train]))


@dataclass(frozen=True)
class LegResult:
    """What a leg leaves behind: its race, and its answer."""

    race: Race
    plan: Plan
    result: dict[str, Any]


class Finder:
    """One find in progress."""

    def __init__(
        self,
        folder: RunFolder,
        journal: Journal,
        settings: FindSettings,
        space: Space,
        data: Dataset,
        baseline: str | Callable[[], nn.Module] | None,
        executor: Executor | None,
        progress: Event | None,
        own: OwnParts | None = None,
        sent: SentData | None = None,
    ) -> None:
        self.own, self.sent = own or OwnParts(), sent
        """`sent` is for an executor on other machines: where they find the data."""
        self.task = data.task.with_own(self.own.loss, self.own.metric)
        self.folder, self.journal, self.s, self.space, self.data = folder, journal, settings, space, data
        self.executor, self.tell = executor, progress or _silent
        self.clock = Clock(journal)
        whole = space
        if space.reference not in space and settings.space != "module":
            # The reference has an option that is not searched; the space with its own options has it.
            whole = load_space(settings.space)
        self.spaces: dict[str, Any] = {SPACE: _sendable(settings.space, whole), PLAIN: PlainSpace()}
        self.searched = _sendable(settings.space, space)
        if data.table is not None:
            # What people take for tables. It is no network: the space stands for its training settings alone.
            self.spaces[BOOSTING] = PlainSpace()
        if isinstance(baseline, str):
            self.spaces[OWN] = FixedSpace.from_file(baseline)
        elif baseline is not None:
            self.spaces[OWN] = FixedSpace(baseline)
        self.counts = space.parameters(data.inputs, data.n_classes, **self.limit_size)
        self.latencies = Latency(space, data.inputs, data.n_classes, self.limit_size)
        self.allowed_known: dict[Architecture, bool] = {}
        self.seen: list[tuple[Request, Outcome]] = []
        """Trainings of this process and those that the journal has of before."""

    @property
    def limit_size(self) -> dict[str, int]:
        """The size at which parameters are counted: that of the later training, or of the find's own."""
        size = None if self.s.target is None else self.space.train_size(self.s.target)
        return dict(size or self.s.size)

    def run(self) -> Answer:
        """All legs, and the result of the last one; what an interrupt leaves is resumed later."""
        try:
            return self._run()
        except KeyboardInterrupt:
            raise Interrupted(f"stopped; resume with: nasight find --resume {quote(str(self.folder.path))}") from None

    def _run(self) -> Answer:
        with ExitStack() as stack:
            stack.enter_context(self.folder.writing())
            data = self.sent or stack.enter_context(shared(self.data))
            s = self.s
            self.trainings = Trainings(
                self.spaces, data, device=s.device, own=self.own, class_weights=s.class_weights, precision=s.precision
            )
            self.searches = Searches(self.searched, data, self.own)
            executor = self.executor
            # A model that is no file's cannot be sent to other processes.
            here = isinstance(self.spaces[SPACE], ModuleSpace) or (OWN in self.spaces and self.s.baseline == "given")
            here = here or not self.own.sendable
            if executor is None and self.s.workers > 1 and not here:
                executor = stack.enter_context(process_pool(self.s.workers))
            self.workers = Workers(executor, self.trainings, self.journal, self.clock, self._told)
            self.count = self.s.workers if executor is not None else 1
            previous: LegResult | None = None
            leg = 0
            while f"budget {leg}" in self.journal:
                budget = Budget(**self.journal[f"budget {leg}"])
                if budget != NOTHING:
                    previous = self._leg(leg, budget, previous)
                leg += 1
            if previous is None:
                raise RequestError(f"the find in {self.folder.path} never had a budget that was enough")
            self._write_model(previous.result)
            result = {**previous.result, "page": str(self.folder.path / "report.html")}
            self.folder.write_result(result)
            find_page(Answer(self.folder.path), space=self.space)
            self.tell("answer", result)
        own = self.trainings.space(str(previous.result["taken_from"]))
        return Answer(self.folder.path, space=own if isinstance(own, ModuleSpace | FixedSpace) else None)

    def _leg(self, number: int, budget: Budget, previous: LegResult | None) -> LegResult:
        """One leg; of one that was done before nothing is told again."""
        tell, done = self.tell, f"done {number}"
        if done in self.journal:
            self.tell = _silent
        try:
            found = Leg(self, number, budget, previous).run()
        except TooSmall:
            self.journal.put(f"budget {number}", asdict(NOTHING))
            raise
        finally:
            self.tell = tell
        self.journal.decide(done, lambda: True)
        return found

    def _write_model(self, result: Mapping[str, Any]) -> None:
        """The network that the answer says to take, for `predict`."""
        key = str(result["taken_from"])
        space = self.trainings.space(key)
        write_model(
            self.folder.path / "model", trained_model(self.folder.path / result["trained"], self.data, space=space)
        )

    def _told(self, request: Request, outcome: Outcome | None) -> None:
        accuracy = None if outcome is None else outcome.accuracy
        if outcome is not None:
            self.seen.append((request, outcome))
        self.tell("training", {"architecture": request.architecture, "epochs": request.epochs, "accuracy": accuracy})

    def parameters(self, key: str, architecture: str, size: Mapping[str, int]) -> int:
        """Of a network as the find trains it, or, in the searched space, at the size of the target."""
        if key == SPACE:
            return self.counts(self.read(architecture))
        if key == BOOSTING:
            return 0
        space = self.trainings.space(key)
        return space.parameters(self.data.inputs, self.data.n_classes, **size)(read_architecture(space, architecture))

    def read(self, text: str) -> Architecture:
        return read_architecture(self.space, text)

    def allowed(self, arch: Architecture) -> bool:
        """Whether an architecture is within the limits."""
        if arch not in self.allowed_known:
            small = self.s.max_params is None or self.counts(arch) <= self.s.max_params
            fast = self.s.max_latency is None or (small and self.latency(arch) <= self.s.max_latency)
            self.allowed_known[arch] = small and fast
        return self.allowed_known[arch]

    @property
    def tries(self) -> int:
        """Draws for each architecture that is wanted: few where each one is timed."""
        return 200 if self.s.max_latency is None else 5

    @property
    def patience(self) -> int:
        return PATIENCE if self.s.max_latency is None else 40

    def latency(self, arch: Architecture) -> float:
        """Milliseconds per example; a clock is noisy, so the first measurement is kept."""
        text = self.space.format(arch)
        return float(self.journal.decide(f"latency {text}", lambda: round(self.latencies(arch), 4)))


class Leg:
    """One budget's worth of a find."""

    def __init__(self, finder: Finder, number: int, budget: Budget, previous: LegResult | None) -> None:
        self.f, self.s, self.number, self.budget, self.previous = finder, finder.s, number, budget, previous
        self.journal, self.space, self.data = finder.journal, finder.space, finder.data
        self.began = float(self.journal.decide(f"began {number}", lambda: round(finder.clock(), 3)))
        self.seed = self.s.seed + 100 * number

    def read(self, text: str) -> Architecture:
        return read_architecture(self.space, text)

    def left(self) -> float:
        """Seconds of the budget that are left; without a clock always enough."""
        if self.budget.seconds is None:
            return math.inf
        return self.began + self.budget.seconds - self.f.clock()

    def decide(self, key: str, value: Callable[[], Any]) -> Any:
        return self.journal.decide(f"{key} {self.number}", value)

    def run(self) -> LegResult:
        speed = Speed(**self.decide("speed", self._measured)) if self.budget.seconds is not None else None
        self.plan = Plan.from_dict(self.decide("plan", lambda: self._planned(speed).to_dict()))
        self.f.tell("plan", {"leg": self.number, "plan": self.plan, "budget": self.budget.seconds, "speed": speed})
        self._stage("recipe")
        self.recipe, self.tried = self._recipe()
        self._stage("propose")
        race = Race(list(self.plan.places), level=self.s.level, flexible=self.budget.seconds is not None)
        race.enter(self._controls())
        race.enter(self._proposals(race))
        self._stage("race")
        self._race(race)
        race.end()
        self._stage("answer")
        return LegResult(race, self.plan, self._answer(race))

    def _stage(self, name: str) -> None:
        self.f.tell("stage", {"stage": name, "left": self.left(), "seconds": self.plan.seconds.get(name)})

    # Speed and plan

    def _measured(self) -> dict[str, float]:
        """All processes at once: they slow each other down, and they must have started first."""
        drawn = at_random(self.space, self.f.allowed, 2, generator_for(self.seed, "speed"))
        texts = dict.fromkeys([self._reference(), *(self.space.format(p.architecture) for p in drawn)])
        requests = tuple(self._request(SPACE, text, 1, 0, Recipe()) for text in texts)
        size = tuple(sorted(self.s.search_size.items()))
        found = list[Speed]()
        probe = Probe(self.f.trainings, requests, self.s.method, size)
        self.f.workers.each(probe, range(self.f.count), lambda number, speed: found.append(speed))
        return asdict(mean_speed(found))

    def _planned(self, speed: Speed | None) -> Plan:
        rows = len(self.data.train_y)
        if self.budget.trainings is not None:
            controls = len(self.f.spaces)
            how = _given(epochs=self.s.epochs)
            return plan_of_trainings(self.budget.trainings, rows=rows, controls=controls, **how)
        assert speed is not None
        left = float(self.decide("planned", lambda: round(self.left(), 3)))
        return plan(speed, left, workers=self.f.count, rows=rows, classes=self.data.fewest)

    # Trainings

    def _request(
        self, key: str, architecture: str, epochs: int, seed: int, recipe: Recipe, *, final: bool = False
    ) -> Request:
        sizes = tuple(sorted(self.s.size.items())) if key == SPACE else ()
        examples = getattr(self, "plan", None) and self.plan.examples
        place = None
        if key == BOOSTING:
            epochs = 1  # It has none: one training serves all rungs.
        elif final:
            place = str(
                self.f.folder.path / "trainings" / f"{self.number}-{key}-{_digest(architecture)}-{epochs}-{seed}"
            )
        return Request(
            architecture,
            key,
            epochs,
            seed,
            recipe,
            examples=examples or None,
            validation="test" if final else JUDGE_SHARE,
            size=sizes,
            batch_size=self.s.batch_size,
            place=place,
        )

    def _reference(self) -> str:
        """The architecture a person would take, or, where it is over a limit, the largest one within it."""
        if self.f.allowed(self.space.reference):
            return self.space.format(self.space.reference)
        drawn = at_random(self.space, self.f.allowed, 20, generator_for(self.seed, "reference"), self.f.tries)
        light = [Proposal(a, "lightest") for a in self.space.lightest() if self.f.allowed(a)]
        if not drawn and not light:
            raise RequestError("no architecture of this space was found within the limits")
        return self.space.format(max((*drawn, *light), key=lambda p: self.f.counts(p.architecture)).architecture)

    def _recipe(self) -> tuple[Recipe, list[tuple[Recipe, float | None]]]:
        if self.previous is not None:
            return Recipe(**self.previous.result["recipe"]), []
        reference = self._reference()

        def train(recipes: Sequence[Recipe]) -> list[Outcome | None]:
            epochs = self.plan.recipe_epochs
            return self.f.workers.train([self._request(SPACE, reference, epochs, self.seed, r) for r in recipes])

        asked = None if self.s.augment is None else (self.s.augment,)
        # An augmentation of one's own takes the place of the built-in ones.
        images = len(self.data.inputs) == 3 and self.f.own.augment is None
        return choose_recipe(train, images=images, changes=asked)

    # Proposals

    def _controls(self) -> list[Candidate]:
        reference = self._reference()
        found = [self._candidate(SPACE, reference, "reference", control=True)]
        for key in (PLAIN, OWN, BOOSTING):
            if key in self.f.spaces:
                candidate = self._candidate(key, key, key, control=True)
                if self.s.max_params is None or candidate.parameters <= self.s.max_params:
                    found.append(candidate)
        return found

    def _candidate(self, key: str, architecture: str, by: str, *, control: bool = False) -> Candidate:
        name = architecture if key == SPACE else f"{key}:"
        latency = None
        if self.s.max_latency is not None and key == SPACE:
            latency = self.f.latency(self.read(architecture))
        return Candidate(name, by, self.f.parameters(key, architecture, {}), latency, control)

    def _proposals(self, race: Race) -> list[Candidate]:
        runs, allowed = self._searched(), self.f.allowed
        scores = self.decide("scores", self._scored)
        rivals_found = self._open(runs[0]) if runs else []
        places = max(FEWEST_PLACES + 1, int(self.decide("places 0", lambda: self._affordable(race, 0))))
        race.places[0] = places
        self.mutated = max(1, round(MUTATED * places))
        found: list[Proposal] = []
        if self.previous is not None:
            best = [c for c in self.previous.race.ranked() if not c.control][:LEADERS]
            found += [Proposal(self.read(c.architecture), "an earlier leg") for c in best]
        if runs:
            number = max(2, round(LIKELIEST * places))
            found += from_searches(self.space, runs, allowed, self.f.counts, number, self.f.patience)
            found += rivals_found[: max(1, round(RIVALS * places))]
        found += from_scores(self.space, scores, self.f.counts, max(1, round(SCORED * places)))
        chance = generator_for(self.seed, "chance", self.number)
        found += at_random(self.space, allowed, max(1, round(RANDOM * places)), chance, self.f.tries)
        return self._merged(found, places - self.mutated)

    def _merged(self, proposals: Sequence[Proposal], number: int) -> list[Candidate]:
        """Each form once, at most so many: proposers take turns, so that none crowds the others out."""
        queues: dict[str, list[Proposal]] = {}
        for proposal in proposals:
            queues.setdefault(proposal.by.split(" ")[0], []).append(proposal)
        forms: dict[str, Candidate] = {}
        while any(queues.values()) and len(forms) < number:
            for queue in queues.values():
                if queue and len(forms) < number:
                    proposal = queue.pop(0)
                    form = self.space.canonical(proposal.architecture)
                    if form not in forms:
                        text = self.space.format(proposal.architecture)
                        forms[form] = self._candidate(SPACE, text, proposal.by)
        return list(forms.values())

    def _searched(self) -> list[Run]:
        place = self.f.folder.path / "searches"
        row = method_row(self.s.method)
        epochs = int(self.decide("search epochs", self._search_epochs))
        requests = [
            SearchRequest(
                str(place / f"{self.number}-{k}"),
                {
                    "method": row.name,
                    "epochs": epochs,
                    "examples": self.plan.examples,
                    "size": dict(self.s.search_size),
                    "seed": self.seed + k,
                    "threads": 1,
                    "device": self.s.device,
                    "precision": self.s.precision,
                    "preset": "tiny",
                    "augment": self.recipe.augmentation != "none",
                    **_given(class_weights=self.s.class_weights),
                },
            )
            for k in range(self.plan.searches)
        ]
        self._proposer(f"{len(requests)} searches of {epochs} epochs")
        folders = self.f.workers.search(self.f.searches, requests)
        space = self.space if isinstance(self.f.spaces[SPACE], ModuleSpace) else None
        runs = [Run(folder, space=space) for folder in folders]
        return [run for run in runs if not run.result.get("unusable")]

    def _proposer(self, what: str) -> None:
        self.f.tell("proposer", {"what": what, "left": self.left()})

    def _search_epochs(self) -> int:
        """As planned, or as many as there is still time for."""
        if self.budget.seconds is None:
            return self.plan.search_epochs
        speed = Speed(**self.journal[f"speed {self.number}"])
        pace = max(0.5, self._epoch_seconds() / (self.plan.examples * speed.train))
        epoch = pace * self.plan.examples * speed.search
        time = SEARCHED * self._until("propose") * self.f.count / self.plan.searches
        return max(2, min(2 * self.plan.search_epochs, int(time / epoch)))

    def _open(self, run: Run) -> list[Proposal]:
        """Rivals where trust calls a decision open; none where the shared weights cannot be judged.

        Trust passes rows through the supernet for every other option: where there are many, or little time, the
        smallest margins of the weights say what is open.
        """
        self._proposer("open decisions of a search")
        many = sum(len(d.options) - 1 for d in self.space.decisions) > MOST_JUDGED
        if many or (self.budget.seconds or math.inf) < JUDGING_SECONDS:
            return close_seconds(self.space, run, self.f.allowed)
        try:
            decisions = explain(run, data=self.data, examples=JUDGED_BY, device=self.s.device).decisions
        except (RequestError, RunError):
            return []
        self.f.clock.keep()
        return rivals(self.space, decisions, self.f.allowed, len(decisions))

    def _scored(self) -> dict[str, float]:
        number = self.plan.scored
        if self.budget.seconds is not None:
            each = float(self.journal[f"speed {self.number}"]["score"])
            number = min(number, int(0.7 * max(self._until("propose"), 0.0) * self.f.count / each))
        generator = generator_for(self.seed, "scored", self.number)
        drawn = at_random(self.space, self.f.allowed, number, generator, self.f.tries)
        if not drawn:
            return {}
        self._proposer(f"{len(drawn)} architectures are scored")
        executor = self.f.workers.executor
        archs = [p.architecture for p in drawn]
        found = score(
            self.space,
            "naswot",
            self.data,
            architectures=archs,
            executor=executor,
            workers=1,
            device=self.s.device,
        )
        self.f.clock.keep()
        values = zip(found.architectures, found.goodness("naswot"), strict=True)
        return {text: value for text, value in values if text not in found.failed and math.isfinite(value)}

    # Race

    def _race(self, race: Race) -> None:
        self._train(race)
        leaders = [c for c in race.ranked() if not c.control][:3]
        near = mutations(
            self.space,
            [self.read(c.architecture) for c in leaders],
            self.f.allowed,
            3 * self.mutated,
            generator_for(self.seed, "mutations", self.number),
        )
        known = {self.space.canonical(self.read(c.architecture)) for c in race.active() if _is_searched(c)}
        new = [p for p in near if self.space.canonical(p.architecture) not in known]
        race.enter(self._merged(new, self.mutated))
        self._train(race)
        for rung in range(1, len(race.places)):
            places = int(self.decide(f"places {rung}", lambda rung=rung: self._affordable(race, rung)))  # type: ignore[misc]
            if places < FEWEST_PLACES:
                # No time for longer trainings of several: the answer is decided by these.
                return
            race.places[rung] = places
            race.close()
            self._tell_rung(race)
            self._train(race)

    def _train(self, race: Race) -> None:
        """Train all that the rung asks for."""
        while asked := race.ask():
            requests = [self._entry(entry) for entry in asked]
            for entry, outcome in zip(asked, self.f.workers.train(requests), strict=True):
                race.tell(entry, outcome)

    def _entry(self, entry: Entry) -> Request:
        key, architecture = _split(entry.architecture)
        return self._request(key, architecture, self.plan.rungs[entry.rung], self.seed + entry.seed, self.recipe)

    def _affordable(self, race: Race, rung: int) -> int:
        """How many candidates a rung has time for: what is left until the answer's share, divided between rungs."""
        planned = self.plan.places[rung]
        if self.budget.seconds is None:
            return planned
        time = (self._until("race") - 0.5) / (len(self.plan.rungs) - rung)
        each = self._epoch_seconds() * self.plan.rungs[rung] + PER_TRAINING
        controls = sum(c.control for c in race.candidates.values()) * (race.seeds if rung == 0 else 1)
        return max(0, min(4 * planned, int(time * self.f.count / each) - controls))

    def _until(self, stage: str) -> float:
        """Seconds until this stage should have ended, of those that were left when the plan was made."""
        order = list(SHARES)
        after = sum(SHARES[name] for name in order[order.index(stage) + 1 :])
        return self.left() - after * float(self.journal[f"planned {self.number}"])

    def _epoch_seconds(self) -> float:
        """Seconds per epoch of a training in the searched space, as they were up to now."""
        found = [o.seconds / r.epochs for r, o in self.f.seen if r.space == SPACE and r.place is None]
        return mean(found) if found else self.plan.examples * float(self.journal[f"speed {self.number}"]["train"])

    def _tell_rung(self, race: Race) -> None:
        leaders = race.ranked(race.rung - 1)[:3]
        self.f.tell(
            "rung",
            {
                "rung": race.rung,
                "epochs": self.plan.rungs[race.rung],
                "running": len(race.active()),
                "leaders": [(c.architecture, race.accuracy(c.architecture, race.rung - 1)) for c in leaders],
                "left": self.left(),
                "metric": self.f.task.units.metric,
            },
        )

    # Answer

    def _answer(self, race: Race) -> dict[str, Any]:
        ranked = race.ranked()
        baseline = next(c for c in ranked if c.control)
        networks = [c for c in ranked if _split(c.architecture)[0] != BOOSTING]
        winner = next((c for c in networks if not c.control and c.architecture not in race.left), networks[0])
        epochs = int(self.decide("epochs", lambda: self._affordable_epochs(race, winner, baseline)))
        sides = {}
        requests = {
            c.architecture: [
                self._request(*_split(c.architecture), epochs, FIRST_SEED + self.seed + k, self.recipe, final=True)
                for k in range(SEEDS)
            ]
            for c in (winner, baseline)
        }
        # Turn by turn, so that a clock that runs out leaves as many of both.
        flat = [request for pair in zip(*requests.values(), strict=True) for request in pair]
        outcomes = dict(zip((r.key() for r in flat), self.f.workers.train(flat), strict=True))
        for name, asked in requests.items():
            found = [outcomes[r.key()] for r in asked]
            if any(o is None for o in found):
                raise RunError(
                    f"a training of {name} with {epochs} epochs diverged; the race is kept in {self.f.folder.path}"
                )
            sides[name] = [o for o in found if o is not None]
        same = winner.architecture == baseline.architecture
        apart = (
            Difference(0.0, 0.0, 0.0, self.s.level)
            if same
            else difference(sides[winner.architecture], sides[baseline.architecture], self.s.level)
        )
        better = False if same else apart.better
        # Gradient boosting is no network that a folder could hold: the best network is kept beside the advice.
        taken = winner if better or _split(baseline.architecture)[0] == BOOSTING else baseline
        return self._result(race, winner, baseline, taken, sides, requests, apart, better, epochs)

    def _affordable_epochs(self, race: Race, winner: Candidate, baseline: Candidate) -> int:
        """The longest trainings of both that the rest of the budget allows."""
        if self.budget.seconds is None:
            return self.plan.epochs
        last = race.rung
        took = [
            mean(o.seconds for e, o in race.outcomes.items() if (e.architecture, e.rung) == (c.architecture, last))
            for c in (winner, baseline)
        ]
        # All rows learn now, not all but those that judged.
        epoch = sum(max(t - PER_TRAINING, 0.3 * t) / self.plan.rungs[last] / (1 - JUDGE_SHARE) for t in took)
        rounds = math.ceil(2 * SEEDS / self.f.count) / (2 * SEEDS)
        usable = ANSWERED * self.left() - rounds * 2 * SEEDS * PER_TRAINING
        return max(self.plan.rungs[0], min(2 * self.plan.epochs, int(usable / (rounds * SEEDS * epoch))))

    def _result(
        self,
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
        trained = str(place)[len(str(self.f.folder.path)) + 1 :]
        result: dict[str, Any] = {
            "run": str(self.f.folder.path),
            "space": self.s.space,
            "data": self.s.data,
            "seed": self.s.seed,
            "architecture": _shown(winner),
            "parameters": winner.parameters,
            "accuracy": mean(accuracies[winner.architecture]),
            "accuracies": accuracies[winner.architecture],
            "baseline": {
                "architecture": _shown(baseline),
                "parameters": baseline.parameters,
                "accuracy": mean(accuracies[baseline.architecture]),
                "accuracies": accuracies[baseline.architecture],
                "kind": baseline.proposed_by,
            },
            "metric": self.f.task.units.metric,
            "figures": (RunFolder(place).result or {}).get("figures", {}),
            "difference": apart.mean,
            "interval": [apart.low, apart.high],
            "level": apart.level,
            "better": better,
            "take": _shown(winner if better else baseline),
            "trained": trained,
            "taken_from": _split(taken.architecture)[0],
            "proposed_by": winner.proposed_by,
            "also_proposed_by": list(winner.also),
            "trainings": sum(key.startswith("training ") for key in self.journal),
            "seconds": round(self.f.clock(), 2),
            "budget": self.budget.seconds,
            "epochs": epochs,
            "examples": self.plan.examples,
            "rows": len(self.data.train_y),
            "recipe": asdict(self.recipe),
            "recipes": [{**asdict(recipe), "accuracy": accuracy} for recipe, accuracy in self.tried],
            "race": self._told_race(race),
            "front": [asdict(point) for point in self._front(race)],
            "target": self._target(epochs),
            "searches": [f"searches/{self.number}-{k}" for k in range(self.plan.searches)],
            "legs": self.number + 1,
        }
        return {**result, "sentence": sentence(result)}

    def _target(self, epochs: int) -> dict[str, Any]:
        """The training that was meant, and whether the answer was decided by it."""
        size = {"epochs": epochs, "size": dict(self.s.size), "examples": self.plan.examples}
        if self.s.target is None:
            return {"preset": None, **size, "reached": True}
        return {"preset": self.s.target, "decided_at": size, "size": self.f.limit_size, "reached": False}

    def _told_race(self, race: Race) -> dict[str, Any]:
        lines = [
            {
                "architecture": _shown(c),
                "proposed_by": c.proposed_by,
                "also": list(c.also),
                "control": c.control,
                "parameters": c.parameters,
                "accuracies": [
                    a if math.isfinite(a := race.accuracy(c.architecture, rung)) else None
                    for rung in range(len(self.plan.rungs))
                ],
                "left": None if (left := race.left.get(c.architecture)) is None else asdict(left),
            }
            for c in race.candidates.values()
        ]
        return {
            "rungs": list(self.plan.rungs),
            "lines": lines,
            "agreements": [asdict(a) for a in race.agreements],
            "seed_deviation": race.seed_deviation(),
        }

    def _front(self, race: Race) -> list[Point]:
        """Every candidate with the accuracy it would have on the last rung.

        From one rung to the next a candidate gains what those gained on average that were trained on both.
        """
        last = race.rung
        gains = [0.0] * (last + 1)
        for rung in range(last):
            both = [
                race.accuracy(c.architecture, rung + 1) - race.accuracy(c.architecture, rung)
                for c in race.ranked(rung + 1)
            ]
            gains[rung] = mean(both) if both else 0.0
        points = []
        for candidate in race.candidates.values():
            reached = [r for r in range(last + 1) if math.isfinite(race.accuracy(candidate.architecture, r))]
            if reached and _split(candidate.architecture)[0] == SPACE:
                at = reached[-1]
                latency = candidate.latency
                points.append(
                    Point(
                        candidate.architecture,
                        candidate.parameters,
                        self.f.latency(self.read(candidate.architecture)) if latency is None else latency,
                        race.accuracy(candidate.architecture, at) + sum(gains[at:last]),
                        self.plan.rungs[at],
                        candidate.proposed_by,
                    )
                )
        return front(points)


def sentence(result: Mapping[str, Any]) -> str:
    """The answer in one sentence."""
    low, high = result["interval"]
    base, level = result["baseline"], f"{result['level']:.0%}"
    units = Units(result.get("metric", "accuracy"))
    ends = f"{units.number(low)} to {units.number(high)} at {level}"
    name = {
        "reference": "the space's reference",
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


def _sendable(name: str, space: Space) -> Space | tuple[str, dict[str, Any]]:
    """A space as other processes can make it again."""
    return space if name == "module" else (name, space.options)


def _split(name: str) -> tuple[str, str]:
    """The key of a candidate's space, and its architecture there."""
    for key in (PLAIN, OWN, BOOSTING):
        if name == f"{key}:":
            return key, key
    return SPACE, name


def _is_searched(candidate: Candidate) -> bool:
    return _split(candidate.architecture)[0] == SPACE


def _shown(candidate: Candidate) -> str:
    return _split(candidate.architecture)[1]


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:10]


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _silent(event: str, values: Mapping[str, Any]) -> None:
    pass
