"""Each bound against a computation by hand, and against simulated choices from a small finite class."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.trust import bounds
from nasight.trust.bounds import Bound, VersionEntropy

E1 = math.exp(-1)  # delta = 1/e makes log 1/delta one


def test_theorem_a2_by_hand() -> None:
    bound = bounds.theorem_a2(validation=800, entropy=VersionEntropy({0.0: 3.0}), delta=E1, bound=2.0)
    # 2 sqrt(1/1600) + 2 sqrt(2/800 * 4) = 0.05 + 0.2
    assert bound.value == pytest.approx(0.25)
    assert bound.terms["hoeffding"] == pytest.approx(0.05)
    assert bound.probability == pytest.approx(1 - 3 * E1)


def test_theorem_31_by_hand_and_never_below_theorem_a2() -> None:
    steps = VersionEntropy({0.0: 3.0})
    assert bounds.theorem_31(validation=800, entropy=steps, delta=E1, bound=2.0).value == pytest.approx(0.3)
    for delta in (0.3, 0.05, 1e-4):
        a2, main = (f(validation=100, entropy=steps, delta=delta) for f in (bounds.theorem_a2, bounds.theorem_31))
        assert a2.value <= main.value


def test_the_infimum_takes_the_better_step() -> None:
    entropy = VersionEntropy({0.0: 7.0, 0.01: 1.0, 0.5: 0.0})
    # At 0: sqrt(2/800 * 8) = 0.1414; at 0.01: 0.03 + sqrt(2/800 * 2) = 0.1007; at 0.5: more than 1.5.
    value = bounds.infimum(entropy, validation=800, bound=1.0, delta=E1)
    assert value == pytest.approx(0.03 + math.sqrt(0.005))
    finer = min(
        3 * e + math.sqrt(2 / 800 * (entropy.at(e) + 1)) for e in np.linspace(0, 1, 10_001)
    )  # no scale between the steps does better
    assert value <= finer + 1e-12


def test_beyond_a_lipschitz_constant_of_1_25_the_scale_costs_more() -> None:
    entropy = VersionEntropy({0.1: 0.0})
    at = {
        lipschitz: bounds.infimum(entropy, validation=2, bound=1.0, delta=E1, lipschitz=lipschitz)
        for lipschitz in (1.0, 1.25, 2.0)
    }
    assert at[1.0] == at[1.25] == pytest.approx(1.3)
    assert at[2.0] == pytest.approx(1.45)  # (2 * 2 + 1/2) * 0.1 + 1


def test_corollary_a4_adds_the_training_rows_term() -> None:
    same: dict[str, Any] = {"validation": 800, "entropy": VersionEntropy({0.0: 3.0}), "delta": E1, "bound": 2.0}
    plain = bounds.theorem_a2(**same, training_error=0.1)
    erm = bounds.corollary_a4(**same, training=200, generalization_error=0.1)
    assert erm.value - plain.value == pytest.approx(0.1)  # 2 sqrt(1/400)
    assert erm.probability == pytest.approx(1 - 4 * E1)


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        (bounds.corollary_a1(training=500, norm=2.0, delta=E1), 0.1),  # sqrt(5/500)
        # delta = 2/e^2: log((1 + 1)/delta) = 2 and log(1/delta) = 2 - log 2 = 1.306853
        (
            bounds.corollary_a2(training=500, validation=100, configurations=1, norm=2.0, delta=2 * E1**2),
            math.sqrt(0.01306853) + math.sqrt(0.02),
        ),
        (bounds.corollary_31(training=500, validation=100, configurations=1, norm=2.0, delta=E1, constant=3.0), 0.6),
        (bounds.corollary_32(training=400, validation=100, configurations=1, delta=math.exp(-2)), 0.2 + 0.02**0.5),
        (bounds.corollary_a3(training=400, validation=100, configurations=1, delta=E1), 0.05 + 0.1 * 1.301210),
    ],
    ids=lambda case: case.name if isinstance(case, Bound) else "",
)
def test_corollaries_by_hand_with_the_root_over_the_log(bound: Bound, value: float) -> None:
    assert bound.value == pytest.approx(value, abs=1e-6)
    assert bound.constant is not None


def test_corollary_a3_asks_for_root_t_features() -> None:
    assert bounds.features_needed(40_000, delta=0.05) == math.ceil(200 * math.log(4_000))
    assert "1,659 features" in bounds.corollary_a3(training=40_000, validation=1, configurations=1).assumptions


def test_the_entropy_of_unique_minimizers_is_the_log_of_their_number() -> None:
    assert VersionEntropy.finite(256).at(0) == VersionEntropy.finite([1] * 256).at(0) == math.log(256)
    assert VersionEntropy.finite([2, 3]).at(1.0) == math.log(5)
    assert VersionEntropy.union(4, math.log(3)).at(0) == pytest.approx(math.log(12))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=1, max_size=6))
def test_the_entropy_of_functions_is_that_of_a_cover_and_no_smaller_than_the_least(points: list[list[int]]) -> None:
    values = np.array(points, dtype=float)
    entropy = VersionEntropy.of_functions(values)
    distances = np.abs(values[:, None] - values[None]).max(-1)
    for scale, height in entropy.steps.items():
        covers = (
            k
            for k in range(1, len(values) + 1)
            for centers in combinations(range(len(values)), k)
            if (distances[:, list(centers)].min(1) <= scale).all()
        )
        least = next(covers)
        assert least <= round(math.exp(height)) <= len({tuple(p) for p in points})
    assert entropy.at(0.0) == pytest.approx(math.log(len({tuple(p) for p in points})))


def choices(rng: np.random.Generator, trials: int, validation: int, gap: float = 0.0) -> tuple[Any, Any]:
    """Excess risk and validation gap of what 16 functions of known risk are chosen by on `validation` rows."""
    risks = rng.uniform(0.2, 0.4, 16)
    seen = rng.binomial(validation, risks, size=(trials, 16)) / validation
    order = np.argsort(seen, axis=1)
    chosen = order[:, 0 if not gap else 3]
    rows = np.arange(trials)
    return risks[chosen] - risks.min(), seen[rows, chosen] - seen[rows, order[:, 0]]


@pytest.mark.parametrize("validation", [30, 300])
def test_no_choice_among_a_finite_class_breaks_theorem_a2_more_often_than_it_says(validation: int) -> None:
    excess, _ = choices(np.random.default_rng(0), 4_000, validation)
    for delta in (0.3, 0.1, 0.01):
        bound = bounds.theorem_a2(validation=validation, entropy=VersionEntropy.finite(16), delta=delta)
        assert (excess > bound.value).mean() <= 3 * delta
        assert bounds.theorem_31(validation=validation, entropy=VersionEntropy.finite(16), delta=delta).value >= (
            bound.value
        )


def test_a_choice_that_misses_the_least_validation_loss_is_covered_by_its_gap() -> None:
    excess, gaps = choices(np.random.default_rng(1), 2_000, 100, gap=1.0)
    assert gaps.mean() > 0.01
    broken = [
        e > bounds.theorem_a2(validation=100, entropy=VersionEntropy.finite(16), delta=0.1, gap=float(g)).value
        for e, g in zip(excess, gaps, strict=True)
    ]
    assert np.mean(broken) <= 0.3


def test_the_excess_risk_of_threshold_functions_stays_below_corollary_a4() -> None:
    # Twenty thresholds on [0, 1], labels flipped with probability 0.1: risk is 0.1 + 0.8 |t - 1/2|.
    rng = np.random.default_rng(2)
    thresholds = np.linspace(0, 1, 20)
    risk = 0.1 + 0.8 * np.abs(thresholds - 0.5)
    broken = 0
    for _ in range(300):
        x = rng.uniform(size=120)
        y = (x > 0.5) ^ (rng.uniform(size=120) < 0.1)
        wrong = (x[:, None] > thresholds) != y[:, None]
        training, validation = wrong[:60].mean(0), wrong[60:].mean(0)
        # Configurations are the four blocks of five thresholds; within a block training takes the least loss.
        minima = [5 * block + int(training[5 * block : 5 * block + 5].argmin()) for block in range(4)]
        chosen = min(minima, key=lambda t: validation[t])
        best = minima[int(risk.argmin()) // 5]
        error = max(0.0, float(risk[best] - training[best]))
        bound = bounds.corollary_a4(
            training=60, validation=60, entropy=VersionEntropy.finite(4), generalization_error=error, delta=0.05
        )
        broken += risk[chosen] - risk.min() > bound.value
    assert broken / 300 <= 0.2


def test_a_bound_is_vacuous_where_it_says_no_more_than_the_range_of_the_loss() -> None:
    few, many = (bounds.theorem_a2(validation=n, entropy=VersionEntropy.finite(256)) for n in (10, 10_000))
    assert few.vacuous()
    assert not many.vacuous()
    assert many.vacuous(scale=0.05)
    assert bounds.theorem_a2(validation=10**9, entropy=VersionEntropy.finite(2), delta=0.4).vacuous()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: bounds.theorem_a2(validation=0, entropy=VersionEntropy.finite(2)), "validation is more than 0, got 0"),
        (lambda: bounds.corollary_a1(training=5, norm=1.0, delta=1.0), "between 0 and 1, got 1.0"),
        (lambda: bounds.corollary_a1(training=5, norm=-1.0), "norm is a number of at least 0, got -1.0"),
        (lambda: VersionEntropy.finite(0), "configurations is at least 1, got 0"),
        (lambda: VersionEntropy({}), "entropies are finite"),
    ],
)
def test_a_wrong_request_is_named(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        wrong()


def test_theorem_a1_is_the_printed_form_up_to_a_lipschitz_constant_of_five_quarters_and_hoeffdings_beyond() -> None:
    asked = {"examples": 2000, "epsilon": 0.1, "covering": 3.0}
    assert bounds.theorem_a1(**asked) == pytest.approx(6 * math.exp(-2000 * 0.01 / 2))  # type: ignore[arg-type]
    assert bounds.theorem_a1(**asked, bound=2.0) == pytest.approx(6 * math.exp(-2000 * 0.01 / 8))  # type: ignore[arg-type]
    at, printed = ({"lipschitz": 1.25, "printed": p} for p in (False, True))
    assert bounds.theorem_a1(**asked, **at) == pytest.approx(bounds.theorem_a1(**asked, **printed))  # type: ignore[arg-type]
    many = asked | {"examples": 20_000}
    beyond = bounds.theorem_a1(**many, lipschitz=1.4)  # type: ignore[arg-type]
    assert beyond == pytest.approx(6 * math.exp(-2 * 20_000 * (0.2 * 0.1) ** 2))
    assert bounds.theorem_a1(**asked, lipschitz=1.5) == 1.0  # type: ignore[arg-type]


def test_theorem_a1_holds_for_three_coins() -> None:
    """Three functions with losses 0 or 1 and risk 0.5 are their own cover; 20,000 draws of 40 examples."""
    rng = np.random.default_rng(0)
    worst = np.abs(rng.binomial(40, 0.5, size=(20_000, 3)) / 40 - 0.5).max(1)
    for epsilon in (0.05, 0.08, 0.1):
        assert (worst >= 3 * epsilon).mean() <= bounds.theorem_a1(examples=40, epsilon=epsilon, covering=3)
