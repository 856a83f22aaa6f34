"""A find on a table: its proposers and its race, with trainings looked up and a cluster on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nasight.searching import Run
from nasight.studies.finding._plan import SEEDS
from nasight.studies.finding._proposers import from_searches, of_smaller_sizes
from nasight.studies.finding._race import Candidate, Entry, Outcome, Race
from nasight.tables import ClusterSettings, Job, Policy, RaceProblem, Table

SEARCH = 0
"""In place of epochs: a weight-sharing search."""
LENGTHS = (12, 200)
"""Epochs of the two rungs: what the table has."""
# Shares of the worker seconds that the two rungs of the race have; the rest is for the answer.
RUNG_SHARES = (0.35, 0.35)
# Shares of the first rung's places.
SEARCHED, LARGEST, MUTATED = 0.5, 0.05, 0.2


@dataclass(frozen=True)
class TableFind:
    """What a find on a table knows beforehand: sizes of architectures, and what searches propose and cost.

    `proposals` are places in the table, the likeliest first; each search takes one worker `search_seconds`.
    """

    parameters: np.ndarray
    reference: int
    proposals: tuple[int, ...] = ()
    searches: int = 0
    search_seconds: float = 0.0

    @classmethod
    def of(cls, table: Table, runs: Sequence[Run] = (), number: int = 200) -> TableFind:
        """From a table and finished searches of its space; without searches, chance and size propose."""
        sizes = table.column("params_M")
        reference = table.index(table.space.reference)
        if not runs:
            return cls(sizes, reference)
        space, count = runs[0].space, table.space.parameters((3, 32, 32), 10)
        found = from_searches(space, runs, lambda arch: True, number)
        counted = [count(proposal.architecture) for proposal in found]
        found += of_smaller_sizes(space, runs, lambda arch: True, count, counted, max(1, number // 4))
        places = dict.fromkeys(table.index(space.format(p.architecture)) for p in found)
        seconds = float(np.mean([run.result["seconds"] for run in runs]))
        return cls(sizes, reference, tuple(places), len(runs), seconds)

    def priced(self, problem: RaceProblem) -> RaceProblem:
        """The problem with searches as a further kind of work, which shows no accuracy."""
        none = np.full(len(self.parameters), -np.inf)
        price = np.full(len(self.parameters), self.search_seconds)
        return RaceProblem(
            problem.sizes, {**problem.accuracy, SEARCH: none}, {**problem.price, SEARCH: price}, problem.seconds
        )


class FindPolicy(Policy):
    """Proposals, two rungs of a race and the trainings of the answer, handed to whoever is free.

    The race is that of `nasight find` where epochs count and not time. A rung waits for its last training, as it does
    there: a slow worker holds all others up, which is what a simulation is for.
    """

    def __init__(
        self, problem: RaceProblem, rng: np.random.Generator, known: TableFind, cluster: ClusterSettings
    ) -> None:
        self.problem, self.rng, self.known = problem, rng, known
        budget = problem.seconds * cluster.workers
        means = [float(problem.price[epochs].mean()) for epochs in LENGTHS]
        first, second = (int(share * budget / mean) for share, mean in zip(RUNG_SHARES, means, strict=True))
        # Half of the table is as many as chance can draw without looking at the same cells again and again.
        self.first = max(4, min(first, len(known.parameters) // 2))
        places = [self.first, min(second, self.first // 2)]
        self.race = Race(places if places[1] >= 2 else places[:1], seeds=1)
        self.race.enter([self._candidate(known.reference, "reference", control=True)])
        self.searching = known.searches
        self.to_search = list(range(known.searches))
        self.mutated = int(MUTATED * self.first)
        self.queue = list[tuple[Job, Entry | None]]()
        self.running: dict[Job, list[Entry | None]] = {}
        self.outstanding = 0
        self.stage = 0
        self._propose_known()

    def ask(self) -> Job | None:
        if self.to_search:
            return self._hand((self.to_search.pop(), SEARCH), None)
        while not self.queue and not self.outstanding:
            if not self._advance():
                return None
        if not self.queue:
            return None
        return self._hand(*self.queue.pop(0))

    def tell(self, job: Job, accuracy: float) -> None:
        entry = self.running[job].pop()
        self.outstanding -= 1
        if job[1] == SEARCH:
            self.searching -= 1
            if not self.searching:
                self._enter(self.known.proposals, int(SEARCHED * self.first), "search")
                self._fill()
        elif entry is not None:
            self.race.tell(entry, Outcome(accuracy))

    def _hand(self, job: Job, entry: Entry | None) -> Job:
        self.running.setdefault(job, []).append(entry)
        self.outstanding += 1
        return job

    def _propose_known(self) -> None:
        """Chance and size propose at once; searches when they have ended."""
        largest = np.argsort(-self.known.parameters, kind="stable")[: max(1, int(LARGEST * self.first))]
        self._enter(largest.tolist(), len(largest), "parameters")
        searched = int(SEARCHED * self.first) if self.known.searches else 0
        drawn = [self.problem.draw(self.rng)[1] for _ in range(self.first)]
        self._enter(drawn, self.first - searched - self.mutated - len(largest), "random")
        self._fill()

    def _enter(self, places: Sequence[int], number: int, by: str) -> None:
        new = [place for place in dict.fromkeys(places) if str(place) not in self.race.candidates][: max(number, 0)]
        self.race.enter([self._candidate(place, by) for place in new])

    def _candidate(self, place: int, by: str, *, control: bool = False) -> Candidate:
        return Candidate(str(place), by, int(1e6 * self.known.parameters[place]), control=control)

    def _fill(self) -> None:
        """Queue what the rung asks for and nobody has."""
        handed = {entry for entries in self.running.values() for entry in entries}
        handed |= {entry for _, entry in self.queue}
        for entry in self.race.ask():
            if entry not in handed:
                self.queue.append(((int(entry.architecture), LENGTHS[entry.rung]), entry))

    def _advance(self) -> bool:
        """The next stage: mutations of the leaders, the second rung, the answer; False: all is done."""
        self.stage += 1
        if self.stage == 1:
            self._mutate()
        elif self.stage == 2 and len(self.race.places) > 1:
            self.race.close()
        elif self.stage == 3:
            self._answer()
        elif self.stage > 3:
            return False
        if self.stage < 3:
            self._fill()
        return True

    def _mutate(self) -> None:
        leaders = [c for c in self.race.ranked() if not c.control][:3]
        near = []
        for leader in leaders:
            options = [int(i) for i in np.unravel_index(int(leader.architecture), self.problem.sizes)]
            for decision, size in enumerate(self.problem.sizes):
                near += [
                    self.problem.cell([*options[:decision], other, *options[decision + 1 :]])
                    for other in range(size)
                    if other != options[decision]
                ]
        self.rng.shuffle(near)
        self._enter(near, self.mutated, "mutation")
        # Places that nobody filled are chance's.
        left = self.first + 1 - len(self.race.candidates)
        self._enter([self.problem.draw(self.rng)[1] for _ in range(2 * max(left, 0))], left, "random")

    def _answer(self) -> None:
        """Winner and baseline with three seeds each: the proof that others do without."""
        winner = self.race.ranked()[0]
        for place in (int(winner.architecture), self.known.reference):
            self.queue += [((place, LENGTHS[-1]), None)] * SEEDS
