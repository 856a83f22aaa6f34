"""The page of a run: what each section shows, gathered from the run folder and from what was said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from nasight.anatomy import Design, Landscape, read_cells, space_of
from nasight.data import Units, majority_warning, telling_lines
from nasight.errors import RequestError
from nasight.report import SECTIONS, Section, page
from nasight.report.sections import (
    AnatomyValues,
    AnswerValues,
    ComparedRun,
    CompareValues,
    JudgedDecision,
    KernelsValues,
    LandscapeValues,
    MethodSummary,
    PlacedCell,
    ReproduceValues,
    RetrainedAccuracy,
    ScoredMetric,
    SearchValues,
    TrustValues,
)
from nasight.searching import Run
from nasight.studies._command import command_of
from nasight.studies._deepen import kept, trainings
from nasight.studies._explain import Explanation

SEEDS = 3
"""The page advises to train what was found with this many seeds."""


@dataclass(frozen=True)
class Subject:
    """What a report is about; a section of your own gathers its values from it."""

    run: Run
    """The run, finished."""
    explanation: Explanation
    """What was said of it and of those that differ from it by their seed."""
    others: tuple[Run, ...] = ()
    """The runs that it is compared with, seeds among them."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of the others that were judged: how many decisions are safe, unsafe and unknown, by the path of the run."""


@dataclass(frozen=True)
class _Training:
    """What summary.json says of trainings that differ by their seed."""

    accuracy: RetrainedAccuracy
    parameters: int
    multiply_adds: int | None

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> _Training:
        mean, spread = _finite(summary["mean"]), summary["spread"]
        seeds, judged_by = len(summary["seeds"]), str(summary["judged_by"])
        spread = None if spread is None else _finite(spread)
        products = summary.get("multiply_adds")
        accuracy = RetrainedAccuracy(mean, spread, seeds, judged_by)
        return cls(accuracy, int(summary["parameters"]), None if products is None else int(products))


def run_page(subject: Subject) -> str:
    """The report of a run as one HTML text, with every section that is registered."""
    about = subject.explanation.about
    return page(
        [(section, _gathered(section, subject)) for section in SECTIONS.values()],
        title=f"{about['method']} on {about['data']}: what was found, and whether to believe it",
        subject=_path(subject.run),
    )


def _gathered(section: Section, subject: Subject) -> Any | None:
    """The values of a section: by its own `gather`, or by ours if it is built in; None where there are none."""
    if section.gather is None:
        return GATHER[section.name](subject) if section.name in GATHER else None
    try:
        return section.gather(subject)
    except RequestError:
        raise
    except Exception as error:
        raise RequestError(
            f"the report section {section.name!r} cannot be made ({type(error).__name__}: {error}); "
            "repair or uninstall the package that brings it"
        ) from error


def _answer(subject: Subject) -> AnswerValues:
    run, explanation = subject.run, subject.explanation
    about, result, trained = explanation.about, run.result, _trainings(run)
    parameters, products = (trained[0].parameters, trained[0].multiply_adds) if trained else _counted(run)
    return AnswerValues(
        heading=f"{about['method']} ({about['objective']}) on {about['space']}, {about['data']}",
        state=_state(explanation),
        verdict=_verdict(explanation),
        architecture=result["architecture"],
        design=_design(run),
        retrained=trained[0].accuracy if trained else None,
        shared=result["accuracy"],
        supernet=run.history[-1]["valid_accuracy"],
        parameters=parameters,
        multiply_adds=products,
        seconds=result["seconds"],
        advice=explanation.advice,
        train_command=_train_command(run),
        units=Units.of(result),
        figures=telling_lines(result.get("figures") or {}),
        warning=majority_warning(result.get("figures") or {}),
    )


def _state(explanation: Explanation) -> str:
    counts = explanation.counts
    if counts["safe"] == len(explanation.decisions):
        return "safe"
    return "unsafe" if counts["unsafe"] else "unknown"


