"""What the benchmarks share: four flags, the files of a result, clocks, and figures over seeds.

A result is JSON in benchmarks/results/NAME.json.gz. Its table and its figure, where it has them, are docs/NAME.md and
docs/NAME.svg. Written anywhere else, the three files stand side by side.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import math
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from scipy.stats import kendalltau, spearmanr, t
from torch.nn.functional import adaptive_avg_pool2d

import nasight
from nasight.compute import map_resumable
from nasight.data import Dataset
from nasight.searching import Run, resume, search

RESULTS = Path(__file__).resolve().parent / "results"
DOCS = RESULTS.parents[1] / "docs"
ENDINGS = (".json.gz", ".json")
CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
"""A NAS-Bench-201 cell with every kind of operation that takes time."""


class Flags(argparse.ArgumentParser):
    """A parser with the flags that every benchmark has; a script adds its own.

    `result` is the name of the result and `work` the default folder of runs that a second call does not repeat; in both
    `{part}` stands for the value of --part, and the name of any other flag for its value. `seeds` is how many there are
    by default, `chance` what they are, `data` what is read from --data-folder. Without `seeds` or `data` the flag is
    there and does nothing.
    """

    def __init__(
        self,
        doc: str,
        result: str,
        *,
        seeds: int | None = None,
        chance: str = "seeds",
        data: str | None = None,
        work: str | None = None,
    ) -> None:
        # --seed must not be read as --seeds, nor --data as --data-folder.
        super().__init__(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
        self.result, self.work = result, work
        place = named_in_capitals(f"benchmarks/results/{result}.json.gz")
        self.add_argument("--out", type=Path, metavar="FILE", help=f"the result, .json.gz or .json (default {place})")
        folder = f"folder of {data} (default $NASIGHT_DATA, else your cache)" if data else "does nothing: none is read"
        self.add_argument("--data-folder", metavar="FOLDER", help=folder)
        count = f"how many {chance} (default {seeds})" if seeds else "does nothing: no chance plays a role"
        self.add_argument("--seeds", type=at_least_one, default=seeds, metavar="N", help=count)
        short = "a run of seconds, to see that it works; without --out it writes to a temporary folder"
        self.add_argument("--quick", action="store_true", help=short)
        if work is not None:
            kept = f"folder of runs, which are not repeated (default {named_in_capitals(work)})"
            self.add_argument("--work-folder", type=Path, metavar="FOLDER", help=kept)

    def read(self, **quick: Any) -> argparse.Namespace:
        """The flags as given; with --quick, `quick` has the defaults and all files go to a temporary folder."""
        given, results, work = self.parse_args(), RESULTS, self.work
        if given.out is not None and not given.out.name.endswith(ENDINGS):
            self.error(f"--out must end in {' or '.join(ENDINGS)}, got {given.out}")
        if given.quick:
            if given.out is not None and given.out.resolve().parent == RESULTS:
                self.error("--quick does not write to benchmarks/results/, where the figures in docs/ come from")
            self.set_defaults(**quick)
            given, results = self.parse_args(), Path(tempfile.mkdtemp(prefix="nasight-benchmark-"))
            work = work and str(results / "work")
            torch.set_num_threads(1)  # small tensors on a machine with other work: more threads only wait
        if given.out is None:
            given.out = results / f"{self.result.format(**vars(given))}.json.gz"
        if work is not None and given.work_folder is None:
            given.work_folder = Path(work.format(**vars(given)))
        return given


def named_in_capitals(place: str) -> str:
    """A place as the help shows it: `{part}` is PART."""
    return re.sub(r"{(\w+)}", lambda name: name[1].upper(), place)


def at_least_one(text: str) -> int:
    """A whole number above 0, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


# Files of a result


def save(given: argparse.Namespace, result: Any, *, table: str | None = None, figure: str | None = None) -> None:
    """Write the result to --out, and its table (Markdown) and figure (SVG) to their places."""
    write_result(given.out, result)
    for ending, text in ((".md", table), (".svg", figure)):
        if text is not None:
            page(given.out, ending).write_text(text)
    print(f"written: {given.out}", file=sys.stderr)


def page(result: Path, ending: str) -> Path:
    """The place of a result's table or figure: docs/ for one in benchmarks/results/, else beside it."""
    folder = DOCS if result.resolve().parent == RESULTS else result.parent
    return folder / f"{result.name.removesuffix('.gz').removesuffix('.json')}{ending}"


