"""The optimizers: what stays true of every row after every step."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.errors import RequestError, RunError
from nasight.geometry import Euclidean, ExponentiatedGradient, MirrorDescent

TENSORS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**31),
        "rows": st.integers(1, 5),
        "k": st.integers(1, 9),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
        "scale": st.sampled_from([1e-6, 0.1, 1.0, 30.0, 1e4, 1e30]),
    }
)


def draw(seed, rows, k, dtype, scale):
    generator = torch.Generator().manual_seed(seed)
    theta = torch.rand(rows, k, generator=generator, dtype=dtype).add_(1e-3)
    grad = scale * (2 * torch.rand(rows, k, generator=generator, dtype=dtype) - 1)
    return theta / theta.sum(-1, keepdim=True), grad


def moved(theta, grad, make, steps=1, **group):
    p = theta.clone().requires_grad_()
    optimizer = make([{"params": [p], **group}])
    for _ in range(steps):
        p.grad = grad.clone()
        optimizer.step()
    return p.detach()


@settings(deadline=None, max_examples=150)
@given(TENSORS, st.sampled_from([0.0, 1e-5, 0.05]), st.booleans(), st.integers(1, 3))
def test_rows_stay_on_the_simplex_and_above_the_floor_for_any_gradient(tensors, floor, euclidean, steps):
    theta, grad = draw(**tensors)
    potential = {"potential": Euclidean()} if euclidean else {}
    result = moved(theta, grad, lambda p: MirrorDescent(p, lr=1.0, floor=floor, **potential), steps)
    k = tensors["k"]
    assert result.dtype == tensors["dtype"]
    assert (result.sum(-1) - 1).abs().max() < 1e-6
    assert result.min() >= floor / (1 + k * floor) * (1 - 1e-5)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6).map(tuple),
    st.integers(0, 2**31),
    st.sampled_from([torch.float32, torch.float64]),
    st.sampled_from([0.1, 1e4]),
    st.booleans(),
)
def test_a_ragged_parameter_moves_as_its_rows_do_alone(sizes, seed, dtype, scale, euclidean):
    rows = [draw(seed + i, 1, size, dtype, scale) for i, size in enumerate(sizes)]

    def make(p):
        return MirrorDescent(p, 0.5, Euclidean(), 1e-3) if euclidean else ExponentiatedGradient(p, 0.5)

    flat_theta, flat_grad = (torch.cat([row[i][0] for row in rows]) for i in (0, 1))
    flat = moved(flat_theta, flat_grad, make, sizes=sizes)
    alone = torch.cat([moved(theta, grad, make)[0] for theta, grad in rows])
    torch.testing.assert_close(flat, alone)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**31),
    st.integers(1, 9),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.sampled_from([0.0, 1e-5, 1e-2]),
    st.sampled_from([-3.0, 0.0, 40.0]),
)
def test_exponentiated_gradient_is_equation_8_of_gaea_with_the_floor_before_the_division(
    seed, k, scale, floor, constant
):
    theta, grad = draw(seed, 3, k, torch.float64, scale)
    grad += constant
    result = moved(theta, grad, lambda p: ExponentiatedGradient(p, lr=0.7, floor=floor))
    naive = np.maximum(theta.numpy() * np.exp(-0.7 * grad.numpy()), floor)
    naive /= naive.sum(-1, keepdims=True)
    np.testing.assert_allclose(result.numpy(), naive, rtol=1e-12)


@pytest.mark.parametrize(
    ("lift", "weights"),
    [
        # 0.6 exp(0.2) = 0.732842, 0.39999 and 1e-5 exp(-0.3) = 7.4e-6, which becomes 1e-5: their sum is 1.132842.
        ("before", [0.646906, 0.353086, 8.827359e-6]),
        # 7.4e-6 / 1.132839 = 6.5e-6 becomes 1e-5; then the sum is 1.0000035.
        ("after", [0.646907, 0.353086, 1e-5]),
        ("between", [0.646905, 0.353085, 9.999965e-6]),
    ],
)
def test_a_step_by_hand_with_a_weight_that_is_lifted(lift, weights):
    theta = torch.tensor([[0.6, 0.39999, 1e-5]], dtype=torch.float64)
    grad = torch.tensor([[-2.0, 0.0, 3.0]], dtype=torch.float64)
    result = moved(theta, grad, lambda p: ExponentiatedGradient(p, lr=0.1, lift=lift))
    assert result[0, :2].tolist() == pytest.approx(weights[:2], abs=5e-7)
    assert float(result[0, 2]) == pytest.approx(weights[2], rel=1e-6)


@settings(deadline=None, max_examples=100)
@given(TENSORS, st.sampled_from([0.0, -1e30, 1e38]), st.sampled_from([0.1, 30.0]))
def test_no_finite_gradient_takes_exponentiated_gradient_off_the_simplex(tensors, constant, lr):
    theta, grad = draw(**tensors)
    result = moved(theta, grad + constant, lambda p: ExponentiatedGradient(p, lr))
    assert (result.sum(-1) - 1).abs().max() < 1e-6
    assert result.min() >= 0


def test_a_weight_that_a_huge_step_made_zero_is_lifted_in_the_next_one():
    theta, grad = torch.full((1, 2), 0.5), torch.tensor([[-1e4, 0.0]])
    assert moved(theta, grad, lambda p: ExponentiatedGradient(p, lr=1.0)).tolist() == [[1.0, 0.0]]
    back = moved(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2), lambda p: ExponentiatedGradient(p, lr=1.0))
    assert float(back[0, 1]) == pytest.approx(1e-5 / (1 + 1e-5))


def test_exponentiated_gradient_without_floor_is_the_softmax_of_the_summed_gradients():
    generator = torch.Generator().manual_seed(3)
    grads = torch.randn(50, 4, 6, generator=generator, dtype=torch.float64)
    p = torch.full((4, 6), 1 / 6, dtype=torch.float64, requires_grad=True)
    optimizer = ExponentiatedGradient([p], lr=0.3, floor=0.0)
    for grad in grads:
        p.grad = grad
        optimizer.step()
    torch.testing.assert_close(p.detach(), (-0.3 * grads.sum(0)).softmax(-1))


@settings(deadline=None, max_examples=60)
@given(TENSORS, st.sampled_from([-7.0, 0.5, 100.0]))
def test_a_constant_added_to_the_gradient_changes_nothing_where_nothing_is_lifted(tensors, constant):
    theta, grad = draw(**{**tensors, "dtype": torch.float64, "scale": 1.0})
    for make in (lambda p: ExponentiatedGradient(p, 1.0, 0.0), lambda p: MirrorDescent(p, 1.0, Euclidean())):
        torch.testing.assert_close(moved(theta, grad + constant, make), moved(theta, grad, make))


def losses(kind, steps, k, seed):
    """Losses in [0, 1], given the weights: fixed, random, or 1 for the option that weighs most."""
    generator = torch.Generator().manual_seed(seed)
    fixed = torch.rand(k, generator=generator, dtype=torch.float64)
    for _ in range(steps):
        theta = yield
        if kind == "fixed":
            yield fixed
        elif kind == "random":
            yield torch.rand(k, generator=generator, dtype=torch.float64).round()
        else:
            yield (theta == theta.max()).double()


@pytest.mark.parametrize("kind", ["fixed", "random", "adversarial"])
@pytest.mark.parametrize("k", [2, 5, 16])
def test_regret_is_at_most_the_root_of_half_t_log_k(kind, k):
    steps = 400
    p = torch.full((1, k), 1 / k, dtype=torch.float64, requires_grad=True)
    optimizer = ExponentiatedGradient([p], lr=float(np.sqrt(8 * np.log(k) / steps)), floor=0.0)
    paid, options = 0.0, torch.zeros(k, dtype=torch.float64)
    source = losses(kind, steps, k, seed=k)
    for _ in range(steps):
        next(source)
        loss = source.send(p.detach()[0])
        paid, options = paid + float(p.detach()[0] @ loss), options + loss
        p.grad = loss[None].clone()
        optimizer.step()
    assert paid - float(options.min()) <= np.sqrt(steps * np.log(k) / 2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_gradient_that_is_not_finite_raises_and_moves_no_parameter(bad):
    first, second = (torch.full((2, 4), 0.25, requires_grad=True) for _ in range(2))
    optimizer = ExponentiatedGradient([first, second], lr=0.1)
    first.grad, second.grad = torch.randn(2, 4), torch.randn(2, 4)
    optimizer.step()
    before, state = [first.detach().clone(), second.detach().clone()], copy.deepcopy(optimizer.state_dict())
    second.grad[1, 2] = bad
    with pytest.raises(RunError, match="not finite in 1 of 8 places"):
        optimizer.step()
    assert torch.equal(first, before[0])
    assert torch.equal(second, before[1])
    assert optimizer.state_dict() == state


@pytest.mark.parametrize("make", [ExponentiatedGradient, lambda p, lr: MirrorDescent(p, lr, Euclidean())])
def test_a_search_goes_on_from_a_saved_state_as_if_it_had_not_stopped(make):
    grads = torch.randn(10, 5, generator=torch.Generator().manual_seed(1))
    p = torch.tensor([0.5, 0.5, 0.2, 0.3, 0.5], requires_grad=True)
    optimizer = make([{"params": [p], "sizes": (2, 3)}], lr=0.4)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    file = io.BytesIO()
    for t, grad in enumerate(grads):
        if t == 5:
            torch.save([p.detach(), optimizer.state_dict(), schedule.state_dict()], file)
        p.grad = grad.clone()
        optimizer.step()
        schedule.step()

    q, *states = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    q.requires_grad_()
    other = make([{"params": [q], "sizes": (2, 3)}], lr=9.0)
    rest = torch.optim.lr_scheduler.ExponentialLR(other, 0.8)
    for part, state in zip((other, rest), states, strict=True):
        part.load_state_dict(state)
    for grad in grads[5:]:
        q.grad = grad.clone()
        other.step()
        rest.step()
    assert torch.equal(q, p)
    assert other.state[q] == {"step": 10}


def test_a_copied_optimizer_keeps_its_potential_and_when_it_lifts():
    p = torch.full((1, 3), 1 / 3, requires_grad=True)
    for twin in (copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))):
        assert twin(MirrorDescent([p], 0.1, Euclidean())).potential == Euclidean()
        assert twin(ExponentiatedGradient([p], 0.1, lift="between")).lift == "between"


def test_a_closure_is_evaluated_with_gradients_and_its_loss_returned():
    p = torch.full((1, 2), 0.5, requires_grad=True)
    optimizer = ExponentiatedGradient([p], lr=1.0)

    def closure():
        optimizer.zero_grad()
        loss = (p * torch.tensor([[0.0, 1.0]])).sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 0.5
    assert p[0, 0].item() == pytest.approx(1 / (1 + np.exp(-1)))


@pytest.mark.parametrize(
    ("start", "sizes", "sentence"),
    [
        ([[0.6, 0.6]], None, "one sums to 1.2"),
        ([[1.5, -0.5]], None, "a weight of -0.5"),
        ([0.5, 0.5, 0.5, 0.5, 0.5], (2, 3), "one sums to 1.5"),
        ([[float("nan"), 1.0]], None, "a weight of nan"),
    ],
)
def test_a_parameter_that_does_not_start_on_the_simplex_is_refused(start, sizes, sentence):
    p = torch.tensor(start, requires_grad=True)
    p.grad = torch.zeros_like(p)
    optimizer = ExponentiatedGradient([{"params": [p], "sizes": sizes, "name": "alpha"}], lr=0.1)
    with pytest.raises(RequestError, match=f"parameter 'alpha' of shape .* is not on the simplex: .*{sentence}"):
        optimizer.step()
    assert not optimizer.state


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lr": 0.0}, "lr must be greater than 0, got 0.0"),
        ({"lr": float("nan")}, "lr must be greater than 0, got nan"),
        ({"floor": 0.25}, "less than 1/4 for rows of 4 weights, got 0.25"),
        ({"floor": -1e-9}, "floor must be at least 0"),
        ({"sizes": (2, 3)}, r"must be flat with sizes \(2, 3\), that is of shape \(5,\)"),
        ({"dtype": torch.float16}, "must be float32 or float64, got torch.float16"),
    ],
)
def test_wrong_settings_are_refused_and_leave_an_optimizer_as_it_was(change, sentence):
    good = torch.full((1, 2), 0.5, requires_grad=True)
    optimizer = ExponentiatedGradient([good], lr=0.1)
    p = torch.full((2, 4), 0.25, requires_grad=True, dtype=change.pop("dtype", torch.float32))
    with pytest.raises(RequestError, match=sentence):
        ExponentiatedGradient([{"params": [p], **change}], lr=0.1)
    with pytest.raises(RequestError, match=sentence):
        optimizer.add_param_group({"params": [p], **change})
    assert len(optimizer.param_groups) == 1
