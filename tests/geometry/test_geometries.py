"""The geometries as a search loop uses them."""

import math

import pytest
import torch

from nasight.errors import RequestError
from nasight.geometry import ExponentiatedGradient, Fixed, MirrorDescent, NegativeEntropy, Simplex, Softmax
from nasight.spaces import Group

OPS = ("conv", "skip", "pool")
REGULAR = Group("operations", tuple(f"edge {i}" for i in range(5)), (OPS,) * 5)
RAGGED = Group(
    "edges", tuple(f"node {n}" for n in (2, 3, 4, 5)), tuple(tuple(map(str, range(n))) for n in (2, 3, 4, 5))
)
# Rows of one length whose options differ: flat too.
MIXED = Group("choices", ("a", "b", "c"), (("x", "y"), ("u", "v"), ("1", "2", "3")))
GROUPS = (REGULAR, RAGGED, MIXED)
GEOMETRIES = [Simplex(), Simplex("euclidean"), Simplex(floor=0.0), Softmax(), Softmax("sgd", spread=1.0), Fixed()]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_every_row_of_the_weights_is_on_the_simplex_and_the_logarithms_are_theirs(geometry):
    params = geometry.initial(GROUPS, generator())
    weights, logs = geometry.weights(params, GROUPS), geometry.log_weights(params, GROUPS)
    assert list(params) == list(weights) == list(logs) == [g.name for g in GROUPS]
    for g in GROUPS:
        assert params[g.name].is_leaf
        assert params[g.name].shape == weights[g.name].shape == g.shape
        assert all(math.isclose(row.sum().item(), 1, abs_tol=1e-6) for row in g.split(weights[g.name]))
        torch.testing.assert_close(logs[g.name], weights[g.name].log())


def test_the_ragged_softmax_and_its_gradient_are_those_of_row_after_row():
    logits = torch.randn(RAGGED.shape, generator=generator(), dtype=torch.float64, requires_grad=True)
    target = torch.randn(RAGGED.shape, generator=generator(1), dtype=torch.float64)
    for name, row in (("weights", torch.softmax), ("log_weights", torch.log_softmax)):
        ours = getattr(Softmax(), name)({"edges": logits}, [RAGGED])["edges"]
        loop = torch.cat([row(part, -1) for part in RAGGED.split(logits)])
        torch.testing.assert_close(ours, loop)
        slopes = [torch.autograd.grad((w * target).sum(), logits)[0] for w in (ours, loop)]
        torch.testing.assert_close(*slopes)
    assert torch.autograd.gradcheck(lambda x: Softmax().weights({"edges": x}, [RAGGED])["edges"], logits)


def test_weights_made_in_inference_mode_first_do_not_break_a_later_backward_pass():
    fresh = Group("fresh", ("a", "b"), (("1", "2"), tuple("abcdefg")))
    params = Softmax().initial([fresh], generator())
    with torch.inference_mode():
        Softmax().weights(params, [fresh])
    Softmax().weights(params, [fresh])["fresh"].square().sum().backward()
    assert params["fresh"].grad.abs().sum() > 0


def test_logarithms_and_their_gradients_are_finite_for_vanished_weights():
    far = {"operations": torch.tensor([[0.0, -1e4, 1e4]] * 5, requires_grad=True)}
    vanished = {"operations": torch.tensor([[0.0, 0.0, 1.0]] * 5, requires_grad=True)}
    for geometry, params in ((Softmax(), far), (Simplex(floor=0.0), vanished)):
        logs = geometry.log_weights(params, [REGULAR])["operations"]
        logs.softmax(-1)[:, 0].sum().backward()
        assert logs.isfinite().all()
        assert params["operations"].grad.isfinite().all()


@pytest.mark.parametrize(
    ("geometry", "lr"),
    [(Simplex(), 0.3), (Simplex("euclidean"), 0.3), (Softmax(), 0.3), (Softmax("sgd", weight_decay=0.0), 10.0)],
    ids=str,
)
def test_a_loop_finds_the_cheapest_option_of_every_row(geometry, lr):
    params = geometry.initial(GROUPS, generator())
    costs = {g.name: torch.rand(g.shape, generator=generator(5)) for g in GROUPS}
    optimizer = geometry.optimizer(params, GROUPS, lr=lr)
    for _ in range(200):
        optimizer.zero_grad()
        weights = geometry.weights(params, GROUPS)
        sum((weights[n] * costs[n]).sum() for n in weights).backward()
        optimizer.step()
    weights = geometry.weights(params, GROUPS)
    for g in GROUPS:
        best = [row.argmin().item() for row in g.split(costs[g.name])]
        assert [row.argmax().item() for row in g.split(weights[g.name])] == best