def _verdict(explanation: Explanation) -> str:
    """The answer to: may I believe the arg max?"""
    counts, total, level = explanation.counts, len(explanation.decisions), f"{100 * explanation.level:g} %"
    if not total:
        return "There was nothing to decide."
    if counts["safe"] == total:
        return f"The arg max is the best under the shared weights: all {total} decisions are safe at {level}."
    if counts["unsafe"]:
        some = "one decision has" if counts["unsafe"] == 1 else f"{counts['unsafe']} of {total} decisions have"
        return f"Do not take the arg max as it is: {some} a better alternative under the shared weights ({level})."
    return f"Not settled: {counts['unknown']} of {total} decisions cannot be told from an alternative at {level}."


def _trust(subject: Subject) -> TrustValues:
    explanation = subject.explanation
    keys = ("name", "choice", "verdict", "margin", "confidence", "advice", "evidence")
    return TrustValues(
        history=subject.run.history,
        groups=subject.run.space.groups(),
        decisions=[JudgedDecision(**{key: decision[key] for key in keys}) for decision in explanation.decisions],
        notes=explanation.notes,
        examples=explanation.about["examples"],
        level=100 * explanation.level,
        several=len(explanation.runs) > 1,
        loss=Units.of(subject.run.result).loss,
    )


def _search(subject: Subject) -> SearchValues | None:
    run = subject.run
    changes = run.result.get("augmentation") if run.finished else None
    return SearchValues(run.history, changes) if run.history else None


def _anatomy(subject: Subject) -> AnatomyValues:
    run = subject.run
    design = _design(run)
    published = {} if design is None else {name: read_cells(name) for name in run.space.published}
    return AnatomyValues(
        cells=[] if design is None else [_placed(kind, design, kind) for kind, _ in design.cells],
        published=[_placed(name, other, other.main) for name, other in published.items()],
        landscape=_landscape(run.path / "deep" / "landscape" / "result.json"),
        train_command=_train_command(run),
        deep_command=f"nasight explain {_path(run)} --deep",
    )


def _placed(name: str, design: Design, kind: str) -> PlacedCell:
    return PlacedCell(name, design[kind], space_of(design[kind]))


