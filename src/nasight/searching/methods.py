"""The method table: a published name is one row, and GAEA is one column.

A GAEA row is its base with another geometry and nothing else; `gaea` makes it, so it cannot differ elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nasight.errors import RequestError
from nasight.geometry import Categorical, Controller, Fixed, Geometry, Simplex, Softmax, Wipeout
from nasight.registry import Registry
from nasight.searching._objectives import (
    Alternating,
    Bilevel,
    BlockStochastic,
    Clipped,
    ClippedBilevel,
    Joint,
    Objective,
    RankUtility,
    Reinforce,
    SecondOrder,
    WeightsOnly,
)
from nasight.searching._phase import ReinforcePhase
from nasight.searching._relaxations import (
    BinaryGates,
    Concrete,
    Draws,
    GumbelConstants,
    HardGumbel,
    Mixture,
    PartialChannels,
    Relaxation,
    SkipDropout,
    StraightThrough,
    Survivors,
    Templates,
    UniformSample,
)
from nasight.searching._selection import ArgMax, Drawn, FewSkips, Likeliest, Mode, Selection, Uniform
from nasight.searching._stages import Stage
from nasight.spaces import Space

ARG_MAX = ArgMax()


@dataclass(frozen=True)
class Schedule:
    """How the shared weights are trained; any of it can be set for a single run."""

    batch_size: int = 64
    lr: float = 0.025
    lr_min: float = 0.001
    warmup: float = 0.0
    """The share of the epochs before the first architecture step, in each stage."""
    stages: tuple[Stage, ...] = (Stage(),)


@dataclass(frozen=True)
class Method:
    """One row: how weights enter a pass, where they live, what is minimized, how the shared weights are trained."""

    name: str
    relaxation: Relaxation
    geometry: Geometry
    objectives: tuple[Objective, ...]
    schedule: Schedule
    paper: str
    candidates: int = 0
    """This many architectures compete at the end under the shared weights; 0: the first of the selection is taken."""
    selection: Selection = ARG_MAX

    def objective(self, name: str | None) -> Objective:
        """The objective of this name, or the row's own where no name is given."""
        for objective in self.objectives:
            if name is None or ALIASES.get(name, name) == objective.name:
                return objective
        known = ", ".join(o.name for o in self.objectives)
        raise RequestError(f"method {self.name!r} has no objective {name!r}, only {known}")


ALIASES = {"erm-alternating": "erm"}
"""Other names of objectives."""
OBJECTIVES = (Bilevel(), Alternating(), Joint(), BlockStochastic())
MIRROR = Simplex()


def gaea(base: Method, geometry: Simplex = MIRROR) -> Method:
    """The same method on the simplex, moved by exponentiated gradient.

    Its own objective is single-level, with a batch for each of the two steps; a publication that says otherwise of a
    space comes first (see `PUBLISHED`).
    """
    objectives = tuple(sorted(base.objectives, key=lambda objective: objective.name != "erm"))
    paper = f"Li et al. 2021, on {base.paper}"
    return replace(base, name=f"gaea-{base.name}", geometry=geometry, objectives=objectives, paper=paper)


DARTS = Method("darts", Mixture(), Softmax(), OBJECTIVES, Schedule(), "Liu et al. 2019")
PC_DARTS = Method(
    "pc-darts",
    PartialChannels(),
    # 6e-4 in 50 epochs, 15 of them warm-up, of 25,000 images in batches of 256.
    Softmax(lr=6e-4, steps=4_900),
    OBJECTIVES,
    Schedule(batch_size=256, lr=0.1, lr_min=0.0, warmup=0.3),
    "Xu et al. 2020",
)
GDAS = Method(
    "gdas",
    GumbelConstants(),
    Softmax(steps=97_750),  # 250 epochs of 25,000 images in batches of 64
    OBJECTIVES,
    Schedule(),
    "Dong & Yang 2019",
)
GDAS_DRAWN = replace(GDAS, name="gdas-drawn", relaxation=HardGumbel())
GDAS_STRAIGHT = replace(GDAS, name="gdas-straight", relaxation=StraightThrough())

