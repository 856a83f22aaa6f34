"""The black-box searches: what they pay, what they draw next, and the published figures they reproduce."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_table

from nasight.tables import RACERS, Table
from nasight.tables._kernel_model import Density, KernelModel
from nasight.tables._racers import reinforce
from nasight.tables._trials import Budget, BudgetSpent, RaceProblem, run_batch

PROBLEM = RaceProblem.of(synthetic_table(), "c10", 2_000)


@dataclass
class Ledger(Budget):
    """A budget that also writes down every training."""

    log: list[tuple[int, int]] = field(default_factory=list)

    def train(self, cell: int, epochs: int = 12) -> float:
        accuracy = super().train(cell, epochs)
        self.log.append((cell, epochs))
        return accuracy


def searched(name: str, seed: int = 0, budget: float = 2_000) -> Ledger:
    ledger = Ledger(RaceProblem(PROBLEM.sizes, PROBLEM.accuracy, PROBLEM.price, budget))
    with suppress(BudgetSpent):
        RACERS[name].search(ledger, np.random.default_rng(seed))
    return ledger


def options(cell: int) -> np.ndarray:
    return np.array(np.unravel_index(cell, PROBLEM.sizes))


def test_a_training_that_would_pass_the_budget_is_neither_paid_nor_seen() -> None:
    price = float(PROBLEM.price[12][5])
    budget = Budget(RaceProblem(PROBLEM.sizes, PROBLEM.accuracy, PROBLEM.price, 2 * price))
    budget.train(5)
    budget.train(5)
    with pytest.raises(BudgetSpent):
        budget.train(5)
    assert (budget.spent, budget.trainings) == (2 * price, 2), "to the last second, and the same cell twice"


def test_a_longer_training_counts_for_more_than_a_higher_accuracy() -> None:
    budget = Budget(PROBLEM)
    best, worst = int(PROBLEM.accuracy[12].argmax()), int(PROBLEM.accuracy[12].argmin())
    for cell, epochs in ((best, 12), (worst, 200), (best, 12)):
        budget.train(cell, epochs)
    assert [step[1] for step in budget.steps] == [best, worst]


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(list(RACERS)),
    seed=st.integers(0, 10**6),
    budget=st.floats(40, 5_000),
)
def test_every_method_pays_exactly_for_what_it_trained_and_stays_in_its_budget(
    name: str, seed: int, budget: float
) -> None:
    ledger = searched(name, seed, budget)
    paid = sum(float(PROBLEM.price[epochs][cell]) for cell, epochs in ledger.log)
    assert ledger.spent == pytest.approx(paid, rel=1e-12)
    assert ledger.spent <= budget
    assert ledger.trainings == len(ledger.log)
    longest = max(epochs for _, epochs in ledger.log)
    best = max(PROBLEM.accuracy[longest][cell] for cell, epochs in ledger.log if epochs == longest)
    assert ledger.steps[-1][2] == best


def test_bohb_pays_exactly_for_what_it_trained() -> None:
    ledger = searched("bohb")
    assert ledger.spent == pytest.approx(sum(PROBLEM.price[epochs][cell] for cell, epochs in ledger.log), rel=1e-12)
    assert 2_000 - PROBLEM.price[12].max() < ledger.spent <= 2_000


def test_evolution_changes_one_decision_of_one_of_the_ten_youngest() -> None:
    cells = [cell for cell, _ in searched("rea").log]
    assert len(cells) > 50
    for i in range(10, len(cells)):
        distances = [(options(cells[i]) != options(parent)).sum() for parent in cells[i - 10 : i]]
        assert 1 in distances


@pytest.mark.slow
def test_evolution_finds_better_cells_than_random_search_for_the_same_money() -> None:
    def found(name: str) -> float:
        return float(np.mean([t["steps"][-1][2] for t in run_batch(PROBLEM, 0, (name, tuple(range(100))))]))

    assert found("rea") > found("reinforce") > found("rs")


def test_reinforce_comes_to_draw_the_option_that_pays() -> None:
    ledger = Ledger(RaceProblem(PROBLEM.sizes, PROBLEM.accuracy, PROBLEM.price, 40_000))
    with suppress(BudgetSpent):
        reinforce(ledger, np.random.default_rng(0), lr=0.05)
    drawn = np.array([options(cell) for cell, _ in ledger.log])
    convolution = 2  # the third operation without `none`: skip, 1x1, 3x3, pool
    assert (drawn[:50] == convolution).mean() < 0.5
    assert (drawn[-50:] == convolution).mean() > 0.9


def test_reinforce_draws_options_uniformly_at_the_start() -> None:
    draws = []
    for seed in range(2_000):
        ledger = Ledger(RaceProblem(PROBLEM.sizes, PROBLEM.accuracy, PROBLEM.price, 30.0))
        with suppress(BudgetSpent):
            reinforce(ledger, np.random.default_rng(seed))
        draws += [option for cell, _ in ledger.log[:1] for option in options(cell)]
    shares = np.bincount(draws) / len(draws)
    np.testing.assert_allclose(shares, 0.25, atol=0.02)


def test_hyperband_trains_sixteen_then_the_best_of_them_then_two() -> None:
    log = searched("hyperband", budget=5_000).log
    assert [epochs for _, epochs in log[:19]] == [12] * 16 + [200] * 3
    first = [cell for cell, _ in log[:16]]
    assert PROBLEM.accuracy[12][log[16][0]] == max(PROBLEM.accuracy[12][first])


def test_halving_gives_half_of_its_budget_to_each_length_of_training() -> None:
    ledger = searched("sh", budget=10_000)
    short = [cell for cell, epochs in ledger.log if epochs == 12]
    long = [cell for cell, epochs in ledger.log if epochs == 200]
    assert sum(PROBLEM.price[12][short]) == pytest.approx(5_000, abs=30)
    assert sorted(set(PROBLEM.accuracy[12][short]))[-1] == PROBLEM.accuracy[12][long[0]]


def test_the_density_of_bohb_is_the_mean_of_its_kernels() -> None:
    sizes, rng = (2, 5, 3), np.random.default_rng(0)
    cells = rng.integers(30, size=9)
    found = Density.of(cells, sizes, least=0.1)
    seen = np.array([np.unravel_index(cell, sizes) for cell in cells])
    deviation = seen.std(axis=0)
    h = [min(max(1.06 * deviation[j] * 9 ** (-1 / 7), 0.1), 1 - 1 / sizes[j]) for j in range(3)]
    for cell in range(30):
        x = np.unravel_index(cell, sizes)
        kernels = [np.prod([1 - h[j] if x[j] == row[j] else h[j] / (sizes[j] - 1) for j in range(3)]) for row in seen]
        assert found.values[cell] == pytest.approx(np.mean(kernels), rel=1e-12)
    assert found.values.sum() == pytest.approx(1)


def test_bohb_has_a_model_after_14_trainings_of_a_rung_and_the_highest_one_proposes() -> None:
    model = KernelModel(PROBLEM.sizes, np.random.default_rng(0), rungs=2)
    for cell in range(13):
        model.learn(cell, 0, float(cell))
    assert model.models == [None, None]
    model.learn(13, 0, 13.0)
    assert model.models[0] is not None
    assert sorted(model.models[0][0].cells) == list(range(7, 14)), "the better half, while there are so few"
    for cell in range(100, 114):
        model.learn(cell, 1, float(cell))
    model.learn(50, 0, 99.0)
    assert len(model.seen[0]) == 14, "below a rung with a model nothing is learned"
    assert model.models[1] is not None
    assert set(model.models[1][0].cells) == set(range(107, 114))


def test_bohb_trains_27_cells_and_then_9_3_and_1_of_the_best_again() -> None:
    log = [cell for cell, _ in searched("bohb").log]
    rungs = [log[:27], log[27:36], log[36:39], log[39:40]]
    for below, above in pairwise(rungs):
        assert not Counter(above) - Counter(below), "only cells of the rung below"
        best = sorted((PROBLEM.accuracy[12][cell] for cell in below), reverse=True)[: len(above)]
        assert sorted((PROBLEM.accuracy[12][cell] for cell in above), reverse=True) == best


def test_the_model_of_bohb_proposes_better_cells_than_uniform_draws() -> None:
    logs = [[cell for cell, _ in searched("bohb", seed).log] for seed in range(5)]
    # The second bracket starts with 12 new proposals.
    assert np.mean([PROBLEM.accuracy[12][log[40:52]] for log in logs]) > PROBLEM.accuracy[12].mean() + 5


@pytest.mark.parametrize("name", RACERS)
def test_a_trial_depends_on_its_number_and_on_no_other_trial(name: str) -> None:
    together = run_batch(PROBLEM, 3, (name, (0, 1, 2)))
    assert run_batch(PROBLEM, 3, (name, (2,))) == together[2:]
    assert together[0]["steps"] != together[1]["steps"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "trials"), [("rs", 200), ("rea", 200), ("reinforce", 200), ("bohb", 200)])
def test_the_published_accuracies_come_out_within_one_spread(published: Table, name: str, trials: int) -> None:
    problem = RaceProblem.of(published, "c10", 12_000)
    found = [t["steps"][-1][1] for t in run_batch(problem, 0, (name, tuple(range(trials))))]
    for dataset, (mean, spread) in RACERS[name].published.items():
        assert abs(published.column(f"{dataset}_test200")[found].mean() - mean) < spread, dataset
