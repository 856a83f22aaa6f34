from collections.abc import Callable
from itertools import pairwise, product
from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nasight.searching import METHODS, resolve
from nasight.searching._engine import Engine
from nasight.searching._selection import Likeliest, products
from nasight.spaces import load


def test_shared_weights_see_uniform_templates_whatever_theta_is_and_the_evaluator_the_mixture(
    engine: Callable[..., Engine],
) -> None:
    made = engine("setn")
    with torch.no_grad():
        next(iter(made.params.values())).copy_(torch.tensor([5.0, 0.0, 0.0, 0.0]).repeat(6, 1))
    drawn = torch.stack(
        [made.relaxed(0, generator=made.generator("t", i), learn=False)["operations"] for i in range(1000)]
    )
    assert set(drawn.flatten().tolist()) == {0.0, 1.0}
    assert (drawn.mean((0, 1)) - 0.25).abs().max() < 0.017  # three standard errors
    mixed = made.relaxed(0, generator=made.generator("t"), learn=True)
    assert torch.equal(mixed["operations"], made.weights()["operations"])


def test_its_published_gradient_is_not_clipped(engine: Callable[..., Engine]) -> None:
    assert resolve(METHODS["setn"], load("nasbench201"), data="cifar-10", preset="paper").clip is None
    norms = {}
    for clip in (None, 1e-3):
        made = engine("setn", clip=1e-3)
        made.settings = made.settings.model_copy(update={"clip": clip})
        made.objective.weight_step(made.step(0, 0, learns=True))
        norms[clip] = float(
            torch.cat([p.grad.flatten() for p in made.supernet.parameters() if p.grad is not None]).norm()
        )
    made = engine("setn")
    at, shared = made.step(0, 0, learns=True), list(made.supernet.parameters())
    by_hand = at.gradients(at.loss("weights", learn=False), shared)
    assert norms[None] == pytest.approx(float(torch.cat([g.flatten() for g in by_hand]).norm()), rel=1e-5)
    assert norms[None] > 0.1
    assert norms[1e-3] == pytest.approx(1e-3, rel=1e-2)


@given(st.lists(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=4), min_size=1, max_size=4))
def test_products_come_in_falling_order_and_each_choice_once(rows: list[list[float]]) -> None:
    found = list(products(rows))
    values = [prod(row[i] for row, i in zip(rows, choice, strict=True)) for choice in found]
    assert sorted(found) == sorted(product(*(range(len(row)) for row in rows)))
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(values))


def test_the_candidates_are_the_100_likeliest_of_4096_cells(engine: Callable[..., Engine]) -> None:
    made = engine("setn")
    with torch.no_grad():
        next(iter(made.params.values())).copy_(torch.randn(6, 4, generator=torch.Generator().manual_seed(0)))
    found = list(Likeliest().propose(made, 100, torch.Generator()))
    logs = made.weights()["operations"].detach().log()

    def log_probability(arch) -> float:
        return float((made.space.encode(arch)["operations"] * logs).sum())

    every = sorted((log_probability(arch) for arch in made.space), reverse=True)
    assert len(set(found)) == 100
    assert torch.allclose(torch.tensor([log_probability(a) for a in found]), torch.tensor(every[:100]), atol=1e-5)


def test_in_darts_the_candidates_are_different_cells(
    engine: Callable[..., Engine],
) -> None:
    made = engine("setn", "darts")
    found = list(Likeliest().propose(made, 20, torch.Generator()))
    assert len(set(found)) == len(found) == 20
    assert all(arch in made.space for arch in found)
