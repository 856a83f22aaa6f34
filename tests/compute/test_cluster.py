"""A real Dask cluster of processes on the loopback."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cluster_work
import dask
import numpy as np
import pytest

from command import run
from nasight.compute import ClusterExecutor, _cluster, cluster, map_resumable
from nasight.compute._packed import packed
from nasight.data import SentData, load
from nasight.errors import RequestError, RunError
from nasight.training import load_trained, train_seeds
from ranks import until

pytestmark = pytest.mark.slow
SMALL = {"preset": "tiny", "epochs": 1, "examples": 60, "size": {"width": 8}}


@pytest.fixture(scope="module")
def executor() -> Iterator[ClusterExecutor]:
    # Workers import the work of these tests; a piece of work that ends two workers is given up.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), cluster("local:2") as made:
        assert made is not None
        yield made


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some digits in a file, which workers load by its path."""
    data, path = load("digits"), tmp_path_factory.mktemp("data") / "some.npz"
    assert data.test_x is not None
    assert data.test_y is not None
    x, y = data.train_x[:300].numpy(), data.train_y[:300].numpy()
    np.savez(path, x=x, y=y, x_test=data.test_x[:100].numpy(), y_test=data.test_y[:100].numpy())
    return path


def test_seeds_are_trained_by_workers_and_written_by_the_process_that_asked(
    executor: ClusterExecutor, rows: Path, tmp_path: Path
) -> None:
    told: list[int] = []
    given = {"space": "mlp", "arch": "relu,relu,relu/0,0", "data": rows, "seeds": (0, 1, 2), "threads": 1, **SMALL}
    away = train_seeds(out=tmp_path / "away", executor=executor, progress=lambda seed, row: told.append(seed), **given)
    here = train_seeds(out=tmp_path / "here", workers=1, **given)
    assert away.accuracy == here.accuracy
    assert sorted(told) == [0, 1, 2]
    for a, b in zip(away.results, here.results, strict=True):
        assert a.out is not None
        assert b.out is not None
        assert a.out.startswith(str(tmp_path / "away"))
        for p, q in zip(load_trained(a.out).parameters(), load_trained(b.out).parameters(), strict=True):
            assert p.equal(q)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("away/**/checkpoint*")}
    assert train_seeds(out=tmp_path / "away", executor=executor, **given).accuracy == here.accuracy
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("away/**/checkpoint*")}


def test_the_work_of_a_killed_worker_is_done_by_another(executor: ClusterExecutor, tmp_path: Path) -> None:
    places = [str(tmp_path / f"item-{number}") for number in range(6)]
    killed: list[int] = []

    def kill() -> None:
        until(lambda: Path(places[0]).exists() and bool(Path(places[0]).read_text()))
        killed.append(int(Path(places[0]).read_text()))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    arrived: list[str] = []
    pids = map_resumable(cluster_work.slow, places, executor=executor, on_result=lambda item, _: arrived.append(item))
    killer.join()
    assert len(pids) == 6
    assert set(arrived) == set(places)
    assert pids[0] not in (killed[0], os.getpid())
    assert os.getpid() not in pids


def test_work_that_ends_every_worker_is_a_sentence(executor: ClusterExecutor) -> None:
    with pytest.raises(RunError, match="a piece of work ended every worker that took it"):
        map_resumable(cluster_work.deadly, [0], executor=executor)


def test_an_error_of_the_work_itself_comes_back_as_it_is(executor: ClusterExecutor) -> None:
    with pytest.raises(ZeroDivisionError, match="item 1"):
        map_resumable(cluster_work.wrong, [1], executor=executor)


def test_a_worker_refuses_other_data_in_a_sentence(executor: ClusterExecutor, tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    x, y = np.random.default_rng(0).normal(size=(40, 3)).astype("float32"), np.arange(40) % 2
    np.savez(path, x=x, y=y)
    sent = SentData.of(load(path))
    np.savez(path, x=x + 1, y=y)
    with pytest.raises(RequestError, match=r"the worker on \S+ does not have the data 'own'.*fingerprint"):
        map_resumable(partial(loaded, sent), [0], executor=executor)
    with pytest.raises(RequestError, match="neither a name nor a file"):
        SentData.of(load((x, y)))


def loaded(sent: SentData, number: int) -> int:
    return len(sent.load().train_y)


def test_what_a_worker_gets_is_small_whatever_the_data(data_folder: Path) -> None:
    data = load("fashion-mnist", folder=data_folder)
    sent = SentData.of(data)
    content, _ = packed(partial(loaded, sent))
    assert data.train_x.numel() > 40_000_000
    assert len(content) < 2_000
    assert sent.load().fingerprint == data.fingerprint


CELL = "|nor_conv_1x1~0|+|skip_connect~0|none~1|+|skip_connect~0|none~1|skip_connect~2|"
COMMANDS = {
    "score": "--space mlp --width 8 --metric naswot --data ROWS --sample 20 --batch 16",
    "cell": f"{CELL} --data ROWS --variants 1 --kind operations --seeds 1 --epochs 1 --channels 4 --examples 40 "
    "--test-examples 40",
    "train": "--space mlp --arch relu,relu,relu/0,0 --width 8 --data ROWS --preset tiny --epochs 1 --seeds 2",
    "find": "--space mlp --data ROWS --trainings 21 --epochs 1 --seed 1",
    "reproduce": "cells-width-depth simplex-condition features-correlation --data ROWS --seeds 2",
    "table race": "--methods rs --trials 30",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_the_address_of_a_cluster_finds_what_it_finds_in_one_process(
    executor: ClusterExecutor,
    rows: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    command: str,
) -> None:
    if command == "table race":
        request.getfixturevalue("data_folder")  # has the table; skips where there is none
    address = executor.client.scheduler.address
    assert address.startswith("tcp://127.0.0.1:")
    given = [*command.split(), *COMMANDS[command].replace("ROWS", str(rows)).split(), "--json"]
    alone = ["--processes" if command == "table race" else "--workers", "1"]
    found = []
    for name, how in (("away", ["--cluster", address]), ("here", alone)):
        place = [] if command == "table race" else ["--out", str(tmp_path / name)]
        assert run(*given, *how, *place) == 0
        found.append(plain(json.loads(capsys.readouterr().out)))
    assert found[0] == found[1]
    if command == "find":
        kept = json.loads((tmp_path / "away/searches/0-0/result.json").read_text())
        assert kept["run"].startswith(str(tmp_path))


def plain(value: Any) -> Any:
    """What a command found, without times and places."""
    if isinstance(value, dict):
        left_out = ("seconds", "training_seconds", "run", "out", "page", "front", "latency", "workers", "svg", "curves")
        return {key: plain(each) for key, each in value.items() if key not in left_out}
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_addresses_that_are_none_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RequestError, match="local:N with N of at least 1, got 'local:0'"), cluster("local:0"):
        pass
    assert run("score", "--data", "digits", "--cluster", "nowhere.json") == 2
    assert "there is no scheduler file nowhere.json" in capsys.readouterr().err
    monkeypatch.setattr(_cluster, "SECONDS", 1)
    assert run("score", "--data", "digits", "--cluster", "tcp://127.0.0.1:9") == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in capsys.readouterr().err
