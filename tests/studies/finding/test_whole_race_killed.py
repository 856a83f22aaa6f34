"""A find with a clock that is killed between the turns of its race goes on from what its journal holds."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from on_paper import least_seconds

from nasight.studies.finding import Plan
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._stages import TURNS

COMMAND = (sys.executable, "-m", "nasight", "find", "--json")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def least_budget(data: Path, folder: Path) -> str:
    """Seconds that this machine has a use for, with some to spare."""
    arguments = ("--data", str(data), "--budget", "1s", "--workers", "1", "--out", str(folder))
    refused = subprocess.run((*COMMAND, *arguments), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    return f"{2.5 * least_seconds(refused.stderr):.0f}s"


def killed_at(key: str, arguments: tuple[str, ...], folder: Path) -> list[str]:
    """The journal's lines when a find was killed, as soon as it had this key; empty if it ended before."""
    process = subprocess.Popen(
        (*COMMAND, *arguments), env=ENVIRONMENT, start_new_session=True, stdout=subprocess.DEVNULL
    )
    while process.poll() is None:
        if (folder / "journal.jsonl").exists() and key in Journal(folder):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            text = (folder / "journal.jsonl").read_text()
            return text[: text.rfind("\n") + 1].splitlines()
        time.sleep(0.01)
    return []


@pytest.mark.slow
def test_turns_that_were_decided_before_a_kill_are_not_decided_anew(few_digits_file: Path, tmp_path: Path) -> None:
    folder, budget = tmp_path / "a", least_budget(few_digits_file, tmp_path / "refused")
    first = ("--data", str(few_digits_file), "--budget", budget, "--workers", "1", "--out", str(folder))
    again = ("--resume", str(folder))
    held = list[str]()
    for key, arguments in (("mutated 0 0", first), ("mutated 1 0", again), ("epochs 0", again)):
        lines = killed_at(key, arguments, folder)
        assert lines[: len(held)] == held
        assert len(lines) > len(held)
        held = lines
    subprocess.run((*COMMAND, *again), env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    lines = (folder / "journal.jsonl").read_text().splitlines()
    assert lines[: len(held)] == held
    keys = [key for line in lines if (key := json.loads(line)["key"]) != "clock"]
    assert len(keys) == len(set(keys))
    assert sum(key.startswith("mutated ") for key in keys) == TURNS
    assert Plan.from_dict(Journal(folder)["plan 0"]).whole
    result = json.loads((folder / "result.json").read_text())
    raced = {line["architecture"] for line in result["race"]["lines"]}
    trained = {match[1] for key in keys if (match := re.match(r"training space (\S+) ", key))}
    assert result["architecture"] in raced == trained