def test_the_entropic_simplex_moves_as_exponentiated_gradient_does():
    geometry = Simplex()
    params, twin = (geometry.initial([REGULAR], generator()) for _ in range(2))
    for optimizer, p in (
        (geometry.optimizer(params, [REGULAR], lr=0.1), params["operations"]),
        (ExponentiatedGradient(twin.values(), lr=0.1), twin["operations"]),
    ):
        for seed in range(5):
            p.grad = 40 * torch.randn(REGULAR.shape, generator=generator(seed))
            optimizer.step()
    assert torch.equal(params["operations"], twin["operations"])
    assert params["operations"].min() < 1.1e-5


def test_weights_whose_parameters_are_lifted_last_are_divided_by_the_sum_of_their_row():
    geometry = Simplex(lift="after")
    params = geometry.initial(GROUPS, generator())
    optimizer = geometry.optimizer(params, GROUPS, lr=1.0)
    for p in params.values():
        p.grad = 40 * torch.randn(p.shape, generator=generator(1))
    optimizer.step()
    weights, logs = geometry.weights(params, GROUPS), geometry.log_weights(params, GROUPS)
    assert float(params["operations"].detach().sum(-1).max()) == pytest.approx(1 + 2e-5, abs=1e-6)
    for g in GROUPS:
        assert all(math.isclose(row.sum().item(), 1, abs_tol=1e-6) for row in g.split(weights[g.name]))
        torch.testing.assert_close(logs[g.name], weights[g.name].log())


def test_a_potential_of_ones_own_is_a_geometry():
    class Half(NegativeEntropy):
        def mirror_step(self, x, grad, lr):
            return super().mirror_step(x, grad, lr / 2)

    ours = []
    for geometry, lr in ((Simplex(Half()), 0.2), (Simplex(), 0.1)):
        params = geometry.initial([RAGGED], generator())
        params["edges"].grad = torch.randn(RAGGED.shape, generator=generator(2))
        optimizer = geometry.optimizer(params, [RAGGED], lr=lr)
        assert isinstance(optimizer, MirrorDescent)
        optimizer.step()
        ours.append(params["edges"].detach())
    torch.testing.assert_close(*ours)


def test_the_published_rates_hold_at_the_published_lengths_and_a_quarter_of_the_steps_doubles_them():
    assert Simplex().default_lr(25 * 50_000 // 64) == 0.1
    assert Softmax().default_lr(50 * math.ceil(25_000 / 64)) == 3e-4
    for geometry in (Simplex(), Softmax()):
        assert geometry.default_lr(1000) == pytest.approx(2 * geometry.default_lr(4000))
    assert Softmax().default_lr(1) < 0.042


def test_logits_start_normal_with_deviation_a_thousandth_and_come_from_the_generator():
    wide = Group("wide", tuple(map(str, range(4000))), (OPS,) * 4000)
    first, again, other = (Softmax().initial([wide], generator(s))["wide"].detach() for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.std().item() == pytest.approx(1e-3, rel=0.03)
    assert abs(first.mean().item()) < 5e-5


def test_adam_has_the_settings_of_darts():
    params = Softmax().initial([REGULAR], generator())
    (group,) = Softmax().optimizer(params, [REGULAR], lr=3e-4).param_groups
    assert (group["lr"], group["betas"], group["weight_decay"]) == (3e-4, (0.5, 0.999), 1e-3)


def test_fixed_weights_take_no_gradient_and_have_no_optimizer():
    params = Fixed().initial(GROUPS, generator())
    assert not Fixed().moves
    assert not any(p.requires_grad for p in params.values())
    with pytest.raises(RequestError, match="ask `moves`"):
        Fixed().optimizer(params, GROUPS, lr=0.1)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Simplex("tsallis"), "potential 'tsallis' is not one of entropy, euclidean"),
        (lambda: Simplex(lift="never"), "lift must be one of before, after, between, got 'never'"),
        (lambda: Softmax("lion"), "rule 'lion' is not one of adam, sgd"),
        (lambda: Simplex().default_lr(0), "at least 1 architecture step, got 0"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(make, sentence):
    with pytest.raises(RequestError, match=sentence):
        make()
