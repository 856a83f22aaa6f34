from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from nasight.searching._engine import Engine
from nasight.searching._relaxations import TRACE, BinaryGates, StepContext
from nasight.spaces import load

SPACE = load("nasbench201", none=False)
THETA = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).repeat(6, 1)


def gates(theta: torch.Tensor, seed: int, *, learn: bool) -> torch.Tensor:
    at = StepContext(SPACE, SPACE.groups(), 0.0, torch.Generator().manual_seed(seed), learn=learn)
    return BinaryGates().weights({"operations": theta}, {"operations": theta.log()}, at)["operations"]


def test_a_weight_step_sees_one_path_drawn_by_theta() -> None:
    drawn = torch.stack([gates(THETA, seed, learn=False) for seed in range(2000)])
    assert set(drawn.flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(drawn.sum(-1), torch.ones(2000, 6))
    assert (drawn.mean((0, 1)) - THETA[0]).abs().max() < 0.0137  # three standard errors


def test_an_architecture_step_sees_two_paths_one_of_them_open() -> None:
    drawn = gates(THETA, 0, learn=True)
    assert torch.equal((drawn != 0).sum(1), torch.full((6,), 2))
    assert torch.equal((drawn == 1).sum(1), torch.ones(6, dtype=torch.long))


@pytest.mark.parametrize("space", ["nasbench201", "darts"])
def test_the_gradient_is_the_paper_s_formula_over_the_two_paths(engine: Callable[..., Engine], space: str) -> None:
    """Against gates opened by hand in a pass that evaluates every operation."""
    made = engine("proxyless", space)
    loss = made.step(0, 0, learns=True).loss("architecture", learn=True)
    found = torch.autograd.grad(loss, list(made.params.values()))

    x, y = made.loaders["architecture"].batch(0, 0)
    drawn = made.relaxed(0, generator=made.generator("relaxation", "architecture", 0, 0), learn=True)
    opened = {name: (w.detach() == 1).float().requires_grad_() for name, w in drawn.items()}
    by_gate = torch.autograd.grad(F.cross_entropy(made.supernet(x, opened), y), list(opened.values()))
    for alpha, weights, grad, result in zip(list(made.params.values()), drawn.values(), by_gate, found, strict=True):
        two = weights.detach() != 0
        p = alpha.detach().masked_fill(~two, -torch.inf).softmax(1)
        exact = p * (grad - (p * grad).sum(1, keepdim=True))
        assert torch.allclose(result, exact, atol=1e-5)
        assert bool((result[~two] == 0).all())
        assert float(exact.abs().max()) > 1e-3


def test_an_operation_at_a_trace_changes_no_output(engine: Callable[..., Engine]) -> None:
    made = engine("proxyless")
    x, _ = made.loaders["weights"].batch(0, 0)
    drawn = gates(THETA, 0, learn=True)
    assert torch.equal(drawn[drawn < 1].unique(), torch.tensor([0.0, TRACE]))
    alone = (drawn == 1).float()
    with torch.no_grad():
        outputs = [made.supernet(x, {"operations": w}) for w in (drawn, alone)]
    assert torch.allclose(*outputs, atol=1e-5)


def test_a_step_leaves_the_weights_of_paths_that_were_not_drawn(engine: Callable[..., Engine]) -> None:
    made = engine("proxyless", objective="bilevel")
    for step in range(4):
        before = made.weights()["operations"].detach().clone()
        made.objective.architecture_step(made.step(0, step, learns=True))
        after, moved = made.weights()["operations"].detach(), next(iter(made.params.values())).grad != 0
        assert torch.allclose(after[~moved], before[~moved], atol=1e-6)
        assert float((after - before)[moved].abs().min()) > 1e-5
        assert bool((moved.sum(1) == 2).all())
