"""`nasight select` as a user types it, `select` and `resume` as a script calls them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from nasight.cli._main import app, main
from nasight.data import rows
from nasight.errors import RequestError
from nasight.features import SELECTION_METHODS, SelectedMap, resume, select, split
from nasight.features._family import config_seed
from nasight.trust.bounds import of_selection

TINY: dict[str, Any] = {"data": "digits", "configs": 8, "dimension": 60}


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["select", *arguments])
    if result.exception:
        raise result.exception
    return result


def unclocked(selection: SelectedMap) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in selection.history]
    return history, {k: v for k, v in selection.result.items() if k not in ("seconds", "run", "peak_bytes")}


def test_a_selection_prints_one_json_object_and_keeps_a_run(tmp_path: Path) -> None:
    arguments = ["--data", "digits", "--configs", "8", "--dimension", "60", "--out", str(tmp_path / "f"), "--json"]
    shown = json.loads(invoke(*arguments).stdout)
    assert shown["method"] == "fast-weight-sharing"
    assert shown["calls"] == 4
    assert {"run", "config", "validation_accuracy", "test_accuracy", "seconds", "peak_bytes"} <= set(shown)
    assert 0.5 < shown["validation_accuracy"] <= 1
    assert shown["peak_bytes"] > 0
    written = [json.loads(line) for line in (tmp_path / "f" / "history.jsonl").read_text().splitlines()]
    assert [row["dimension"] for row in written] == [22, 31, 43, 60]
    assert [row["validation"] for row in written] == ["shared", "shared", "shared", "alone"]


def test_lines_name_the_choice_and_bounds_say_what_they_assume(tmp_path: Path) -> None:
    arguments = ["--data", "digits", "--configs", "4", "--dimension", "40", "--out", str(tmp_path / "f"), "--bounds"]
    shown = invoke(*arguments).stdout
    assert re.search(r"^chosen .*kernel", shown, re.MULTILINE)
    assert re.search(r"Theorem A.2 +0\.\d+  with probability 0\.85", shown)
    assert re.search(r"Corollary A\.2 .*up to a constant", shown)
    assert "assumes: training and validation rows are independent draws" in shown


def test_the_bounds_of_a_run_use_its_own_sizes() -> None:
    result = {"training_rows": 100, "validation_rows": 10, "configs": 256, "norm": 30.0, "maps": "fourier"}
    found = {bound.name: bound for bound in of_selection(result, 0.05)}
    corollaries = [f"Corollary {number}" for number in ("A.1", "A.2", "3.1", "A.3", "3.2", "A.4")]
    assert list(found) == ["Theorem A.2", "Theorem 3.1", *corollaries]
    assert all(bound.vacuous() for name, bound in found.items() if name.startswith("Theorem"))


def test_the_listing_names_every_method() -> None:
    assert [row["method"] for row in json.loads(invoke("--list", "--json").stdout)["methods"]] == list(
        SELECTION_METHODS
    )
    assert "hyperband" in invoke("--list").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "grid"], "there is no method 'grid'"),
        (["--score", "auc"], "there is no score 'auc'; there are accuracy, loss"),
        (["--max-calls", "0"], "max_calls is more than 0, got 0"),
        (["--memory", "lots"], "like 4G or 500M, got 'lots'"),
        (["--max-seconds", "soon"], "such as 90s, 30m, 8h or 1h30m, got 'soon'"),
        (["--validation", "half"], "got 'half'"),
        (["--validation", "5000"], "between 1 and"),
        (["--delta", "2"], "--delta lies between 0 and 1, got 2.0"),
        (["--maps", "wavelets"], "'wavelets'"),
        (["--resume", "nowhere"], "nowhere is not a run"),
        (["--dimension", "0"], "dimension is more than 0, got 0"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["select", *arguments, "--out", str(tmp_path / "f")])
    assert left.value.code == 2
    message_shown = capsys.readouterr().err.strip()
    assert message in message_shown
    assert "\n" not in message_shown
    assert not (tmp_path / "f").exists()


def test_a_run_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    first = select(**TINY, out=tmp_path / "f")
    with pytest.raises(RequestError, match="already holds a run"):
        select(**TINY, out=tmp_path / "f")
    assert unclocked(select(**TINY, out=tmp_path / "f", overwrite=True)) == unclocked(first)


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_methods_spend_the_same_number_of_calls(method: str) -> None:
    selection = select(**TINY, method=method, max_calls=11)
    assert selection.result["calls"] == len(selection.history) == 11
    seconds = [row["seconds"] for row in selection.history]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0


def test_a_budget_in_seconds_ends_after_the_call_that_reaches_it() -> None:
    selection = select(**TINY, method="random", max_seconds=0.3)
    assert selection.history[-1]["seconds"] >= 0.3
    assert all(row["seconds"] < 0.3 for row in selection.history[:-1])


def test_the_seconds_do_not_count_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    from nasight.features._run import SelectionRun
    from nasight.features._settings import CLOCKS

    clock, real = [0.0], SelectionRun._oracle

    def costly(self: SelectionRun, config: int) -> float:
        clock[0] += 1000.0
        return real(self, config)

    monkeypatch.setitem(CLOCKS, "wall", lambda: clock[0])
    monkeypatch.setattr(SelectionRun, "_oracle", costly)
    selection = select(**TINY, oracle=True)
    assert selection.result["oracle_test_accuracy"] is not None
    assert clock[0] >= 1000
    assert selection.result["seconds"] == 0


def test_a_restarted_method_keeps_its_best_stand_alone_model() -> None:
    selection = select(**TINY, method="weight-sharing", max_calls=12)
    alone = [row for row in selection.history if not row["shared"]]
    assert [row["calls"] for row in alone] == [4, 8, 12]
    best = max(row["scores"]["accuracy"][0] for row in alone)
    assert selection.result["validation_accuracy"] == best
    drawn = [row["scores"]["configs"] for row in selection.history if row["configs"] == 8]
    assert drawn == [list(range(8)), list(range(8, 16)), list(range(16, 24))]


def test_the_model_that_a_selection_ends_with_has_the_accuracy_it_says() -> None:
    selection = select(**TINY)
    assert selection.evaluator is not None
    held = selection.evaluator.data.validation
    assert float((selection.predict(held.x) == held.y).mean()) == selection.result["validation_accuracy"]


def test_another_seed_draws_other_configurations_but_the_same_rows_validate() -> None:
    first, second = (select(**TINY, seed=seed) for seed in (0, 1))
    assert first.config != second.config
    assert first.evaluator is not None
    assert second.evaluator is not None
    assert np.array_equal(first.evaluator.data.validation.x, second.evaluator.data.validation.x)


@pytest.mark.slow
def test_cifar_10_is_validated_on_its_last_10000_training_images(data_folder: Path) -> None:
    images = rows("cifar-10", folder=data_folder)
    data = split(images, None, 500)
    assert (len(data.train), len(data.validation)) == (500, 10_000)
    assert np.array_equal(data.validation.y, np.asarray(images.train_y)[-10_000:])


def test_imdb_is_validated_on_half_of_its_test_reviews(data_folder: Path) -> None:
    if not (data_folder / "imdb").is_dir():
        pytest.skip("imdb is not in the data folder")
    data = split(rows("imdb", folder=data_folder), None, None)
    assert data.test is not None
    assert (len(data.train), len(data.validation), len(data.test)) == (25_000, 12_500, 12_500)


SCRIPT = """
import sys
from nasight.features import select
def slow(row, total):
    print(row["calls"], flush=True)
    if row["calls"] == int(sys.argv[3]):
        import time
        time.sleep(60)
