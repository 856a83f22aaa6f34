"""The protocols under which methods were published: what `--preset paper` does, per method and family of spaces.

`--preset imagenet` is a second table of the same kind: searches on a part of ImageNet.

A value is what the paper says; where paper and released code differ, or the paper is silent, `source` and `notes` say
which was taken. Repositories are named with their commit. What this library does not follow is said in `notes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Published:
    """One method on one family of spaces, as it was published."""

    settings: Mapping[str, Any]
    """Settings of a search that follow from it, `objective` and options of the space among them."""
    source: str
    notes: tuple[str, ...] = field(default=())
    """Where sources disagree, what could not be found, and what is done otherwise here."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings in which the published training of what was found differs from the space's preset `paper`."""
    medium: Mapping[str, Any] | None = field(default_factory=dict)
    """What `medium` has in place of these settings, to be compared with smaller presets; None: it does not follow."""


CELL = {"channels": 16, "cells": 5}
AUTODL = "D-X-Y/AutoDL-Projects@f46486e"
GAEA = "liamcli/gaea_release@1604615"
AVERAGES = "batch norm always takes the statistics of the batch; the released code evaluates with running averages"
CROPS = (
    "random crops of 8 to 100 % of the area are taken from photos of a folder that were brought to 224 pixels once "
    "(their middle), in the released code from the whole photo at its full size; other data stay as they are"
)
# What "medium" has at other presets too.
ARCHITECTURE_FIRST = {"weights_first": False}
SAME_ROWS = {"candidate_rows": None}
# NAS-Bench-201's own runs: configs/nas-benchmark/algos/*.config of AutoDL-Projects. Two halves, and no rows besides.
NASBENCH201 = {
    "objective": "bilevel",
    "none": True,
    "size": CELL,
    "batch_size": 64,
    "lr": 0.025,
    "lr_min": 0.001,
    "nesterov": True,
    "weight_decay": 5e-4,
    "validation": 0.0,
    "warmup": 0,
}


def _benchmark(epochs: int, **more: Any) -> dict[str, Any]:
    return {**NASBENCH201, "epochs": epochs, "schedule_epochs": epochs, **more}


# GAEA, C.3: 25 epochs of a cosine laid over 50, `none` left out, architecture rate 0.1 unscaled.
GAEA_201 = {
    "none": False,
    "size": CELL,
    "epochs": 25,
    "schedule_epochs": 50,
    "batch_size": 64,
    "lr": 0.025,
    "lr_min": 0.001,
    "weight_decay": 3e-4,
    "arch_lr": 0.1,
    "warmup": 0,
    "validation": 0.0,
}
PC_CIFAR = {
    "objective": "bilevel",
    "none": True,
    "size": {"channels": 16, "cells": 8},
    "epochs": 50,
    "schedule_epochs": 50,
    "batch_size": 256,
    "lr": 0.1,
    "lr_min": 0.0,
    "weight_decay": 3e-4,
    "validation": 0.0,
}
DARTS_CIFAR = {
    "objective": "bilevel",
    "none": True,
    "size": {"channels": 16, "cells": 8},
    "epochs": 50,
    "schedule_epochs": 50,
    "batch_size": 64,
    "lr": 0.025,
    "lr_min": 0.001,
    "weight_decay": 3e-4,
    "arch_lr": 3e-4,
    "warmup": 0,
    "validation": 0.0,
}
# 10 % of the images of every class for the shared weights, 2.5 % for the architecture. The rate of the shared weights
# rises for 5 epochs, since batches are large.
PC_IMAGENET = {
    "objective": "bilevel",
    "none": True,
    "size": {"channels": 16, "cells": 8, "stem": 3},
    "partial": 2,
    "share": 0.125,
    "arch_share": 0.2,
    "validation": 0.0,
    "epochs": 50,
    "schedule_epochs": 50,
    "warmup": 35,
    "lr_warmup": 5,
    "batch_size": 1024,
    "lr": 0.5,
    "lr_min": 0.0,
    "weight_decay": 3e-4,
    "arch_clip": 5.0,
}
ONE_SHOT = {
    "objective": "bilevel",
    "size": {"channels": 16, "cells": 3},
    "batch_size": 96,
    "lr": 0.025,
    "lr_min": 0.001,
    "weight_decay": 3e-4,
    "validation": 0.0,
}

