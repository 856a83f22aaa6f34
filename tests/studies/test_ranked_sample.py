import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

import nasight
from command import run
from nasight import trust
from nasight.cli._trust import _ranks
from nasight.studies import RankedSample
from nasight.tables import load as load_table

TINY = ["--preset", "tiny", "--examples", "200", "--epochs", "1", "--threads", "1"]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranking")
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    np.savez(folder / "data.npz", x=(rng.normal(size=(300, 6)) + y[:, None]).astype(np.float32), y=y)
    where = ["--data", str(folder / "data.npz"), "--out", str(folder / "run")]
    assert run("search", "--space", "mlp", "--width", "16", *TINY, *where) == 0
    return folder / "run"


def test_predictors_are_compared_with_trainings_that_are_kept(
    searched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["trust", "ranking", str(searched), "--sample", "5", "--epochs", "1", "--json"]
    capsys.readouterr()
    assert run(*arguments) == 0
    value = json.loads(capsys.readouterr().out)
    rows = value["architectures"]
    assert len({row["architecture"] for row in rows}) == 5
    assert set(value["predictors"]) == {"architecture weights", "shared weights", "parameters", "naswot"}
    for name in ("architecture weights", "naswot"):
        expected = kendalltau([row[name] for row in rows], [row["truth"] for row in rows]).statistic
        assert value["predictors"][name]["kendall"] == pytest.approx(expected)
    # Every network of this space is as large as any other.
    assert "all 5 values of the first are equal" in value["predictors"]["parameters"]["undecided"]
    kept = {p: p.stat().st_mtime_ns for p in (searched / "resolve").rglob("result.json")}
    assert len(kept) == 5
    assert run(*arguments) == 0
    assert json.loads(capsys.readouterr().out) == value
    assert {p: p.stat().st_mtime_ns for p in (searched / "resolve").rglob("result.json")} == kept


@pytest.mark.parametrize("result", ["{", "{}", '{"weights": 3}', '{"weights": {"a": "b"}}', "[]"])
def test_a_damaged_run_is_refused_in_one_sentence(
    result: str, searched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(searched, tmp_path / "run")
    (tmp_path / "run" / "result.json").write_text(result)
    capsys.readouterr()
    assert run("trust", "ranking", str(tmp_path / "run")) == 2
    shown = capsys.readouterr()
    assert "is damaged" in shown.err
    assert shown.err.count("\n") == 1


def test_where_nothing_can_be_told_apart_no_predictor_leads_and_the_json_is_one() -> None:
    found = trust.ranking([1.0] * 4, {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]})
    assert found.leads == {"a": 0.0, "b": 0.0}
    sample = RankedSample("r", "t", tuple("abcd"), (1.0,) * 4, {"a": (1, 2, 3, 4), "b": (4, 3, 2, 1)}, found, 0.95)
    assert "are equal" in json.loads(json.dumps(sample.to_dict(), allow_nan=False))["predictors"]["a"]["undecided"]


def test_a_ranking_of_regressions_speaks_of_their_metric() -> None:
    found = trust.ranking([10.0, 20.0, 30.0, 60.0], {"a": [4, 3, 2, 1]})
    values = ("r", "t", tuple("abcd"), (10.0, 20.0, 30.0, 60.0), {"a": (4, 3, 2, 1)}, found, 0.95)
    assert "0.5000 of R2" in _ranks(RankedSample(*values, metric="R2"))
    assert "50.00 points" in _ranks(RankedSample(*values))


@pytest.mark.slow
def test_a_table_is_the_truth_where_it_knows_the_data(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data-folder", str(data_folder)]
    assert run("search", "--data", "cifar-10", "--channels", "2", *TINY, "--out", str(tmp_path / "a"), *where) == 0
    found = nasight.rank(
        tmp_path / "a", sample=30, table="nasbench201", metrics=(), examples=20, data_folder=data_folder
    )
    table = load_table(folder=data_folder)
    column = table.column("c10_test200")
    assert found.accuracies == tuple(column[table.index(text)] for text in found.architectures)
    # More convolutions are better in this table, whatever a search knows.
    assert found.says("parameters") == "better than chance"
    assert not (tmp_path / "a" / "resolve").exists()
    capsys.readouterr()
    assert run("trust", "ranking", str(tmp_path / "a"), "--table", "nasbench201", "--metric", "none", *where) == 0
    assert "20 architectures, against test accuracy after 200 epochs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sample", "3"], "at least 4 architectures, got 3"),
        (["--metric", "magic"], "magic"),
        (["--table", "nowhere.csv"], "there is no table 'nowhere.csv'"),
        (["--examples", "1"], "at least 2 examples"),
        (["--level", "2"], "level"),
    ],
)
def test_a_wrong_request_for_a_ranking_ends_with_2_and_one_sentence(
    arguments: list[str], said: str, searched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run("trust", "ranking", str(searched), *arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
