from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from nasight.errors import RequestError
from nasight.searching import Run, search
from nasight.searching._engine import Engine
from nasight.searching._per_example import clipped_mean, example_gradients
from nasight.searching.methods import method_row
from nasight.spaces.darts import _supernet_cell as darts_cell
from nasight.spaces.nasbench201 import _supernet as nasbench201_cell


@pytest.mark.parametrize("space", ["nasbench201", "darts"])
def test_the_mean_over_examples_is_the_gradient_of_the_batch(engine: Callable[..., Engine], space: str) -> None:
    made = engine("xnas", space)
    x, y = made.loaders["architecture"].batch(0, 0)
    weights = {name: w.detach().clone().requires_grad_() for name, w in made.weights().items()}
    _, _, grads = example_gradients(made.supernet, weights, x, y)
    whole = torch.autograd.grad(torch.nn.functional.cross_entropy(made.supernet(x, weights), y), list(weights.values()))
    for name, exact in zip(weights, whole, strict=True):
        assert grads[name].shape == (32, *exact.shape)
        assert torch.allclose(grads[name].mean(0), exact, atol=2e-4 * float(exact.abs().max()) + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("space", ["nasbench201", "darts"])
def test_an_example_s_gradient_is_the_mixture_s_gradient_times_its_operation_s_output(
    engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, space: str
) -> None:
    """XNAS's reward, by a loop over examples, cells and edges, from outputs that were recorded on the way.

    An output f enters as w f, so the gradient at the mixture is that at f divided by w.
    """
    made = engine("xnas", space)
    cell = {"nasbench201": nasbench201_cell, "darts": darts_cell}[space].MixedCell
    inner, recorded = cell._operation, []

    def record(self, name, edge, x, *rest):
        out = inner(self, name, edge, x, *rest)
        if name != "skip_connect":  # a skip is its input, which others read too
            out.retain_grad()
            recorded.append((self, name, edge, out))
        return out

    monkeypatch.setattr(cell, "_operation", record)
    x, y = made.loaders["architecture"].batch(0, 0)
    weights = made.weights()
    _, _, grads = example_gradients(made.supernet, weights, x, y)
    recorded.clear()
    made.supernet.path = "plain"
    leaves = {name: w.detach().clone().requires_grad_() for name, w in weights.items()}
    torch.nn.functional.cross_entropy(made.supernet(x, leaves), y, reduction="sum").backward()
    expected = {name: torch.zeros_like(g) for name, g in grads.items()}
    for owner, name, edge, out in recorded:
        group = "operations" if space == "nasbench201" else "reduce" if owner.reduce else "normal"
        column = made.space.operations.index(name)
        for n in range(len(y)):
            reward = (out.grad[n] * out[n]).sum() / weights[group][edge, column]
            expected[group][n, edge, column] += reward.detach()
    for name, grad in grads.items():
        columns = [i for i, op in enumerate(made.space.operations) if op not in ("skip_connect", "none")]
        assert torch.allclose(grad[..., columns], expected[name][..., columns], atol=1e-3, rtol=1e-3)
        assert float(grad.std(0).max()) > 1e-2  # examples differ


def test_no_entry_of_an_example_exceeds_the_bound_and_small_gradients_stay() -> None:
    grads = torch.tensor([[[4.0, -2.0, 1.0]], [[0.5, 0.25, -0.5]]])
    assert torch.allclose(clipped_mean(grads, 1.0), torch.tensor([[0.75, -0.125, -0.125]]))


def test_the_bound_of_the_clipping_is_the_bound_of_the_wipe_out() -> None:
    row = method_row("xnas")
    assert {objective.bound for objective in row.objectives} == {row.geometry.bound}


def test_wiped_out_operations_are_not_evaluated_and_get_no_gradient(engine: Callable[..., Engine]) -> None:
    made = engine("xnas")
    with torch.no_grad():
        next(iter(made.params.values())).copy_(torch.tensor([0.0, 0.5, 0.0, 0.5]).repeat(6, 1))
    (grads,) = made.step(0, 0, learns=True).example_gradients("architecture")
    assert bool((grads[:, :, [0, 2]] == 0).all())
    assert float(grads[:, :, [1, 3]].abs().max()) > 0


@pytest.mark.slow
def test_what_was_wiped_out_in_a_search_stays_out_and_one_is_left_at_the_end(tiny: Callable[..., Run]) -> None:
    run = tiny(method="xnas", epochs=8)
    weights = [torch.tensor(row["weights"]["operations"]) for row in run.history]
    for before, after in pairwise(weights):
        assert bool((after[before == 0] == 0).all())
    alive = [int((w > 0).sum()) for w in weights]
    assert alive == sorted(alive, reverse=True)
    assert alive[-1] == 6
    assert run.architecture == run.space.derive(run.weights)


def test_spaces_without_a_pass_of_single_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"clips gradients example by example, .* not on space 'mlp'"):
        search("mlp", "xnas", "digits", preset="tiny", out=tmp_path / "r", threads=1)
