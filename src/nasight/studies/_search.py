"""`nasight.search`: any method of the table, with a supernet or without training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

from torch import nn

from nasight import searching
from nasight.arguments import typed
from nasight.compute import world
from nasight.data import with_label
from nasight.errors import RequestError
from nasight.options import SearchOptions, takes
from nasight.own import OwnParts, own_parts
from nasight.searching import DEFAULT_METHOD, METHODS, Method, Progress, Run
from nasight.spaces import DEFAULT, Space
from nasight.spaces import load as load_space
from nasight.studies._train_free import TRAIN_FREE_METHODS, resume_train_free, train_free_search


@typed
@takes(SearchOptions)
def search(
    space: str | Space | nn.Module | Callable[[], nn.Module] = DEFAULT,
    method: str | Method = DEFAULT_METHOD,
    data: Any = "digits",
    *,
    objective: str | None = None,
    out: str | Path,
    preset: str = "small",
    data_folder: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    track: str | None = None,
    **settings: Unpack[SearchOptions],
) -> Run:
    """Find an architecture: with one shared-weights network, or by a score without training.

    Parameters
    ----------
    space : a name (`nasight.spaces.names()`), a `Space`, or an `nn.Module` (or a function that makes one) with
        `Choice`s in it.
    method : a row of the method table (`nasight.searching.METHODS`), its name, or the name of a method without training
        (eigen, knas, naswot, te-nas, nasi). These score in several processes, so a script that calls them must be
        guarded by `if __name__ == "__main__":`.
    data : a name, a file, a folder, arrays `(x, y)` or a `Dataset`; see `nasight.data.load`.
    objective : "erm", "bilevel", ...; by default the one the method was published with on such a space.
    out : the run folder.
    preset : "tiny", "small", "medium", "paper" or "imagenet": size, amount of data and epochs together.
    data_folder : the folder of the data sets that have names.
    overwrite : replace a run that is in `out`.
    progress : told of every step and epoch.
    track : "tensorboard" writes event files into the folder `tensorboard` of the run, an epoch at a time.
    settings : any setting of `nasight.searching.SearchOptions`, such as `epochs=20`, `seed=1`, `size={"channels": 8}`.

    Returns
    -------
    A `Run`: `architecture`, `history`, `weights`, `settings`, `result`, and the folder it lies in.

    Examples
    --------
    >>> run = search(data="digits", preset="tiny", epochs=1, examples=200, out=tmp / "run")
    >>> run.architecture in run.space
    True
    """
    if isinstance(method, str) and method not in METHODS and method not in TRAIN_FREE_METHODS:
        raise RequestError(f"{METHODS.unknown(method)}; without training there are {', '.join(TRAIN_FREE_METHODS)}")
    if isinstance(method, str) and method in TRAIN_FREE_METHODS:
        if track is not None:
            raise RequestError(
                f"--track {track} is for methods that train a supernet; a search without training has no epochs"
            )
        if world()[1] > 1:
            raise RequestError(f"method {method!r} trains no supernet for ranks to share: start it without torchrun")
        if objective is not None:
            raise RequestError(f"method {method!r} trains no supernet and has no objective, got {objective!r}")
        given: dict[str, Any] = dict(settings)
        data = with_label(data, given.pop("label", None), given.pop("task", None))
        if own := own_parts(given).names():
            raise RequestError(f"method {method!r} trains no supernet and takes no {next(iter(own))} of your own")
        if given.pop("class_weights", None) is not None:
            raise RequestError(f"method {method!r} trains no supernet and takes no class weights")
        return train_free_search(
            space,
            method,
            data,
            out=out,
            preset=preset,
            data_folder=data_folder,
            overwrite=overwrite,
            progress=progress,
            **given,
        )
    return searching.search(
        space,
        method,
        data,
        objective=objective,
        out=out,
        preset=preset,
        data_folder=data_folder,
        overwrite=overwrite,
        progress=progress,
        track=track,
        **settings,
    )


def resume(
    path: str | Path,
    *,
    space: str | Space | nn.Module | Callable[[], nn.Module] | None = None,
    method: Method | None = None,
    data: Any = None,
    own: OwnParts | None = None,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
    track: str | None = None,
    lr: float | None = None,
    epochs: int | None = None,
    device: str | None = None,
) -> Run:
    """Resume an interrupted search; the result is that of a search that was never interrupted.

    Parameters
    ----------
    path : the run folder.
    epochs : more epochs than a search had that has ended: it goes on, along the cosine of the new length.
    space, method, data : those of a search over a user's own module, method or arrays, which a folder cannot keep.
        Code in a file is named again too, as "FILE.py:NAME": a folder alone does not make it run.
    own : the loss, metric, optimizer and augmentation of a search with functions of a user's own.
    data_folder, progress, track : as in `nasight.search`; with `track` the epochs behind it are tracked too.
    lr : another learning rate from here on, for a search that diverged.
    device : where to go on; by default where it began. On another kind of device the random numbers are the same, but
        sums are rounded otherwise.
    """
    run = Run(path, space=space if space is None or isinstance(space, str) else load_space(space))
    if not run.train_free:
        return searching.resume(
            path,
            space=space,
            method=method,
            data=data,
            own=own,
            data_folder=data_folder,
            progress=progress,
            track=track,
            lr=lr,
            epochs=epochs,
            device=device,
        )
    if epochs is not None:
        raise RequestError(f"the search in {run.path} trained no supernet: it has no epochs to add")
    if lr is not None:
        raise RequestError(f"--lr {lr:g} is for searches that train a supernet, not for {run.settings.method!r}")
    if track is not None:
        raise RequestError(
            f"--track {track} is for methods that train a supernet; a search without training has no epochs"
        )
    return resume_train_free(run, data=data, data_folder=data_folder, progress=progress, device=device)
