"""Mirror descent's theory: the certificate holds, the constants are the known ones, the rate is seen."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from nasight.errors import RequestError, RunError
from nasight.geometry import Euclidean, NegativeEntropy
from nasight.geometry.theory import (
    FREE,
    Block,
    Domain,
    best_rate,
    block_descent,
    corollary_1,
    corollary_1_bound,
    estimate_stationarity,
    gamma_at,
    gamma_from_pairs,
    gradient_mapping,
    gradient_sizes,
    proximal,
    stationarity,
    theorem_1,
    theorem_2_bound,
)

SEEDS = st.integers(0, 2**31)
JOINT = Domain({"w": FREE, "theta": Block()})


def simplex(seed, *shape):
    x = torch.empty(*shape, dtype=torch.float64).exponential_(generator=torch.Generator().manual_seed(seed))
    return x / x.sum(-1, keepdim=True)


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Valley:
    """f(w, theta) = sum_j s(w_j - (P theta)_j) + kappa |theta - c|^2 / 2 with s(t) = t^2 / (1 + t^2), |P| = 1.

    s'' >= -1/2, and (a - b)^2 <= 2 a^2 + 2 b^2 and |d|^2 <= sum d_i^2 / theta_i / 2 for d that sum to 0: so f is
    1-relatively weakly convex. It is 0 at theta = c, w = P c.
    """

    gamma = 1.0
    kappa = 4.0
    center = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)

    def __init__(self):
        p = normal(0, 3, 4)
        self.p = p / torch.linalg.matrix_norm(p, 2)
        self.start = {"w": torch.full((3,), 0.5, dtype=torch.float64), "theta": torch.full((1, 4), 0.25).double()}

    def value(self, u):
        t = u["w"] - self.p @ u["theta"][0]
        return (t**2 / (1 + t**2)).sum() + self.kappa / 2 * (u["theta"][0] - self.center).square().sum()

    def gradient(self, u):
        t = u["w"] - self.p @ u["theta"][0]
        s = 2 * t / (1 + t**2) ** 2
        return {"w": s, "theta": (self.kappa * (u["theta"][0] - self.center) - self.p.T @ s)[None]}

    def noisy(self, sigma, generator):
        def oracle(u):
            noise = (torch.rand(4, 4, generator=generator, dtype=torch.float64) - 0.5) * 2 * sigma
            exact = self.gradient(u)
            return {"w": exact["w"] + noise[0, :3], "theta": exact["theta"] + noise[1]}

        return oracle


@settings(deadline=None, max_examples=25)
@given(SEEDS)
def test_the_divergence_of_a_product_is_the_sum_and_a_ragged_block_equals_its_rows(seed):
    rows = [simplex(seed + k, k) for k in (2, 3, 5)]
    others = [simplex(seed + 7 + k, k) for k in (2, 3, 5)]
    ragged = Domain({"theta": Block(sizes=(2, 3, 5))})
    whole = ragged.divergence({"theta": torch.cat(rows)}, {"theta": torch.cat(others)})
    by_hand = sum(float((a * (a / b).log()).sum()) for a, b in zip(rows, others, strict=True))
    assert whole == pytest.approx(by_hand, rel=1e-12)


def test_the_prox_of_a_quadratic_has_its_closed_form():
    # argmin lam a u^2 / 2 + (u - x)^2 / 2 is x / (1 + lam a), so Delta is (a x / (1 + lam a))^2.
    found = stationarity(
        Domain({"w": FREE}), lambda u: 1.5 * u["w"].square().sum(), {"w": torch.tensor([2.0])}, gamma=1
    )
    exact = (3 * 2 / 2.5) ** 2
    assert found.stationarity == pytest.approx(exact, abs=1e-3)
    assert found.low <= exact <= found.high


def test_the_prox_of_a_linear_function_is_one_mirror_step():
    domain, slope, x = Domain({"theta": Block()}), normal(3, 2, 5), {"theta": simplex(4, 2, 5)}
    found = proximal(domain, lambda u: (slope * u["theta"]).sum(), x, lam=0.3, gamma=1.0, tolerance=1e-13)
    expected = NegativeEntropy().mirror_step(x["theta"], slope, 0.3)
    torch.testing.assert_close(found.point["theta"], expected, rtol=1e-5, atol=1e-6)
    # so the gradient mapping, which linearises, is exact
    assert gradient_mapping(domain, x, {"theta": slope}, lam=0.3) == pytest.approx(found.stationarity, rel=1e-5)


@settings(deadline=None, max_examples=12)
@given(SEEDS, st.sampled_from([1e-2, 1e-5, 1e-9]))
def test_the_certified_interval_holds_the_stationarity_of_a_solution_a_thousand_times_as_exact(seed, tolerance):
    valley = Valley()
    x = {"w": normal(seed, 3), "theta": simplex(seed + 1, 1, 4)}
    rough = stationarity(JOINT, valley.value, x, gamma=1.0, tolerance=tolerance)
    exact = stationarity(JOINT, valley.value, x, gamma=1.0, tolerance=1e-12)
    assert rough.gap <= tolerance
    assert rough.low - 1e-6 <= exact.stationarity <= rough.high + 1e-6
    assert JOINT.divergence(rough.point, exact.point) <= rough.distance + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_prox_is_the_minimum_that_slsqp_finds(seed):
    valley, x = Valley(), {"w": normal(seed, 3), "theta": simplex(seed + 9, 1, 4)}
    found = stationarity(JOINT, valley.value, x, gamma=1.0, tolerance=1e-12)

    def objective(v):
        u = {"w": torch.from_numpy(v[:3]), "theta": torch.from_numpy(np.maximum(v[3:], 1e-12))[None]}
        return float(valley.value(u)) + 2 * JOINT.divergence(u, x)

    best = minimize(
        objective,
        np.concatenate([x["w"].numpy(), x["theta"][0].numpy()]),
        bounds=[(None, None)] * 3 + [(1e-9, 1)] * 4,
        constraints={"type": "eq", "fun": lambda v: v[3:].sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-13},
    )
    assert objective(np.concatenate([found.point["w"].numpy(), found.point["theta"][0].numpy()])) <= best.fun + 1e-9
    np.testing.assert_allclose(found.point["theta"][0].numpy(), best.x[3:], atol=1e-4)


def test_a_stationary_point_has_stationarity_0_and_a_vertex_can_be_one():
    valley = Valley()
    minimum = {"w": valley.p @ valley.center, "theta": valley.center[None]}
    assert stationarity(JOINT, valley.value, minimum, gamma=1.0).stationarity < 1e-8
    # At a vertex the entropy's prox cannot leave: every vertex is a fixed point, wanted or not.
    corner = {"theta": torch.tensor([[1.0, 0.0, 0.0]])}
    climbing = stationarity(Domain({"theta": Block()}), lambda u: u["theta"][0, 0] * 5, corner, gamma=1.0)
    assert climbing.stationarity == 0
    euclid = Domain({"theta": Block(Euclidean())})
    assert stationarity(euclid, lambda u: u["theta"][0, 0] * 5, corner, gamma=1.0).stationarity > 1


def test_a_noisy_oracle_gives_the_certified_stationarity_within_its_error():
    valley, generator = Valley(), torch.Generator().manual_seed(1)
    exact = stationarity(JOINT, valley.value, valley.start, gamma=1.0).stationarity
    found = estimate_stationarity(JOINT, valley.noisy(0.3, generator), valley.start, gamma=1.0, steps=300, repeats=4)
    assert abs(found.value - exact) < 4 * found.error + 0.02 * exact
    assert found.error < 0.1 * exact


def test_gamma_of_a_concave_quadratic_under_the_entropy_is_half_its_curvature():
    # |d|^2 <= |d|_1^2 / 2 <= sum d_i^2 / theta_i / 2 for d that sum to 0; equal at the middle of an edge.
    domain, curvature = Domain({"theta": Block()}), 6.0
    tops = [
        gamma_at(domain, lambda u: {"theta": -curvature * u["theta"]}, {"theta": simplex(s, 1, 5)}) for s in range(40)
    ]
    assert max(tops) <= curvature / 2 + 1e-6
    edge = torch.tensor([[0.5, 0.5, 0.0, 0.0, 0.0]])
    assert gamma_at(domain, lambda u: {"theta": -curvature * u["theta"]}, {"theta": edge}) == pytest.approx(
        3.0, rel=1e-6
    )
    # the Euclidean potential needs all of the curvature
    plain = Domain({"theta": Block(Euclidean())})
    assert gamma_at(plain, lambda u: {"theta": -curvature * u["theta"]}, {"theta": edge}) == pytest.approx(
        6.0, rel=1e-6
    )


def test_blocks_without_weak_convexity_of_their_own_can_have_it_together():
    # f = 3 w (theta_1 - theta_2) is linear in each block (gamma_i = 0), so setting 1's max_i gamma_i is too small.
    difference = torch.tensor([[1.0, -1.0]], dtype=torch.float64)

    def gradient(u):
        return {"w": 3 * (u["theta"] * difference).sum()[None], "theta": 3 * u["w"] * difference}

    half = torch.tensor([[0.5, 0.5]])
    found = gamma_at(JOINT, gradient, {"w": torch.zeros(1), "theta": half})
    assert found == pytest.approx(3.0, rel=1e-6)


def test_lanczos_and_the_matrix_agree_and_pairs_of_a_run_give_no_more():
    large = {"w": normal(0, 200), "theta": simplex(1, 10, 4)}
    mix = normal(2, 200, 40) / 20

    def gradient(u):
        t = u["w"] - mix @ u["theta"].reshape(-1)
        s = 2 * t / (1 + t**2) ** 2
        return {"w": s, "theta": -(mix.T @ s).reshape(10, 4)}

    lanczos = gamma_at(JOINT, gradient, large)
    from nasight.geometry import _theory_constants

    before, _theory_constants.DENSE = _theory_constants.DENSE, 1000
    try:
        assert lanczos == pytest.approx(gamma_at(JOINT, gradient, large), rel=1e-2)
    finally:
        _theory_constants.DENSE = before
    valley, generator = Valley(), torch.Generator().manual_seed(0)
    valley.start["w"] += 1
    points = list(block_descent(JOINT, valley.gradient, valley.start, lr=0.05, steps=60, generator=generator))
    assert 0 < gamma_from_pairs(JOINT, points, [valley.gradient(p) for p in points]) <= 1.0


def test_the_factor_between_the_norms_runs_from_1_to_the_number_of_options():
    domain = Domain({"w": FREE, "theta": Block()})
    w = torch.zeros(3)
    flat = gradient_sizes(domain, [{"w": w, "theta": torch.ones(14, 8)}])
    assert (flat.factor, flat.options) == (pytest.approx(8), 8)
    assert flat.printed == pytest.approx(math.sqrt(14))
    sparse = gradient_sizes(domain, [{"w": w, "theta": torch.eye(8)[:6]}])
    assert sparse.factor == pytest.approx(1)
    noise = gradient_sizes(domain, [{"w": w, "theta": normal(s, 6, 5)} for s in range(50)])
    assert noise.linf <= noise.printed
    assert 1 < noise.factor < 5
    ragged = Domain({"beta": Block(sizes=(2, 3))})
    assert gradient_sizes(ragged, [{"beta": torch.tensor([3.0, 4, 0, 0, 12])}]).linf == pytest.approx(math.hypot(4, 12))


@settings(deadline=None, max_examples=30)
@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.1, 10), st.integers(1, 5), st.integers(10, 500))
def test_the_repaired_corollary_is_the_best_constant_rate_in_theorem_2_and_the_printed_bound_is_below_it(
    gamma, drop, size, blocks, steps
):
    def bound(log_rate):
        return theorem_2_bound(gamma, drop, size, [math.exp(log_rate)] * steps, blocks=blocks)

    best = minimize_scalar(bound, bounds=(-20, 10), method="bounded", options={"xatol": 1e-9})
    assert best.fun == pytest.approx(corollary_1_bound(gamma, drop, size, blocks=blocks, steps=steps), rel=1e-6)
    assert math.exp(best.x) == pytest.approx(best_rate(gamma, drop, size, blocks=blocks, steps=steps), rel=1e-3)
    assert corollary_1_bound(gamma, drop, size, blocks=blocks, steps=steps, form="printed") < 0.71 * best.fun


def test_the_counts_of_theorem_1_are_16_and_32_and_reach_epsilon_in_theorem_2_only_when_repaired():
    repaired = theorem_1(2.0, 3.0, 4.0, 5.0, epsilon=0.5)
    printed = theorem_1(2.0, 3.0, 4.0, 5.0, epsilon=0.5, form="printed")
    assert repaired.steps == 32 * 2 * 3 * 41 / 0.25
    assert printed.steps == 16 * 2 * 3 * 41 / 0.25
    assert printed.lr == pytest.approx(math.sqrt(4 * 3 / (2 * 41 * printed.steps)))
    size = math.sqrt(41)
    reached = theorem_2_bound(2.0, 3.0, size, [repaired.lr] * repaired.steps, blocks=2)
    missed = theorem_2_bound(2.0, 3.0, size, [printed.lr] * printed.steps, blocks=2)
    assert reached == pytest.approx(0.5)
    assert missed == pytest.approx(0.5 * 1.5)
    assert corollary_1(2.0, 3.0, size, blocks=2, epsilon=0.5) == repaired


@pytest.mark.slow
def test_stationarity_falls_at_least_as_one_over_the_root_of_the_number_of_steps_and_stays_under_theorem_2():
    """E Delta itself (a squared size), at an iterate drawn from the run, with the rate of the repaired corollary."""
    valley, sigma = Valley(), 1.0
    size = math.sqrt(3 * (0.65**2 + sigma**2 / 3) + (1 + sigma) ** 2)
    drop, counts, means = float(valley.value(valley.start)), (64, 256, 1024, 4096), []
    for steps in counts:
        lr, values = best_rate(valley.gamma, drop, size, blocks=2, steps=steps), []
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            oracle, seen = valley.noisy(sigma, generator), list[dict[str, torch.Tensor]]()

            def remembered(x, oracle=oracle, seen=seen):
                seen.append(oracle(x))
                return seen[-1]

            run = block_descent(JOINT, remembered, valley.start, lr=lr, steps=steps, generator=generator)
            drawn = set(np.random.default_rng(seed).choice(steps, 16, replace=False).tolist())
            values += [
                stationarity(JOINT, valley.value, x, gamma=valley.gamma, tolerance=1e-7).stationarity
                for number, x in enumerate(run)
                if number in drawn
            ]
            sizes = gradient_sizes(JOINT, seen[:1000])
            assert math.hypot(sizes.w, sizes.linf) < size  # the bound that the rate was made from held
        means.append(float(np.mean(values)))
        assert means[-1] < corollary_1_bound(valley.gamma, drop, size, blocks=2, steps=steps)
    slope = np.polyfit(np.log(counts), np.log(means), 1)[0]
    assert slope <= -0.5, (slope, means)


def test_wrong_requests_are_refused_in_one_sentence():
    with pytest.raises(RequestError, match="between 0 and 1/gamma"):
        proximal(JOINT, Valley().value, Valley().start, lam=1.0, gamma=1.0)
    with pytest.raises(RequestError, match="points of the simplex"):
        JOINT.checked({"w": torch.zeros(1), "theta": torch.ones(1, 2)})
    with pytest.raises(RequestError, match="form must be one of"):
        theorem_1(1, 1, 1, 1, epsilon=1, form="exact")
    with pytest.raises(RunError, match="did not reach"):
        # The kink of |w| is not smooth: no certificate.
        proximal(
            Domain({"w": FREE}),
            lambda u: u["w"].abs().sum(),
            {"w": torch.tensor([0.1])},
            lam=0.5,
            gamma=1.0,
            max_steps=50,
        )
