"""Searches on a device: the numbers of the CPU, and hardly a wait."""

from __future__ import annotations

import fakegpu
import pytest
import torch
from waits import SIZES, budget, engine, objectives, step, values

from nasight.searching import METHODS
from nasight.searching._judging import derive

CASES = [(space, method) for space in SIZES for method in METHODS if objectives(space, method)]


@pytest.mark.slow
@pytest.mark.parametrize(("space", "method"), CASES)
def test_a_step_of_every_method_space_and_objective_is_that_of_the_cpu_within_its_budget_of_waits(
    space: str, method: str
) -> None:
    row = METHODS[method]
    with fakegpu.present() as device:
        for objective in objectives(space, method):
            near, far = engine(space, method, objective, "cpu"), engine(space, method, objective, device)
            before = {name: value.clone() for name, value in values(near).items()}
            step(near)
            with fakegpu.counting() as ledger:
                step(far)
            assert ledger.synchronizations <= budget(row), (objective, ledger.kinds)
            expected, found = values(near), values(far)
            assert any(not torch.equal(before[name], expected[name]) for name in expected)
            for name, value in expected.items():
                torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6, msg=f"{objective}: {name}")


def test_candidates_with_rows_of_their_own_end_as_on_the_cpu() -> None:
    given = {"candidates": 9, "candidate_rows": 8, "validation": 0.3}
    with fakegpu.present() as device:
        near, far = (engine("mlp", "rs-ws", "weights", where, **given) for where in ("cpu", device))
        with fakegpu.counting() as ledger:
            found = derive(far, 3, candidates=9)
        # One wait for the figures of all of them.
        assert ledger.synchronizations == 1
        assert found == derive(near, 3, candidates=9)