def _landscape(path: Path) -> LandscapeValues | None:
    """The landscape that `nasight explain --deep` left, if it is there, whole, and has something to draw."""
    result = kept(path)
    if result is None:
        return None
    try:
        grid = np.array([_finite(value) for value in result["grid"]])
        losses = _plane(result["losses"], len(grid))
        variances = None if result["variances"] is None else _plane(result["variances"], len(grid))
        settings = {"examples": int(result["settings"]["examples"])}
        hessian = result.get("hessian") or {}
        largest, trace = (None if hessian.get(key) is None else _finite(hessian[key]) for key in ("largest", "trace"))
        found = Landscape(grid, losses, variances, settings)
        return LandscapeValues(found, str(result["data"]), str(result["part"]), largest, trace)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _plane(rows: Sequence[Sequence[float | None]], points: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Values as they were before JSON, which has no infinity; refused where they cannot be drawn."""
    values = np.array([[np.inf if value is None else value for value in row] for row in rows], dtype=float)
    values[~np.isfinite(values)] = np.inf
    if points < 2 or values.shape != (points, points) or not ((values > 0) & np.isfinite(values)).any():
        raise ValueError("no landscape")
    return values


def _kernels(subject: Subject) -> KernelsValues | None:
    """The scores that `nasight explain --deep` left, if they are there and whole."""
    result = kept(subject.run.path / "deep" / "scores" / "result.json")
    if result is None:
        return None
    found = subject.run.result["architecture"]
    try:
        mine = next(row for row in result["scores"] if row["architecture"] == found)
        rest = [row for row in result["scores"] if row is not mine]
        return KernelsValues(
            [
                ScoredMetric(metric, direction, _finite(mine[metric]), [_finite(row[metric]) for row in rest])
                for metric, direction in result["directions"].items()
            ]
        )
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError):
        return None


def _finite(value: Any) -> float:
    if not np.isfinite(value):
        raise ValueError(f"{value} cannot be drawn")
    return float(value)


def _compare(subject: Subject) -> CompareValues | None:
    runs = [subject.run, *subject.others]
    if len(runs) < 2:
        return None
    counts = {**subject.counts, str(subject.run.path): subject.explanation.counts}
    groups = compared_groups(runs)
    return CompareValues(
        [_summary(name, members, counts) for name, members in groups.items()],
        [
            ComparedRun(
                label=f"{_method(run)}, seed {run.settings.seed}",
                path=run.path.name,
                history=run.history,
                architecture=run.result["architecture"],
                design=_design(run),
            )
            for run in runs
        ],
        Units.of(runs[0].result),
    )


def compared_groups(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs whose figures may be averaged, by what they are called: one data set, space, size and method.

    Where two groups would have one name, the name says in what they differ.
    """
    keys = [
        (_method(run), run.settings.space, _sizes(run), run.settings.data, run.data.fingerprint[:8]) for run in runs
    ]
    told = [i for i in range(1, 5) if len({key[i] for key in keys}) > 1]
    if 4 in told and 3 in told and len({key[3] for key in keys}) == len({key[3:] for key in keys}):
        told.remove(4)  # the names of the data tell them apart
    groups: dict[str, list[Run]] = {}
    for run, key in zip(runs, keys, strict=True):
        groups.setdefault(", ".join([key[0], *(key[i] for i in told)]), []).append(run)
    return groups


def _sizes(run: Run) -> str:
    values = {**run.settings.space_options, **run.settings.size}
    return " ".join(f"{name} {value}" for name, value in sorted(values.items()))


def _summary(name: str, runs: Sequence[Run], counts: Mapping[str, Mapping[str, int]]) -> MethodSummary:
    results = [run.result for run in runs]
    return MethodSummary(
        name=name,
        accuracy=[result.get("accuracy") for result in results],
        retrained=[training.accuracy.mean for run in runs for training in _trainings(run)[:1]],
        entropy=[result.get("entropy") for result in results],
        seconds=[result["seconds"] for result in results],
        counts=[counts[str(run.path)] for run in runs if str(run.path) in counts],
    )


def _reproduce(subject: Subject) -> ReproduceValues:
    run = subject.run
    about = run.folder.about
    return ReproduceValues(
        command=command_of(run),
        seed=run.settings.seed,
        versions={**about["versions"], "created": about["created"]},
        data=run.data.name,
        inputs=run.data.inputs,
        classes=run.data.classes,
        noun=Units.of(run.result).noun if run.finished else "classes",
        fingerprint=run.data.fingerprint,
        settings=run.settings.model_dump(),
    )


GATHER: Mapping[str, Callable[[Subject], Any | None]] = {
    "answer": _answer,
    "trust": _trust,
    "search": _search,
    "anatomy": _anatomy,
    "kernels": _kernels,
    "compare": _compare,
    "reproduce": _reproduce,
}
"""Built-in section -> what gathers its values."""


def _path(run: Run) -> str:
    """The folder of a run, as one types it."""
    return quote(str(run.path))


def _train_command(run: Run) -> str:
    return f"nasight train {_path(run)} --seeds {SEEDS}"


def _method(run: Run) -> str:
    return f"{run.settings.method} ({run.settings.objective})"


def _design(run: Run) -> Design | None:
    """The cells of the found architecture, in spaces that have cells."""
    try:
        cells = run.space.cells(run.architecture)
        return Design.of(run.path.name, run.space, cells, run.architecture) if cells else None
    except RequestError:
        return None


def _trainings(run: Run) -> list[_Training]:
    """Finished trainings of the found architecture, those with the most seeds first; damaged ones are left out."""
    found = []
    for folder in dict.fromkeys(folder.parent for folder in trainings(run)):
        summary = kept(folder / "summary.json")
        if summary is not None and summary.get("architecture") == run.result["architecture"]:
            with suppress(KeyError, TypeError, ValueError):
                found.append(_Training.of(summary))
    return sorted(found, key=lambda training: -training.accuracy.seeds)


def _counted(run: Run) -> tuple[int | None, int | None]:
    """Parameters and multiply-adds at the size of the search; None where the space has no network of that size."""
    space, inputs, classes, size = run.space, run.data.inputs, len(run.data.classes), run.settings.size
    try:
        parameters = space.parameters(inputs, classes, **size)(run.architecture)
        return parameters, space.multiply_adds(inputs, classes, **size)(run.architecture)
    except RequestError:
        return None, None
