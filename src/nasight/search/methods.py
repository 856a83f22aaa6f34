"""The method table: a published name is one row, and GAEA is one column.

A GAEA row is its base with another geometry and nothing else; `gaea` makes it, so it cannot differ elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from nasight.errors import RequestError
from nasight.geometry import Fixed, Geometry, Simplex, Softmax
from nasight.search._objectives import (
    Alternating,
    Bilevel,
    BlockStochastic,
    Erm,
    Objective,
    SecondOrder,
    WeightsOnly,
)
from nasight.search._relaxations import HardGumbel, Mixture, PartialChannels, Relaxation, UniformSample


@dataclass(frozen=True)
class Schedule:
    """How the shared weights are trained; any of it can be set for a single run."""

    batch_size: int = 64
    lr: float = 0.025
    lr_min: float = 0.001
    warmup: float = 0.0
    """The share of the epochs before the first architecture step."""


@dataclass(frozen=True)
class Method:
    """One row: how weights enter a pass, where they live, what is minimised, how the shared weights are trained."""

    name: str
    relaxation: Relaxation
    geometry: Geometry
    objectives: tuple[Objective, ...]
    schedule: Schedule
    paper: str
    candidates: int = 0
    """So many random architectures compete at the end under the shared weights; 0: discretise theta."""

    def objective(self, name: str | None) -> Objective:
        """The objective of this name, or the row's own where no name is given."""
        for objective in self.objectives:
            if name in (None, objective.name):
                return objective
        known = ", ".join(o.name for o in self.objectives)
        raise RequestError(f"method {self.name!r} has no objective {name!r}, only {known}")


SINGLE_AND_BILEVEL = (Erm(), Bilevel(), Alternating(), BlockStochastic())
MIRROR = Simplex()


def gaea(base: Method, geometry: Simplex = MIRROR) -> Method:
    """The same method on the simplex, moved by exponentiated gradient."""
    return replace(base, name=f"gaea-{base.name}", geometry=geometry, paper=f"Li et al. 2021, on {base.paper}")


DARTS = Method("darts", Mixture(), Softmax(), SINGLE_AND_BILEVEL, Schedule(), "Liu et al. 2019")
PC_DARTS = Method(
    "pc-darts",
    PartialChannels(),
    # 6e-4 over the 35 of 50 epochs after warm-up, 25,000 images in batches of 256.
    Softmax(lr=6e-4, steps=3_430),
    SINGLE_AND_BILEVEL,
    Schedule(batch_size=256, lr=0.1, lr_min=0.0, warmup=0.3),
    "Xu et al. 2020",
)
GDAS = Method(
    "gdas",
    HardGumbel(),
    Softmax(steps=97_750),  # 250 epochs of 25,000 images in batches of 64
    SINGLE_AND_BILEVEL,
    Schedule(),
    "Dong & Yang 2019",
)

ROWS = (
    DARTS,
    gaea(DARTS),
    replace(DARTS, name="darts-2nd", objectives=(SecondOrder(),)),
    PC_DARTS,
    gaea(PC_DARTS, Simplex(steps=3_430, gradient=0.028)),
    GDAS,
    gaea(GDAS, Simplex(steps=58_650, gradient=0.0235)),  # 150 epochs of 25,000 images in batches of 64
    Method(
        "rs-ws",
        UniformSample(),
        Fixed(),
        (WeightsOnly(),),
        Schedule(),
        "Li & Talwalkar 2019",
        candidates=100,
    ),
)
METHODS = {method.name: method for method in ROWS}


def method(name: str) -> Method:
    """The row of this name."""
    if name not in METHODS:
        near = get_close_matches(name, METHODS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(f"there is no method {name!r}, only {', '.join(METHODS)}{hint}")
    return METHODS[name]
