"""A cluster on paper, and searches on it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nasight.errors import RequestError
from nasight.spaces.nasbench201 import NasBench201
from nasight.studies import simulate
from nasight.studies.finding import FindPolicy, TableFind
from nasight.tables import ClusterSettings, Job, Policy, RaceProblem, Table, run_on_cluster

WORTH = {"none": 0.0, "skip_connect": 2.0, "avg_pool_3x3": 1.0, "nor_conv_1x1": 4.0, "nor_conv_3x3": 8.0}
PERFECT = ClusterSettings(1, slow=0.0, life=np.inf, latency=0.0)


class Fixed(Policy):
    """Hands out these trainings and keeps what it is told."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs, self.told = list(jobs), list[Job]()

    def ask(self) -> Job | None:
        return self.jobs.pop(0) if self.jobs else None

    def tell(self, job: Job, accuracy: float) -> None:
        self.told.append(job)


@cache
def made_table() -> Table:
    """Every edge adds its own worth, and short trainings are noisy."""
    space = NasBench201()
    worth = np.array([sum(WORTH[option] for _, option in arch) for arch in space])
    noisy = 40 + worth + np.random.default_rng(0).normal(0, 2, len(worth))
    columns = {"params_M": worth / 100, "c10_val12": noisy, "c10_val200": 44 + worth, "c10_test200": 45 + worth}
    return Table(space, {**columns, "c10_traintime200_s": 1_000 + 50 * worth})


def problem(seconds: float = 1_000.0) -> RaceProblem:
    accuracy = np.array([50.0, 60.0, 70.0, 80.0])
    price = np.array([10.0, 20.0, 30.0, 40.0])
    return RaceProblem((4,), {12: accuracy, 200: accuracy + 5}, {12: price, 200: 10 * price}, seconds)


def test_one_perfect_worker_takes_the_sum_of_the_prices_and_four_take_the_longest():
    jobs = [(cell, 12) for cell in range(4)]
    rng = np.random.default_rng(0)
    alone = run_on_cluster(Fixed(jobs), problem(), PERFECT, rng)
    assert (alone.seconds, alone.trainings, alone.busy) == (100.0, 4, 100.0)
    four = ClusterSettings(4, slow=0.0, life=np.inf, latency=0.0)
    together = run_on_cluster(Fixed(jobs), problem(), four, rng)
    assert together.seconds == 40.0
    assert [cell for _, cell, _ in together.steps] == [0, 1, 2, 3]


def test_a_longer_training_counts_for_more_than_a_better_short_one():
    found = run_on_cluster(Fixed([(3, 12), (0, 200)]), problem(), PERFECT, np.random.default_rng(0))
    assert [(cell, accuracy) for _, cell, accuracy in found.steps] == [(3, 80.0), (0, 55.0)]


def test_a_training_that_dies_with_its_worker_is_done_again_and_told_once():
    mortal = ClusterSettings(2, slow=0.0, life=40.0, repair=5.0)
    policy = Fixed([(cell % 4, 12) for cell in range(60)])
    found = run_on_cluster(policy, problem(1e6), mortal, np.random.default_rng(1))
    assert found.lost > 10
    assert found.trainings == len(policy.told) == 60


def test_no_training_is_begun_that_would_pass_the_limit():
    found = run_on_cluster(Fixed([(3, 12)] * 10), problem(100.0), PERFECT, np.random.default_rng(0))
    assert (found.trainings, found.seconds) == (2, 80.0)


@pytest.mark.parametrize("searches", [0, 2])
def test_a_find_on_a_table_ends_and_promotes_only_what_led_the_first_rung(searches):
    table = made_table()
    known = TableFind(table.column("params_M"), 7, tuple(range(100, 140)) if searches else (), searches, 50.0)
    race = known.priced(RaceProblem.of(table, "c10", 60_000.0))
    settings = ClusterSettings(8, slow=0.0, life=np.inf)
    policy = FindPolicy(race, np.random.default_rng(0), known, settings)
    found = run_on_cluster(policy, race, settings, np.random.default_rng(1))
    assert policy.ask() is None
    assert found.trainings > 0.95 * policy.race.places[0]
    first = {c.architecture: policy.race.accuracy(c.architecture, 0) for c in policy.race.ranked(0)}
    promoted = [c.architecture for c in policy.race.ranked(1) if not c.control]
    assert promoted
    others = [accuracy for name, accuracy in first.items() if name not in promoted and name != "7"]
    assert min(first[name] for name in promoted) >= max(others)
    assert ("search" in {c.proposed_by for c in policy.race.candidates.values()}) == bool(searches)


def test_more_workers_train_more_and_end_at_no_worse_cells_and_a_seed_repeats_itself():
    found, again = (
        simulate(["find", "rs", "rea", "hyperband"], table=made_table(), workers=[1, 50], trials=4, budget=15_000)
        for _ in range(2)
    )
    assert found == again
    for name in ("rs", "rea"):
        one, many = (s for s in found.standings if s.method == name)
        assert many.trainings > 40 * one.trainings
        assert many.test[0] >= one.test[0]


def test_an_unknown_method_and_a_cluster_without_workers_are_refused():
    with pytest.raises(RequestError, match="no method 'xyz' runs on a cluster"):
        simulate(["xyz"], table=made_table(), workers=[1])
    with pytest.raises(RequestError, match="at least 1 worker"):
        simulate(["rs"], table=made_table(), workers=[0], trials=1)
