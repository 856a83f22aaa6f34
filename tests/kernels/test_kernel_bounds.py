"""Theorems 1 to 3 of EigenNAS: what is repaired holds, what is printed does not."""

from __future__ import annotations

import numpy as np
import pytest

from nasight.errors import RequestError
from nasight.kernels import ntk, schur_bound, theorem_1, theorem_1_printed, theorem_2, theorem_3
from nasight.spaces.mlp import ACTIVATIONS


def circle(count: int) -> np.ndarray:
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.slow
def test_no_repaired_bound_is_violated_on_200_random_networks() -> None:
    rng, informative = np.random.default_rng(0), 0
    for index in range(200):
        depth = int(rng.integers(2, 8))
        names = [str(name) for name in rng.choice(ACTIVATIONS, depth - 1)]
        skips = [float(skip) for skip in rng.choice([0.0, 0.4, 1.0], depth - 2)]
        rows = rng.normal(size=(int(rng.integers(1, 9)), int(rng.integers(1, 25))))
        # Every tenth with rows of any norm: the repaired bounds do not need norm 1.
        rows /= 1 if index % 10 == 0 else np.linalg.norm(rows, axis=1, keepdims=True)
        form = "exact" if index % 3 else "printed"
        kernel, layers = ntk(rows, names, skips, form=form, layers=True)
        smallest, rounding = float(np.linalg.eigvalsh(kernel)[0]), 1e-9 * float(kernel.max())
        for bound in (theorem_1(rows, names, skips, form=form), schur_bound(layers, skips, form=form)):
            assert bound.lower is not None
            assert bound.upper is not None
            assert bound.lower - rounding <= smallest <= bound.upper + rounding, (bound, names, skips, rows.shape)
        informative += theorem_1(rows, names, skips, form=form).lower > 0
    assert informative > 50


def test_the_printed_lower_bound_is_impossible() -> None:
    """Unit-norm, isotropic, N >= d^4: every assumption is met, yet it exceeds the diagonal, and grows with N."""
    for count in (16, 64):
        rows = circle(count)
        bound = theorem_1_printed(rows, ["relu", "relu"])
        assert bound.holds
        kernel = ntk(rows, ["relu", "relu"])
        assert bound.lower == pytest.approx(count / 4)
        assert bound.lower > np.diagonal(kernel).max() > np.linalg.eigvalsh(kernel)[0]


def test_the_paper_s_sum_is_no_upper_bound_of_the_exact_kernel_with_skips() -> None:
    bound = theorem_1(np.eye(1), ["relu"] * 3, [1, 1])
    assert bound.values["paper's sum"] == pytest.approx(12)
    assert ntk(np.eye(1), ["relu"] * 3, [1, 1])[0, 0] == pytest.approx(15.977, abs=1e-3)
    assert bound.upper == pytest.approx(15.977, abs=1e-3)


def test_theorem_1_of_orthogonal_relu_rows_is_half_a_power_of_two() -> None:
    assert theorem_1(np.eye(4), ["relu"] * 3, [1, 1]).lower == pytest.approx(0.5 * 2 * 2)


def test_what_the_data_lacks_is_said() -> None:
    rows = np.array([[1.0, 0], [2.0, 0], [3.0, 1.0]])
    failed = {a.text[:9] for a in theorem_1_printed(rows, ["relu", "tanh"], [1]).assumptions if not a.holds}
    assert failed == {"every exa", "isotropic", "N is at l"}
    bound = theorem_1(rows, ["relu", "tanh"], [1])
    assert bound.lower == 0
    assert [a.measured for a in bound.assumptions if a.text.startswith("lambda_min")] == [0]
    line = np.tile([[1.0, 0, 0]], (40, 1))
    assert not theorem_2(line, ["relu", "relu"]).assumptions[1].holds


def test_theorem_2_s_order_terms_of_relu_with_skips() -> None:
    bound = theorem_2(np.eye(4), ["relu"] * 3, [1, 1])
    assert (bound.lower, bound.upper) == pytest.approx((4, 4 + 2 + 1 + 1))


def test_theorem_3_has_its_constants_and_step_size() -> None:
    rows, labels = np.eye(4), [1, -1, 1, 1]
    kernel = ntk(rows, ["relu"] * 3, [1, 1])
    bound = theorem_3(rows, kernel, labels, ["relu"] * 3, delta=0.1, width=1000)
    assert (bound.values["C1"], bound.values["C2"]) == pytest.approx((2 / 64, 2 * 64))
    smallest = np.linalg.eigvalsh(kernel)[0]
    assert bound.upper == pytest.approx(128 / np.sqrt(smallest) + np.sqrt(np.log(10) / 4))
    energy = np.array(labels) @ np.linalg.solve(kernel, labels)
    assert bound.values["step size"] == pytest.approx(np.sqrt(energy) / 32 / (1000 * 2))
    assert bound.values["by y^T K^-1 y"] <= bound.upper


def test_duplicate_rows_leave_theorem_3_nothing_to_promise() -> None:
    rows = np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    bound = theorem_3(rows, ntk(rows, ["relu", "tanh"]), [1, -1, 1], ["relu", "tanh"])
    assert bound.upper == np.inf
    assert not bound.holds
    assert [a.measured for a in bound.assumptions if "equal" in a.text] == [0]
    with pytest.raises(RequestError, match="labels of -1 and \\+1"):
        theorem_3(rows, np.eye(3), [0, 1, 2], ["relu"])
