from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nasight.searching import METHODS, Run
from nasight.searching._engine import Engine
from nasight.searching._engine_step import EngineStep
from nasight.searching._phase import ReinforcePhase
from nasight.searching._questions import Questions
from nasight.spaces import load

ACCURACIES = torch.linspace(0.1, 0.9, 20)


def phase_step(
    made: Engine, objective: ReinforcePhase, accuracies: Tensor | Callable[[Tensor], Tensor], epoch: int, index: int = 0
) -> EngineStep:
    """A step of the phase, told that these are the accuracies."""
    at = made.step(epoch, made.steps + index, learns=True)
    told = accuracies if callable(accuracies) else lambda _: accuracies
    at.evaluated = lambda answers, _: (torch.zeros(len(answers)), told(answers))  # type: ignore[method-assign]
    objective.phase_step(at)
    return at


def by_hand(made: Engine, at: EngineStep, baseline: float | None) -> Tensor:
    """The gradient of 20 samples, one after the other, each loss over 20; one long vector."""
    total, theta = 0.0, list(made.params.values())
    for answers, accuracy in zip(made.policy.sample(20, at.generator("answers")), ACCURACIES, strict=True):
        log_prob, entropy = made.policy.likelihood(answers[None])
        reward = accuracy + 1e-4 * entropy
        expected = accuracy if baseline is None else baseline - 0.01 * (baseline - reward)
        loss = -log_prob * (reward - expected) / 20
        total += torch.cat([g.flatten() for g in torch.autograd.grad(loss.sum(), theta, materialize_grads=True)])
    return total


def gradient(made: Engine) -> Tensor:
    return torch.cat([p.grad.flatten() for p in made.params.values()])


@pytest.mark.parametrize("baseline", [None, 0.3])
def test_a_step_of_the_phase_is_that_of_20_samples_by_hand(engine: Callable[..., Engine], baseline: float) -> None:
    made = engine("enas")
    if baseline is not None:
        made.memory["last"] = baseline
    at = made.step(0, made.steps, learns=True)
    expected = by_hand(made, at, baseline)
    phase_step(made, ReinforcePhase(), ACCURACIES, epoch=0)
    assert torch.allclose(gradient(made), expected, atol=1e-7, rtol=1e-5)
    # In the first epoch nothing but the entropy is left, and it is small.
    assert (float(expected.norm()) < 0.01) == (baseline is None)


def test_the_gradient_of_the_phase_has_a_norm_of_at_most_5(engine: Callable[..., Engine]) -> None:
    made = engine("enas")
    made.memory["last"] = 0.3
    loud = made.step(0, made.steps, learns=True)
    direction = by_hand(made, loud, 0.3)
    phase_step(made, ReinforcePhase(clip=1e9), 1e5 * ACCURACIES, epoch=0)
    assert float(gradient(made).norm()) > 100
    made = engine("enas")
    made.memory["last"] = 0.3
    phase_step(made, ReinforcePhase(), 1e5 * ACCURACIES, epoch=0)
    assert float(gradient(made).norm()) == pytest.approx(5, rel=1e-4)
    made = engine("enas")
    made.memory["last"] = 0.3
    phase_step(made, ReinforcePhase(clip=1e-3), ACCURACIES, epoch=0)
    assert torch.allclose(gradient(made), direction * (1e-3 / direction.norm()), atol=1e-8)


def test_the_baseline_is_the_last_one_of_the_epoch_before(engine: Callable[..., Engine]) -> None:
    """Without the entropy, so that the reward is the accuracy."""
    made, objective = engine("enas"), ReinforcePhase(entropy=0.0)

    def told(last: float) -> Tensor:
        return torch.cat([torch.full((19,), 0.25), torch.tensor([last])])

    start = controller(made)
    phase_step(made, objective, told(0.4), epoch=0, index=0)
    phase_step(made, objective, told(0.5), epoch=0, index=1)
    # Its own accuracy is the baseline: no advantage, no move.
    assert torch.equal(controller(made), start)
    assert made.memory["last"] == pytest.approx(0.5)
    phase_step(made, objective, told(0.7), epoch=1, index=0)
    assert made.memory["last"] == pytest.approx(0.99 * 0.5 + 0.01 * 0.7)
    phase_step(made, objective, told(0.9), epoch=1, index=1)
    assert made.memory["baseline"] == pytest.approx(0.5)
    assert made.memory["last"] == pytest.approx(0.504)
    phase_step(made, objective, told(0.1), epoch=2, index=0)
    assert made.memory["baseline"] == pytest.approx(0.504)
    assert made.memory["last"] == pytest.approx(0.99 * 0.504 + 0.001)
    assert not torch.equal(controller(made), start)


