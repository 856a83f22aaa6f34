"""Two real ranks beside one process that takes the same slices of every batch."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_work

from nasight.compute import Slices
from nasight.data import load
from nasight.errors import RequestError
from nasight.searching import resume
from nasight.studies import find
from ranks import RankNursery, told, until

pytestmark = pytest.mark.slow
EPOCHS = 12
SEARCH = [
    "search", "--space", "mlp", "--width", "8", "--data", "digits", "--preset", "tiny", "--examples", "120",
    "--epochs", "1", "--batch-size", "16", "--threads", "1",
]  # fmt: skip
LONG = [*SEARCH, "--epochs", str(EPOCHS)]


@pytest.fixture(scope="module")
def nursery() -> Iterator[RankNursery]:
    started = RankNursery()
    yield started
    started.close()


def close(a: Any, b: Any, tolerance: float = 2e-4) -> None:
    """Equal words, and numbers that differ by rounding; times apart."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a.keys() - {"seconds", "training_seconds", "run"}:
            close(a[key], b[key], tolerance)
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            close(x, y, tolerance)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=tolerance, abs=tolerance)
    else:
        assert a == b


def test_two_ranks_search_as_one_process_with_two_slices_does(nursery: RankNursery, tmp_path: Path) -> None:
    names = [*rank_work.SEARCHES, "own model"]
    first, second = nursery.call(tmp_path / "two", 2, "rank_work:several", names=names, out=str(tmp_path / "runs"))
    for name in names:
        one = rank_work.searched(0, name, str(tmp_path / "one" / name), slices=2)
        close(first[name]["history"], one["history"])
        assert first[name]["result"]["architecture"] == one["result"]["architecture"]
        close(first[name]["sums"], one["sums"])
        assert first[name] == second[name]


def test_slices_of_a_batch_are_another_computation_than_the_batch(tmp_path: Path) -> None:
    whole, halves = (rank_work.searched(0, "own model", str(tmp_path / str(k)), slices=k, epochs=1) for k in (1, 2))
    assert whole["history"][0]["train_loss"] != pytest.approx(halves["history"][0]["train_loss"], rel=1e-4)


def test_without_batch_norm_slices_change_nothing_but_rounding(tmp_path: Path) -> None:
    whole, thirds = (
        rank_work.searched(0, "candidates", str(tmp_path / str(k)), slices=k, method="gaea-darts", space="mlp")
        for k in (1, 3)
    )
    close(whole["history"], thirds["history"])


def test_two_ranks_train_as_one_process_with_two_slices_does(nursery: RankNursery, tmp_path: Path) -> None:
    first, second = nursery.call(tmp_path / "two", 2, "rank_work:trained", out=str(tmp_path / "ranks"))
    one = rank_work.trained(0, str(tmp_path / "one"), slices=2)
    assert first == second
    close(first, one)
    assert len(one["weights"]) > 100
    summed = rank_work.trained(0, str(tmp_path / "whole"), slices=1)
    assert summed["curve"][-1] != pytest.approx(one["curve"][-1], rel=1e-4)


def test_rows_that_ranks_judged_come_in_their_order(nursery: RankNursery, tmp_path: Path) -> None:
    first, second = nursery.call(tmp_path / "two", 2, "rank_work:judged")
    assert first == second == rank_work.judged(0)
    assert 0 < sum(first) < len(first)


def test_a_killed_rank_ends_all_and_any_number_of_ranks_finishes(nursery: RankNursery, tmp_path: Path) -> None:
    out, reference = tmp_path / "run", tmp_path / "reference"
    assert nursery.command(tmp_path / "whole", 2, *LONG, "--out", str(reference))[0] == [0, 0]
    pids = nursery.start(tmp_path / "ranks", 2, arguments=[*LONG, "--out", str(out)])
    until((out / "history.jsonl").exists)
    os.kill(pids[1], signal.SIGKILL)
    assert nursery.wait() == [1, -signal.SIGKILL]
    assert told(tmp_path / "ranks", 2, "err")[0].count("nasight: another rank ended before its work was done") == 1
    assert not (out / "result.json").exists()
    # Two slices are too few for three ranks, enough for two, and one process takes both.
    copy = shutil.copytree(out, tmp_path / "copy")
    codes, _, errors = nursery.command(tmp_path / "three", 3, "search", "--resume", str(copy))
    assert codes == [2, 2, 2]
    assert "cut into 2 slices, too few for 3 ranks" in errors[0]
    assert nursery.command(tmp_path / "two", 2, "search", "--resume", str(copy))[0] == [0, 0]
    resume(out)
    for folder in (out, copy):
        close(read(folder / "result.json"), read(reference / "result.json"))
        close(lines(folder), lines(reference))


