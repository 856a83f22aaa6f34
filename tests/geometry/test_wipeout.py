import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.errors import RunError
from nasight.geometry import ExpertAdvice, ExponentiatedGradient, Wipeout


def run(grads: torch.Tensor, lr: float) -> list[torch.Tensor]:
    """The weights after every step, under gradients (steps, options) within a bound of 1."""
    theta = torch.full((1, grads.shape[1]), 1 / grads.shape[1], requires_grad=True)
    advice, seen = ExpertAdvice([theta], lr, bound=1.0, steps=len(grads)), []
    for grad in grads:
        theta.grad = grad[None].clone()
        advice.step()
        seen.append(theta.detach()[0].clone())
    return seen


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 30), st.floats(0.01, 3.0))
def test_no_option_is_wiped_out_that_could_still_win(seed: int, options: int, steps: int, lr: float) -> None:
    """Whatever is wiped out would lose even if every gradient from then on were the best for it."""
    grads = 2 * torch.rand(steps, options, generator=torch.Generator().manual_seed(seed)) - 1
    rewards = -grads.double().cumsum(0)
    for t, weights in enumerate(run(grads, lr)):
        left = steps - t - 1
        best = rewards[t].max()
        for option in range(options):
            could_win = float(rewards[t, option] + left - (best - left)) > 1e-3
            if could_win:
                assert weights[option] > 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 30), st.floats(0.01, 3.0))
def test_every_option_that_can_no_longer_win_is_wiped_out(seed: int, options: int, steps: int, lr: float) -> None:
    grads = 2 * torch.rand(steps, options, generator=torch.Generator().manual_seed(seed)) - 1
    rewards = -grads.double().cumsum(0)
    for t, weights in enumerate(run(grads, lr)):
        lost = rewards[t] + 2 * (steps - t - 1) < rewards[t].max() - 1e-2 * steps / min(lr, 1.0)
        assert bool((weights[lost] == 0).all())


@pytest.mark.slow
def test_the_option_that_would_win_without_wipe_out_wins_with_it() -> None:
    for seed in range(50):
        grads = 2 * torch.rand(40, 4, generator=torch.Generator().manual_seed(seed)) - 1
        last = run(grads, 0.5)[-1]
        assert int(last.argmax()) == int((-grads.sum(0)).argmax())
        assert int((last > 0).sum()) == 1


def test_an_option_far_below_the_smallest_float_can_still_come_back() -> None:
    """300 steps against it, then 301 for it: with a rate of 1 its weight passes through exp(-600)."""
    against, favor = torch.tensor([1.0, -1.0]), torch.tensor([-1.0, 1.0])
    weights = run(torch.stack([against] * 300 + [favor] * 301), 1.0)
    assert 0 < float(weights[299][0]) < 1e-29
    assert weights[-1].tolist() == [1.0, 0.0]


def test_until_something_is_wiped_out_the_steps_are_exponentiated_gradient() -> None:
    grads = 0.2 * torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0)).clamp(-5, 5)
    one, two = (torch.full((3, 4), 0.25, requires_grad=True) for _ in range(2))
    advice, plain = ExpertAdvice([one], 0.3, bound=1.0, steps=1000), ExponentiatedGradient([two], 0.3, floor=0.0)
    for grad in grads:
        one.grad, two.grad = grad.clone(), grad.clone()
        advice.step()
        plain.step()
    assert torch.allclose(one, two, atol=1e-6)


def test_ragged_rows_are_wiped_out_row_by_row() -> None:
    theta = torch.tensor([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3], requires_grad=True)
    advice = ExpertAdvice([{"params": [theta], "sizes": (2, 3)}], 1.0, bound=1.0, steps=1)
    theta.grad = torch.tensor([1.0, -1.0, 0.0, 0.0, 0.0])
    advice.step()
    assert torch.allclose(theta.detach(), torch.tensor([0.0, 1.0, 1 / 3, 1 / 3, 1 / 3]))


def test_a_gradient_over_the_bound_is_refused() -> None:
    theta = torch.full((1, 2), 0.5, requires_grad=True)
    theta.grad = torch.tensor([[1.5, 0.0]])
    with pytest.raises(RunError, match=r"a gradient of 1.5 is over the bound 1 of wipe-out"):
        ExpertAdvice([theta], 1.0, bound=1.0, steps=3).step()


def test_the_default_rate_is_that_of_the_regret_bound() -> None:
    assert Wipeout(bound=2.0).default_lr(500) == pytest.approx(math.sqrt(2 * math.log(8) / 500) / 2)


def test_a_reloaded_optimizer_goes_on_to_the_bit() -> None:
    grads = 2 * torch.rand(20, 4, generator=torch.Generator().manual_seed(0)) - 1
    thetas, final = [torch.full((1, 4), 0.25, requires_grad=True) for _ in range(2)], []
    first = ExpertAdvice([thetas[0]], 0.7, bound=1.0, steps=20)
    for grad in grads[:10]:
        thetas[0].grad = grad[None].clone()
        first.step()
    second = ExpertAdvice([thetas[1]], 0.7, bound=1.0, steps=20)
    second.load_state_dict(first.state_dict())
    with torch.no_grad():
        thetas[1].copy_(thetas[0])
    for advice, theta in ((first, thetas[0]), (second, thetas[1])):
        for grad in grads[10:]:
            theta.grad = grad[None].clone()
            advice.step()
        final.append(theta.detach())
    assert torch.equal(*final)
