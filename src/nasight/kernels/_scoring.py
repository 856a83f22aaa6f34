"""Scores of many architectures: each form once, spread over an executor, kept as they arrive.

run.json       what was asked for: space, data, size, batch, seed
request.json   the metrics and the architectures of the last call
scores.jsonl   a line for each form scored; a restart skips them, later calls add metrics and architectures
result.json    the scores of the last call
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from nasight.architecture import Architecture
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.kernels._score_table import Score, score_row
from nasight.kernels._scored import Line, ScoreFolder, Scores, assemble
from nasight.kernels._scoring_job import BATCH, Batch, Job, draw_batch, score_batch
from nasight.parallel import map_resumable
from nasight.spaces import Space
from nasight.spaces import load as load_space

RESOLUTION = 16
SIZES: Mapping[str, dict[str, int]] = {
    "nasbench201": {"channels": 4, "cells": 5},
    "darts": {"channels": 4, "cells": 8},
    "nasbench1shot1": {"channels": 4, "cells": 3},
    "mlp": {"width": 256},
}
"""The size at which the networks of a space are scored unless another is given: as deep as the spaces' papers search
or train them, but narrow; images are 16 pixels a side. Depth is not to be saved on: size of gradients compounds
over cells, and in a trial on 130 cells of NAS-Bench-201 the trace with one cell a stage ranked them the wrong way.
"""
ENUMERABLE = 100_000
Progress = Callable[[int, int], None]
"""Called with the number of finished forms and of all forms."""


def score(
    space: Space | str,
    metrics: Sequence[str] | str,
    data: Dataset | str | Path | tuple[Any, ...],
    *,
    architectures: Iterable[Architecture | str] | None = None,
    sample: int | None = None,
    all_distinct: bool = False,
    seed: int = 0,
    size: Mapping[str, int] | None = None,
    batch: int | None = None,
    resolution: int | None = RESOLUTION,
    space_options: Mapping[str, Any] | None = None,
    data_folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Rank architectures by metrics of `SCORES` (or FILE.py:NAME), without training.

    The architectures are those given, a `sample` of so many different ones, or with `all_distinct` one of each form.
    Architectures of one canonical form are scored once, as the first of them in the order of the space. Initial
    weights and the batch follow from the seed, so that scores depend neither on the other architectures nor on the
    workers (the rank sum of te-nas does: it is one over the architectures of the call). `batch` replaces the number
    of examples of every row of the table; images with more than `resolution` pixels a side are shrunk.

    >>> found = score("mlp", "eigen,naswot", "digits", sample=3, workers=1)
    >>> sorted(found.values)
    ['eigen', 'naswot']
    """
    names = [name.strip() for name in metrics.split(",")] if isinstance(metrics, str) else list(metrics)
    rows = _rows(names)
    where = load_space(space, **(space_options or {})) if isinstance(space, str) else space
    dataset = load_data(data, folder=data_folder)
    chosen = _chosen(where, architectures, sample, all_distinct, seed)
    forms, members = _forms(where, chosen)
    sizes = _size(where, size)
    settings = {
        "space": space if isinstance(space, str) else where.name,
        "space_options": dict(space_options or {}),
        "size": sizes,
        "data": data if isinstance(data, str) else dataset.name,
        "fingerprint": dataset.fingerprint,
        "batch": batch,
        "resolution": resolution,
        "seed": seed,
    }
    request = {"metrics": names, "sample": sample, "all_distinct": all_distinct}
    if architectures is not None:
        request["architectures"] = [where.format(arch) for arch in chosen]
    job = Job(
        space if isinstance(space, str) else where,
        tuple((space_options or {}).items()),
        tuple(sizes.items()),
        tuple(rows),
        draw_batch(dataset, rows, batch, resolution, seed),
        dataset.n_classes,
        seed,
        batch,
    )
    with ScoreFolder.at(out, settings, request) as folder:
        lines = _run(job, forms, folder, executor, workers, progress)
        texts = [where.format(arch) for arch in chosen]
        result = assemble(settings, [score_row(n) for n in names], texts, [lines[form] for form in members])
        folder.finish(result)
    return result


