from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nasight.searching import METHODS, Run
from nasight.searching._engine import Engine
from nasight.searching._engine_step import EngineStep
from nasight.searching._judging import derive
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


def test_the_controller_begins_as_the_released_one_does(engine: Callable[..., Engine]) -> None:
    """PyTorch's default is 1 / sqrt(32); 0.1 is for what the released code draws anew."""
    params, near = engine("enas").params, {"start", "embedding", "output", "lstm_0"}
    assert near < params.keys()
    for name, value in params.items():
        bound, largest = 0.1 if name in near else 32**-0.5, float(value.detach().abs().max())
        assert largest <= bound, name
        # Of a hundred draws some are near the bound; the output has 4 biases.
        assert largest > 0.9 * bound or value.numel() == 4, name


def test_the_controller_is_torch_s_lstm_with_both_of_its_biases_moved(engine: Callable[..., Engine]) -> None:
    """The likelihood of two answers before and after three steps of Adam, beside nn.LSTM and nn.Linear."""
    made = engine("enas")
    geometry, params, groups = made.method.geometry, made.params, made.theta_groups
    lstm, output = nn.LSTM(32, 32, num_layers=2), nn.Linear(32, 4)
    start, words = (nn.Parameter(params[name].detach().clone()) for name in ("start", "embedding"))
    with torch.no_grad():
        output.weight.copy_(params["output"])
        output.bias.copy_(params["output_bias"])
        for layer in (0, 1):
            kernel, biases = params[f"lstm_{layer}"], params[f"lstm_{layer}_biases"]
            getattr(lstm, f"weight_ih_l{layer}").copy_(kernel[:, :32])
            getattr(lstm, f"weight_hh_l{layer}").copy_(kernel[:, 32:])
            getattr(lstm, f"bias_ih_l{layer}").copy_(biases[0])
            getattr(lstm, f"bias_hh_l{layer}").copy_(biases[1])
    answers = torch.tensor([[0, 1, 2, 0, 0, 1], [0, 0, 2, 0, 1, 0]])

    def log_prob() -> Tensor:
        read = torch.cat([start.expand(1, 2, -1), words[answers.T[:-1]]])
        each = (2.5 * (output(lstm(read)[0]) / 5).tanh()).log_softmax(-1)
        return each.gather(2, answers.T[:, :, None]).sum((0, 2))

    ours = geometry.optimizer(params, groups, lr=0.01)
    theirs = torch.optim.Adam(
        [start, words, *lstm.parameters(), *output.parameters()], 0.01, betas=(0.0, 0.999), eps=1e-3
    )
    seen = list[Tensor]()
    for _ in range(4):
        found, expected = geometry.likelihood(params, groups, answers)[0], log_prob()
        seen.append(found)
        assert torch.allclose(found, expected, atol=1e-5)
        for optimizer, loss in ((ours, -found.sum()), (theirs, -expected.sum())):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    # It has moved, so a bias left behind would be seen.
    assert float((found - seen[0]).detach().sum()) > 0.1


def test_every_draw_of_the_end_is_judged_on_rows_of_its_own(engine: Callable[..., Engine]) -> None:
    made = engine("enas", "mlp", size={"width": 4}, candidates=7, candidate_rows=8)
    held, seen = torch.cat([x for x, _ in made.validation]), list[Tensor]()
    make = made.passed
    made.passed = lambda x, *weights: seen.append(x) or make(x, *weights)  # type: ignore[func-returns-value,method-assign]
    derive(made, 4, candidates=7)
    assert [len(x) for x in seen] == [8] * 7
    rows = torch.cat(seen[:5])
    # 40 held-out rows are five batches: all of them once, then in another order.
    assert torch.equal(rows.unique(dim=0), held.unique(dim=0))
    assert not any(torch.equal(seen[5], x) for x in seen[:5])
    again = [made.candidate_batch(4, number)[0] for number in range(7)]
    assert all(map(torch.equal, seen, again))
    assert not torch.equal(made.candidate_batch(3, 0)[0], seen[0])
    same = engine("enas", "mlp", size={"width": 4}, candidates=7)
    assert same.candidate_batch(4, 0) is same.candidate_batch(3, 6)


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
