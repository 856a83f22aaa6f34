"""EigenNAS's Algorithm 1 on digits, two classes: Theorem 3's bound beside the error of the iterates.

    python benchmarks/algorithm_1.py

trains fully connected networks of three layers by one epoch of SGD, example by example, with the theorem's step size
and with a larger one, and prints the mean 0-1 error of the iterates on held-out digits, which the theorem bounds up to
constants and logarithms, beside its two bounds:

1. for the best of 20 architectures by the trace of its kernel, and for three fixed ones;
2. for relu with more and more examples;
3. for all 50 architectures: whether those with the lower bound have the lower error (Spearman's rank correlation, one
   number per seed), which constants and logarithms do not touch.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import torch

from _shared import Flags, rank_correlation, save, spread
from nasight.data import load
from nasight.kernels import TrainedIterate, algorithm_1

ACTIVATIONS = ("relu", "leaky_relu", "sigmoid", "tanh", "swish")
ARCHITECTURES = (None, "relu,relu/0", "tanh,tanh/1", "sigmoid,sigmoid/0")
STEPS = {"theorem's step": None, "step 0.1": 0.1}
CLASSES, TEST = (3, 8), 100
HEAD = "step | step size | Theorem 3 | by y^T K^-1 y | mean error of iterates | last | below |"


def digits(train: int, test: int, seed: int) -> tuple[Any, Any]:
    """Rows of norm 1 and labels of -1 and +1, for training and for the error."""
    data = load("digits")
    y = np.asarray(data.train_y)
    chosen = np.flatnonzero(np.isin(y, CLASSES))
    chosen = np.random.default_rng(seed).permutation(chosen)[: train + test]
    rows = np.stack([np.asarray(data.train_x[int(i)], dtype=np.float64).ravel() for i in chosen])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(y[chosen] == CLASSES[0], 1, -1)
    return (rows[:train], labels[:train]), (rows[train:], labels[train:])


def trained(
    given: argparse.Namespace, text: str | None, step: float | None, examples: int | None = None
) -> list[TrainedIterate]:
    """Algorithm 1 for every seed."""
    found = []
    for seed in range(given.seeds):
        (x, y), test = digits(examples or given.examples, TEST, seed)
        found.append(algorithm_1(x, y, test, architecture=text, width=given.width, step=step, seed=seed))
    return found


def row(name: str, step: str, found: list[TrainedIterate]) -> dict[str, Any]:
    return {
        "name": name,
        "step": step,
        "steps": [one.step for one in found],
        "upper": [one.bound.upper for one in found],
        "by_labels": [one.bound.values["by y^T K^-1 y"] for one in found],
        "expected": [one.expected_error for one in found],
        "last": [one.errors[-1] for one in found],
        "holds": sum(one.holds for one in found),
    }


def fixed(given: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for text, (name, step) in product(ARCHITECTURES, STEPS.items()):
        found = trained(given, text, step)
        rows.append(row(text or "searched: " + "; ".join(sorted({one.architecture for one in found})), name, found))
    return rows


def growing(given: argparse.Namespace) -> list[dict[str, Any]]:
    counts = sorted({max(1, given.examples * part // 4) for part in (1, 2, 4, 8, 12)})
    return [row(f"N = {n}", "theorem's step", trained(given, "relu,relu/0", None, n)) for n in counts]


def ranks(given: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Step -> what -> the rank correlation of a bound and the mean error over all architectures, seed by seed."""
    names = [f"{a},{b}/{skip}" for a, b, skip in product(ACTIVATIONS, ACTIVATIONS, (0, 1))][: given.architectures]
    found = {}
    for step, size in STEPS.items():
        rows = [row(name, step, trained(given, name, size)) for name in names]
        found[step] = {
            bound: [
                rank_correlation([r[bound][seed] for r in rows], [r["expected"][seed] for r in rows]) or 0.0
                for seed in range(given.seeds)
            ]
            for bound in ("upper", "by_labels")
        }
    return found


def lines(first: str, rows: list[dict[str, Any]], seeds: int) -> list[str]:
    return [
        f"| {first} | {HEAD}",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {r['name']} | {r['step']} | {fmean(r['steps']):.2g} | {fmean(r['upper']):.3g} |"
            f" {fmean(r['by_labels']):.3g} | {spread(r['expected'], 3)} | {spread(r['last'], 3)} |"
            f" {r['holds']} of {seeds} |"
            for r in rows
        ),
        "",
    ]


def markdown(facts: dict[str, Any], given: argparse.Namespace) -> str:
    text = [f"N = {given.examples}, width {given.width}, {given.seeds} seeds; mean ± deviation:", ""]
    text += lines("architecture", facts["fixed"], given.seeds)
    text += ["relu,relu/0 with more examples:", "", *lines("examples", facts["growing"], given.seeds)]
    text += [
        f"{given.architectures} architectures, rank correlation of the bound with the mean error of iterates:",
        "",
        "| step | Theorem 3 | by y^T K^-1 y |",
        "|---|---|---|",
        *(f"| {s} | {spread(r['upper'])} | {spread(r['by_labels'])} |" for s, r in facts["ranks"].items()),
        "",
    ]
    return "\n".join(text)


def main() -> None:
    flags = Flags(__doc__, "algorithm_1", seeds=8, chance="draws of digits and of weights")
    flags.add_argument("--examples", type=int, default=60, help="N (default 60)")
    flags.add_argument("--width", type=int, default=128)
    flags.add_argument("--architectures", type=int, default=50, help="of 50, for the ranks (default 50)")
    given = flags.read(seeds=1, examples=8, width=16, architectures=4)
    torch.set_num_threads(1)
    facts = {"classes": CLASSES, "fixed": fixed(given), "growing": growing(given), "ranks": ranks(given)}
    text = markdown(facts, given)
    print(text)
    save(given, facts, table=text)


if __name__ == "__main__":
    main()
