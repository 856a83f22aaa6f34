"""`select`: choose the feature map of a linear model, and keep the run in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.arguments import typed
from nasight.data import Rows
from nasight.data import rows as load_rows
from nasight.errors import RequestError
from nasight.features._evaluator import Evaluator
from nasight.features._families import family as load_family
from nasight.features._family import Config, Family
from nasight.features._run import HistoryRow, Incumbent, Progress, SelectionRun, read_history, read_result
from nasight.features._settings import CLOCKS, OWN, SelectSettings, checked, resolve
from nasight.features._split import SelectionData, split
from nasight.reproducible import threads as threads_of
from nasight.runs import DataRecord, RunFolder, found_again


@dataclass(frozen=True)
class SelectedMap:
    """What a selection did and found: `config`, `history`, `result`, and the model where it was just made.

    Its folder, read again after the end, has no model: `predict` then says so.
    """

    result: dict[str, Any]
    history: list[HistoryRow]
    path: Path | None = None
    evaluator: Evaluator | None = None
    incumbent: Incumbent | None = None

    @property
    def config(self) -> Config:
        """The configuration that was chosen."""
        config: Config = self.result["config"]
        return config

    def predict(self, x: Any) -> NDArray[np.int64]:
        """Class numbers of rows, by the model the search ended with."""
        if self.evaluator is None or self.incumbent is None:
            raise RequestError(f"the selection in {self.path} was read without its data, so it has no model")
        best = self.incumbent
        return self.evaluator.predict(best.model, self.config, x, best.dimension, best.seed)


@typed
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
    published: bool = False,
    out: str | Path | None = None,
    overwrite: bool = False,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
) -> SelectedMap:
    """Choose the feature map of a linear model.

    Parameters
    ----------
    maps : "fourier", "ngrams", a `Family`, a list of scikit-learn transformers, or a dict of distributions; see
        `family`.
    data : a name, a file, arrays or `Rows`; see `nasight.data.rows`.
    target : the label column of a table.
    method : a row of `nasight.features.SELECTION_METHODS`.
    configs : configurations that a pass of the method begins with (hyperband: its largest bracket); the method's own
        number by default.
    dimension : features of the chosen map.
    validation, examples : which rows validate, and at most how many train; see `split`.
    score : "accuracy" or "loss", what configurations are compared by on validation rows.
    max_calls, max_seconds : the budget. A call that has begun is finished. A method that ends before the budget does
        begins again with fresh configurations and keeps the best stand-alone model; without a budget it makes one
        pass.
    clock : "wall", or "cpu" for the seconds of this process's processors, which other work disturbs less.
    seed : everything random follows from it.
    oracle : also train the incumbent alone at the full dimension, outside the clock, for its test accuracy.
    memory : bytes ("4G") that a solver call may take.
    penalty : ridge's lambda.
    threads : how many threads share the work; torch's number by default. A resumed run takes as many as before.
    published : n-grams and their SVM as in the authors' released code; see `HashedNgrams`.
    out : a run folder; `resume` continues it after an interruption.
    overwrite : replace a run that is in `out`.
    data_folder : the folder of the data sets that have names.
    progress : called with the row of each solver call and the number of all calls, where that is known.

    >>> found = select("fourier", "digits", configs=4, dimension=50)
    >>> sorted(found.config)
    ['gamma', 'kernel', 'scaling']
    """
    rows = load_rows(data, target=target, folder=data_folder)
    _check_classes(rows)
    settings = resolve(
        maps=maps if isinstance(maps, str) else OWN,
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
        published=published,
    )
    family = load_family(maps, published=published)
    split_rows = split(rows, validation, examples)
    folder = None
    if out is not None:
        record = DataRecord(rows.name, rows.fingerprint, classes=tuple(rows.classes))
        about = {"settings": settings.model_dump(), "data": record.to_dict()}
        folder = RunFolder.create(out, kind="select", about=about, overwrite=overwrite)
    return _run(family, split_rows, settings, folder, progress)


def _check_classes(rows: Rows) -> None:
    """Refuse labels that are measurements, as scikit-learn's classifiers do: numbers not all of which are whole."""
    try:
        numbers = [float(name) for name in rows.classes]
    except ValueError:
        return
    real = next((name for name, number in zip(rows.classes, numbers, strict=True) if number % 1), None)
    if real is not None:
        raise RequestError(
            f"the target of {rows.name} has real values such as {real}, {len(numbers)} different ones; a feature map "
            "is chosen for classes, so give a target of whole numbers or names"
        )


def resume(
    path: str | Path,
    *,
    maps: Any = None,
    data: Any = None,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
) -> SelectedMap:
    """Finish an interrupted selection; the result is that of one never interrupted, but for the seconds.

    Parameters
    ----------
    path : the run folder.
    maps, data : needed again where they were the user's own: maps without a name, arrays.
    data_folder, progress : as in `select`.

    >>> found = select("fourier", "digits", configs=2, dimension=20, out=tmp / "selection")
    >>> resume(tmp / "selection").config == found.config
    True
    """
    folder = RunFolder.open(path, kind="select")
    settings = checked(folder.about["settings"])
    result = read_result(folder, settings)
    if result is not None:
        return SelectedMap(result, read_history(folder, settings), folder.path)
    if settings.maps == OWN and maps is None:
        raise RequestError(f"{folder.path} searched maps of your own; give them again as maps=")

    def load(source: Any) -> Rows:
        return load_rows(source, target=settings.target, folder=data_folder)

    rows = found_again(folder, settings.data, data, load=load)
    family = load_family(settings.maps if maps is None else maps, published=settings.published)
    split_rows = split(rows, settings.validation, settings.examples)
    return _run(family, split_rows, settings, folder, progress)


def _run(
    family: Family,
    split_rows: SelectionData,
    settings: SelectSettings,
    folder: RunFolder | None,
    progress: Progress | None,
) -> SelectedMap:
    with threads_of(settings.threads):
        evaluator = Evaluator(
            family,
            split_rows,
            penalty=settings.penalty,
            memory=settings.memory,
            seed=settings.seed,
            clock=CLOCKS[settings.clock],
        )
        run = SelectionRun(family, evaluator, settings, folder)
        run.finish(progress)
    return SelectedMap(run.result(), run.history, run.path, run.evaluator, run.incumbent)