DARTS_ROW = Published(
    DARTS_CIFAR, "Liu et al. 2019, 3.1; quark0/darts@f276dd3", (AVERAGES,), training={"drop_path": 0.2}
)
PUBLISHED: Mapping[tuple[str, str], Published] = {
    ("darts", "nasbench201"): Published(
        _benchmark(50, arch_lr=3e-4, none=False, weights_first=True),
        f"{AUTODL}: DARTS.config, DARTS-V1.py",
        ("`none` is left out, as in GAEA's comparison (C.3); the benchmark's own run has it",),
        medium=ARCHITECTURE_FIRST,
    ),
    ("darts-2nd", "nasbench201"): Published(
        _benchmark(50, arch_lr=3e-4, weights_first=False), f"{AUTODL}: DARTS.config, DARTS-V2.py"
    ),
    ("gaea-darts", "nasbench201"): Published(
        {**GAEA_201, "objective": "erm"},
        f"GAEA, C.3; {GAEA}: search_nasbench201.yaml, train_search.py",
        ("channels: 16 in the paper, 24 in the released settings", AVERAGES),
    ),
    ("gdas", "nasbench201"): Published(
        _benchmark(250, arch_lr=3e-4, weights_first=True),
        f"{AUTODL}: GDAS.config, GDAS.py",
        medium=ARCHITECTURE_FIRST,
    ),
    ("gaea-gdas", "nasbench201"): Published(
        {**GAEA_201, "none": True, "epochs": 150, "schedule_epochs": 150, "warmup": 50, "objective": "bilevel"},
        f"GAEA, C.3; {GAEA}: method_egdas_space_nasbench201.yaml, architect_egdas.py",
        (
            "architecture rate: 0.1 in the paper, 0.01 in the released settings",
            "warm-up of 50 epochs and the entropy term of 0.01: in the released code, not in the paper",
            "cosine: the released scheduler, left at its default, begins anew every 50 epochs at half the height; "
            "here it is laid over all 150",
            "the command that was run is not recorded",
            AVERAGES,
        ),
    ),
    ("rs-ws", "nasbench201"): Published(
        # Half of the rows train the shared weights, the other half judges.
        _benchmark(250, objective="weights", candidates=100, candidate_rows=512, validation=0.5),
        f"{AUTODL}: RANDOM.config, RANDOM-NAS.py (RSPS)",
        medium={**SAME_ROWS, "validation": 0.0},
    ),
    ("setn", "nasbench201"): Published(
        _benchmark(250, arch_lr=3e-4, candidates=100, candidate_rows=512, weights_first=True, clip=None),
        f"{AUTODL}: SETN.config, SETN.py",
        medium={**ARCHITECTURE_FIRST, **SAME_ROWS, "clip": 5.0},
    ),
    ("enas", "nasbench201"): Published(
        _benchmark(
            250,
            objective="reinforce-phase",
            batch_size=128,
            lr=0.05,
            lr_min=0.0005,
            # The cosine goes on behind its end: the rate falls for 10 epochs and rises for the next 10.
            schedule_epochs=10,
            weight_decay=2.5e-4,
            arch_lr=1e-3,
            candidates=100,
            candidate_rows=128,
        ),
        f"{AUTODL}: ENAS.config, ENAS.py, ENAS.sh",
        ("the rows that judge the 100 draws of the end are not augmented here; the released code augments them",),
        medium=SAME_ROWS,
    ),
    ("darts", "darts"): DARTS_ROW,
    ("darts-2nd", "darts"): DARTS_ROW,
    ("pc-darts", "darts"): Published(
        {**PC_CIFAR, "warmup": 15, "arch_lr": 6e-4},
        "Xu et al. 2020, 4.2; yuhuixu1993/PC-DARTS@b74702f",
        ("training: batches of 128 in the paper, 96 in the released settings", AVERAGES),
        training={"batch_size": 128},
    ),
    ("gaea-pc-darts", "darts"): Published(
        {**PC_CIFAR, "warmup": 10, "arch_lr": 0.1, "edge_floor": 0.0},
        f"GAEA, C.1.1; {GAEA}: search_pcdarts.yaml",
        (
            "warm-up: 10 epochs in the paper, none in the released code",
            "training: batches of 128 in the paper, 96 in the released settings",
            AVERAGES,
        ),
        training={"batch_size": 128},
    ),
    ("p-darts", "darts"): Published(
        {
            **DARTS_CIFAR,
            "size": {"channels": 16, "cells": 5},
            "epochs": 75,
            "schedule_epochs": 75,
            "warmup": 30,
            "batch_size": 96,
            "lr_min": 0.0,
            "arch_lr": 6e-4,
            "arch_clip": 5.0,
        },
        "Chen et al. 2019; chenxin061/pdarts@b880e87: 3 stages of 25 epochs, 10 of them warm-up, 5, 11 and 17 cells",
        ("dropout of the stages: 0, 0.4, 0.7 here and in the paper; 0.1, 0.4, 0.7 in the released README", AVERAGES),
        training={"batch_size": 128},
        medium={"arch_clip": None},
    ),
    ("gdas-drawn", "darts"): Published(
        {**DARTS_CIFAR, "epochs": 250, "schedule_epochs": 250, "batch_size": 256, "weight_decay": 5e-4}
        | {"nesterov": True, "weights_first": True},
        f"{AUTODL}: GDAS-NASNet-CIFAR.config, NASNet-space-search-by-GDAS.sh, GDAS.py",
        medium=None,
    ),
    ("snas", "darts"): Published(
        {**DARTS_CIFAR, "objective": "erm-joint", "epochs": 150, "schedule_epochs": 150, "arch_clip": 10.0}
        | {"drop_path": 0.3},
        "Xie et al. 2019; SNAS-Series/SNAS-Series@9a43adb: SNAS/train_search.py, README",
        (
            "the architecture is moved by Adam, as in the paper (from memory) and in the released code on several "
            "devices; on one device that code takes plain SGD",
            "the released command adds a penalty on parameters, multiply-adds and memory accesses to the loss (0.0015 "
            "times their logarithms); here there is none",
            "the first logits have a deviation of 0.01 there, of 0.001 here",
            AVERAGES,
        ),
        medium=None,
    ),
    ("pc-darts", "nasbench1shot1"): Published(
        {**ONE_SHOT, "epochs": 100, "schedule_epochs": 100, "warmup": 0, "arch_lr": 3e-4},
        "Zela et al. 2020; automl/nasbench-1shot1@cb0f0ec",
        (AVERAGES,),
    ),
    ("gaea-pc-darts", "nasbench1shot1"): Published(
        {**ONE_SHOT, "epochs": 100, "schedule_epochs": 100, "warmup": 0, "arch_lr": 0.1},
        "GAEA, C.2; liamcli/nasbench-1shot1@e369bd7",
        (
            "warm-up: none in the paper, 10 epochs by default in the author's code",
            "architecture rate: 0.1 in the paper, 0.0003 by default in the author's code",
            "output of a cell: the author's code concatenates the projected input as a block of its own; here it is "
            "added, as in automl/nasbench-1shot1@cb0f0ec",
            AVERAGES,
        ),
    ),
    ("darts", "nasbench1shot1"): Published(
        {**ONE_SHOT, "epochs": 25, "schedule_epochs": 25, "warmup": 0, "arch_lr": 3e-4},
        "Zela et al. 2020; automl/nasbench-1shot1@cb0f0ec: baseline_script.sh, optimizers/darts/train_search.py",
        ("epochs: 25 in the released scripts, 50 by default in the released code", AVERAGES),
    ),
    ("darts-2nd", "nasbench1shot1"): Published(
        {**ONE_SHOT, "epochs": 25, "schedule_epochs": 25, "warmup": 0, "arch_lr": 3e-4},
        "Zela et al. 2020; automl/nasbench-1shot1@cb0f0ec: second_order_script.sh, optimizers/darts/train_search.py",
        ("epochs: 25 in the released scripts, 50 by default in the released code", AVERAGES),
    ),
    ("gdas", "nasbench1shot1"): Published(
        {**ONE_SHOT, "epochs": 100, "schedule_epochs": 100, "warmup": 0, "arch_lr": 3e-4, "arch_clip": 5.0}
        # 10 - 9 e / 100 in epoch e, and noise on the weights of inputs too.
        | {"coldest": 1.09, "noisy_edges": True},
        "Zela et al. 2020; automl/nasbench-1shot1@cb0f0ec: optimizers/gdas",
        ("the released code draws anew for every cell; here one draw is for all cells", AVERAGES),
        medium=None,
    ),
    ("rs-ws", "nasbench1shot1"): Published(
        {
            **ONE_SHOT,
            "objective": "weights",
            "space_options": {"sums": True},
            "epochs": 100,
            "schedule_epochs": 100,
            "warmup": 0,
            "batch_size": 64,
            "clip": 0.25,
            # Half of the rows train the shared weights, the other half judges: 10 batches of 64 for each candidate.
            "validation": 0.5,
            "candidates": 1000,
            "candidate_rows": 640,
        },
        "Zela et al. 2020; automl/nasbench-1shot1@cb0f0ec: random_weight_share.py, darts_wrapper_discrete.py, scripts",
        (
            "the released code judges the best 5 of the 1,000 once more, on the whole half, and augments these rows; "
            "here neither",
            AVERAGES,
        ),
        medium=None,
    ),
}
"""(method, family of spaces) -> protocol; a pair that is not here was not published, or not found."""

