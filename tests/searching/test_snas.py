import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from nasight.data import load as load_data
from nasight.searching import METHODS, resolve
from nasight.searching._engine import Engine
from nasight.searching._relaxations import Concrete, StepContext, concrete
from nasight.searching._stages import spans
from nasight.spaces import Dropout, load

SPACE = load("nasbench201", none=False)


def test_the_gradient_of_a_concrete_sample_is_unbiased() -> None:
    """Two options: exactly by the integral over the noise, against the mean of 20,000 gradients of single samples."""
    tau, logit = 0.7, torch.tensor(0.4, dtype=torch.float64, requires_grad=True)

    def value(z: torch.Tensor) -> torch.Tensor:
        return (3 * z - 1).square() + z.exp()

    # With two options z = sigmoid((logit + L) / tau), L logistic: L = log(u / (1 - u)) at the middles of equal parts.
    u = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    (exact,) = torch.autograd.grad(value(((logit + u.logit()) / tau).sigmoid()).mean(), logit)

    n, generator = 20_000, torch.Generator().manual_seed(0)
    each = logit.detach().expand(n).clone().requires_grad_()
    log_theta = torch.stack([torch.nn.functional.logsigmoid(each), torch.nn.functional.logsigmoid(-each)], 1)
    (grads,) = torch.autograd.grad(value(concrete(log_theta, tau, generator)[:, 0]).sum(), each)
    assert abs(grads.mean() - exact) < 4 * grads.std() / math.sqrt(n)
    assert abs(exact) > 20 * grads.std() / math.sqrt(n)  # the test would notice a wrong sign or scale


def test_the_largest_weight_is_at_an_operation_as_often_as_theta_says() -> None:
    theta = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).repeat(6, 1)
    at = StepContext(SPACE, SPACE.groups(), 0.0, torch.Generator().manual_seed(0))
    drawn = [Concrete().weights({"operations": theta}, {"operations": theta.log()}, at) for _ in range(2000)]
    largest = torch.stack([d["operations"].argmax(1) for d in drawn]).flatten()
    shares = torch.bincount(largest, minlength=4) / len(largest)
    assert (shares - theta[0]).abs().max() < 0.0137  # three standard errors


def test_the_temperature_of_each_of_150_epochs_is_the_released_one() -> None:
    (span,) = spans(1, 150, 0)
    found = []
    for epoch in range(150):
        at = StepContext(SPACE, SPACE.groups(), 0.0, torch.Generator(), elapsed=span.elapsed(epoch))
        found.append(Concrete().temperature(at))
    # SNAS-Series@9a43adb, SNAS/utils.py: (1 - n / 150) (1 - 0.03) + 0.03. The scheduler is at n = 0 when it is made and
    # counts before each epoch, so the first epoch has n = 1. What it gave when it was run:
    ran = {0: 0.9935333333333333, 1: 0.9870666666666666, 75: 0.5085333333333333, 148: 0.03646666666666671, 149: 0.03}
    assert {epoch: found[epoch] for epoch in ran} == pytest.approx(ran, abs=1e-12)
    assert found == pytest.approx([(1 - n / 150) * (1 - 0.03) + 0.03 for n in range(1, 151)], abs=1e-12)


def test_a_search_with_snas_has_the_temperature_of_its_epoch(engine: Callable[..., Engine]) -> None:
    made, seen = engine("snas", epochs=4), list[float]()

    @dataclass(frozen=True)
    class Watched(Concrete):
        def temperature(self, context: StepContext) -> float:
            seen.append(super().temperature(context))
            return seen[-1]

    made.relaxation = Watched()
    for epoch in range(4):
        made.step(epoch, 0, learns=True).loss("weights", learn=True)
    assert seen == pytest.approx([1 - 0.97 * n / 4 for n in (1, 2, 3, 4)])


def test_weights_are_soft_at_first_and_nearly_one_architecture_at_the_end() -> None:
    theta = torch.full((6, 4), 0.25)

    def largest(elapsed: float) -> float:
        at = StepContext(SPACE, SPACE.groups(), 0.0, torch.Generator().manual_seed(1), elapsed=elapsed)
        drawn = [Concrete().weights({"operations": theta}, {"operations": theta.log()}, at) for _ in range(50)]
        return float(torch.stack([d["operations"].amax(1) for d in drawn]).mean())

    assert largest(0.0) < 0.75
    assert largest(1.0) > 0.97


def test_under_the_preset_paper_a_step_drops_edges_with_probability_0_3() -> None:
    space, row = load("darts"), METHODS["snas"]
    size, losses = {"channels": 4, "cells": 3}, dict[str, torch.Tensor]()
    for preset, p in (("paper", 0.3), ("tiny", 0.0)):
        found = resolve(row, space, data="digits", preset=preset, size=size, examples=64, batch_size=8, threads=1)
        assert found.drop_path == p
        made = Engine(found, space, load_data("digits"), row)
        x, y = made.loaders["weights"].batch(3, 1)
        weights = made.relaxed(3, generator=made.generator("relaxation", "weights", 3, 1), learn=True)
        drop = Dropout(p, made.generator("drop path", "weights", 3, 1)) if p else None
        by_hand = torch.nn.functional.cross_entropy(made.supernet(x, weights, drop_path=drop), y)
        losses[preset] = made.step(3, 1, learns=True).loss("weights", learn=True, record=False)
        assert torch.equal(losses[preset], by_hand)
