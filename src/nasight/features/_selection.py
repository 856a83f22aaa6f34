"""`select`: choose the feature map of a linear model, and keep the run in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.data import rows as load_rows
from nasight.errors import RequestError
from nasight.features._families import family as load_family
from nasight.features._family import Config, Family
from nasight.features._problem import Bench, Problem, split
from nasight.features._run import Incumbent, Progress, Row, Run
from nasight.features._settings import CLOCKS, SelectSettings, checked, resolve
from nasight.reproducible import threads as threads_of
from nasight.runs import RunFolder


@dataclass(frozen=True)
class Selection:
    """What a selection did and found: `config`, `history`, `result`, and the model where it was just made."""

    result: dict[str, Any]
    history: list[Row]
    path: Path | None = None
    bench: Bench | None = None
    incumbent: Incumbent | None = None

    @property
    def config(self) -> Config:
        config: Config = self.result["config"]
        return config

    def predict(self, x: Any) -> NDArray[np.int64]:
        """Class numbers of rows, by the model the search ended with."""
        if self.bench is None or self.incumbent is None:
            raise RequestError(f"the selection in {self.path} was read without its data, so it has no model")
        best = self.incumbent
        return self.bench.predict(best.model, self.config, x, best.dimension, best.seed)


def select(
    maps: Any = "fourier",
    data: Any = "digits",
    *,
    target: str | None = None,
    method: str = "fast-weight-sharing",
    configs: int | None = None,
    dimension: int = 10_000,
    validation: float | int | str | None = None,
    examples: int | None = None,
    score: str = "accuracy",
    max_calls: int | None = None,
    max_seconds: float | None = None,
    clock: str = "wall",
    seed: int = 0,
    oracle: bool = False,
    memory: int | str | None = None,
    penalty: float = 0.5,
    threads: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Choose the feature map of a linear model.

    Parameters
    ----------
    maps : "fourier", "ngrams", a `Family`, a list of scikit-learn transformers, or a dict of distributions.
    data : a name, a file, arrays or `Rows`; see `nasight.data.rows`. `target` names the label column of a table.
    method : a row of `nasight.features.METHODS`.
    configs : configurations that a pass of the method begins with (hyperband: its largest bracket); the method's own
        number by default.
    validation : see `split`; the data set's own rule by default.
    score : "accuracy" or "loss", what configurations are compared by on validation rows.
    max_calls, max_seconds : the budget. A call that has begun is finished. A method that is through before the budget
        is begins again with fresh configurations and keeps the best stand-alone model; without a budget it makes
        one pass.
    clock : "wall", or "cpu" for the seconds of this process's processors, which other work disturbs less.
    oracle : also train the incumbent alone at the full dimension, outside the clock, for its test accuracy.
    memory : bytes ("4G") that a solver call may take.
    penalty : ridge's lambda.
    threads : how many share the work; torch's number by default. A resumed run takes as many as before.
    out : a run folder; `resume` goes on with it after an interruption.
    """
    rows = load_rows(data, target=target, folder=data_folder)
    settings = resolve(
        maps=maps if isinstance(maps, str) else "own",
        data=data if isinstance(data, str) else rows.name,
        target=target,
        method=method,
        configs=configs,
        dimension=dimension,
        validation=validation,
        examples=examples,
        score=score,
        max_calls=max_calls,
        max_seconds=max_seconds,
        clock=clock,
        seed=seed,
        oracle=oracle,
        memory=memory,
        penalty=penalty,
        threads=threads,
    )
    family = load_family(maps)
    problem = split(rows, validation, examples)
    folder = None
    if out is not None:
        about = {"settings": settings.model_dump(), "data": {"name": rows.name, "fingerprint": rows.fingerprint}}
        folder = RunFolder.create(out, kind="select", about=about, overwrite=overwrite)
    return _run(family, problem, settings, folder, progress)


def resume(
    path: str | Path,
    *,
    maps: Any = None,
    data: Any = None,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Go on with an interrupted selection; the result is that of one never interrupted, but for the seconds.

    A selection over maps or arrays of the user's own needs them again, as `maps` and `data`.
    """
    folder = RunFolder.open(path, kind="select")
    settings, result = checked(folder.about["settings"]), folder.result
    if result is not None:
        return Selection(result, folder.history, folder.path)
    if settings.maps == "own" and maps is None:
        raise RequestError(f"{folder.path} searched maps of your own; give them again as maps=")
    rows = load_rows(settings.data if data is None else data, target=settings.target, folder=data_folder)
    known = folder.about["data"]
    if rows.fingerprint != known["fingerprint"]:
        raise RequestError(
            f"{folder.path} searched other data ({known['name']!r}, fingerprint {known['fingerprint'][:12]}) than this "
            f"({rows.name!r}, {rows.fingerprint[:12]})"
        )
    family = load_family(settings.maps if maps is None else maps)
    problem = split(rows, settings.validation, settings.examples)
    return _run(family, problem, settings, folder, progress)


def _run(
    family: Family, problem: Problem, settings: SelectSettings, folder: RunFolder | None, progress: Progress | None
) -> Selection:
    with threads_of(settings.threads):
        bench = Bench(
            family,
            problem,
            penalty=settings.penalty,
            memory=settings.memory,
            seed=settings.seed,
            clock=CLOCKS[settings.clock],
        )
        run = Run(family, bench, settings, folder)
        run.go(progress)
    return Selection(run.result(), run.history, run.path, run.bench, run.incumbent)