PUBLISHED_ON_IMAGENET: Mapping[tuple[str, str], Published] = {
    ("pc-darts", "darts"): Published(
        {**PC_IMAGENET, "arch_lr": 6e-3},
        "Xu et al. 2020; yuhuixu1993/PC-DARTS@b74702f: train_search_imagenet.py, model_search_imagenet.py",
        (CROPS, AVERAGES),
    ),
    ("gaea-pc-darts", "darts"): Published(
        {**PC_IMAGENET, "arch_lr": 0.1, "edge_floor": 0.0, "weights_first": True},
        "GAEA, 4.2; liamcli/PC-DARTS@dc3cfe0: train_search_imagenet_edarts.py, architect_edarts.py",
        (
            "the released code never clears the architecture's gradient before its step: that of the shared weights' "
            "batch is added, and in the first step that of all of warm-up; here the architecture's batch alone counts",
            CROPS,
            AVERAGES,
        ),
    ),
}
"""The same for searches on ImageNet."""

ESTIMATOR = "an estimator to compare with, not published as a search"
COMBINATION = "a combination that this library makes; not published"
UNPUBLISHED: Mapping[str, str] = {
    "gaea-darts": "GAEA searched the other spaces with PC-DARTS",
    "pc-darts": "no search of NAS-Bench-201 by its authors was found",
    "gaea-pc-darts": "GAEA searched NAS-Bench-201 with DARTS and GDAS",
    "gdas": "in the DARTS space the released code has the estimator of `gdas-drawn`",
    "gaea-gdas": "GAEA ran it on NAS-Bench-201 alone",
    "gdas-drawn": "on NAS-Bench-201 the released estimator is `gdas`; on NAS-Bench-1Shot1 the two are the same",
    "gaea-gdas-drawn": ESTIMATOR,
    "gdas-straight": ESTIMATOR,
    "gaea-gdas-straight": ESTIMATOR,
    "rs-ws": "DARTS space: epochs and clip were not found (docs/faithful.md, section G)",
    "snas": "published in the DARTS space",
    "gaea-snas": COMBINATION,
    "proxyless": "published on ImageNet in a space of its own",
    "gaea-proxyless": COMBINATION,
    "p-darts": "published in the DARTS space",
    "gaea-p-darts": COMBINATION,
    "setn": "DARTS space: the released configuration is missing from the repository (docs/faithful.md, section B)",
    "gaea-setn": COMBINATION,
    "xnas": "no search code was released; bound, epochs and batch were not found (docs/faithful.md, section G)",
    "enas": "published in a space of its own; NAS-Bench-1Shot1's code has another controller (docs/faithful.md, "
    "section F)",
    "asng": "published in ENAS's space with 5 nodes (docs/faithful.md, section G)",
}
"""Method -> why it has no protocol on some family of spaces that others have one on."""
FAMILIES = tuple(dict.fromkeys(family for _, family in PUBLISHED))
"""The families of spaces that have protocols."""

