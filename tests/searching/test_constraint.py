"""The best under a limit: counts are those of the networks, the limit is kept, and how sure is said."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from command import run
from nasight.errors import RequestError
from nasight.searching import Run, resume, search
from nasight.searching._constraint import LogProbability, chances_of_best
from nasight.searching._units import read_count
from nasight.spaces import load, multiply_adds
from nasight.spaces.module import Choice


@pytest.mark.parametrize(
    ("space", "inputs", "size"),
    [
        ("nasbench201", (3, 32, 32), {"channels": 4, "cells": 2}),
        ("darts", (3, 16, 16), {"channels": 4, "cells": 4}),
        ("nasbench1shot1-1", (1, 8, 8), {"channels": 4, "cells": 1}),
        ("nasbench1shot1-3", (1, 8, 8), {"channels": 4, "cells": 2}),
        ("mlp", (1, 8, 8), {"width": 16}),
    ],
)
def test_a_count_is_that_of_the_network_built(space: str, inputs: tuple[int, ...], size: dict[str, int]) -> None:
    where, generator = load(space), torch.Generator().manual_seed(0)
    count = where.parameters(inputs, 10, **size)
    least = count.smallest()[0]
    for _ in range(12):
        arch = where.sample(generator)
        if where.usable(arch) is None:
            network = where.network(arch, inputs, 10, **size)
            assert count(arch) == sum(p.numel() for p in network.parameters()), where.format(arch)
            assert least <= count(arch)


@pytest.mark.slow
def test_the_counts_of_nasbench201_are_the_published_ones_and_the_smallest_has_no_convolution() -> None:
    count = load("nasbench201").parameters((3, 32, 32), 10, **{"channels": 16, "cells": 5})
    arch = load("nasbench201").parse("|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|none~1|nor_conv_3x3~2|")
    assert count(arch) == 73_306 + 2 * 243_040 + 28_000
    assert count.smallest() == (73_306, True)


@pytest.mark.parametrize(
    ("text", "count"), [("300k", 300_000), ("1.5M", 1_500_000), ("300000", 300_000), ("2,000", 2_000)]
)
def test_numbers_of_parameters_are_read(text: str, count: int) -> None:
    assert read_count(text) == count


@pytest.mark.parametrize("text", ["", "many", "-3k", "3kk", "0", "nan"])
def test_what_is_no_number_of_parameters_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r"is written as 300k, 1\.5M or 300000"):
        read_count(text)


def test_the_arg_max_is_the_likeliest_architecture_of_every_space() -> None:
    for name in ("nasbench201", "darts", "nasbench1shot1-2", "mlp"):
        space, generator = load(name), torch.Generator().manual_seed(1)
        groups = space.groups(edges=space.edge_weights)
        weights = {}
        for group in groups:
            rows = [torch.rand(size, generator=generator).softmax(0) for size in group.sizes]
            weights[group.name] = torch.cat(rows).reshape(group.shape)
        log_p = LogProbability(weights, groups, space)
        best = log_p(space.derive(weights))
        assert all(log_p(space.sample(generator)) <= best for _ in range(300)), name


def test_the_chance_of_being_best_is_one_half_for_equals_and_grows_with_the_difference() -> None:
    generator = torch.Generator().manual_seed(0)
    right = torch.rand(3, 400, generator=generator) < torch.tensor([[0.7], [0.7], [0.2]])
    right[1] = right[0]
    assert chances_of_best(right, generator).tolist() == pytest.approx([0.5, 0.5, 0.0])
    better = right[0].clone()
    better[(~better).nonzero()[:12, 0]] = True
    assert 0.97 < float(chances_of_best(torch.stack([right[0], better]), generator)[1]) <= 1


@pytest.mark.slow
def test_the_pick_keeps_the_limit_is_the_best_of_the_likeliest_and_both_answers_are_kept(
    tiny: Callable[..., Run],
) -> None:
    free = tiny("free")
    count = free.space.parameters((1, 8, 8), 10, **free.settings.size)
    limit = count(free.architecture) - 1
    run = tiny("limited", max_params=limit)
    about = run.result["constraint"]
    assert run.settings.max_params == limit
    products = free.space.multiply_adds((1, 8, 8), 10, **free.settings.size)
    assert about["unconstrained"] == {
        "architecture": free.result["architecture"],
        "params": limit + 1,
        "multiply_adds": products(free.architecture),
        "latency": None,
    }
    assert about["multiply_adds"] == products(run.architecture)
    assert about["params"] == count(run.architecture) <= limit
    log_p = LogProbability(run.weights, run.space.groups(), run.space)
    within = sorted((log_p(a) for a in run.space if count(a) <= limit), reverse=True)
    assert [row["log_probability"] for row in about["candidates"]] == pytest.approx(within[:20])
    best = max(about["candidates"], key=lambda row: row["accuracy"])
    assert run.result["accuracy"] == pytest.approx(best["accuracy"])
    assert 0 < about["sure"] <= 1
    assert sum(row["best_with_probability"] for row in about["candidates"]) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "method", "size"),
    [
        ("darts", "gaea-darts", {"channels": 4, "cells": 3}),
        ("nasbench1shot1-3", "gaea-pc-darts", {"channels": 4, "cells": 1}),
        ("nasbench201", "rs-ws", {"channels": 4, "cells": 1}),
    ],
)
def test_a_limit_just_over_the_smallest_is_kept_in_large_spaces_and_without_weights(
    tiny: Callable[..., Run], space: str, method: str, size: dict[str, int]
) -> None:
    where = load(space, none=False) if space == "nasbench201" else load(space)
    least, certain = where.parameters((1, 8, 8), 10, **size).smallest()
    assert certain
    limit = int(least * 1.2)
    run = tiny(space=space, method=method, size=size, epochs=1, examples=100, candidates=5, max_params=limit)
    assert run.result["constraint"]["params"] <= limit
    assert run.architecture in run.space


def test_a_user_s_own_module_is_searched_under_a_limit(tmp_path: Path) -> None:
    def build() -> nn.Module:
        wide = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        return nn.Sequential(nn.Flatten(), Choice({"wide": wide, "narrow": nn.Linear(64, 10)}))

    settings: dict[str, Any] = {"preset": "tiny", "epochs": 1, "threads": 1, "examples": 200}
    run = search(build, data="digits", out=tmp_path / "r", max_params="1k", **settings)
    assert run.result["architecture"] == "1=narrow"
    assert run.result["constraint"]["params"] == 650
    assert run.result["constraint"]["multiply_adds"] == 640
    with pytest.raises(RequestError, match="has at most 100 parameters: the smallest has 650"):
        search(build, data="digits", out=tmp_path / "s", max_params=100, **settings)


@pytest.mark.slow
def test_a_stopped_search_keeps_its_limit_and_ends_as_one_that_was_not(
    tiny: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tiny("whole", max_params=6_000)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nasight.searching._agreement.constrained", stop)
        with pytest.raises(KeyboardInterrupt):
            tiny("stopped", max_params=6_000)
    assert not Run(tmp_path / "stopped").finished
    again = resume(tmp_path / "stopped")
    assert again.result["constraint"] == whole.result["constraint"]
    assert again.result["architecture"] == whole.result["architecture"]


@pytest.mark.slow
def test_the_command_says_the_count_and_how_sure_and_refuses_the_impossible_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = ["--data", "digits", "--preset", "tiny", "--examples", "200", "--epochs", "1", "--threads", "1"]

    def searched(name: str, *arguments: str) -> int:
        return run("search", *fast, "--out", str(tmp_path / name), *arguments)

    # `nasight train --preset tiny` has 8 channels and 1 cell a stage.
    assert searched("a", "--max-params", "1k") == 2
    said = capsys.readouterr().err
    assert (
        "no architecture of 'nasbench201' has at most 1,000 parameters at channels 8, cells 1: the smallest has" in said
    )
    assert not (tmp_path / "a").exists()
    assert searched("b", "--max-params", "lots") == 2
    assert "is written as 300k, 1.5M or 300000, got 'lots'" in capsys.readouterr().err
    assert searched("c", "--max-params", "25k", "--channels", "4") == 0
    shown = capsys.readouterr().out
    assert "of at most 25,000 (at channels 8, cells 1)" in shown
    assert re.search(r"^  multiplies   [\d.]+ k \(multiply-adds per example\)$", shown, re.MULTILINE)
    assert "that it is the best of 20 candidates within the limit" in shown
    result = json.loads((tmp_path / "c" / "result.json").read_text())
    assert result["constraint"]["size"] == {"channels": 8, "cells": 1}
    network = Run(tmp_path / "c").space.network(Run(tmp_path / "c").architecture, (1, 8, 8), 10, channels=8, cells=1)
    assert sum(p.numel() for p in network.parameters()) == result["constraint"]["params"] <= 25_000
    assert multiply_adds(network, (1, 8, 8)) == result["constraint"]["multiply_adds"]
    assert searched("d", "--max-params", "25k", "--method", "eigen") == 2
    assert "has no setting 'max_params'" in capsys.readouterr().err
