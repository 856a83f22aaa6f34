"""A limit on latency: the median of a clock, few are measured, and no pick is above the limit."""

import json
import math
from collections.abc import Callable, Iterator
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from command import run
from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.searching import Run, search
from nasight.searching._latency import LIKELIEST, MEASURED, REPEATS, WARM_UP, Latency, quick
from nasight.searching._units import read_milliseconds
from nasight.spaces import load
from nasight.spaces.module import Choice

SPACE = load("nasbench201", none=False)
ALL = list(SPACE)
COST = {"skip_connect": 0.125, "avg_pool_3x3": 0.5, "nor_conv_1x1": 0.25, "nor_conv_3x3": 1.0}


class Known(Latency):
    """Times that follow from the operations, so that who keeps a limit is known without a clock."""

    def _measure(self, arch: Architecture) -> float:
        return sum(COST[option] for _, option in arch.choices)


def clock_of(passes: list[float]) -> Iterator[float]:
    """Readings of a clock: the begin, then the start and the end of each pass."""
    return accumulate(chain([1.0], *zip(repeat(0.0), passes, strict=False)))


def latency(clock: Callable[[], float]) -> Latency:
    return Latency(SPACE, (1, 8, 8), 10, {"channels": 2, "cells": 1}, clock=clock)


def shuffled(seed: int) -> list[Architecture]:
    return [ALL[i] for i in torch.randperm(len(ALL), generator=torch.Generator().manual_seed(seed)).tolist()]


def test_the_latency_is_the_median_after_the_warm_up_and_is_measured_once() -> None:
    counted = [k / 1024 for k in (9, 1, 15, 3, 2, 14, 8, 4, 13, 5, 12, 6, 11, 7, 10)]
    assert len(counted) == REPEATS
    readings = clock_of([1 / 8, 1 / 16, *counted])
    measured = latency(lambda: next(readings))
    assert measured(ALL[0]) == 8 / 1024 * 1000
    assert next(readings, None) is None
    assert measured(ALL[0]) == 8 / 1024 * 1000


def test_a_slow_network_is_passed_once_after_the_warm_up() -> None:
    readings = clock_of([3.0] * WARM_UP + [2.0, 7.0])
    assert latency(lambda: next(readings))(ALL[0]) == 2000
    assert sum(1 for _ in readings) == 2


def test_measuring_leaves_threads_and_global_randomness_as_they_were() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    readings = clock_of([1 / 64] * (WARM_UP + REPEATS))
    latency(lambda: next(readings))(ALL[-1])
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_five_times_the_cells_take_longer_by_the_real_clock() -> None:
    arch = SPACE.parse(
        "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"
    )
    # On a busy machine one of the two may be held up; the fastest of several measurements is not.
    times = {1: list[float](), 5: list[float]()}
    for _ in range(5):
        for cells, found in times.items():
            found.append(Latency(SPACE, (1, 8, 8), 10, {"channels": 4, "cells": cells})(arch))
    assert 0 < min(times[1]) < min(times[5])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.floats(0.5, 7), st.integers(0, 99), st.integers(1, 40))
def test_few_are_measured_none_is_above_the_limit_and_the_likelier_come_first(
    limit: float, seed: int, number: int
) -> None:
    order, known = shuffled(seed), Known(SPACE, (1, 8, 8), 10, {})
    kept = quick(order, known, limit, number, torch.Generator().manual_seed(seed))
    assert len(known.known) <= MEASURED
    assert len(kept) <= number
    assert all(known(a) <= limit for a in kept)
    assert kept == sorted(kept, key=order.index)


def test_where_the_likeliest_keep_the_limit_no_other_is_measured() -> None:
    order, known = shuffled(0), Known(SPACE, (1, 8, 8), 10, {})
    assert quick(order, known, 100.0, 20, torch.Generator()) == order[:20]
    assert list(known.known) == order[:20]


def test_rare_ones_are_found_behind_thousands_of_likelier_slow_ones() -> None:
    # The likeliest are the slowest. Six skips take 6/8; 4/8 are left for 1x1 convolutions (1/8 more each: 1 + 6 + 15 +
    # 20 + 15 ways) or for a pool (3/8 more) with at most one of them (6 + 6 * 5 ways): 93 of 4,096 keep the limit.
    known, limit = Known(SPACE, (1, 8, 8), 10, {}), 1.25
    order = sorted(ALL, key=known._measure, reverse=True)
    keep = [a for a in order if known._measure(a) <= limit]
    assert len(keep) == 93
    kept = quick(order, known, limit, 20, torch.Generator().manual_seed(0))
    assert len(kept) == 20
    assert set(kept) <= set(keep)
    assert LIKELIEST < len(known.known) <= MEASURED