def resume_score(
    path: str | Path,
    *,
    data_folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Go on with the last call of `score` that had this folder; its space and data must have names."""
    settings, request = ScoreFolder.read(path)
    return score(
        settings["space"],
        request["metrics"],
        settings["data"],
        architectures=request.get("architectures"),
        sample=request["sample"],
        all_distinct=request["all_distinct"],
        seed=settings["seed"],
        size=settings["size"],
        batch=settings["batch"],
        resolution=settings["resolution"],
        space_options=settings["space_options"],
        data_folder=data_folder,
        executor=executor,
        workers=workers,
        out=path,
        progress=progress,
    )


def _run(
    job: Job,
    forms: dict[str, str],
    folder: ScoreFolder,
    executor: Executor | None,
    workers: int | None,
    progress: Progress | None,
) -> dict[str, Line]:
    """Canonical form -> its line; those not there yet are computed, batches of forms that lack the same metrics."""
    lines = {form: folder.lines[form] for form in forms if form in folder.lines}
    names = [row.name for row in job.rows]
    lacking: dict[tuple[str, ...], list[str]] = {}
    for form in forms:
        there = lines[form]["scores"] if form in lines else {}
        missing = tuple(name for name in names if name not in there)
        if missing:
            lacking.setdefault(missing, []).append(form)
    count, total = len(forms) - sum(map(len, lacking.values())), len(forms)
    batches: list[Batch] = [
        (tuple((form, forms[form]) for form in group[i : i + BATCH]), missing)
        for missing, group in lacking.items()
        for i in range(0, len(group), BATCH)
    ]

    def arrived(batch: Batch, new: list[Line]) -> None:
        nonlocal count
        for line in folder.add(new):
            lines[line["form"]] = line
        count += len(new)
        if progress is not None:
            progress(count, total)

    if progress is not None:
        progress(count, total)
    map_resumable(partial(score_batch, job), batches, executor=executor, workers=workers, on_result=arrived)
    return lines


def _rows(names: Sequence[str]) -> list[Score]:
    """The rows to compute: a rank sum stands for the rows it sums."""
    if not names or len(set(names)) < len(names):
        raise RequestError(f"name at least one metric, each once, got {', '.join(names) or 'none'}")
    found = [part for name in names for part in (score_row(name).ranks or (name,))]
    return [score_row(name) for name in dict.fromkeys(found)]


def _chosen(
    space: Space,
    architectures: Iterable[Architecture | str] | None,
    sample: int | None,
    all_distinct: bool,
    seed: int,
) -> list[Architecture]:
    if (architectures is not None) + (sample is not None) + all_distinct != 1:
        raise RequestError("give one of architectures, sample or all_distinct")
    if architectures is not None:
        listed = [space.parse(a) if isinstance(a, str) else space.checked(a) for a in architectures]
        if not listed:
            raise RequestError("there is no architecture to score, got an empty list")
        return list(dict.fromkeys(listed))
    if all_distinct:
        if len(space) > ENUMERABLE:
            raise RequestError(f"space {space.name!r} has {len(space):.3g} architectures, too many for all; sample")
        return list(representatives(space).values())
    assert sample is not None
    return draw(space, sample, seed)


def draw(space: Space, number: int, seed: int) -> list[Architecture]:
    """So many different architectures drawn uniformly; all of a space that has no more."""
    from nasight.data import generator_for

    if number < 1:
        raise RequestError(f"a sample needs at least 1 architecture, got {number}")
    if number >= len(space):
        return list(space)
    generator = generator_for(seed, "sample")
    drawn: dict[Architecture, None] = {}
    while len(drawn) < number:
        drawn.setdefault(space.sample(generator))
    return list(drawn)


def representatives(space: Space) -> dict[str, Architecture]:
    """Canonical form -> the first architecture of it."""
    first: dict[str, Architecture] = {}
    for arch in space:
        first.setdefault(space.canonical(arch), arch)
    return first


def _forms(space: Space, chosen: list[Architecture]) -> tuple[dict[str, str], list[str]]:
    """Canonical form -> the text of its representative; and the form of every architecture."""
    members = [space.canonical(arch) for arch in chosen]
    if type(space).canonical is not Space.canonical and len(space) <= ENUMERABLE:
        first = representatives(space)
    else:
        first = {}
        for form, arch in zip(members, chosen, strict=True):
            first.setdefault(form, arch)
    return {form: space.format(first[form]) for form in dict.fromkeys(members)}, members


def _size(space: Space, size: Mapping[str, int] | None) -> dict[str, int]:
    family = space.name.rsplit("-", 1)[0] if space.name.startswith("nasbench1shot1") else space.name
    return space.size(**{**SIZES.get(family, {}), **(size or {})})
