"""EigenNAS's Algorithm 1 on digits, two classes: Theorem 3's bound beside the error of the iterates.

    python benchmarks/algorithm_1.py

trains fully connected networks of three layers by one epoch of SGD, example by example, with the theorem's step size
and with a larger one, and prints the mean 0-1 error of the iterates on held-out digits, which the theorem bounds up to
constants and logarithms, beside its two bounds. The first architecture is the best of 20 by the trace of its kernel.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import torch

from _shared import Flags, save, spread
from nasight.data import load
from nasight.kernels import algorithm_1

ARCHITECTURES = (None, "relu,relu/0", "tanh,tanh/1", "sigmoid,sigmoid/0")
STEPS = {"theorem's step": None, "step 0.1": 0.1}
CLASSES = (3, 8)


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


def main() -> None:
    flags = Flags(__doc__, "algorithm_1", seeds=8, chance="draws of digits and of weights")
    flags.add_argument("--examples", type=int, default=60, help="N (default 60)")
    flags.add_argument("--width", type=int, default=128)
    given = flags.read(seeds=1, examples=8, width=16)
    torch.set_num_threads(1)
    rows = []
    for text in ARCHITECTURES:
        for name, step in STEPS.items():
            found = []
            for seed in range(given.seeds):
                (x, y), test = digits(given.examples, 100, seed)
                how = {"architecture": text, "width": given.width, "step": step, "seed": seed}
                found.append(algorithm_1(x, y, test, **how))
            rows.append(
                {
                    "architecture": text or "searched: " + ", ".join(sorted({one.architecture for one in found})),
                    "step": name,
                    "steps": [one.step for one in found],
                    "upper": [one.bound.upper for one in found],
                    "by_labels": [one.bound.values["by y^T K^-1 y"] for one in found],
                    "expected": [one.expected_error for one in found],
                    "last": [one.errors[-1] for one in found],
                    "holds": sum(one.holds for one in found),
                }
            )
    lines = [
        f"N = {given.examples}, width {given.width}, {given.seeds} seeds; mean ± deviation:",
        "",
        "| architecture | step | step size | Theorem 3 | by y^T K^-1 y | mean error of iterates | last | below |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['architecture']} | {row['step']} | {fmean(row['steps']):.2g} | {fmean(row['upper']):.3g} |"
        f" {fmean(row['by_labels']):.3g} | {spread(row['expected'], 3)} | {spread(row['last'], 3)} |"
        f" {row['holds']} of {given.seeds} |"
        for row in rows
    ]
    table = "\n".join([*lines, ""])
    print(table)
    save(given, {"rows": rows, "classes": CLASSES}, table=table)


if __name__ == "__main__":
    main()