def controller(made: Engine) -> Tensor:
    """All parameters of the controller."""
    return torch.cat([p.detach().flatten() for p in made.params.values()])


def test_the_phase_has_50_steps_at_the_published_length_and_is_shorter_in_proportion() -> None:
    # 25,000 images in batches of 128: 196 with the short one at the end, 195 without it, as here.
    assert [ReinforcePhase().phase(steps) for steps in (196, 195, 98, 50, 4, 1)] == [50, 50, 25, 13, 1, 1]


def test_every_draw_of_the_phase_has_its_own_batch_and_leaves_the_shared_weights(engine: Callable[..., Engine]) -> None:
    made = engine("enas", "mlp", size={"width": 4}, batch_size=8)
    loader, asked = made.loaders["architecture"], list[tuple[int, int]]()
    make = loader.batch
    loader.batch = lambda *at: asked.append(at) or make(*at)  # type: ignore[func-returns-value,method-assign]
    shared = {name: value.clone() for name, value in made.supernet.state_dict().items()}
    assert (made.steps, made.phase, made.length) == (10, 3, 13)
    for epoch in (0, 1):
        for index in range(made.steps, made.length):
            made.advance(epoch, index)
    assert asked == [(number // 10, number % 10) for number in range(2 * 3 * 20)]
    assert made.tallies["architecture"].count == 2 * 3 * 20 * 8
    assert made.tallies["weights"].count == 0
    assert made.supernet.training
    assert all(torch.equal(value, shared[name]) for name, value in made.supernet.state_dict().items())


def test_the_controller_rests_while_the_shared_weights_learn_and_in_warm_up(engine: Callable[..., Engine]) -> None:
    made = engine("enas", warmup=1)
    start = controller(made)
    for index in range(made.length):
        made.advance(0, index)
    assert made.tallies["weights"].count == made.steps * 32
    made.advance(1, 0)
    assert torch.equal(controller(made), start)
    made.advance(1, made.steps)
    assert not torch.equal(controller(made), start)


def test_the_published_cosine_swings_with_a_period_of_20_epochs(engine: Callable[..., Engine]) -> None:
    made, rates = engine("enas", epochs=41, schedule_epochs=10, lr=0.05, lr_min=0.0005), []
    for epoch in (0, 5, 10, 15, 20, 30):
        made.set_epoch(epoch)
        rates.append(made.weight_lr)
    assert rates == pytest.approx([0.05, 0.02525, 0.0005, 0.02525, 0.05, 0.0005])


def test_the_rate_of_the_controller_is_that_of_the_steps_of_the_phase(engine: Callable[..., Engine]) -> None:
    made = engine("enas", batch_size=8)
    assert made.arch_lr == pytest.approx(1e-3 * (12_500 / (4 * made.phase)) ** 0.5)


def test_runs_of_version_0_1_keep_their_objective() -> None:
    old = METHODS["enas"].objective("reinforce")
    assert old.phase(196) == 0
    assert METHODS["enas"].objective(None).name == "reinforce-phase"


def test_a_step_moves_the_controller_towards_what_beat_the_moving_baseline(engine: Callable[..., Engine]) -> None:
    """One step's gradient against credit * log p, differentiated by itself."""
    made = engine("enas", objective="reinforce")
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
def test_the_phase_learns_to_draw_the_cell_that_is_rewarded(engine: Callable[..., Engine]) -> None:
    """Reward: the share of 3x3 convolutions, in place of the accuracy."""
    made = engine("enas", arch_lr=0.03)
    for step in range(100):
        phase_step(made, ReinforcePhase(), lambda answers: (answers == 2).float().mean(1), *divmod(step, 10))
    assert float(made.weights()["operations"][:, 2].mean()) > 0.6


@pytest.mark.slow
def test_the_controller_learns_to_draw_the_cell_that_is_rewarded(engine: Callable[..., Engine]) -> None:
    """Reward: the share of 3x3 convolutions, in place of the accuracy."""
    made = engine("enas", objective="reinforce", arch_lr=0.03)
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
    assert run.settings.objective == "reinforce-phase"
    assert all(0 <= row["arch_accuracy"] <= 100 for row in run.history)