PROTOCOLS: Mapping[str, Mapping[tuple[str, str], Published]] = {"paper": PUBLISHED, "imagenet": PUBLISHED_ON_IMAGENET}
"""Preset -> its protocols. "medium" follows those of "paper", in its own length and size; see `Published.medium`."""


def published_for(method: str, family: str, preset: str) -> Published | None:
    """The protocol that a preset follows for a method on such a space; None: there is none."""
    found = PROTOCOLS.get("paper" if preset == "medium" else preset, {}).get((method, family))
    return None if preset == "medium" and found is not None and found.medium is None else found


def why_usual(method: str, family: str, preset: str) -> str | None:
    """Why a preset that follows publications takes the usual settings of a method on such a space; None: it does not.

    >>> why_usual("snas", "nasbench201", "paper")
    'published in the DARTS space'
    """
    if preset not in ("paper", "medium") or published_for(method, family, preset) is not None:
        return None
    if (method, family) in PUBLISHED:
        return "preset paper does"
    if family not in FAMILIES:
        return f"protocols are those of the spaces {', '.join(FAMILIES)}"
    return UNPUBLISHED.get(method, "none is known")


# GAEA, C.1 and C.2: the released searches of these spaces are bilevel; NAS-Bench-201 has both, and ERM is better (C.3).
GAEA_BILEVEL = ("darts", "nasbench1shot1")
ESTIMATORS = {"gaea-gdas-drawn": "gaea-gdas", "gaea-gdas-straight": "gaea-gdas"}
"""Rows that have the objective of a published one. They differ from it by the estimator of a gradient, and by the
entropy term: `gaea-gdas` has the published one of 0.01 (`pull`), these two have none."""


def published_training(method: str, family: str) -> Mapping[str, Any]:
    """What the publication of a method trains otherwise than the preset `paper` of such a space.

    GAEA trains all that it finds in the DARTS space as PC-DARTS does (C.1.1).
    """
    found = PUBLISHED.get((method, family))
    if found is None and method.startswith("gaea-"):
        found = PUBLISHED.get(("gaea-pc-darts", family))
    return {} if found is None else found.training


def published_objective(method: str, family: str, preset: str) -> str | None:
    """The objective under which a method was published on such a space; None: the method's own.

    A preset that follows no protocol takes the one of "paper".
    """
    method = ESTIMATORS.get(method, method)
    found = published_for(method, family, preset) or published_for(method, family, "paper")
    if found is not None:
        return str(found.settings["objective"])
    return "bilevel" if method.startswith("gaea-") and family in GAEA_BILEVEL else None