SNAS = Method(
    "snas",
    Concrete(),
    # 150 epochs of all 50,000 images in batches of 64, the last of 16 among them: one level, no halves.
    Softmax(steps=117_300),
    (Joint(), Alternating(), Bilevel(), BlockStochastic()),
    Schedule(),
    "Xie et al. 2019",
)
PROXYLESS = Method(
    "proxyless",
    BinaryGates(),
    # Without momentum or decay only what was drawn moves. 120 epochs of ImageNet, an architecture step in five.
    Softmax(lr=1e-3, steps=120_000, betas=(0.0, 0.999), weight_decay=0.0, hold_others=True),
    OBJECTIVES,
    Schedule(),
    "Cai et al. 2019",
)
P_DARTS = Method(
    "p-darts",
    SkipDropout(),
    Softmax(lr=6e-4, steps=6_500),  # a stage: 25 epochs, 10 of them warm-up, of 25,000 images in batches of 96
    (Bilevel(), Alternating(), Joint()),
    Schedule(
        batch_size=96,
        lr_min=0.0,
        warmup=0.4,
        # 5, 11 and 17 cells with 8, 5 and 3 operations an edge.
        stages=(Stage(), Stage(depth=11 / 5, operations=5 / 8, dropout=0.4), Stage(17 / 5, 3 / 8, 0.7)),
    ),
    "Chen et al. 2019",
    selection=FewSkips(most=2),
)
SETN = Method(
    "setn",
    Templates(),
    Softmax(steps=97_750),  # 250 epochs of 25,000 images in batches of 64
    (Bilevel(), Alternating(), BlockStochastic()),
    Schedule(),
    "Dong & Yang 2019b",
    candidates=100,
    selection=Likeliest(),
)
XNAS_BOUND = 1.0
# 150 epochs of 25,000 images in batches of 64.
GDAS_MIRROR = Simplex(steps=58_650, gradient=0.0235, lift="after")

ROWS = (
    DARTS,
    gaea(DARTS),
    replace(DARTS, name="darts-2nd", objectives=(SecondOrder(),)),
    PC_DARTS,
    gaea(PC_DARTS, Simplex(steps=4_900, gradient=0.028)),
    GDAS,
    gaea(GDAS, replace(GDAS_MIRROR, pull=0.01)),
    GDAS_DRAWN,
    gaea(GDAS_DRAWN, GDAS_MIRROR),
    GDAS_STRAIGHT,
    gaea(GDAS_STRAIGHT, GDAS_MIRROR),
    Method(
        "rs-ws",
        UniformSample(),
        Fixed(),
        (WeightsOnly(),),
        Schedule(),
        "Li & Talwalkar 2019",
        candidates=100,
        selection=Uniform(),
    ),
    SNAS,
    gaea(SNAS),
    PROXYLESS,
    gaea(PROXYLESS),
    P_DARTS,
    gaea(P_DARTS),
    SETN,
    gaea(SETN),
    Method(
        "xnas",
        Survivors(),
        Wipeout(bound=XNAS_BOUND),
        (ClippedBilevel(bound=XNAS_BOUND), Clipped(bound=XNAS_BOUND)),
        Schedule(),
        "Nayman et al. 2019",
    ),
    Method(
        "enas",
        Draws(),
        Controller(),
        (ReinforcePhase(), Reinforce()),
        Schedule(),
        "Pham et al. 2018",
        candidates=100,
        selection=Drawn(),
    ),
    Method("asng", Draws(), Categorical(), (RankUtility(),), Schedule(), "Akimoto et al. 2019", selection=Mode()),
)


def _checked(name: str, thing: object) -> Method:
    if not isinstance(thing, Method):
        raise RequestError(f"method {name!r} must be a nasight.searching.Method, got {type(thing).__name__}")
    # A run keeps the name, so it must be the one under which the method is found.
    return replace(thing, name=name)


METHODS: Registry[Method] = Registry(
    "method", "nasight.methods", {method.name: method for method in ROWS}, check=_checked
)
"""Name -> row: the published methods, and those that were registered."""


def register(method: Method, name: str | None = None) -> None:
    """Let a method be found by its name, or by another one."""
    METHODS.add(str(name or getattr(method, "name", "")), method)


def method_row(method: Method | str) -> Method:
    """The row of a name; a row is returned as it is."""
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise RequestError(f"a method is a name or a nasight.searching.Method, got {type(method).__name__}")
    return METHODS[method]


def check_fit(row: Method, space: Space, partial: int | None = None) -> None:
    """Refuse a space on which a method makes no sense; `partial` is one part of the channels in how many, if asked."""
    relaxation = row.relaxation
    if relaxation.edges and not space.edge_weights:
        raise RequestError(
            f"method {row.name!r} weighs the edges of a cell, and space {space.name!r} has none to weigh"
        )
    if relaxation.partial > 1 and not space.partial_channels:
        raise RequestError(f"method {row.name!r} needs partial channels, which space {space.name!r} does not have")
    if partial is not None and partial > 1 and not space.partial_channels:
        raise RequestError(f"partial is {partial}, but space {space.name!r} has no partial channels")
    if len(row.schedule.stages) > 1 and "cells" not in space.sizes:
        raise RequestError(f"method {row.name!r} adds cells from stage to stage, and space {space.name!r} has no cells")
    if any(stage.dropout for stage in row.schedule.stages) and not space.skip_dropout:
        raise RequestError(
            f"method {row.name!r} drops numbers behind skip connections, which is possible where a space says so "
            f"(`skip_dropout`), not on space {space.name!r}"
        )
    if row.objectives[0].per_example and not space.per_example:
        raise RequestError(
            f"method {row.name!r} clips gradients example by example, which is possible where a space says so "
            f"(`per_example`), not on space {space.name!r}"
        )
