import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nasight.errors import RequestError, RunError
from nasight.searching import METHODS, Run, resume, search
from nasight.searching._loop import entropies
from nasight.spaces import load

ROW_KEYS = {
    "epoch",
    "train_loss",
    "train_accuracy",
    "valid_loss",
    "valid_accuracy",
    "discrete_loss",
    "discrete_accuracy",
    "drop",
    "entropy",
    "entropies",
    "architecture",
    "weights",
    "lr",
    "arch_lr",
    "seconds",
}


def test_a_run_carries_history_architecture_space_and_weights(tiny: Callable[..., Run]) -> None:
    run = tiny(epochs=3)
    assert [row["epoch"] for row in run.history] == [0, 1, 2]
    assert all(set(row) >= ROW_KEYS for row in run.history)
    assert run.architecture in run.space
    assert run.space.derive(run.weights) == run.architecture
    assert set(run.result) >= {"run", "space", "method", "architecture", "accuracy", "entropy", "seconds"}


@pytest.mark.slow
def test_the_drop_is_what_the_supernet_had_less_what_the_architecture_has(tiny: Callable[..., Run]) -> None:
    last = tiny().history[-1]
    assert last["drop"] == pytest.approx(last["valid_accuracy"] - last["discrete_accuracy"])


def test_the_reported_accuracy_is_that_of_the_saved_shared_weights(tiny: Callable[..., Run]) -> None:
    from nasight.data import load as load_data
    from nasight.searching._engine import Engine
    from nasight.searching._judging import evaluate

    run = tiny()
    engine = Engine(run.settings, run.space, load_data("digits"), run.method)
    engine.supernet = run.supernet()
    assert evaluate(engine, run.architecture, 0).means("d")["d_accuracy"] == pytest.approx(run.result["accuracy"])


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history_and_another_seed_another(tiny: Callable[..., Run]) -> None:
    first, again, other = tiny("a"), tiny("b"), tiny("c", seed=1)
    strip = [[{k: v for k, v in row.items() if k != "seconds"} for row in run.history] for run in (first, again, other)]
    assert strip[0] == strip[1]
    assert strip[0] != strip[2]


@pytest.mark.parametrize("path", ["fast", "plain"])
def test_both_paths_of_the_supernet_search(tiny: Callable[..., Run], path: str) -> None:
    assert tiny(path=path, epochs=1).result["accuracy"] > 0


@pytest.mark.slow
def test_fast_and_plain_paths_learn_the_same_for_the_first_steps(tiny: Callable[..., Run]) -> None:
    rows = [tiny(path, path=path, epochs=1).history[0] for path in ("fast", "plain")]
    assert rows[0]["train_loss"] == pytest.approx(rows[1]["train_loss"], rel=1e-3)


def test_the_entropy_of_uniform_weights_is_the_log_of_the_number_of_options() -> None:
    groups = load("nasbench201", none=False).groups(edges=True)
    found = entropies({g.name: g.uniform() for g in groups}, groups)
    assert len(found) == 6
    assert all(value == pytest.approx(torch.log(torch.tensor(4.0)).item()) for value in found.values())


def test_with_none_an_arg_max_that_disconnects_the_cell_is_refused_and_the_run_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nasight.spaces.nasbench201 import NasBench201

    nothing = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"
    monkeypatch.setattr(NasBench201, "derive", lambda self, weights: self.parse(nothing))
    with pytest.raises(RunError, match="no network: no path of operations leads from"):
        search(data="digits", preset="tiny", examples=100, epochs=1, none=True, out=tmp_path / "r", threads=1)
    run = Run(tmp_path / "r")
    assert run.result["accuracy"] is None
    assert run.history[0]["discrete_accuracy"] is None
    assert run.history[0]["unusable"]


def test_rs_ws_picks_among_candidates_and_leaves_the_weights_uniform(tiny: Callable[..., Run]) -> None:
    run = tiny(method="rs-ws", candidates=5)
    assert torch.equal(run.weights["operations"], torch.full((6, 4), 0.25))
    assert run.architecture in run.space


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "setting 'epochs' should be greater than or equal to 1, got 0"),
        ({"lr": float("nan")}, "setting 'lr'"),
        ({"learning_rate": 0.1}, "there is no setting 'learning_rate'"),
        ({"preset": "huge"}, "preset must be one of tiny, small, medium, paper, imagenet, got 'huge'"),
        ({"method": "dart"}, "did you mean 'darts'"),
        ({"space": "nasbench"}, "there is no space 'nasbench'"),
        ({"objective": "trilevel"}, "has no objective 'trilevel', only erm, bilevel"),
        ({"size": {"chanels": 8}}, "has no size 'chanels'; it has cells, channels"),
        ({"size": {"channels": 6}, "method": "pc-darts"}, "6 channels cannot be cut into 4 equal parts"),
        ({"examples": 12}, "12 training rows are too few for 10 classes"),
        ({"data": "digitz"}, "digitz"),
        ({"path": "slow"}, "path must be one of fast, plain, compiled, got 'slow'"),
        (
            {"preset": "imagenet"},
            "preset 'imagenet' is a published search .* not with 'gaea-darts' on 'nasbench201'",
        ),
        (
            {"arch_share": 0.2},
            "arch_share is for objectives that give the architecture rows of its own.*'erm'",
        ),
        ({"arch_share": 1.0, "objective": "bilevel"}, "setting 'arch_share' should be less than 1, got 1.0"),
        ({"partial": 2, "space": "mlp"}, "partial is 2, but space 'mlp' has no partial channels"),
        ({"epochs": 2, "warmup": 2}, "2 epochs leave none for the architecture after 2 of warm-up"),
    ],
)
def test_a_wrong_request_is_refused_in_one_sentence_and_makes_no_folder(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    values = {"data": "digits", "preset": "tiny", "threads": 1, **settings}
    with pytest.raises(RequestError, match=message) as caught:
        search(out=tmp_path / "r", **values)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_a_run_is_not_overwritten_unless_asked_and_nothing_else_ever_is(
    tiny: Callable[..., Run], tmp_path: Path
) -> None:
    tiny(epochs=1)
    with pytest.raises(RequestError, match="already holds a run"):
        tiny(epochs=1)
    tiny(epochs=1, overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(RequestError, match="exists and is not a run"):
        tiny("mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_an_unknown_key_in_a_run_s_settings_is_named(tiny: Callable[..., Run]) -> None:
    run = tiny(epochs=1)
    about = json.loads((run.path / "run.json").read_text())
    about["settings"]["momentums"] = 0.9
    (run.path / "run.json").write_text(json.dumps(about))
    with pytest.raises(RequestError, match="there is no setting 'momentums'"):
        _ = Run(run.path).settings


def test_two_classes_of_gray_floats_of_odd_size_can_be_searched(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 2
    x = torch.rand(120, 1, 9, 7, generator=generator) + y[:, None, None, None]
    run = search(data=(x, y), preset="tiny", epochs=1, out=tmp_path / "r", threads=1, size={"channels": 4, "cells": 1})
    assert resume(run.path, data=(x, y)).result == run.result


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_searches_every_objective_it_lists(tiny: Callable[..., Run], name: str) -> None:
    for objective in METHODS[name].objectives:
        run = tiny(objective.name, method=name, objective=objective.name)
        assert run.result["objective"] == objective.name
