from collections.abc import Callable

import pytest
import torch

from nasight.searching import Run
from nasight.searching._engine import Engine
from nasight.searching._questions import Questions
from nasight.spaces import load


def test_a_step_moves_the_controller_towards_what_beat_the_moving_baseline(engine: Callable[..., Engine]) -> None:
    """One step's gradient against credit * log p, differentiated by itself."""
    made = engine("enas")
    made.memory["baseline"] = 0.05
    answers = made.policy.sample(4, made.generator("answers", 0, 0))
    _, accuracies = made.step(0, 0, learns=True).scores(answers, "architecture")
    baseline = 0.99 * 0.05 + 0.01 * float(accuracies.mean())
    log_prob, entropy = made.policy.likelihood(answers)
    expected = torch.autograd.grad(
        -((accuracies - baseline) * log_prob).mean() - 1e-4 * entropy.mean(),
        list(made.params.values()),
        materialize_grads=True,
    )
    made.objective.architecture_step(made.step(0, 0, learns=True))
    assert made.memory["baseline"] == pytest.approx(baseline)
    assert all(torch.allclose(p.grad, e, atol=1e-7) for p, e in zip(list(made.params.values()), expected, strict=True))


@pytest.mark.slow
def test_the_controller_learns_to_draw_the_cell_that_is_rewarded(engine: Callable[..., Engine]) -> None:
    """Reward: the share of 3x3 convolutions, in place of the accuracy."""
    made = engine("enas", arch_lr=0.03)
    scores = lambda answers, _: (torch.zeros(len(answers)), (answers == 2).float().mean(1))  # noqa: E731
    for step in range(200):
        at = made.step(0, step, learns=True)
        at.scores = scores  # type: ignore[method-assign]
        made.objective.architecture_step(at)
    assert float(made.weights()["operations"][:, 2].mean()) > 0.6
    assert made.memory["baseline"] > 0.35


@pytest.mark.parametrize("space", ["nasbench201", "darts", "nasbench1shot1-2", "mlp"])
def test_every_answer_is_an_architecture_and_the_weights_are_simplices(
    space: str, engine: Callable[..., Engine]
) -> None:
    size = {"width": 8} if space == "mlp" else {"channels": 4, "cells": 3 if space == "darts" else 1}
    made = engine("enas", space, size=size)
    generator = torch.Generator().manual_seed(0)
    assert all(made.policy.architecture(a) in made.space for a in made.policy.sample(50, generator))
    weights = made.weights()
    for group in made.groups:
        for row in group.split(weights[group.name]):
            assert float(row.sum()) == pytest.approx(1, abs=1e-5)
            assert float(row.min()) >= 0


@pytest.mark.parametrize("space", ["nasbench201", "darts", "nasbench1shot1-1", "mlp"])
def test_the_questions_reach_every_architecture_once(space: str) -> None:
    where = load(space)
    sizes = torch.tensor(Questions(where).group.sizes, dtype=torch.float64)
    assert float(sizes.prod()) == pytest.approx(len(where))


def test_in_darts_different_answers_are_different_cells() -> None:
    questions, generator = Questions(load("darts")), torch.Generator().manual_seed(0)
    sizes = questions.group.sizes
    answers = {tuple(int(torch.randint(k, (), generator=generator)) for k in sizes) for _ in range(300)}
    one = next(iter(answers))
    answers |= {(*one[:i], (one[i] + 1) % k, *one[i + 1 :]) for i, k in enumerate(sizes)}
    assert len({questions.architecture(a) for a in answers}) == len(answers)


def test_the_result_is_one_of_the_controller_s_draws(tiny: Callable[..., Run]) -> None:
    run = tiny(method="enas", candidates=5)
    assert run.architecture in run.space
    assert len(run.history[-1]["entropies"]) == 6