@pytest.mark.parametrize(("text", "value"), [("5", 5.0), ("2.5", 2.5), (" 5 ms", 5.0), (".5ms", 0.5)])
def test_milliseconds_are_read(text: str, value: float) -> None:
    assert read_milliseconds(text) == value


@pytest.mark.parametrize("text", ["", "fast", "-3", "0", "nan", "inf", "5s", "1,5"])
def test_what_is_no_latency_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r"written in milliseconds above 0, as 5 or 2\.5, got"):
        read_milliseconds(text)


@pytest.mark.slow
def test_under_both_limits_every_candidate_keeps_both(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nasight.searching._constraint.Latency", Known)
    count = SPACE.parameters((1, 8, 8), 10, **{"channels": 4, "cells": 1})
    known = Known(SPACE, (1, 8, 8), 10, {})
    small, fast = sorted(map(count, ALL))[400], 1.5
    both = {SPACE.format(a) for a in ALL if count(a) <= small and known(a) <= fast}
    assert 0 < len(both) < min(sum(count(a) <= small for a in ALL), sum(known(a) <= fast for a in ALL))
    about = tiny(epochs=1, examples=100, max_params=small, max_latency=fast).result["constraint"]
    assert {row["architecture"] for row in about["candidates"]} <= both
    assert len(about["candidates"]) == 20
    assert (about["max_params"], about["max_latency"]) == (small, fast)
    assert about["params"] <= small
    assert about["latency"] <= fast


def test_a_limit_that_none_keeps_names_the_fastest_that_was_measured(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nasight.searching._constraint.Latency", Known)
    said = "that answers within 0.5 ms at channels 4, cells 1 was found in 'nasbench201': the fastest of 200 measured"
    with pytest.raises(RequestError, match=said + " takes 0.75 ms"):
        tiny(epochs=1, examples=100, max_latency="0.5")


@pytest.mark.slow
def test_a_user_s_own_module_is_timed_as_it_is_built(tmp_path: Path) -> None:
    def build() -> nn.Module:
        slow = nn.Sequential(*(nn.Linear(64, 64) for _ in range(300)), nn.Linear(64, 10))
        return nn.Sequential(nn.Flatten(), Choice({"slow": slow, "quick": nn.Linear(64, 10)}))

    given: dict[str, Any] = {"data": "digits", "preset": "tiny", "epochs": 1, "threads": 1, "examples": 100}
    found = search(build, out=tmp_path / "r", max_latency=0.4, **given)
    assert found.result["architecture"] == "1=quick"
    # Hopeless from the start: nothing is begun.
    with pytest.raises(
        RequestError, match="can be expected to answer within 1e-06 ms: the fastest of 2 measured takes"
    ):
        search(build, out=tmp_path / "s", max_latency=1e-6, **given)
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_the_command_says_the_latency_keeps_it_and_refuses_a_wrong_one_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = ["--data", "digits", "--preset", "tiny", "--examples", "100", "--epochs", "1", "--threads", "1"]

    def searched(name: str, *arguments: str) -> int:
        return run("search", *fast, "--out", str(tmp_path / name), *arguments)

    assert searched("a", "--max-latency", "soon") == 2
    assert "is written in milliseconds above 0, as 5 or 2.5, got 'soon'" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    assert searched("b", "--max-latency", "5", "--method", "eigen") == 2
    assert "has no setting 'max_latency'" in capsys.readouterr().err
    assert searched("c", "--max-latency", "500", "--channels", "4") == 0
    shown = capsys.readouterr().out
    assert "ms of at most 500 (one example, one thread, this machine)" in shown
    assert "(at channels 8, cells 1)" in shown
    found = Run(tmp_path / "c")
    about = json.loads((tmp_path / "c" / "result.json").read_text())["constraint"]
    assert found.settings.max_latency == about["max_latency"] == 500
    assert 0 < about["latency"] <= 500
    assert all(0 < row["latency"] <= 500 for row in about["candidates"])
    assert math.isfinite(Latency(found.space, (1, 8, 8), 10, about["size"])(found.architecture))
