"""Our ridge regression against scikit-learn's at equal accuracy: ten classes, intercept, penalty 0.5, float32 rows.

    python benchmarks/ridge.py --data-folder DATA

The rows are random Fourier features of CIFAR-10's first training images (Gaussian numbers without the data), and
once fewer than there are features. Every solver is timed in turn, so that noise of the machine hits all of them; a
ratio is the median over the repeats of scikit-learn's seconds over ours in the same repeat. Equal accuracy means five
digits of the objective: lsqr has the loosest of several tolerances that reaches them, and every solver's distance from
the minimum, which is found in float64, is printed. Ours is timed at that accuracy and at its finer default. On a
machine that others use, `--threads 1 --cpu-time` counts processor seconds instead, which they disturb less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from _shared import Flags, machine, save, timed
from nasight.data import load
from nasight.errors import RequestError
from nasight.features import RandomFourierFeatures, one_vs_rest, ridge

Array = NDArray[Any]
Fit = Callable[[], tuple[Array, Array]]
PENALTY = 0.5
FIVE_DIGITS = 1e-5
TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
SHAPES = ((10_000, 4_000), (3_000, 8_000))
QUICK = ((600, 200), (200, 500))


def main() -> None:
    flags = Flags(
        __doc__, "ridge", seeds=5, chance="repeats of every timing", data="CIFAR-10; without it rows are Gaussian"
    )
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--cpu-time", action="store_true", help="processor seconds instead of those of a clock")
    flags.add_argument("--gamma", type=float, default=1e-4, help="of the Gaussian kernel, on standardized pixels")
    flags.add_argument("--seed", type=int, default=0, help="of the features")
    given = flags.read(seeds=2)
    clock = time.process_time if given.cpu_time else time.perf_counter
    rows = list[dict[str, Any]]()
    print(f"{'rows':<10} {'n':>6} {'D':>6} {'solver':<24} {'s':>7} {'objective':>13} {'excess':>8} ratios of ours")
    with threadpool_limits(given.threads):
        for n, dimension in QUICK if given.quick else SHAPES:
            kind, x, y = features(n, dimension, given)
            for row in Case(x, y).compare(given.seeds, clock):
                rows.append({"rows": kind, "n": n, "dimension": dimension, **row})
                ratios = ", ".join(f"{value:.2f} {name}" for name, value in row["ratios"].items())
                size = f"{kind:<10} {n:>6} {dimension:>6}"
                reached = f"{row['seconds']:7.3f} {row['objective']:13.4f} {row['excess']:8.0e}"
                print(f"{size} {row['solver']:<24} {reached} {ratios}", flush=True)
    about = {"benchmark": "ridge", "machine": machine(threads=given.threads, cpu_time=given.cpu_time)}
    save(given, {**about, "penalty": PENALTY, "repeats": given.seeds, "rows": rows})


def features(n: int, dimension: int, given: argparse.Namespace) -> tuple[str, Array, Array]:
    """What the rows are, the rows, and their targets."""
    rng = np.random.default_rng(given.seed)
    try:
        data = load("cifar-10", folder=given.data_folder)
    except RequestError:
        labels = rng.integers(10, size=n)
        return "gaussian", rng.standard_normal((n, dimension), dtype=np.float32), one_vs_rest(labels, 10)
    pixels = data.train_x[:n].flatten(1).numpy().astype(np.float32)
    pixels = (pixels - pixels.mean(0)) / pixels.std(0)
    maps = RandomFourierFeatures(gamma=given.gamma, n_components=dimension, random_state=given.seed)
    return "cifar-10", maps.fit_transform(pixels), one_vs_rest(data.train_y[:n].numpy(), 10)


class Case:
    """One problem, its minimum, and the solvers that are timed on it."""

    def __init__(self, x: Array, y: Array) -> None:
        self.x, self.y = x, y
        self.least = self.objective(*self.exact())

    def exact(self) -> tuple[Array, Array]:
        """The solution of the smaller system in float64."""
        mean, level = self.x.mean(0, dtype=np.float64), self.y.mean(0, dtype=np.float64)
        x, y = self.x - mean, self.y - level
        wide = x.shape[0] < x.shape[1]
        gram = x @ x.T if wide else x.T @ x
        gram.flat[:: len(gram) + 1] += PENALTY
        w = x.T @ linalg.solve(gram, y, assume_a="pos") if wide else linalg.solve(gram, x.T @ y, assume_a="pos")
        return w, level - mean @ w

    def objective(self, w: Array, level: Array) -> float:
        w = w.astype(np.float64)
        return float(np.square(self.y - self.x.astype(np.float64) @ w - level).sum() + PENALTY * np.square(w).sum())

    def ours(self, tolerance: float) -> tuple[Array, Array]:
        model = ridge(self.x, self.y, penalty=PENALTY, tolerance=tolerance)
        return model.coef, model.intercept

    def theirs(self, solver: str, tolerance: float = 1e-4) -> tuple[Array, Array]:
        model = Ridge(alpha=PENALTY, solver=solver, tol=tolerance).fit(self.x, self.y)
        return model.coef_.T, model.intercept_

    def excess(self, found: tuple[Array, Array]) -> float:
        return self.objective(*found) / self.least - 1

    def solvers(self) -> dict[str, Fit]:
        """Ours first; trying them out also warms them up."""
        reached = (t for t in TOLERANCES if self.excess(self.theirs("lsqr", t)) < FIVE_DIGITS)
        tolerance = next(reached, TOLERANCES[-1])
        return {
            "ours": partial(self.ours, FIVE_DIGITS),
            "ours, default": partial(self.ours, 1e-6),
            f"lsqr, tol {tolerance:g}": partial(self.theirs, "lsqr", tolerance),
            "cholesky": partial(self.theirs, "cholesky"),
            "auto": partial(self.theirs, "auto"),
        }

    def compare(self, repeats: int, clock: Callable[[], float]) -> list[dict[str, Any]]:
        """A row per solver: seconds, objective, and their seconds over each of ours."""
        solvers = self.solvers()
        found = {name: fit() for name, fit in solvers.items()}
        times = np.array([[timed(fit, clock) for fit in solvers.values()] for _ in range(repeats)])
        own = [i for i, name in enumerate(solvers) if name.startswith("ours")]
        return [
            {
                "solver": name,
                "seconds": float(np.median(times[:, i])),
                "objective": self.objective(*found[name]),
                "excess": self.excess(found[name]),
                "ratios": {list(solvers)[j]: float(np.median(times[:, i] / times[:, j])) for j in own if i not in own},
                "times": times[:, i].tolist(),
            }
            for i, name in enumerate(solvers)
        ]


if __name__ == "__main__":
    main()