def write_result(path: Path, value: Any) -> None:
    """JSON, compressed where the name ends in .gz; the same value gives the same bytes at any time."""
    content = io.BytesIO()
    text = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    if path.suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=content, mtime=0) as file:
            file.write(text)
    else:
        content.write(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.getvalue())


def read_result(path: Path) -> Any:
    """What `write_result` wrote."""
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def parts_so_far(path: Path) -> dict[str, Any]:
    """The parts that an earlier call wrote: parts that are not run now stay as they are."""
    return read_result(path) if path.exists() else {}


# Clocks


def timed(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a call takes."""
    start = clock()
    call()
    return clock() - start


def in_turns(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Processor seconds of every way and repeat; ways take turns, so that noise of the machine hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            seconds[name].append(timed(way, time.process_time))
    return seconds


def machine(**more: Any) -> dict[str, Any]:
    """What seconds depend on."""
    return {"cpu": platform.processor() or platform.machine(), **more}


def code_digest() -> str:
    """Eight digits that differ where the code of the library does."""
    root, digest = Path(nasight.__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:8]


def states(codes: Iterable[str]) -> str:
    """A line for a table whose rows are of several states of the code; none where they are of one."""
    number = len(set(codes))
    return f"\nThe rows are of {number} states of the code.\n" if number > 1 else ""


# Figures over seeds


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the sample deviation, which is 0 for one value."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval (Student), which is infinite for one value."""
    mean, deviation = mean_and_deviation(values)
    count = len(values)
    return mean, float(t.ppf(0.975, count - 1)) * deviation / math.sqrt(count) if count > 1 else math.inf


def spread(values: Sequence[float], digits: int = 2) -> str:
    """ "mean ± deviation", or one value alone."""
    mean, deviation = mean_and_deviation(values)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"


def rank_correlation(a: Sequence[float], b: Sequence[float], kind: str = "spearman") -> float | None:
    """Spearman's rho or Kendall's tau-b; None where one side is constant."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float({"spearman": spearmanr, "kendall": kendalltau}[kind](a, b).statistic)


# Work that is not repeated, and its data


def without_folders(result: dict[str, Any]) -> dict[str, Any]:
    """A find's result without the places where its run and page lay, which are nobody's concern.

    >>> without_folders({"run": "here/a", "page": "here/a/report.html", "seed": 3})
    {'seed': 3}
    """
    return {key: value for key, value in result.items() if key not in ("run", "page")}


class KeptRows:
    """Rows of a benchmark by name, in a file (.json or .json.gz) that outlives the run folders they came from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: dict[str, Any] = parts_so_far(path)

    def put(self, name: str, row: Any) -> None:
        """Keep a row; a kill leaves the file as it was or as it is then."""
        self.rows[name] = row
        beside = self.path.with_name(f"new-{self.path.name}")
        write_result(beside, self.rows)
        beside.replace(self.path)


def kept(
    path: Path,
    items: Sequence[Any],
    work: Callable[[Any], Any],
    *,
    workers: int | None,
    settings: Any = None,
    tell: Callable[[Any], object] = str,
) -> list[Any]:
    """`work` of every item; results are in the file `path` (.json or .json.gz) as soon as they arrive.

    They are found again by item and settings, so one file can serve several benchmarks, one at a time.
    """

    def key(item: Any) -> str:
        return json.dumps([item, settings], default=asdict)

    stored = KeptRows(path)
    done = {item: stored.rows[key(item)] for item in items if key(item) in stored.rows}

    def arrived(item: Any, result: Any) -> None:
        done[item] = result
        stored.put(key(item), result)
        print(f"{path.name}: {len(done)} of {len(items)}, {tell(item)}", file=sys.stderr, flush=True)

    return map_resumable(work, items, workers=workers, done=dict(done), on_result=arrived)


def search_or_resume(path: Path, *, data_folder: str | None, **settings: Any) -> Run:
    """The search in `path`: resumed where it was begun, else begun with these settings."""
    if (path / "run.json").exists():
        return resume(path, data_folder=data_folder)
    return search(**settings, out=path, data_folder=data_folder)


def shrunk(data: Dataset, side: int | None) -> Dataset:
    """The data set with images of side x side pixels, each the mean of those it covers."""

    def small(x: torch.Tensor) -> torch.Tensor:
        if side is None or tuple(x.shape[2:]) == (side, side):
            return x
        pooled = [adaptive_avg_pool2d(part.float(), side) for part in torch.split(x, 4096)]
        return torch.cat(pooled).round().to(torch.uint8)

    return replace(data, train_x=small(data.train_x), test_x=None if data.test_x is None else small(data.test_x))
