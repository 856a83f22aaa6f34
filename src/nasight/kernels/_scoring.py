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
from nasight.arguments import typed
from nasight.compute import choose_device, is_device, map_resumable
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.kernels._score_table import Score, score_row
from nasight.kernels._scored import Line, ScoreFolder, Scores, assemble
from nasight.kernels._scoring_job import BATCH, Batch, ScoreJob, draw_batch, draw_crops, score_batch
from nasight.reproducible import generator_for
from nasight.spaces import Space
from nasight.spaces import load as load_space

RESOLUTION = 16
"""Pixels per side to which larger images are shrunk."""
ENUMERABLE = 100_000
Progress = Callable[[int, int], None]
"""Called with the number of finished forms and of all forms."""


@typed
def score(
    space: Space | str,
    metrics: Sequence[str] | str,
    data: Any,
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
    device: str = "auto",
) -> Scores:
    """Rank architectures without training.

    Architectures of one canonical form are scored once, as the first of them in the order of the space. Initial
    weights and the batch follow from the seed, so that scores depend neither on the other architectures nor on the
    workers (the rank sum of te-nas does: it is one over the architectures of the call).

    Parameters
    ----------
    space : a space or its name.
    metrics : names of `SCORES` or FILE.py:NAME, as a list or joined by commas.
    data : anything that `nasight.data.load` takes: a name, a file, a folder, arrays, a frame, a torch `Dataset`.
    architectures, sample, all_distinct : which ones are scored, one of three: a list of them, this many different ones
        drawn uniformly, or one of each form of the space.
    seed : initial weights, batch and sample follow from it.
    size : size settings of the networks. By default the space's `score_size`: as deep as the space's paper searches or
        trains them, but narrow. Depth is not to be saved on: the size of gradients compounds over cells, and in a
        trial on 130 cells of NAS-Bench-201 the trace with one cell per stage ranked them the wrong way.
    batch : examples for every metric, in place of the metric's own number.
    resolution : images with more pixels per side than this are shrunk; None leaves them.
    space_options : options of a space that is given by its name.
    data_folder : the folder of the data sets that have names.
    executor : where the work is done; processes of this machine by default.
    workers : how many processes, where no executor is given; as many as there are cores by default.
    out : a folder that keeps the scores: a restart skips what is there, later calls add metrics and architectures.
    progress : called with the number of finished forms and of all forms.
    device : "auto", "cpu", "cuda", "cuda:N" or "mps"; weights and batch are drawn on the CPU, so the scores of devices
        agree up to rounding. On a device the work is done in one process by default.

    >>> found = score("mlp", "eigen,naswot", "digits", sample=3, workers=1)
    >>> sorted(found.values)
    ['eigen', 'naswot']
    """
    names = [name.strip() for name in metrics.split(",")] if isinstance(metrics, str) else list(metrics)
    rows = _rows(names)
    loaded = load_space(space, **(space_options or {})) if isinstance(space, str) else space
    dataset = load_data(data, folder=data_folder)
    chosen = _chosen(loaded, architectures, sample, all_distinct, seed)
    forms, members = _forms(loaded, chosen)
    sizes, chosen_device = _size(loaded, size), choose_device(device)
    settings = {
        "space": space if isinstance(space, str) else loaded.name,
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
        request["architectures"] = [loaded.format(arch) for arch in chosen]
    job = ScoreJob(
        # A space from a file goes to other processes by its name: the file is no module that they could import.
        space if isinstance(space, str) and ".py:" in space else loaded,
        tuple((space_options or {}).items()),
        tuple(sizes.items()),
        tuple(rows),
        draw_batch(dataset, rows, batch, resolution, seed),
        dataset.n_classes,
        seed,
        batch,
        draw_crops(dataset, rows, seed),
        sizes != _size(loaded, None),
        str(chosen_device),
    )
    if is_device(chosen_device) and executor is None:
        workers = workers or 1
    with ScoreFolder.at(out, settings, request) as folder:
        lines = _run(job, forms, folder, executor, workers, progress)
        texts = [loaded.format(arch) for arch in chosen]
        result = assemble(settings, [score_row(n) for n in names], texts, [lines[form] for form in members])
        folder.finish(result)
    return result


def resume_score(
    path: str | Path,
    *,
    space: str | None = None,
    metrics: Sequence[str] | str = (),
    data_folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    device: str = "auto",
) -> Scores:
    """Finish the last call of `score` that had this folder; its space and data must have names.

    Parameters
    ----------
    path : the folder that the call had as `out`.
    space, metrics : where they are code of your own, named again as "FILE.py:NAME": a folder alone does not run it.
    data_folder, executor, workers, progress, device : as in `score`.

    >>> found = score("mlp", "params", "digits", sample=2, workers=1, out=tmp / "scores")
    >>> resume_score(tmp / "scores", workers=1).values == found.values
    True
    """
    own = metrics.split(",") if isinstance(metrics, str) else list(metrics)
    settings, request = ScoreFolder.read(path, space, [name.strip() for name in own])
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
        device=device,
    )


def _run(
    job: ScoreJob,
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
    """This many different architectures drawn uniformly; all of a space that has no more."""
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
    return space.size(**{**space.score_size, **(size or {})})
