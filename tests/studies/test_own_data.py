"""Labels of every kind, and functions of one's own, in search, train, predict and find."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import nasight
from command import run as command
from nasight.data import Dataset, load, split_indices
from nasight.errors import RequestError
from nasight.own import OwnParts
from nasight.reproducible import generator_for
from nasight.searching import Progress
from nasight.spaces import PlainSpace
from nasight.studies import load_model
from nasight.studies import report as write_report
from nasight.studies.finding import _boosting, with_test_part
from nasight.studies.finding._boosting import ALL_TREES, TREES, boosting_seconds, train_boosting
from nasight.training import Job, parts, settings_for

ROWS = 90
CHANCE = np.random.default_rng(5)
X = CHANCE.normal(size=(ROWS, 4)).astype(np.float32)
SIDE = (X[:, 0] > 0).astype(int)
PRICE = (100 + 20 * X[:, 0] + CHANCE.normal(size=ROWS)).astype(np.float32)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": np.where(SIDE, "Bern", "Chur"), "price": PRICE})
TINY: dict[str, Any] = {"preset": "tiny", "epochs": 1, "threads": 1}
ARCH = "relu,relu,relu/0,0"

Source = Callable[[Path], Any]


SOURCES: dict[str, tuple[Source, str]] = {
    "pandas": (lambda _: FRAME, "numbers"),
    "names": (lambda _: (X, np.where(SIDE, "sun", "rain")), "classes"),
    "truth values": (lambda _: (X, SIDE.astype(bool)), "classes"),
    "integers": (lambda _: (X, np.where(SIDE, -7, 300)), "classes"),
    "one-hot": (lambda _: (torch.from_numpy(X), torch.eye(2)[SIDE]), "classes"),
    "several labels": (lambda _: (X, (X[:, :3] > 0).astype(int)), "labels"),
    "several numbers": (lambda _: (X, np.stack([PRICE, X[:, 1]], 1)), "numbers"),
    "DataLoader": (lambda _: DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(PRICE)), 8), "numbers"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_search_takes_labels_of_every_kind_and_knows_its_data_again(name: str, tmp_path: Path) -> None:
    make, kind = SOURCES[name]
    source = make(tmp_path)
    run = nasight.search("mlp", "gaea-darts", source, out=tmp_path / "run", **TINY)
    data = load(source)
    assert data.task.kind == kind
    assert run.result["metric"] == {"classes": "accuracy", "labels": "F1", "numbers": "R2"}[kind]
    again = run.load_data(None if isinstance(source, str) else source)
    assert again.fingerprint == data.fingerprint


@pytest.mark.parametrize("name", SOURCES)
def test_train_and_predict_take_labels_of_every_kind_and_keep_their_names(name: str, tmp_path: Path) -> None:
    make, kind = SOURCES[name]
    source = make(tmp_path)
    result = nasight.train("mlp", ARCH, source, out=tmp_path / "run", **{**TINY, "epochs": 12})
    model, data = load_model(tmp_path / "run"), load(source)
    assert model.classes == data.classes
    if data.table is not None:
        new = source if isinstance(source, str) else FRAME
        assert result.accuracy > 50
        found = model.predict(new)
        assert found.shape == (ROWS,)
        assert np.corrcoef(found, PRICE)[0, 1] > 0.8
    else:
        found = model.predict(X)
        assert len(found) == ROWS
        if kind == "classes":
            assert set(found) <= set(data.classes)
            assert result.figures["balanced accuracy"] > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["several labels", "DataLoader"])
def test_find_answers_in_the_units_of_the_task(name: str, tmp_path: Path) -> None:
    make, kind = SOURCES[name]
    answer = nasight.find(make(tmp_path), trainings=27, epochs=1, workers=1, out=tmp_path / "find")
    metric = {"labels": "F1", "numbers": "R2"}[kind]
    assert answer.result["metric"] == metric
    assert f"{metric} " in answer.sentence()
    assert "%" not in answer.sentence().replace("95 %", "")
    found = answer.predict(X[:3])
    assert isinstance(found[0], tuple) if kind == "labels" else found.dtype == np.float32


def test_what_the_rows_set_aside_for_the_test_hold_does_not_change_what_is_learned_from() -> None:
    data = load(FRAME, label="price")
    rest = len(with_test_part(data).train_y)
    test, _ = split_indices(data.strata, [ROWS - rest, rest], generator_for(0, "test part"))
    other = FRAME.copy()
    other.loc[test.tolist(), "a"] = 7.0
    other.loc[test[:3].tolist(), "b"] = np.nan
    other.loc[test[:3].tolist(), "town"] = "Sion"
    before, after = with_test_part(data), with_test_part(load(other, label="price"))
    assert before.inputs == after.inputs
    torch.testing.assert_close(before.train_x, after.train_x, rtol=0, atol=1e-5)
    assert before.table is not None
    assert after.table is not None
    assert [(c.values, c.flag) for c in after.table.columns] == [(c.values, c.flag) for c in before.table.columns]


def test_a_class_with_a_single_row_is_learned_from_and_not_asked() -> None:
    labels = np.where(SIDE, "sun", "rain").astype(object)
    labels[7] = "hail"
    found = with_test_part(load((X, labels)))
    assert found.test_y is not None
    assert "hail" in {found.classes[int(y)] for y in found.train_y}
    assert "hail" not in {found.classes[int(y)] for y in found.test_y}
    assert len(found.train_y) + len(found.test_y) == ROWS


def test_a_label_that_a_single_row_has_is_learned_from_and_not_asked() -> None:
    test, _ = split_indices(torch.zeros(ROWS, dtype=torch.int64), [18, ROWS - 18], generator_for(0, "test part"))
    row = int(test[0])
    for rare in (np.arange(ROWS) == row, np.arange(ROWS) != row):
        found = with_test_part(load(FRAME.assign(rare=rare, side=SIDE), label="side,rare", task="labels"))
        assert found.test_y is not None
        assert len(found.train_y[:, 1].unique()) == 2
        assert len(found.test_y[:, 1].unique()) == 1
        assert len(found.train_y) + len(found.test_y) == ROWS


def test_gradient_boosting_learns_many_rows_of_which_one_is_alone_in_its_class() -> None:
    rows = 13_000
    y = np.arange(rows) % 2
    y[[5, 7, 9]] = 2  # one for the test part, one that judges, one to learn from
    x = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    frame = pd.DataFrame({"a": x[:, 0] + y, "b": x[:, 1], "label": y})
    data = with_test_part(load(frame, label="label", task="classes"))
    settings = settings_for(PlainSpace(), "small", epochs=ALL_TREES, validation=0.01)
    outcome = train_boosting(Job(PlainSpace(), PlainSpace().reference, data, settings, 0), 1)
    assert outcome.accuracy > 50


def test_gradient_boosting_learns_many_rows_of_which_one_alone_has_a_label_or_lacks_it() -> None:
    rows = 13_000
    x = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    numbers = np.arange(rows)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "up": x[:, 0] > 0, "one": numbers == 5, "most": numbers != 9})
    data = with_test_part(load(frame, label="up,one,most"))
    settings = settings_for(PlainSpace(), "small", epochs=ALL_TREES, validation=0.01)
    outcome = train_boosting(Job(PlainSpace(), PlainSpace().reference, data, settings, 0), 1)
    assert data.task.kind == "labels"
    assert outcome.accuracy > 95


def test_gradient_boosting_gives_a_label_that_every_learned_row_has_to_all_rows() -> None:
    rows, settings = np.arange(400), settings_for(PlainSpace(), "small", epochs=ALL_TREES, validation=0.2)

    def lacked_by(row: int) -> Dataset:
        return load(pd.DataFrame({"a": rows % 7, "up": rows % 7 > 3, "most": rows != row}), label="up,most")

    _, held_out, _ = parts(lacked_by(0), settings)
    assert held_out is not None
    job = Job(PlainSpace(), PlainSpace().reference, lacked_by(int(held_out[0])), settings, 0)
    assert train_boosting(job, 1).accuracy > 95


def test_gradient_boosting_has_as_many_rounds_as_a_training_says_and_few_tell_how_long_all_take() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.random.default_rng(0).normal(size=(3_000, 6)).astype(np.float32)
    y = (rows[:, 0] * rows[:, 1] > 0).astype(np.int64)
    data = replace(load(pd.DataFrame(rows).assign(label=y), label="label", task="classes"), name="product")
    data = replace(data, test_x=data.train_x[2_000:], test_y=data.train_y[2_000:])
    data = replace(data, train_x=data.train_x[:2_000], train_y=data.train_y[:2_000])
    found = {}
    for epochs, rounds in ((ALL_TREES, TREES), (10, 10)):
        settings = settings_for(PlainSpace(), "small", epochs=epochs, validation="test")
        job = Job(PlainSpace(), PlainSpace().reference, data, settings, 3)
        found[rounds] = train_boosting(job, 1)
        model = HistGradientBoostingClassifier(max_iter=rounds).fit(data.train_x.numpy(), data.train_y.numpy())
        right = model.predict(data.test_x.numpy()) == data.test_y.numpy()
        assert found[rounds].accuracy == pytest.approx(100 * right.mean())
    assert found[TREES].accuracy > found[10].accuracy
    twice = replace(data, train_x=data.train_x.repeat(4, 1), train_y=data.train_y.repeat(4))
    assert boosting_seconds(Job(PlainSpace(), PlainSpace().reference, twice, settings, 0), 1) > 0


def test_the_import_of_scikit_learn_does_not_hide_what_a_round_of_boosting_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits, clock = list[int](), [0.0]

    class Slow:
        def __init__(self, task: Any, seed: int, weights: str | None, early: bool, trees: int) -> None:
            self.trees = trees

        def fit(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
            fits.append(self.trees)
            # The first fit of a process imports, which takes two seconds; a round takes a twentieth of a second.
            clock.append(clock[-1] + 0.05 * self.trees + (2.0 if len(fits) == 1 else 0.0))

    monkeypatch.setattr(_boosting, "_model", Slow)
    monkeypatch.setattr(_boosting, "time", SimpleNamespace(perf_counter=lambda: clock[-1]))
    data = load("digits")
    job = Job(PlainSpace(), PlainSpace().reference, data, settings_for(PlainSpace(), "small", validation="test"), 3)
    assert boosting_seconds(job, 1) == pytest.approx(0.05 * TREES)


@pytest.mark.slow
def test_find_compares_with_gradient_boosting_on_a_table(tmp_path: Path) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.metrics import r2_score

    answer = nasight.find(FRAME, label="price", trainings=32, epochs=1, workers=1, out=tmp_path / "find")
    lines = {line["proposed_by"]: line for line in answer.result["race"]["lines"]}
    assert lines["boosting"]["control"]
    assert lines["boosting"]["multiply_adds"] is None
    # Of the controls those that a seed changes are trained twice, and say how much one does.
    found = [json.loads(line) for line in (answer.path / "journal.jsonl").read_text().splitlines()]
    raced = [row for row in found if row["key"].startswith("training ") and "judged=0.25" in row["key"]]
    raced = [row for row in raced if " seed=50 " not in row["key"]]  # those that chose the recipe
    pairs = dict[str, list[float]]()
    for row in raced:
        pairs.setdefault(re.sub(r"seed=\d+", "", row["key"]), []).append(row["value"]["accuracy"])
    several = {key: np.var(values, ddof=1) for key, values in pairs.items() if len(values) > 1}
    assert [len(values) for key, values in pairs.items() if key.startswith("training boosting ")] == [1]
    assert answer.result["race"]["seed_deviation"] == pytest.approx(np.mean(list(several.values())) ** 0.5)
    assert lines["plain"]["multiply_adds"] > 0
    if answer.baseline["kind"] == "boosting":
        # Beside scikit-learn itself on the same rows.
        data = with_test_part(load(FRAME, label="price"))
        assert data.test_x is not None
        assert data.test_y is not None
        model = HistGradientBoostingRegressor(random_state=5000).fit(data.train_x.numpy(), data.train_y[:, 0].numpy())
        expected = 100 * r2_score(data.test_y[:, 0].numpy(), model.predict(data.test_x.numpy()))
        assert answer.baseline["accuracies"][0] == pytest.approx(expected, abs=0.01)
        assert "gradient boosting (scikit-learn)" in answer.sentence()
    assert np.isfinite(answer.predict(FRAME)).all()


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


def near(guess: Tensor, y: Tensor) -> Tensor:
    return ((guess - y).abs() < 10).float()


def noisy(x: Tensor) -> Tensor:
    return x + 0.1 * torch.randn_like(x)


OWN = OwnParts(functional.huber_loss, near, adam, noisy)


class StopAfterOne(Progress):
    def epoch(self, row: Any) -> None:
        raise RuntimeError("stopped")


def test_a_search_with_own_functions_needs_them_again_and_goes_on_as_if_never_interrupted(tmp_path: Path) -> None:
    given = {"loss": OWN.loss, "metric": OWN.metric, "optimizer": OWN.optimizer, "augment": OWN.augment}
    settings: dict[str, Any] = {**TINY, **given, "epochs": 2}
    whole = nasight.search("mlp", "gaea-darts", (X, PRICE), out=tmp_path / "whole", **settings)
    assert whole.result["metric"] == "near"
    with pytest.raises(RuntimeError, match="stopped"):
        nasight.search("mlp", "gaea-darts", (X, PRICE), out=tmp_path / "part", progress=StopAfterOne(), **settings)
    kept = json.loads((tmp_path / "part" / "run.json").read_text())["own"]
    assert kept["optimizer"].endswith("test_own_data.adam")
    with pytest.raises(RequestError, match=r"was begun with loss=.*huber_loss: give it again as loss="):
        nasight.resume(tmp_path / "part", data=(X, PRICE))
    resumed = nasight.resume(tmp_path / "part", data=(X, PRICE), own=OWN)
    assert resumed.result["weights"] == whole.result["weights"]
    assert [row["valid_loss"] for row in resumed.history] == [row["valid_loss"] for row in whole.history]


def test_a_training_with_own_functions_uses_each_of_them_and_is_not_mixed_with_another(tmp_path: Path) -> None:
    plain = nasight.train("mlp", ARCH, (X, PRICE), **TINY)
    results = {
        part: nasight.train("mlp", ARCH, (X, PRICE), **{**TINY, part: getattr(OWN, part)})
        for part in ("loss", "optimizer", "augment", "metric")
    }
    assert len({result.curve[-1].train_loss for result in (plain, *list(results.values())[:3])}) == 4
    assert results["metric"].metric == "near"
    assert results["metric"].loss == plain.loss
    nasight.train("mlp", ARCH, (X, PRICE), out=tmp_path / "run", **{**TINY, "loss": OWN.loss})
    with pytest.raises(RequestError, match=r"holds a training with loss=.*huber_loss, not with none"):
        nasight.train("mlp", ARCH, (X, PRICE), out=tmp_path / "run", **TINY)


@pytest.mark.parametrize("method", ["enas", "asng-nas", "rs-ws"])
def test_methods_that_go_by_accuracy_go_by_the_metric(method: str, tmp_path: Path) -> None:
    from nasight.searching import METHODS

    if method not in METHODS:
        method = next(name for name in METHODS if name.startswith(method.split("-")[0]))
    run = nasight.search("mlp", method, (X, PRICE), out=tmp_path / "run", **TINY)
    assert run.result["metric"] == "R2"
    assert run.result["accuracy"] <= 100


def test_class_weights_let_a_rare_class_be_found_that_accuracy_alone_does_not_miss() -> None:
    rare = np.arange(1500) % 25 == 0
    x = np.random.default_rng(1).normal(size=(1500, 2)).astype(np.float32) + 1.5 * rare[:, None].astype(np.float32)
    how: dict[str, Any] = {**TINY, "epochs": 4, "lr": 0.01}
    plain = nasight.train("mlp", ARCH, (x, np.where(rare, "rare", "usual")), **how)
    weighted = nasight.train("mlp", ARCH, (x, np.where(rare, "rare", "usual")), class_weights="balanced", **how)
    assert plain.accuracy > weighted.accuracy
    assert weighted.figures["each"]["rare"]["recall"] > plain.figures["each"]["rare"]["recall"] + 30
    assert weighted.figures["balanced accuracy"] > plain.figures["balanced accuracy"] + 10


def test_a_table_of_series_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="looks like series of 3 channels"):
        nasight.search("nasbench201", data=(np.zeros((20, 3, 128)), np.arange(20) % 2), out=tmp_path / "run")
    with pytest.raises(RequestError, match="this space needs images"):
        nasight.search("nasbench201", data=(X, SIDE), out=tmp_path / "run")


def test_pages_and_verdicts_of_numbers_have_no_percent_accuracy_or_nats_of_loss(tmp_path: Path) -> None:
    run = nasight.search("mlp", "gaea-darts", (X, PRICE), out=tmp_path / "run", **TINY)
    assert set(run.result["figures"]["each"]["y"]) == {"RMSE", "MAE"}
    explanation = nasight.explain(run, data=(X, PRICE))
    said = " ".join(each["evidence"] for each in explanation.decisions)
    assert "of R2)" in said
    assert not re.search("nats|points", said)
    page = write_report(run, data=(X, PRICE)).path.read_text()
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert "R2, shared weights" in text
    assert "1 number: y" in " ".join(text.split())
    assert not re.search("accura|nats of loss|points", text)


@pytest.mark.parametrize(("apart", "warned"), [(0.0, True), (8.0, False)])
def test_search_warns_where_the_majority_would_score_as_high(
    apart: float, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rare = np.arange(290) % 40 == 0
    x = np.random.default_rng(1).normal(size=(290, 3)).astype(np.float32)
    x += apart * rare[:, None].astype(np.float32)
    np.savez(tmp_path / "rare.npz", x=x, y=np.where(rare, "ill", "well"))
    words = ["--preset", "tiny", "--epochs", "12", "--threads", "1", "--out", str(tmp_path / "run")]
    words += ["--class-weights", "balanced"] if apart else []
    assert command("search", "--space", "mlp", "--data", str(tmp_path / "rare.npz"), *words) == 0
    shown = capsys.readouterr().out
    assert ("always saying 'well' would have an accuracy of 96.55 % too" in shown) == warned
    assert "ill: recall" in shown
