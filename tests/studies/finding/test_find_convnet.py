"""A find in the space of plain convolutional networks, which is that of images by default."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import nasight
from nasight.data import Dataset
from nasight.spaces import Space, load
from nasight.studies.finding import _stages
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._proposers import near_reference
from nasight.studies.finding._size import most_products


def context(space: Space) -> Any:
    products = space.multiply_adds((3, 16, 16), 10, **(space.train_size("tiny") or {}))
    return SimpleNamespace(space=space, own_products=products, settings=SimpleNamespace(seed=0))


@pytest.mark.parametrize(("epochs", "times"), [(0.0, 3), (60.0, 3), (100.0, 5), (1_000.0, None)])
def test_a_candidate_costs_three_times_the_reference_or_what_leaves_time_for_twenty_epochs(
    epochs: float, times: float | None
) -> None:
    space = load("convnet")
    most = most_products(context(space), space.reference, epochs)
    base = space.multiply_adds((3, 16, 16), 10)(space.reference)
    assert base is not None
    assert most == (None if times is None else times * base)


def test_cells_that_cost_about_the_same_have_no_such_limit() -> None:
    space = load("nasbench201", none=False)
    assert most_products(context(space), space.reference) is None


@pytest.mark.slow
def test_images_are_searched_for_plain_networks_of_which_the_reference_is_the_plain_one(
    few_digits: Dataset, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    found = nasight.find(few_digits, trainings=26, epochs=1, workers=1, out=tmp_path / "a")
    result = found.result
    assert result["space"] == "convnet"
    lines = result["race"]["lines"]
    assert [line["architecture"] for line in lines if line["control"]] == ["k3/w1n1/w1n1/w1n1"]
    base = next(line["multiply_adds"] for line in lines if line["control"])
    assert max(line["multiply_adds"] for line in lines) <= 3 * base
    assert found.baseline["kind"] == "plain reference"
    assert "take the plain network" in found.sentence() or found.better
    assert few_digits.test_x is not None
    assert len(found.predict(few_digits.test_x[:5])) == 5
    assert "channels 32" in (tmp_path / "a" / "report.html").read_text()


@pytest.mark.slow
def test_time_decides_how_much_a_candidate_may_cost_and_that_is_kept(
    few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(event: str, values: Any) -> None:
        if event == "plan":
            raise KeyboardInterrupt

    torch.set_num_threads(1)
    monkeypatch.setattr(_stages, "_probe_mean", lambda leg, requests: 1e-3)  # seconds per row, on any machine
    base = load("convnet").multiply_adds((1, 8, 8), 10)(load("convnet").reference)
    assert base is not None
    # A training of the answer may take 4 s, which is 14 epochs of the reference; in hours there is time for all.
    for budget, most in ((100, 3.0 * base), (10_000, None)):
        with pytest.raises(KeyboardInterrupt):
            nasight.find(few_digits, budget=budget, workers=1, out=tmp_path / str(budget), progress=stop)
        journal = Journal(tmp_path / str(budget))
        assert journal["size 0"]["most_products"] == most
        assert journal["plan 0"]["most_products"] == most


def test_the_reference_is_changed_in_one_decision_the_largest_first() -> None:
    space = load("convnet")
    count = space.parameters((3, 16, 16), 10)
    products = space.multiply_adds((3, 16, 16), 10)
    most = 3 * (products(space.reference) or 0)
    found = near_reference(space, lambda arch: (products(arch) or 0) <= most, lambda arch: -count(arch), 5)
    texts = [space.format(proposal.architecture) for proposal in found]
    # 94,762 parameters and 2 * 147,456 + 512 of two more layers; 147,456 + 256 of one; 73,728 kernels of a wider stage.
    assert texts == [
        "k3/w1n1/w1n1/w1n3+", "k3/w1n1/w1n1/w1n2", "k3/w1n1/w1n1/w1n2+", "k3/w1n1/w2n1/w1n1", "k3/w1n1/w1n1/w2n1",
    ]  # fmt: skip
    assert {proposal.by for proposal in found} == {"near the reference"}
    assert near_reference(load("nasbench201", none=False), lambda arch: True, count, 5) == []


def test_where_few_of_those_near_the_reference_can_enter_every_decision_has_one_before_any_has_two() -> None:
    space = load("convnet")
    products = space.multiply_adds((3, 16, 16), 10)
    names = [decision.name for decision in space.decisions]
    turns = [names[i] for i in (4, 0, 6, 2, 1, 5, 3)]
    found = near_reference(
        space, lambda arch: True, lambda arch: abs((products(arch) or 0) - (products(space.reference) or 0)), 9,
        turns=turns,
    )  # fmt: skip
    changed = [[name for name in names if p.architecture[name] != space.reference[name]] for p in found]
    assert changed == [[name] for name in [*turns, *turns[:2]]]
    # Of a decision the option that costs most like the reference: a kernel of 5x5 before one of 7x7.
    assert [p.architecture["first kernel"] for p in (found[1], found[8])] == ["5", "7"]
