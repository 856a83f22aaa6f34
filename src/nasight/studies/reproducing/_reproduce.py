"""Claims measured seed by seed over any executor, and kept as they arrive.

run.json        the data, and the version that measures
history.jsonl   a line for each measurement and seed; a restart skips them, later calls add claims and seeds
result.json     the findings of the last call
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasight.arguments import typed
from nasight.compute import map_resumable
from nasight.data import SentData
from nasight.data import load as load_data
from nasight.errors import RequestError, RunError
from nasight.notes import listening
from nasight.reproducible import threads
from nasight.runs import RunFolder
from nasight.studies.reproducing._claim import Claim, Measure
from nasight.studies.reproducing._claims import ALL, chosen_claims
from nasight.studies.reproducing._finding import Finding, Reproduction
from nasight.studies.reproducing._rules import CASES
from nasight.version import VERSION

KIND = "reproduce"
MOST_SEEDS = 10_000
LAST_SEED = 2**31
Item = tuple[str, int]
"""(the name of a measurement, seed)"""
Row = dict[str, Any]
"""A measurement as history.jsonl keeps it."""


@typed
def reproduce(
    claims: Sequence[str] | str = ALL,
    *,
    seeds: int | None = None,
    seed: int = 0,
    data: str | Path = "digits",
    data_folder: str | Path | None = None,
    out: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Measure claims of the five papers at this machine's scale, and give a verdict on each.

    The rule of a claim is fixed in the table `CLAIMS`. Where it is about an interval, that is Student's over the seeds,
    at 95 %; where two sides are compared they share each seed. A measurement runs on one thread and depends on the data
    and its seed alone, so verdicts are the same on any number of workers. Claims with the same measurement share it.

    Parameters
    ----------
    claims : names of `CLAIMS`, or "all".
    seeds : how many for each claim; by default the claim's own number. Claims without chance take one.
    seed : the first of them; the others follow it.
    data : a data set by name, or a file: workers load it themselves. Claims about no data ignore it.
    data_folder : the folder of the data sets that have names.
    out : a folder that keeps what was measured: a restart skips it, later calls add claims and seeds.
    executor : where measurements are made; processes of this machine by default.
    workers : how many processes, where no executor is given; as many as there are cores by default.
    progress : called with the number of finished measurements and of all of them.

    Returns
    -------
    A `Reproduction`: `findings`, one per claim, each with `verdict`, `judgment`, `values` and `note`.

    Examples
    --------
    >>> found = reproduce(["cells-width-depth", "gaea-eg"], seeds=1, workers=1)
    >>> [(each.claim.name, each.verdict) for each in found.findings]
    [('cells-width-depth', 'holds'), ('gaea-eg', 'holds')]
    """
    chosen = chosen_claims(claims)
    wanted = {claim.name: _seeds(claim, seeds, seed) for claim in chosen}
    dataset = load_data(data, folder=data_folder)
    work = _Work({claim.piece: claim.measure for claim in chosen}, SentData.of(dataset))
    items = dict.fromkeys((claim.piece, number) for claim in chosen for number in wanted[claim.name])
    settings = {"data": dataset.name, "fingerprint": dataset.fingerprint, "nasight": VERSION}
    folder = None if out is None else _folder(out, settings)
    with nullcontext() if folder is None else folder.writing():
        done = {} if folder is None else _finished(folder, chosen)
        count = sum(item in done for item in items)

        def arrived(item: Item, row: Row) -> None:
            nonlocal count
            if folder is not None:
                folder.append_history(row)
            count += 1
            if progress is not None:
                progress(count, len(items))

        rows = map_resumable(work, items, executor=executor, workers=workers, done=done, on_result=arrived)
        found = dict(zip(items, rows, strict=True))
        findings = tuple(_finding(claim, wanted[claim.name], found) for claim in chosen)
        reproduction = Reproduction(dataset.name, findings)
        if folder is not None:
            folder.write_result(reproduction.to_dict())
    return reproduction


@dataclass(frozen=True)
class _Work:
    """A measurement as it is sent to another process: functions and the data by their names."""

    measures: Mapping[str, Measure]
    data: SentData

    def __call__(self, item: Item) -> Row:
        name, seed = item
        start = time.perf_counter()
        with threads(1), listening(_Unheard()):
            values = {key: float(value) for key, value in self.measures[name](self.data.load(), seed).items()}
        wrong = [key for key, value in values.items() if not math.isfinite(value)]
        if wrong:
            raise RunError(f"{wrong[0]} of {name} is {values[wrong[0]]} with seed {seed}: nothing can be said of it")
        return {"measure": name, "seed": seed, "values": values, "seconds": time.perf_counter() - start}


class _Unheard:
    """Nobody asked for what the searches and trainings of a measurement say on the way."""

    def note(self, text: str) -> None:
        pass

    def progress(self, what: str, done: int, total: int) -> None:
        pass


def _seeds(claim: Claim, number: int | None, first: int) -> range:
    if number is not None and not 1 <= number <= MOST_SEEDS:
        raise RequestError(f"seeds must be a number from 1 to {MOST_SEEDS:,}, got {number}")
    if first is None or not 0 <= first <= LAST_SEED:
        raise RequestError(f"seed must be a number from 0 to {LAST_SEED:,}, got {first}")
    if not claim.chance:
        return range(1)
    return range(int(first), int(first) + int(claim.seeds if number is None else number))


def _folder(out: str | Path, settings: dict[str, Any]) -> RunFolder:
    return RunFolder.create_or_open(out, kind=KIND, holds="measurements", settings=settings)


def _finished(folder: RunFolder, claims: Sequence[Claim]) -> dict[Item, Row]:
    """What was measured before; a row that lacks a value which a claim asks for is refused."""
    done = {(row["measure"], row["seed"]): row for row in folder.history}
    for claim in claims:
        needed = {claim.figure, *claim.beside, *(() if claim.rule.statistical else (CASES,))}
        for (name, seed), row in done.items():
            lacking = needed - set(row["values"]) if name == claim.piece else set()
            if lacking:
                raise RequestError(
                    f"{folder.path / 'history.jsonl'} is damaged: {name} with seed {seed} lacks {min(lacking)!r}"
                )
    return done


def _finding(claim: Claim, seeds: Sequence[int], found: Mapping[Item, Row]) -> Finding:
    rows = [found[claim.piece, seed] for seed in seeds]
    return Finding.of(claim, seeds, [row["values"] for row in rows], sum(row["seconds"] for row in rows))