def test_a_signal_to_one_rank_stops_all_of_them_with_their_work_saved(nursery: RankNursery, tmp_path: Path) -> None:
    out = tmp_path / "run"
    pids = nursery.start(tmp_path / "ranks", 2, arguments=[*LONG, "--out", str(out)])
    until((out / "history.jsonl").exists)
    os.kill(pids[1], signal.SIGTERM)
    assert nursery.wait() == [130, 130]
    first, second = told(tmp_path / "ranks", 2, "err")
    assert first.count(f"stopped; resume with: nasight search --resume {out}") == 1
    assert second == ""
    assert 0 < len(resume(out).history) == EPOCHS


def test_a_find_in_ranks_ends_with_a_killed_one_and_other_ranks_finish_it_as_one_process_would(
    nursery: RankNursery, tmp_path: Path
) -> None:
    given = ["--data", str(few_digits(tmp_path)), "--space", "mlp", "--trainings", "21", "--epochs", "1"]
    out, place = tmp_path / "find", tmp_path / "ranks"
    pids = nursery.start(place, 2, arguments=["find", *given, "--out", str(out)])
    until(lambda: any(out.glob("journal*")) and trainings(out) >= 2)
    os.kill(pids[1], signal.SIGKILL)
    assert nursery.wait() == [1, -signal.SIGKILL]
    assert told(place, 2, "err")[0].count("nasight: another rank ended before its work was done") == 1
    assert not (out / "result.json").exists()
    before = trainings(out)
    codes, outputs, _ = nursery.command(tmp_path / "three", 3, "find", "--resume", str(out), "--json")
    assert codes == [0, 0, 0]
    assert outputs[1] == outputs[2] == ""
    one = find(few_digits(tmp_path), space="mlp", trainings=21, epochs=1, workers=1, out=tmp_path / "one").result
    found = json.loads(outputs[0])
    for key in ("architecture", "accuracies", "interval", "take", "trainings", "race"):
        close(found[key], one[key])
    assert before < found["trainings"]
    codes, _, errors = nursery.command(tmp_path / "again", 2, "find", *given, "--out", str(out))
    assert codes == [2, 2]
    assert errors[0].count("already holds a run") == 1
    assert errors[1] == ""


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("broken", "Diverged: the loss became nan at step 0 of epoch 0 with lr"),
        ("apart", "RunError: the ranks have different weights: objective 'apart' must take its gradients by"),
        ("other data", "RequestError: rank 1 has other data under"),
        ("one fails", "RequestError: rank 1: "),
        ("few", "RequestError: every batch is cut into 1 slice, too few for 2 ranks"),
    ],
)
def test_what_ends_one_rank_ends_all_with_one_sentence(
    nursery: RankNursery, tmp_path: Path, kind: str, sentence: str
) -> None:
    found = nursery.call(tmp_path / "two", 2, "rank_work:refused", kind=kind, out=str(tmp_path / "run"))
    assert found[0] == found[1]
    assert found[0].startswith(sentence)


def test_the_first_rank_alone_prints_and_writes(nursery: RankNursery, tmp_path: Path) -> None:
    out = tmp_path / "run"
    codes, outputs, errors = nursery.command(tmp_path / "two", 2, *SEARCH, "--json", "--out", str(out))
    assert codes == [0, 0]
    assert json.loads(outputs[0])["epochs"] == 1
    assert outputs[1] == errors[1] == ""
    codes, outputs, errors = nursery.command(tmp_path / "again", 2, *SEARCH, "--out", str(out))
    assert codes == [2, 2]
    assert errors[0].count("already holds a run") == 1
    assert errors[1] == ""
    assert nursery.command(tmp_path / "score", 2, "score", "--data", "digits")[2][0].startswith(
        "nasight: torchrun is for search, train"
    )


def test_torchrun_starts_a_search(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        "torchrun",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "nasight",
        *SEARCH,
        "--json",
        "--out",
        str(out),
    ]
    command[0] = str(Path(sys.executable).with_name("torchrun"))
    # torchrun's own store listens on every interface; a network of its own has the loopback alone.
    inside = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode == 0:
        command = [*inside, *command]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    one = rank_work.search(
        "mlp", data="digits", preset="tiny", examples=120, epochs=1, batch_size=16, size={"width": 8}, slices=2,
        threads=1, out=tmp_path / "one",
    )  # fmt: skip
    assert json.loads(ran.stdout)["architecture"] == one.result["architecture"]
    close(lines(out), one.history)


def test_slices_are_as_even_as_rows_allow() -> None:
    parts = list(Slices(3).of(10))
    assert [part.rows.stop - part.rows.start for part in parts] == [3, 3, 4]
    assert sum(part.share for part in parts) == pytest.approx(1)
    with pytest.raises(RequestError, match="a batch of 5 rows is too small for 3 slices"):
        Slices(3).check(5)


def few_digits(folder: Path) -> Path:
    data, path = load("digits"), folder / "few.npz"
    np.savez(path, x=data.train_x[:300].numpy(), y=data.train_y[:300].numpy())
    return path


def trainings(folder: Path) -> int:
    """Trainings of a find that are kept."""
    return (folder / "journal.jsonl").read_text().count('"training ')


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def lines(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
