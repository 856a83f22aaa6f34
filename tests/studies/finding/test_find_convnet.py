"""A find in the space of plain convolutional networks, which is that of images by default."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import nasight
from nasight.architecture import Architecture
from nasight.data import Dataset
from nasight.spaces import Space, load
from nasight.studies.finding import _stages
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._near import closest, near_in_sizes, near_reference
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
    found = near_reference(
        space, space.reference, lambda arch: (products(arch) or 0) <= most, lambda arch: -count(arch), 5
    )
    texts = [space.format(proposal.architecture) for proposal in found]
    # 94,762 parameters and 2 * 147,456 + 512 of two more layers; 147,456 + 256 of one; 73,728 kernels of a wider stage.
    assert texts == [
        "k3/w1n1/w1n1/w1n3+", "k3/w1n1/w1n1/w1n2", "k3/w1n1/w1n1/w1n2+", "k3/w1n1/w2n1/w1n1", "k3/w1n1/w1n1/w2n1",
    ]  # fmt: skip
    assert {proposal.by for proposal in found} == {"near the reference"}


def test_of_a_reference_with_options_that_are_not_searched_these_alone_give_way_to_searched_ones() -> None:
    space = load("nasbench201", none=False)
    count = space.parameters((3, 32, 32), 10, channels=16, cells=5)
    found = near_reference(space, space.reference, lambda arch: True, lambda arch: -count(arch), 100)
    kept = [name for name, option in space.reference if option != "none"]
    assert len(kept) == 4
    assert len({p.architecture for p in found}) == len(found) == 4**2
    assert all(p.architecture[name] == space.reference[name] for p in found for name in kept)
    assert space.format(found[0].architecture) == (
        "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|"
    )


@pytest.mark.parametrize(
    ("name", "options", "inputs", "size", "most"),
    [
        ("nasbench201", {"none": False}, (3, 32, 32), {"channels": 16, "cells": 5}, 400_000),
        ("nasbench201", {"none": False}, (3, 32, 32), {"channels": 16, "cells": 5}, 200_000),
        ("convnet", {}, (3, 16, 16), {"channels": 32}, 80_000),
        ("convnet", {}, (3, 16, 16), {"channels": 32}, 40_000),
    ],
)
def test_what_stands_for_a_reference_over_a_limit_is_the_closest_within_it_and_of_these_the_largest(
    name: str, options: dict[str, bool], inputs: tuple[int, int, int], size: dict[str, int], most: int
) -> None:
    space = load(name, **options)
    count, usual = space.parameters(inputs, 10, **size), load(name).reference
    found = closest(space, usual, lambda arch: count(arch) <= most, count, 20_000)
    assert found is not None

    def changes(arch: Architecture) -> int:
        return sum(option != usual[decision] for decision, option in arch)

    within = [arch for arch in space if count(arch) <= most and space.usable(arch) is None]
    assert count(usual) > most
    assert (changes(found), -count(found)) == min((changes(arch), -count(arch)) for arch in within)
    asked = list[Architecture]()
    assert closest(space, usual, lambda arch: bool(asked.append(arch)), count, 300) is None  # type: ignore[func-returns-value]
    assert len(set(asked)) == len(asked) <= 300


def test_for_the_front_the_closest_to_the_reference_within_smaller_sizes_are_proposed() -> None:
    space = load("nasbench201", none=False)
    count, usual = space.parameters((3, 32, 32), 10, channels=16, cells=5), space.reference
    found = near_in_sizes(space, usual, lambda arch: True, count, [count(arch) for arch in space], 2_000)
    sizes = [count(proposal.architecture) for proposal in found]
    # Six steps of the same ratio from 73,306 parameters, where nothing is learned but stem and head, to 1,531,546.
    limits = [73_306 * (1_531_546 / 73_306) ** (step / 6) for step in range(1, 6)]
    assert all(size <= limit for size, limit in zip(sizes, limits, strict=True))
    for proposal, limit in zip(found, limits, strict=True):
        assert proposal.architecture == closest(
            space, usual, lambda arch, most=limit: count(arch) <= most, count, 9_999
        )
    assert [proposal.by for proposal in found] == [
        f"near the reference within {share} %".replace(" %", "%") for share in (8, 13, 22, 36, 60)
    ]
    # Of as many parameters, what has the operations of the reference comes before pooling, which it does not have.
    assert space.format(found[2].architecture) == (
        "|nor_conv_3x3~0|+|skip_connect~0|skip_connect~1|+|skip_connect~0|skip_connect~1|skip_connect~2|"
    )
    # Where the limit is wide enough nothing but what is not searched gives way.
    assert [name for name, option in found[-1].architecture if option != usual[name]] == ["0->2", "1->3"]


def test_the_reference_is_not_what_is_closest_to_it_within_a_smaller_size() -> None:
    space = load("convnet")
    count, usual = space.parameters((3, 16, 16), 10), space.reference
    found = near_in_sizes(space, usual, lambda arch: True, count, [4 * count(usual)], 2_000)
    assert found
    assert usual not in [proposal.architecture for proposal in found]
    assert near_in_sizes(space, usual, lambda arch: True, count, [4 * count(usual)], 2_000, 0) == []


def test_where_few_of_those_near_the_reference_can_enter_every_decision_has_one_before_any_has_two() -> None:
    space = load("convnet")
    products = space.multiply_adds((3, 16, 16), 10)
    names = [decision.name for decision in space.decisions]
    turns = [names[i] for i in (4, 0, 6, 2, 1, 5, 3)]
    usual = products(space.reference) or 0
    found = near_reference(
        space, space.reference, lambda arch: True, lambda arch: abs((products(arch) or 0) - usual), 9, turns=turns
    )
    changed = [[name for name in names if p.architecture[name] != space.reference[name]] for p in found]
    assert changed == [[name] for name in [*turns, *turns[:2]]]
    # Of a decision the option that costs most like the reference: a kernel of 5x5 before one of 7x7.
    assert [p.architecture["first kernel"] for p in (found[1], found[8])] == ["5", "7"]
