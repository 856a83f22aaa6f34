"""Twelve readings of the Eigen-NAS trace on NAS-Bench-201, each beside the number of parameters.

    python benchmarks/eigen_variants.py --data-folder DATA

The paper ranks cells by the trace of the empirical NTK and leaves open what is differentiated (the sum of the outputs,
each output, the true class's, the loss), the initial weights, the size of networks and images, and what batch norms do.
Each row changes one of them against the first row, which is `nasight score --metric eigen`. Cells are random, CIFAR-10
images and initial weights those of the seed; the ranking is compared with test accuracy after 200 epochs from
DATA/nasbench201.csv.gz. An interrupted benchmark resumes.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from _shared import Flags, mean_interval, rank_correlation, save
from nasight.kernels import SCORES, Score, ntk_trace, per_example_square_norms, register, score
from nasight.tables import DATASETS
from nasight.tables import load as load_table

LOSS = partial(cross_entropy, reduction="none")
Metric = Callable[[nn.Module, Tensor, Tensor], float]


def trace(network: nn.Module, x: Tensor, y: Tensor, **how: Any) -> float:
    return ntk_trace(network, x, **how) / len(x)


def loss_trace(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """The mean of |grad L_i|^2: the trace of the Gram matrix of the gradients of the loss."""
    return float(per_example_square_norms(network, x, LOSS, y).mean())


def true_class(network: nn.Module, x: Tensor, y: Tensor) -> float:
    def outputs(logits: Tensor, y: Tensor) -> Tensor:
        return logits.gather(1, y[:, None])[:, 0]

    return float(per_example_square_norms(network, x, outputs, y).mean())


def weights_only(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Without the parameters of batch norms and the bias of the head."""
    for part in network.modules():
        for name, p in part.named_parameters(recurse=False):
            p.requires_grad_(name == "weight" and not isinstance(part, nn.BatchNorm2d))
    return ntk_trace(network, x) / len(x)


@dataclass(frozen=True)
class Variant:
    """One reading; `size` and `resolution` are those of the first row where they are not given."""

    what: str
    text: str
    function: Metric
    init: str = "own"
    size: dict[str, int] = field(default_factory=dict)
    resolution: int = 16
    batch: int = 16


VARIANTS = {
    "eigen": Variant("", "sum of outputs, own initial weights, 4 channels x 5 cells, 16 pixels, 16 images", trace),
    "classes": Variant("class", "every output by itself, summed", partial(trace, outputs="trace")),
    "true-class": Variant("class", "the output of the true class", true_class),
    "loss": Variant("loss", "the cross-entropy", loss_trace),
    "weights": Variant("parameters", "weights of convolutions and of the head only", weights_only),
    "fan-in": Variant("init", "Kaiming, fan in", trace, init="fan-in"),
    "fan-out": Variant("init", "Kaiming, fan out", trace, init="fan-out"),
    "eval": Variant("mode", "batch norms with their first running statistics", partial(trace, batch_norm="eval")),
    "coupled": Variant("mode", "through the statistics of the batch", partial(trace, batch_norm="coupled")),
    "shallow": Variant(
        "size", "16 channels x 1 cell, 32 pixels", trace, size={"channels": 16, "cells": 1}, resolution=32
    ),
    "whole": Variant(
        "size", "16 channels x 5 cells, 32 pixels", trace, size={"channels": 16, "cells": 5}, resolution=32
    ),
    "batch": Variant("sample", "64 images", trace, batch=64),
}


def run(given: Any, seed: int) -> dict[str, tuple[list[str], list[float], float]]:
    """Variant -> cells, scores and seconds per cell; the parameters' too."""
    found = {}
    places = sorted({(tuple(v.size.items()), v.resolution) for v in VARIANTS.values()})
    for number, (size, resolution) in enumerate(places):
        names = [n for n, v in VARIANTS.items() if (tuple(v.size.items()), v.resolution) == (size, resolution)]
        names += ["params"] if not size else []

        def tell(done: int, total: int, number: int = number) -> None:
            if done == total:
                print(f"seed {seed}: size {number + 1} of {len(places)}", file=sys.stderr, flush=True)

        result = score(
            "nasbench201",
            names,
            "cifar-10",
            sample=given.sample,
            seed=seed,
            size=dict(size),
            resolution=resolution,
            data_folder=given.data_folder,
            workers=1,
            out=given.work_folder / f"seed-{seed}-{number}",
            progress=tell,
        )
        for name in names:
            found[name] = (list(result.architectures), result.goodness(name), result.seconds[name])
    return found


def markdown(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['sample']} random cells per seed, {facts['seeds']} seed(s); Spearman's rank correlation with test "
        "accuracy, mean and 95 % interval over the seeds; less the first row, seed by seed; ms per cell:",
        "",
        f"| changed | the trace of | {' | '.join(DATASETS.values())} | less the first, CIFAR-10 | ms |",
        "|---|---|---|---|---|---|---|",
    ]
    first = facts["rows"]["eigen"]["c10"]
    for name, row in facts["rows"].items():
        cells = ["{:.2f} ± {:.2f}".format(*mean_interval(row[d])) for d in DATASETS]
        less = [a - b for a, b in zip(row["c10"], first, strict=True)]
        cells.append("" if name == "eigen" else "{:+.2f} ± {:.2f}".format(*mean_interval(less)))
        lines.append(f"| {row['what']} | {row['text']} | {' | '.join(cells)} | {1e3 * row['seconds']:.0f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    data = "CIFAR-10 and nasbench201.csv.gz"
    flags = Flags(__doc__, "eigen_variants", seeds=8, data=data, work="runs/eigen-variants")
    flags.add_argument("--sample", type=int, default=100, help="cells per seed (default 100)")
    given = flags.read(seeds=1, sample=4)
    torch.set_num_threads(1)
    for name, variant in VARIANTS.items():
        if name not in SCORES:
            register(Score(name, variant.function, batch=variant.batch, init=variant.init, worst=0.0))
    runs = [run(given, seed) for seed in range(given.seeds)]
    table = load_table(folder=given.data_folder)
    rows: dict[str, dict[str, Any]] = {}
    for name in [*VARIANTS, "params"]:
        text = VARIANTS[name].text if name in VARIANTS else "(the number of parameters)"
        rows[name] = {"what": VARIANTS[name].what if name in VARIANTS else "", "text": text}
        rows[name]["seconds"] = statistics.mean(found[name][2] for found in runs)
        for d in DATASETS:
            accuracy = table.column(f"{d}_test200")
            rows[name][d] = [
                rank_correlation(found[name][1], [float(accuracy[table.index(c)]) for c in found[name][0]]) or 0.0
                for found in runs
            ]
    facts = {"sample": given.sample, "seeds": given.seeds, "rows": rows}
    text = markdown(facts)
    print(text)
    save(given, facts, table=text)


if __name__ == "__main__":
    main()
