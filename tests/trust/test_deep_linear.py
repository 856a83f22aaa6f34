"""A deep linear network is the mixture of its architectures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.trust import check_linear, joint_weights, linear_outputs, mixture_output

CELL = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))  # the graph of NAS-Bench-201
CHAIN = ((0, 1), (1, 2), (2, 3), (3, 4))


def network(seed: int, edges: tuple[tuple[int, int], ...], most: int = 3):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    operations = {edge: rng.normal(size=(int(rng.integers(2, most + 1)), 4, 4)) / 2 for edge in edges}
    rows = [rng.dirichlet(np.ones(len(m))) for m in operations.values()]
    return operations, rows, rng.normal(size=(30, 4)), rng.normal(size=4)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([CELL, CHAIN]))
def test_the_mixture_is_the_sum_of_architectures_with_the_outer_product_of_the_rows(
    seed: int, edges: tuple[tuple[int, int], ...]
) -> None:
    operations, rows, x, _ = network(seed, edges)
    joint, outputs = joint_weights(rows), linear_outputs(operations, x)
    summed = np.tensordot(joint, outputs, joint.ndim)
    np.testing.assert_allclose(summed, mixture_output(operations, rows, x), atol=1e-10)
    assert joint.sum() == pytest.approx(1)


def test_a_nonlinear_node_breaks_the_factorization() -> None:
    operations, rows, x, _ = network(0, CHAIN)
    relu = [np.maximum(x, 0)]
    for matrices, row in zip(operations.values(), rows, strict=True):
        relu.append(np.maximum(relu[-1] @ np.tensordot(row, matrices, 1).T, 0))
    summed = np.zeros_like(x)
    for index in np.ndindex(*(len(m) for m in operations.values())):
        h = np.maximum(x, 0)
        for matrices, option in zip(operations.values(), index, strict=True):
            h = np.maximum(h @ matrices[option].T, 0)
        summed += joint_weights(rows)[index] * h
    assert np.abs(summed - relu[-1]).max() > 0.1


@given(st.integers(0, 10_000))
def test_the_mode_of_the_joint_is_the_arg_max_of_every_row(seed: int) -> None:
    _, rows, _, _ = network(seed, CELL)
    joint = joint_weights(rows)
    assert np.unravel_index(joint.argmax(), joint.shape) == tuple(row.argmax() for row in rows)


def test_theorem_7_holds_for_whole_architectures() -> None:
    conclusions = 0
    for seed in range(40):
        operations, rows, x, v = network(seed, CHAIN[:3], most=2)
        found = check_linear(operations, rows, x, mixture_output(operations, rows, x) @ v, v)
        assert found.assumptions.realizability.holds
        for i, j in zip(*np.nonzero(found.concludes), strict=True):
            assert found.weights[i] > found.weights[j]
            conclusions += 1
    assert conclusions > 40


def test_a_wrong_graph_is_named() -> None:
    with pytest.raises(RequestError, match=r"edge \(2, 1\) must lead forwards"):
        linear_outputs({(2, 1): np.ones((2, 1, 1))}, np.ones((3, 1)))
    with pytest.raises(RequestError, match="architectures are too many"):
        joint_weights([[0.5, 0.5]] * 17)
