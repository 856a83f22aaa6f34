"""All kills, shortages, bad inputs and strangers, and a table of what came of them: `make faults`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import torch

from faults import fuzz, hammer, inputs, jobs, kills, shortages, strangers
from faults.bases import make_bases
from faults.nursery import forked, warm

PARTS = ("kills", "shortages", "inputs", "strangers", "together")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=2, help="kills of each search; other commands get six times that")
    parser.add_argument("--inputs", type=int, default=3_000, help="bad inputs")
    parser.add_argument("--every", type=int, default=3, help="one in so many attempts of a stranger")
    parser.add_argument("--seconds", type=float, default=120, help="how long two processes share a folder")
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    # One core: what runs in worker processes elsewhere runs here, where it can be killed.
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    warm()
    started, bad = time.monotonic(), 0
    print("| what | how often | went wrong |\n|---|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "bases"
        made = forked(lambda: make_bases(place), limit=600)
        if made.status:
            print(made.error, file=sys.stderr)
            return 1
        for what, number, wrong in _all(asked, place):
            print(f"| {what} | {number:,} | {len(wrong)} |", flush=True)
            bad += len(wrong)
            for each in wrong:
                print(f"{what}: {each}", file=sys.stderr, flush=True)
    print(f"\n{time.monotonic() - started:.0f} s on one core.")
    return int(bad > 0)


Line = tuple[str, int, list[str]]


def _all(asked: argparse.Namespace, place: Path) -> Iterator[Line]:
    parts = {
        "kills": _kills,
        "shortages": _shortages,
        "inputs": _inputs,
        "strangers": _strangers,
        "together": _together,
    }
    for name, part in parts.items():
        if asked.only in (None, name):
            yield from part(asked, place)


def _kills(asked: argparse.Namespace, place: Path) -> Iterator[Line]:
    counts = kills.kill_all(jobs.searches(), asked.kills, seed=asked.seed)
    counts |= kills.kill_all(jobs.others(), 6 * asked.kills, seed=asked.seed)
    for command, count in counts.items():
        yield f"kills of `{command}`; a resumed run differs from one never killed", count.kills, count.different
    yield "kills in all", sum(count.kills for count in counts.values()), []


def _shortages(asked: argparse.Namespace, place: Path) -> Iterator[Line]:
    for fault in shortages.all_shortages(place):
        if fault.survived is None:
            yield f"{fault.name}: not possible here ({fault.why})", 0, []
        else:
            yield f"{fault.name}: a sentence, and the same result afterwards", 1, [] if fault.survived else [fault.why]


def _inputs(asked: argparse.Namespace, place: Path) -> Iterator[Line]:
    found = fuzz.count(_bad_inputs(asked, place))
    yield "bad inputs that end in a traceback", found.inputs, found.tracebacks
    yield f"bad inputs that take over {fuzz.MOST_SECONDS} s", found.inputs, found.hangs
    yield f"peak memory of them: {found.memory / 1e9:.2f} GB", 1, [] if found.memory < 1.5e9 else ["over 1.5 GB"]


def _strangers(asked: argparse.Namespace, place: Path) -> Iterator[Line]:
    tried = strangers.attempts(place, asked.every)
    yield "attempts of a stranger's folder to run code, or to write outside of itself", tried.attempts, tried.successes


def _together(asked: argparse.Namespace, place: Path) -> Iterator[Line]:
    both = hammer.hammer(asked.seconds, seed=asked.seed)
    what = f"commands of two processes on one folder for {asked.seconds:.0f} s; mixed state, or a finished run lost"
    yield what, sum(both.commands.values()), both.wrong


def _bad_inputs(asked: argparse.Namespace, place: Path) -> Iterator[fuzz.Input]:
    share, seed = asked.inputs // 10, asked.seed
    return chain(
        fuzz.harmed_folders(place, 5 * share, seed),
        inputs.data_files(2 * share, seed),
        inputs.cell_texts(share, seed),
        inputs.python_values(4 * share, seed),
        inputs.command_words(share, seed),
        inputs.own_code(),
        inputs.bombs(),
    )


if __name__ == "__main__":
    sys.exit(main())
