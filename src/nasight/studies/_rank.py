"""`rank`: how well what a search knows orders architectures, against stand-alone training of a sample, or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasight import trust
from nasight.architecture import Architecture
from nasight.arguments import typed
from nasight.compute import choose_device, to_device
from nasight.data import Dataset, Task
from nasight.errors import RequestError
from nasight.kernels import score, score_row
from nasight.reproducible import generator_for
from nasight.searching import LogProbability, Run
from nasight.spaces import Space, Supernet
from nasight.studies._retrain import Counter, retrain, sendable_space
from nasight.tables import load as load_table
from nasight.trust import Batches, example_losses

IN_TABLES = {"cifar-10": "c10", "cifar-100": "c100", "imagenet16-120": "in16"}
LEAST, TRIES = 4, 100
"""Fewer architectures have no interval; TRIES draws for each that is wanted, where many are no networks."""


@dataclass(frozen=True)
class RankedSample:
    """A sample of architectures, what is true of them, and how well each predictor orders them."""

    run: str
    truth: str
    architectures: tuple[str, ...]
    accuracies: tuple[float, ...]
    predictions: Mapping[str, tuple[float, ...]]
    ranking: trust.Ranking
    level: float
    metric: str = "accuracy"
    """What the truth is measured in."""

    def says(self, name: str) -> str:
        """Whether a predictor is better than chance, at the level of the interval."""
        agreement = self.ranking.predictors[name].agreement
        if agreement.kendall_interval is None:
            return f"undecided: {agreement.undecided}"
        low, high = agreement.kendall_interval
        return "better than chance" if low > 0 else "worse than chance" if high < 0 else "not told from chance"

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {"architecture": text, "truth": true, **{name: values[i] for name, values in self.predictions.items()}}
            for i, (text, true) in enumerate(zip(self.architectures, self.accuracies, strict=True))
        ]
        predictors = {
            name: {
                **found.agreement.to_dict(),
                "regret": found.regret,
                "top": found.top,
                "leads": self.ranking.leads[name],
                "says": self.says(name),
            }
            for name, found in self.ranking.predictors.items()
        }
        return {
            "run": self.run,
            "truth": self.truth,
            "metric": self.metric,
            "level": self.level,
            "predictors": predictors,
            "architectures": rows,
        }


@typed
def rank(
    run: str | Path | Run,
    *,
    sample: int = 20,
    table: str | Path | None = None,
    metrics: Sequence[str] = ("naswot",),
    level: float = 0.95,
    examples: int | None = None,
    seed: int = 0,
    preset: str = "tiny",
    epochs: int | None = None,
    seeds: int = 1,
    data: Any = None,
    data_folder: str | Path | None = None,
    space: Space | str | None = None,
    progress: Callable[[str], Counter] | None = None,
    device: str = "auto",
) -> RankedSample:
    """How well architecture weights, shared-weights accuracy, size and train-free scores order architectures.

    Parameters
    ----------
    run : a finished search.
    sample : this many different architectures that are networks, drawn uniformly by `seed`.
    table : look their test accuracy up (`nasbench201`, or a path) instead of training them.
    metrics : rows of `nasight.kernels.SCORES`.
    level : of the intervals.
    examples : at most this many held-out examples for the shared weights; all by default.
    preset, epochs, seeds : the short training of each where there is no table; kept in RUN/resolve.
    data : where the data of the run is now, if not where it was.
    data_folder : the folder of the data sets that have names.
    space : the space of the run, where it is code of your own: "FILE.py:NAME".
    progress : given what is being done, a function of how much of it is done.
    device : where networks are measured, scored and trained: "auto", "cpu", "cuda", "cuda:N" or "mps".

    Accuracies of short trainings are of held-out training examples: no test part is looked at.
    """
    run = run if isinstance(run, Run) else Run(run, space=space)
    if sample < LEAST:
        raise RequestError(f"a ranking needs at least {LEAST} architectures, got {sample}")
    if examples is not None and examples < 2:
        raise RequestError(f"there must be at least 2 examples to measure with, got {examples}")
    if not 0 < level < 1:
        raise RequestError(f"level must be between 0 and 1, got {level}")
    for name in metrics:
        score_row(name)  # refuses an unknown one
    begin = progress or (lambda _: lambda done, total: None)
    weights = run.weights
    look_up = None if table is None else _looked_up(run, table, data_folder)
    dataset = run.load_data(data, data_folder=data_folder, may_differ=True)
    archs = _sample(run, sample, seed)
    texts = [run.space.format(arch) for arch in archs]
    chosen = choose_device(device)
    supernet = run.supernet().to(chosen, non_blocking=True)
    log_p = LogProbability(weights, supernet.groups, run.space)
    count = run.space.parameters(run.data.inputs, len(run.data.classes), **run.settings.size)
    batches = to_device(trust.first_examples(run.held_out(dataset), examples), chosen)
    predictions = {
        "architecture weights": [log_p(arch) for arch in archs],
        "shared weights": _shared(run, supernet, archs, batches, dataset.task, begin("accuracies with shared weights")),
        "parameters": [float(count(arch)) for arch in archs],
    }
    if metrics:
        predictions |= _scores(run, texts, metrics, dataset, seed, begin("architectures scored"), device)
    if look_up is None:
        short = retrain(
            run,
            texts,
            dataset,
            preset=preset,
            epochs=epochs,
            seeds=seeds,
            progress=begin("architectures trained"),
            device=device,
        )
        true = [each.mean for each in short]
        what = f"{dataset.task.units.metric} on held-out examples after a short training ({preset})"
    else:
        what, true = look_up[0], [look_up[1](text) for text in texts]
    found = trust.ranking(true, predictions, level=level, seed=seed)
    columns = {name: tuple(values) for name, values in predictions.items()}
    metric = dataset.task.units.metric if look_up is None else "accuracy"
    return RankedSample(str(run.path), what, tuple(texts), tuple(true), columns, found, level, metric)


def _sample(run: Run, number: int, seed: int) -> list[Architecture]:
    """Different architectures that are networks, drawn uniformly."""
    space, generator, drawn = run.space, generator_for(seed, "ranking"), dict[Architecture, None]()
    for _ in range(TRIES * number):
        arch = space.sample(generator)
        if space.usable(arch) is None:
            drawn.setdefault(arch)
        if len(drawn) == number:
            return list(drawn)
    if len(drawn) < LEAST:
        raise RequestError(f"space {space.name!r} gave {len(drawn)} different networks, too few for a ranking")
    return list(drawn)


def _shared(
    run: Run, supernet: Supernet, archs: Sequence[Architecture], batches: Batches, task: Task, count: Counter
) -> list[float]:
    """The score (accuracy in percent) of each architecture with the shared weights."""
    found = list[float]()
    edges = any(not group.exclusive for group in supernet.groups)
    for arch in archs:
        _, right = example_losses(supernet, run.space.encode(arch, edges=edges), batches, task)
        found.append(100 * float(right.mean()))
        count(len(found), len(archs))
    return found


def _scores(
    run: Run, texts: Sequence[str], metrics: Sequence[str], dataset: Dataset, seed: int, count: Counter, device: str
) -> dict[str, list[float]]:
    scored = score(
        sendable_space(run), list(metrics), dataset, architectures=texts, seed=seed, workers=1,
        progress=count, device=device,
    )  # fmt: skip
    return {name: scored.goodness(name) for name in scored.values}


def _looked_up(run: Run, source: str | Path, folder: str | Path | None) -> tuple[str, Callable[[str], float]]:
    """What the table holds, in words, and the number of an architecture."""
    table, name = load_table(source, folder=folder), run.settings.data
    if run.space.name != table.space.name:
        raise RequestError(f"the table is of space {table.space.name!r}, {run.path} of {run.space.name!r}")
    if name not in IN_TABLES or f"{IN_TABLES[name]}_test200" not in table.columns:
        there = ", ".join(d for d, short in IN_TABLES.items() if f"{short}_test200" in table.columns)
        raise RequestError(
            f"the table has test accuracies on {there or 'nothing'}, but {run.path} was searched on {name!r}; "
            f"leave --table out to train a sample"
        )
    column = table.column(f"{IN_TABLES[name]}_test200")
    return f"test accuracy after 200 epochs in table {table.name!r}", lambda text: float(column[table.index(text)])
