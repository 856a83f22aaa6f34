"""Kills at any moment: what is resumed afterwards must be what was never killed, bit for bit."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from faults.jobs import FaultJob, contents
from faults.nursery import forked, killed_at, touches


@dataclass
class KillCount:
    """What came of the kills of a command."""

    kills: int = 0
    runs: int = 0
    different: list[str] = field(default_factory=list)


def kill_all(jobs: Iterable[FaultJob], each: int, *, seed: int = 0) -> dict[str, KillCount]:
    """Command -> how many kills, and which runs differed from one that was never killed."""
    counts: dict[str, KillCount] = {}
    for job in jobs:
        count = counts.setdefault(job.command, KillCount())
        try:
            _kill(job, each, count, random.Random(f"{seed} {job.command} {job.name}"))
        except Exception as error:
            count.different.append(f"{job.name}: {error}")
    return counts


def _kill(job: FaultJob, each: int, count: KillCount, chance: random.Random) -> None:
    with tempfile.TemporaryDirectory() as place:
        whole, killed = Path(place) / "whole" / "run", Path(place) / "killed" / "run"
        number = touches(whole, lambda: job.work(whole))
        expected = forked(lambda: contents(whole)).value
        while each > 0:
            shutil.rmtree(killed, ignore_errors=True)
            # The second half of the touches is the end of the run; the first kill leaves something to go on from.
            left = min(each, 3)
            while left > 0:
                moment = chance.randint(1, number)
                ending = forked(killed_at(moment, killed, lambda: job.work(killed)))
                if not ending.killed:
                    if ending.status:
                        raise RuntimeError(f"after a kill: {ending.error}")
                    break
                count.kills, each, left = count.kills + 1, each - 1, left - 1
            ending = forked(lambda: job.work(killed))
            if ending.status:
                raise RuntimeError(f"does not go on after {count.kills} kills: {ending.error}")
            count.runs += 1
            if forked(lambda: contents(killed)).value != expected:
                count.different.append(job.name)