select("fourier", "digits", configs=8, dimension=60, method=sys.argv[2], max_calls=11, oracle=True, threads=1,
       out=sys.argv[1], progress=slow)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fast-weight-sharing", "hyperband"])
def test_a_killed_selection_resumes_to_the_same_history(tmp_path: Path, method: str) -> None:
    whole = select(**TINY, method=method, max_calls=11, oracle=True, threads=1, out=tmp_path / "whole")
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(killed), method, "5"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "5":
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (killed / "result.json").exists()
    torn = json.loads((killed / "history.jsonl").read_text().splitlines()[-1]) | {"calls": 6, "incumbent": 99}
    with (killed / "history.jsonl").open("a") as file:  # as a kill between history and checkpoint leaves it
        file.write(json.dumps(torn) + "\n")
    resumed = resume(killed)
    assert unclocked(resumed) == unclocked(whole)
    assert [row["calls"] for row in resumed.history] == list(range(1, 12))
    assert unclocked(resume(killed)) == unclocked(whole)


def test_a_run_is_not_resumed_on_other_data(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(row: dict[str, Any], total: int | None) -> None:
        raise Stop

    with pytest.raises(Stop):
        select(**TINY, out=tmp_path / "f", progress=stop)
    rng = np.random.default_rng(0)
    other = (rng.normal(size=(50, 4)), rng.integers(2, size=50))
    with pytest.raises(RequestError, match="on other data"):
        resume(tmp_path / "f", data=other)


OLD_WORDS = {'"normalize"': '"normalise"', '"standardize"': '"standardise"'}


def spell_as_before(path: Path) -> str:
    text = path.read_text()
    for new, old in OLD_WORDS.items():
        text = text.replace(new, old)
    path.write_text(text)
    state = json.loads((path.parent / "state.json").read_text())
    kept = {key: state[key] for key in ("checkpoint", "sha256", "mark")}  # as version 0.1 wrote it
    (path.parent / "state.json").write_text(json.dumps(kept))
    return text


def texts_of(rng: np.random.Generator) -> tuple[list[str], list[int]]:
    y = rng.integers(2, size=120)
    words = np.array(["good", "bad", "film", "plot", "long", "short"])
    return [" ".join([*rng.choice(words, 6), words[label]]) for label in y], y.tolist()


@pytest.mark.parametrize("maps", ["fourier", "ngrams"])
def test_a_run_folder_with_the_old_names_of_scalings_is_read_and_resumed(tmp_path: Path, maps: str) -> None:
    class Stop(Exception):
        pass

    def stop(row: dict[str, Any], total: int | None) -> None:
        if row["calls"] == 3:
            raise Stop

    data = "digits" if maps == "fourier" else texts_of(np.random.default_rng(0))
    settings: dict[str, Any] = {"configs": 16, "dimension": 40, "seed": 2, "threads": 1}
    whole = select(maps, data, **settings, out=tmp_path / "whole")
    with pytest.raises(Stop):
        select(maps, data, **settings, out=tmp_path / "stopped", progress=stop)
    before = spell_as_before(tmp_path / "stopped" / "history.jsonl")
    assert re.search("normalise|standardise", before), "a leader of the first three calls has such a scaling"
    resumed = resume(tmp_path / "stopped", data=None if maps == "fourier" else data)
    assert unclocked(resumed) == unclocked(whole)
    assert not re.search("normalise|standardise", (tmp_path / "stopped" / "history.jsonl").read_text())
    for name in ("history.jsonl", "result.json"):
        spell_as_before(tmp_path / "whole" / name)
    assert unclocked(resume(tmp_path / "whole")) == unclocked(whole)


def test_the_seed_of_a_configuration_is_what_it_was_under_the_old_names() -> None:
    assert config_seed({"scaling": "normalize", "alpha": 0.5}, 3) == 275502246, "as with 'normalise' before"
    assert config_seed({"scaling": "normalise", "alpha": 0.5}, 3) == 275502246
