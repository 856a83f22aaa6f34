"""Scores without training: what they compute, for whom, once, again, and after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from nasight.data import load as load_data
from nasight.errors import RequestError, RunError
from nasight.kernels import (
    SCORES,
    Score,
    eigen_search,
    empirical_ntk,
    nasi_search,
    register,
    resume_score,
    score,
)
from nasight.kernels import _scores as s
from nasight.kernels._scoring import draw, representatives
from nasight.spaces import load
from nasight.spaces.nasbench201 import NasBench201

CELL = "|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|nor_conv_3x3~1|nor_conv_1x1~2|"
DEAD = "|nor_conv_3x3~0|+|nor_conv_3x3~0|none~1|+|none~0|none~1|none~2|"
SMALL = {"channels": 2, "cells": 1}


@pytest.fixture
def network() -> nn.Module:
    space = load("nasbench201")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return space.network(space.parse(CELL), (3, 8, 8), 4, channels=4, cells=1)


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(8, 3, 8, 8, generator=generator), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])


def test_kernel_scores_are_their_formulas(network: nn.Module, batch: tuple[Tensor, Tensor]) -> None:
    x, y = batch
    kernel = empirical_ntk(network, x)
    values = torch.linalg.eigvalsh(kernel)
    assert s.eigen(network, x, y) == pytest.approx(float(kernel.trace()) / 8, rel=1e-4)
    assert s.eigen_min(network, x, y) == pytest.approx(float(values[0]), rel=1e-3)
    assert s.knas(network, x, y) == pytest.approx(float(kernel.square().sum().sqrt()), rel=1e-4)
    assert s.knas_mean(network, x, y) == pytest.approx(float(kernel.mean()), rel=1e-3)
    # EigenNAS, Section 5.2: each bounds the one before it.
    assert s.eigen_min(network, x, y) <= s.eigen(network, x, y) <= s.knas(network, x, y)


def test_nasi_is_the_square_norm_of_the_gradient_of_a_batch(network: nn.Module, batch: tuple[Tensor, Tensor]) -> None:
    x, y = batch
    for norm in (m for m in network.modules() if isinstance(m, nn.BatchNorm2d)):
        norm.register_forward_pre_hook(_take_statistics)
    network.eval()
    loss = nn.functional.cross_entropy(network(x), y, reduction="sum")
    grads = torch.autograd.grad(loss, list(network.parameters()))
    assert s.nasi(network, x, y) == pytest.approx(sum(float(g.square().sum()) for g in grads) / 8, rel=1e-3)


def _take_statistics(norm: nn.Module, args: tuple[Tensor]) -> None:
    assert isinstance(norm, nn.BatchNorm2d)
    norm.running_mean = args[0].detach().mean((0, 2, 3))
    norm.running_var = args[0].detach().var((0, 2, 3), unbiased=False)


def test_naswot_counts_the_units_on_which_two_examples_agree() -> None:
    network = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU())
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    x = torch.tensor([[1.0, 1.0], [1.0, -2.0]])  # patterns 111 and 100: they agree on one unit of three
    expected = torch.tensor([[3.0, 1.0], [1.0, 3.0]]).logdet()
    assert s.naswot(network, x, torch.zeros(2)) == pytest.approx(float(expected))
    assert s.regions(network, x, torch.zeros(2)) == 2
    with pytest.raises(s.NoScore, match="singular"):
        s.naswot(network, x[[0, 0]], torch.zeros(2))
    with pytest.raises(s.NoScore, match="no rectifier"):
        s.naswot(nn.Linear(2, 2), x, torch.zeros(2))


def test_parameters_and_flops_are_those_of_the_benchmark(batch: tuple[Tensor, Tensor]) -> None:
    space = load("nasbench201")
    network = space.network(space.parse(CELL), (3, 32, 32), 10)
    x, y = torch.randn(1, 3, 32, 32), torch.zeros(1)
    assert s.params(network, x, y) == 73_306 + 2 * 243_040 + 2 * 28_000
    # A 3x3 convolution of 16 channels on 32 x 32 pixels and its like in later stages: 5 x 3 x 2 x 2.36 million.
    plain = space.network(space.parse(CELL.replace("nor_conv_3x3~0", "skip_connect~0")), (3, 32, 32), 10)
    assert s.flops(network, x, y) - s.flops(plain, x, y) == 15 * 2 * 9 * 16 * 16 * 32 * 32


@pytest.mark.slow
def test_scores_do_not_depend_on_workers_neighbors_or_order() -> None:
    how = {"size": SMALL, "seed": 5}
    metrics = ["eigen", "naswot"]
    space = load("nasbench201")
    cells = [DEAD, *(space.format(arch) for arch in draw(space, 17, 1))]
    one = score("nasbench201", metrics, "digits", architectures=cells, workers=1, **how)  # type: ignore[arg-type]
    two = score("nasbench201", metrics, "digits", architectures=cells[::-1], workers=2, **how)  # type: ignore[arg-type]
    for metric in metrics:
        assert one.values[metric] == two.values[metric][::-1]
    other = score("nasbench201", metrics, "digits", architectures=cells[:2], workers=1, size=SMALL, seed=6)
    assert other.values["eigen"][1] != one.values["eigen"][1]


def test_a_cell_that_is_no_network_gets_the_worst_score_of_every_row() -> None:
    names = [name for name in SCORES if not SCORES[name].ranks]
    found = score("nasbench201", names, "digits", architectures=[CELL, DEAD], size=SMALL, workers=1)
    assert set(found.failed) == {DEAD}
    assert "no path" in found.failed[DEAD]["eigen"]
    for name in names:
        assert found.top(name, 1)[0][0] == CELL
    json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_cells_of_one_form_are_scored_once_and_alike(tmp_path: Path) -> None:
    space = load("nasbench201")
    form = "|{}~0|+|none~0|{}~1|+|none~0|none~1|skip_connect~2|"
    twins = [form.format("nor_conv_3x3", "skip_connect"), form.format("skip_connect", "nor_conv_3x3")]
    assert len({space.canonical(space.parse(text)) for text in twins}) == 1
    found = score("nasbench201", "eigen", "digits", architectures=twins, size=SMALL, workers=1, out=tmp_path / "s")
    assert found.forms == 1
    assert found.values["eigen"][0] == found.values["eigen"][1]
    assert len((tmp_path / "s" / "scores.jsonl").read_text().splitlines()) == 1
    alone = score("nasbench201", "eigen", "digits", architectures=twins[1:], size=SMALL, workers=1)
    assert alone.values["eigen"][0] == found.values["eigen"][1]


def test_there_are_6466_forms_to_score() -> None:
    assert len(representatives(load("nasbench201"))) == 6466


@pytest.mark.slow
def test_a_killed_scoring_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out, calls = tmp_path / "s", []

    def die(done: int, total: int) -> None:
        calls.append(done)
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score("nasbench201", "knas-mean", "digits", sample=24, size=SMALL, workers=1, out=out, progress=die)
    kept = (out / "scores.jsonl").read_text()
    (out / "scores.jsonl").write_text(kept + '{"form": "torn')
    done: list[int] = []
    found = resume_score(out, workers=1, progress=lambda d, t: done.append(d))
    assert done[0] == 16
    whole = score("nasbench201", "knas-mean", "digits", sample=24, size=SMALL, workers=1)
    assert found.values == whole.values
    assert found.architectures == whole.architectures
    # More metrics for the same cells cost these metrics only.
    more = score("nasbench201", "knas-mean,params", "digits", sample=24, size=SMALL, workers=1, out=out)
    assert more.values["knas-mean"] == whole.values["knas-mean"]
    lines = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    assert all(list(line["scores"]) == ["params"] for line in lines[-found.forms :])
    with pytest.raises(RequestError, match="holds scores with seed 0, not 1"):
        score("nasbench201", "params", "digits", sample=2, size=SMALL, workers=1, out=out, seed=1)


def test_te_nas_sums_the_ranks_by_condition_and_regions() -> None:
    cells = [CELL, CELL.replace("3x3", "1x1"), DEAD]
    cells[1] = cells[1].replace("avg_pool_1x1", "avg_pool_3x3")
    found = score("nasbench201", "condition,regions,te-nas", "digits", architectures=cells, size=SMALL, workers=1)
    by_condition = sorted(range(3), key=lambda i: found.values["condition"][i])
    by_regions = sorted(range(3), key=lambda i: -found.values["regions"][i])
    assert len(set(found.values["regions"])) == 3
    assert found.values["te-nas"] == [by_condition.index(i) + by_regions.index(i) + 2 for i in range(3)]
    assert found.directions["te-nas"] == "low"


def depth(network: nn.Module, x: Tensor, y: Tensor) -> float:
    return float(sum(isinstance(m, nn.Conv2d) for m in network.modules()))


def test_a_metric_of_ones_own_is_one_function_and_one_line() -> None:
    register("depth", depth)
    try:
        found = score("nasbench201", "depth", "digits", architectures=[CELL, DEAD], size=SMALL, workers=1)
        assert found.values["depth"] == [1 + 3 * 4 + 2 * 3, SCORES["depth"].failed]
        with pytest.raises(RequestError, match="there is a score 'depth' already"):
            register("depth", depth)
    finally:
        SCORES.remove("depth")
    with pytest.raises(RequestError, match="did you mean 'naswot'"):
        score("nasbench201", "naswott", "digits", sample=1, workers=1)


@pytest.mark.parametrize(("space", "size"), [("mlp", {"width": 16}), ("darts", {"channels": 2, "cells": 3})])
def test_other_spaces_are_scored_too(space: str, size: dict[str, int]) -> None:
    found = score(space, "eigen,naswot,te-nas,nasi,params", "digits", sample=2, size=size, batch=8, workers=1)
    assert all(len(values) == 2 for values in found.values.values())
    assert all(value > 0 for value in found.values["eigen"])


def test_eigen_search_returns_the_best_by_validation_among_the_best_by_score() -> None:
    asked: list[str] = []

    def evaluate(texts: list[str]) -> list[float]:
        asked.extend(texts)
        return [10.0, 90.0, 50.0]

    found = eigen_search("nasbench201", "digits", evaluate, sample=12, top=3, size=SMALL, workers=1)
    scores = score("nasbench201", "eigen", "digits", sample=12, size=SMALL, workers=1)
    assert asked == [text for text, _ in scores.top("eigen", 3)]
    assert (found.architecture, found.accuracy) == (asked[1], 90.0)
    with pytest.raises(RunError, match="none of 1 architectures has a score"):
        eigen_search("nasbench201", "digits", evaluate, architectures=[DEAD], size=SMALL, workers=1)


def test_the_ascent_of_nasi_ends_at_a_cell_and_repeats() -> None:
    space, data = load("nasbench201", none=False), load_data("digits")
    batches = [(data.train_x[:6], data.train_y[:6])]
    once, again = (nasi_search(space, batches, size=SMALL, steps=4) for _ in range(2))
    assert once == again
    assert once in space


def test_nasi_climbs_the_trace_norm_unless_the_bound_holds_it_back() -> None:
    space = load("mlp", layers=2)
    data = load_data("digits")
    x, y = data.train_x[:32], data.train_y[:32]
    free = nasi_search(space, [(x, y)], size={"width": 32}, steps=60, bound=1e9)
    held = nasi_search(space, [(x, y)], size={"width": 32}, steps=60, bound=0.0)
    norms = {space.format(a): s.nasi(_mlp(a), x, y) for a in space}
    assert norms[space.format(free)] > norms[space.format(held)]


def _mlp(arch: object) -> nn.Module:
    space = load("mlp", layers=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return space.network(arch, (1, 8, 8), 10, width=32)  # type: ignore[arg-type]


def test_a_ready_score_or_one_of_an_installed_package_is_a_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value = "packaged", "package:depth"

        def load(self) -> object:
            return depth

    monkeypatch.setattr("nasight.registry.entry_points", lambda group: [Entry()] if group == "nasight.scores" else [])
    monkeypatch.setattr(SCORES, "_looked", False)
    try:
        row = register(Score("shallow", depth, direction="low", batch=2))
        assert SCORES["shallow"] is row
        found = score("nasbench201", "shallow,packaged", "digits", architectures=[CELL], size=SMALL, workers=1)
        assert found.values["shallow"] == found.values["packaged"]
        assert found.directions == {"shallow": "low", "packaged": "high"}
    finally:
        SCORES.remove("shallow")
        SCORES.remove("packaged")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: register("a", depth, direction="up"), "direction must be 'high' or 'low', got 'up'"),
        (lambda: register("a"), "score 'a' needs a function, or the names of scores whose ranks it sums"),
        (lambda: SCORES.add("a", 7), r"score 'a' must be a Score or a function \(network, x, y\), got 7"),
    ],
)
def test_what_is_no_score_is_refused_in_a_sentence(make: Callable[[], object], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        make()


def test_a_space_says_itself_at_which_size_it_is_scored() -> None:
    class Narrow(NasBench201):
        score_size: ClassVar[dict[str, int]] = {"channels": 2, "cells": 1}
        thin_size: ClassVar[dict[str, int]] = {}

    found = score(Narrow(), "params,regions", "digits", architectures=[CELL], workers=1)
    assert found.settings["size"] == {"channels": 2, "cells": 1}
    given = score("nasbench201", "params", "digits", architectures=[CELL], size={"channels": 2, "cells": 1}, workers=1)
    assert found.values["params"] == given.values["params"]
