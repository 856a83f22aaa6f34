"""EigenNAS's Algorithm 1 on a small problem: the steps are SGD's, and the bound is above the error."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasight.errors import RequestError
from nasight.kernels import algorithm_1
from nasight.spaces.mlp import Mlp


def problem(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(seed).normal(size=(number, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] + rows[:, 1] > 0, 1, -1)


def test_the_first_step_is_that_of_sgd_on_the_loss_of_the_first_example() -> None:
    (x, y), test = problem(2, 0), problem(20, 1)
    found = [algorithm_1(x, y, test, architecture="relu,tanh/1", width=16, step=0.3, seed=s) for s in range(6)]
    first = next(f for f in found if f.iterate == 1)
    start = algorithm_1(x, y, test, architecture="relu,tanh/1", width=16, step=0.0, seed=found.index(first)).network
    value = start(torch.as_tensor(x[:1]))[0, 0]
    slope = -y[0] * torch.sigmoid(-y[0] * value)  # of log(1 + exp(-y f))
    for p, q in zip(start.parameters(), first.network.parameters(), strict=True):
        (grad,) = torch.autograd.grad(value, p, retain_graph=True)
        torch.testing.assert_close(p - 0.3 * slope.detach() * grad, q)


def test_an_epoch_learns_and_theorem_3_is_above_the_error_of_the_mean_iterate() -> None:
    (x, y), test = problem(60, 0), problem(200, 1)
    found = algorithm_1(x, y, test, architecture="relu,relu/0", width=128, step=0.05)
    assert len(found.errors) == len(found.losses) == 60
    assert np.mean(found.errors[-10:]) < np.mean(found.errors[:10]) - 0.05
    assert found.error == found.errors[found.iterate]
    assert found.holds
    assert found.expected_error == pytest.approx(np.mean(found.errors))
    # y^T K^-1 y is at most y^T y / lambda_min, so the bound by it is the lower one.
    assert found.bound.values["by y^T K^-1 y"] <= found.bound.upper  # type: ignore[operator]
    published = algorithm_1(x, y, test, architecture="relu,relu/0", width=128)
    assert published.step == pytest.approx(published.bound.values["step size"] * 128)


def test_without_an_architecture_the_best_candidate_by_the_score_is_trained() -> None:
    x, y = problem(6, 0)
    found = algorithm_1(x, y, (x, y), layers=3, candidates=3, width=16)
    assert Mlp(3).parse(found.architecture) in Mlp(3)
    with pytest.raises(RequestError, match="a label of -1 or \\+1 each"):
        algorithm_1(x, y + 1, (x, y))
