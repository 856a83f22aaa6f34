"""The scores, one row each: what is computed, on what, which way is better, what a network without a score gets.

All are computed on a network with its initial weights, which follow from the seed. Batch norms use the statistics of
the batch (as constants where gradients are taken; see `_empirical`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.kernels import _scores as s
from nasight.kernels._initial import INITS
from nasight.kernels._te_nas_measures import CROPS
from nasight.registry import Registry

Metric = Callable[[nn.Module, Tensor, Tensor], float]
WORST = 1e30
"""Beyond any score: what a failure counts, with the sign of the direction, where zero is not the worst."""


@dataclass(frozen=True)
class Score:
    """One way to rank architectures without training: a row of `SCORES`.

    Parameters
    ----------
    name : what `score` and `--metric` take.
    function : (network, x, y) -> a number, for a network with its initial weights and a batch; None with `ranks`.
    direction : "high" or "low", which is better.
    batch : examples that the function gets.
    batch_norm : what batch norms do in it, for the list of scores: "train", "coupled" or "none".
    cost, paper : what it costs and where it was published, for the list of scores.
    worst : the score of an architecture that is no network, or of which the function finds no finite number; a number
        beyond all others by default.
    ranks : names of other scores; this one is then the sum of the ranks by them.
    thin : measured on the smallest network of the space and crops of 3 x 3 pixels, where patterns can coincide.
    small : measured on networks of the space's `prune_size`, unless another size than the space's own is asked for.
    version : raised when the definition changes: scores of another version in a folder are computed anew.
    init : initial weights, "own" for those that the network draws itself; see `INITS`.
    """

    name: str
    function: Metric | None
    direction: str = "high"
    batch: int = 32
    batch_norm: str = "train"
    cost: str = ""
    paper: str = ""
    worst: float | None = None
    ranks: tuple[str, ...] = ()
    thin: bool = False
    init: str = "own"
    small: bool = False
    version: int = 1

    def __post_init__(self) -> None:
        if self.direction not in ("high", "low"):
            raise RequestError(f"direction must be 'high' or 'low', got {self.direction!r}")
        if self.init not in INITS:
            raise RequestError(f"initial weights must be one of {', '.join(INITS)}, got {self.init!r}")
        if self.function is None and not self.ranks:
            raise RequestError(f"score {self.name!r} needs a function, or the names of scores whose ranks it sums")

    @property
    def failed(self) -> float:
        """What an architecture without a score gets."""
        return self.worst if self.worst is not None else (-WORST if self.direction == "high" else WORST)


ROWS = (
    Score("eigen", s.eigen, batch=16, cost="1 forward, 1 backward, contractions", paper="Zhu et al. 2022", worst=0.0),
    Score("eigen-min", s.eigen_min, cost="as knas, and N^3", paper="Zhu et al. 2022", worst=0.0),
    Score("knas", s.knas, batch=16, cost="as eigen, and N^2 parameters", paper="Xu et al. 2021", worst=0.0),
    Score("knas-mean", s.knas_mean, batch=16, cost="1 forward, 1 backward", paper="Xu et al. 2021", worst=0.0),
    Score(
        "knas-released",
        s.knas_released,
        batch=50,
        batch_norm="coupled",
        cost="N of 1 forward, 1 backward",
        paper="Xu et al. 2021, code",
    ),
    Score("naswot", s.naswot, batch=128, cost="1 forward, N^2 units", paper="Mellor et al. 2021"),
    Score(
        "condition",
        s.condition,
        direction="low",
        batch=72,
        batch_norm="coupled",
        cost="1 forward, N backward, small",
        paper="Chen et al. 2021",
        small=True,
        init="fan-out",
        version=2,
    ),
    Score(
        "regions",
        s.regions,
        batch=CROPS,
        batch_norm="coupled",
        cost="1 thin forward",
        paper="Chen et al. 2021",
        worst=0.0,
        thin=True,
        init="fan-in",
        version=2,
    ),
    Score(
        "te-nas",
        None,
        direction="low",
        cost="condition and regions",
        paper="Chen et al. 2021",
        ranks=("condition", "regions"),
    ),
    Score("nasi", s.nasi, batch=64, cost="1 forward, 1 backward", paper="Shu et al. 2022", worst=0.0),
    Score("params", s.params, batch=2, batch_norm="none", cost="none", paper="baseline", worst=0.0),
    Score("flops", s.flops, batch=2, cost="1 forward of 2", paper="baseline", worst=0.0),
)


def _checked(name: str, thing: object) -> Score:
    if isinstance(thing, Score):
        return thing if thing.name == name else replace(thing, name=name)
    if not callable(thing):
        raise RequestError(f"score {name!r} must be a Score or a function (network, x, y), got {thing!r}")
    return Score(name, thing)


SCORES: Registry[Score] = Registry("score", "nasight.scores", {row.name: row for row in ROWS}, check=_checked)


def register(name: str | Score, function: Metric | None = None, *, direction: str = "high", **row: Any) -> Score:
    """Add a score of one's own, in this process.

    An installed package does the same by an entry point in the group "nasight.scores": a `Score`, or a function.

    Parameters
    ----------
    name : what `score` takes, or a ready `Score`, which needs nothing else.
    function : (network, x, y) -> a number.
    direction : "high" or "low", which is better.
    row : other fields of `Score`, such as `batch=16`.

    >>> row = register("layers", lambda network, x, y: len(list(network.modules())), batch=2)
    >>> SCORES["layers"].direction
    'high'
    >>> SCORES.remove("layers")
    """
    made = name if isinstance(name, Score) else Score(name, function, direction, **row)
    SCORES.add(made.name, made)
    return SCORES[made.name]


def score_row(name: str) -> Score:
    """The row of `SCORES` that a name means.

    FILE.py:NAME is a function in a Python file, which is run; a leading '-' says that less is better.

    >>> score_row("te-nas").ranks
    ('condition', 'regions')
    """
    if ".py:" in name and name not in SCORES:
        function = FromFile(name.removeprefix("-"))
        function.load()
        return Score(name, function, "low" if name.startswith("-") else "high", cost="your own")
    return SCORES[name]


@dataclass(frozen=True)
class FromFile:
    """A function in a Python file, found again in every process."""

    place: str

    def load(self) -> Metric:
        return _function(self.place)

    def __call__(self, network: nn.Module, x: Tensor, y: Tensor) -> float:
        try:
            return float(self.load()(network, x, y))
        except RequestError:
            raise
        except (Exception, SystemExit) as error:
            raise RequestError(f"the metric {self.place!r} failed: {type(error).__name__}: {error}") from error


@cache
def _function(place: str) -> Metric:
    file, _, name = place.rpartition(":")
    path = Path(file).expanduser().resolve()
    spec = importlib.util.spec_from_file_location(f"nasight_metric_{path.stem}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise RequestError(f"there is no file {file!r}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise RequestError(f"{file!r} cannot be run: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise RequestError(f"{file!r} defines no function {name!r}")
    return function  # type: ignore[no-any-return]
