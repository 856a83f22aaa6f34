"""Two processes at once on one folder, with all that writes or reads it, in random order."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from faults.bases import TRAIN
from nasight.cli import main
from nasight.errors import RequestError
from nasight.runs import RunFolder
from nasight.searching import Run

SEARCH = ("search", "--space", "mlp", "--width", "4", "--preset", "tiny", "--epochs", "2", "--examples", "60")


@dataclass
class HammerCount:
    """What came of it."""

    commands: Counter[str] = field(default_factory=Counter)
    """Command and exit code -> how often."""
    wrong: list[str] = field(default_factory=list)


def hammer(seconds: float, *, processes: int = 2, seed: int = 0) -> HammerCount:
    """All commands on one folder from several processes, for so long; then the folder is looked at.

    A run that has finished must not be lost: from the first one on there is a finished run in the folder, or aside,
    whenever one looks. Files of the user's own stay as they are.
    """
    found = HammerCount()
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        _command([*SEARCH, "--threads", "1", "--out", str(run)])
        (run / "notes.txt").write_text("mine")
        (run / "train").mkdir(exist_ok=True)
        (run / "train" / "mine.txt").write_text("mine too")
        logs = [Path(place) / f"log-{number}" for number in range(processes)]
        children = [_child(run, log, seconds, f"{seed} {number}") for number, log in enumerate(logs)]
        ends = time.monotonic() + seconds + 120
        while time.monotonic() < ends and children:
            children = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
            if not _finished_somewhere(run):
                found.wrong.append("no finished run was there")
            time.sleep(0.2)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found.wrong.append("a process did not end")
        for log in logs:
            for line in log.read_text().splitlines():
                name, code, said = json.loads(line)
                found.commands[f"{name} {code}"] += 1
                if code not in (0, 1, 2):
                    found.wrong.append(f"{name}: {said[-400:]}")
        found.wrong += list(_mixed(run))
    return found


def _child(run: Path, log: Path, seconds: float, seed: str) -> int:
    child = os.fork()
    if child:
        return child
    chance, ends = random.Random(seed), time.monotonic() + seconds
    with log.open("w") as file:
        while time.monotonic() < ends:
            name, words = chance.choice(list(_commands(run, chance).items()))
            code, said = _command(words)
            file.write(json.dumps([name, code, said]) + "\n")
    os._exit(0)


def _commands(run: Path, chance: random.Random) -> dict[str, list[str]]:
    method = chance.choice(["gaea-darts", "darts"])
    here, seed, out = str(run), str(chance.randrange(3)), str(run.parent / f"net-{os.getpid()}.py")
    return {
        "search --overwrite": [
            *SEARCH, "--threads", "1", "--out", here, "--overwrite", "--seed", seed, "--method", method,
        ],
        "search --resume": ["search", "--resume", here],
        "explain": ["explain", here, "--examples", "8"],
        "train": ["train", here, *TRAIN],
        "export": ["export", here, "--python", out],
    }  # fmt: skip


def _command(words: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(words)
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
        except BaseException as error:
            return 99, f"{said.getvalue()} {type(error).__name__}: {error}"
    return 99, "no exit"


def _finished_somewhere(run: Path) -> bool:
    """A finished run in the folder or aside, or one that has a checkpoint and so has taken its place."""
    for _ in range(5):  # a look takes time, and files move meanwhile
        for place in (run, run / ".replaced"):
            if (place / "result.json").exists() or (place / "state.json").exists():
                return True
        time.sleep(0.05)
    return False


def _mixed(run: Path) -> list[str]:
    """What does not belong together at the end."""
    wrong = []
    try:
        if not (run / "result.json").is_file():
            _command(["search", "--resume", str(run)])
        found = Run(run)
        rows, result = found.history, found.result
        if len(rows) != result["epochs"] or rows[-1]["architecture"] not in (result["architecture"],):
            wrong.append(f"{len(rows)} rows for {result['epochs']} epochs, or another architecture")
        if (result["method"], result["seed"]) != (found.settings.method, found.settings.seed):
            wrong.append("the result is of another search than run.json")
        found.supernet()
        for place in run.glob("train/*/seed-*/run.json"):
            training = RunFolder.open(place.parent, kind="train")
            if training.result is not None and training.result["architecture"] != training.about["architecture"]:
                wrong.append(f"{place.parent} mixes two trainings")
    except RequestError as error:
        wrong.append(str(error))
    for name, content in (("notes.txt", "mine"), ("train/mine.txt", "mine too")):
        if not (run / name).is_file() or (run / name).read_text() != content:
            wrong.append(f"the user's own {name} is gone")
    shutil.rmtree(run, ignore_errors=True)
    return wrong
