"""The infinite-width kernel: time against points and layers, and against direct two-dimensional quadrature.

    python benchmarks/kernels_infinite.py --seeds 2

The first table is `nasight.kernels.ntk` alone: N points of norm 1 (and of norms spread by a factor of four), L layers,
the five activations in turn. The second table times it in turn with the same recursion whose expectations are
tensor Gauss-Hermite sums for every pair of points, of the order that reaches an accuracy of 1e-8. Both run in one
thread and are timed by the processor's clock, which other work on the machine disturbs less; wall time stands beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import roots_hermitenorm
from threadpoolctl import threadpool_limits

from _shared import Flags, machine, save
from nasight.kernels import ntk
from nasight.kernels._activations import Array, derivative, function, mean

MIXED = ("relu", "tanh", "swish", "sigmoid", "leaky_relu")
ORDERS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 448, 512)
ACCURACY = 1e-8


def main() -> None:
    flags = Flags(__doc__, "kernels_infinite", seeds=3, chance="repeats of every timing")
    flags.add_argument("--seed", type=int, default=0, help="of the points")
    given = flags.read(seeds=1)
    with threadpool_limits(1):
        alone = scaling((20, 40) if given.quick else (250, 500, 1000), given.seeds, given.seed)
        beside = against_quadrature(10 if given.quick else 100, given.seeds, given.seed)
    about = {"benchmark": "kernels_infinite", "machine": machine(numpy=np.__version__)}
    save(given, {**about, "ntk": alone, "quadrature": beside})


def scaling(points: tuple[int, ...], repeats: int, seed: int) -> list[dict[str, Any]]:
    rows = []
    ntk(data(10, 4, 0.0, seed), MIXED)  # imports and caches
    print(f"{'network':<24} {'N':>5} {'L':>3} {'cpu, s':>8} {'wall, s':>8} {'cpu per layer, s':>16}")
    cases = [("mixed, norm 1", MIXED, 0.0, 0.0, points[-1], depth) for depth in (5, 10, 20)]
    cases += [("mixed, norm 1", MIXED, 0.0, 0.0, count, 10) for count in points[:-1]]
    cases += [("mixed, all skips, norm 1", MIXED, 1.0, 0.0, points[-1], 10)]
    cases += [("mixed, four-fold norms", MIXED, 0.0, 0.7, points[-1], depth) for depth in (5, 10, 20)]
    cases += [("mixed, skips, four-fold", MIXED, 1.0, 0.7, points[-1], 10)]
    cases += [("relu, norm 1", ("relu",), 0.0, 0.0, points[-1], 10)]
    for label, names, skip, spread, count, depth in cases:
        x = data(count, 64, spread, seed)
        network = [names[i % len(names)] for i in range(depth - 1)]

        def run(x: Array = x, network: list[str] = network, skip: float = skip) -> Array:
            return ntk(x, network, [skip] * (len(network) - 1), accuracy=ACCURACY)

        times = [clocks(run) for _ in range(repeats)]
        cpu, wall = np.median(times, 0).tolist()
        rows.append({"network": label, "N": count, "L": depth, "cpu": cpu, "wall": wall, "times": times})
        print(f"{label:<24} {count:>5} {depth:>3} {cpu:>8.2f} {wall:>8.2f} {cpu / (depth - 1):>16.3f}", flush=True)
    return rows


def against_quadrature(count: int, repeats: int, seed: int) -> list[dict[str, Any]]:
    print(
        f"\n{'network, L=4':<30} {'N':>5} {'order':>6} {'direct, s':>10} {'ntk, s':>8} {'ratio':>8} {'difference':>11}"
    )
    rows = []
    for name, spread in (("tanh", 0.0), ("swish", 0.0), ("tanh", 0.7), ("swish", 0.7)):
        x, network = data(count, 64, spread, seed), [name] * 3
        precise = ntk(x, network, [1, 1], accuracy=1e-10)
        order = needed(x, network, precise)
        pairs = [
            (clocks(lambda x=x, n=network, q=order: direct(x, n, q)), clocks(lambda x=x, n=network: ntk(x, n, [1, 1])))
            for _ in range(repeats)
        ]
        slow, fast = (float(np.median([pair[i][0] for pair in pairs])) for i in (0, 1))
        difference = off(direct(x, network, order), ntk(x, network, [1, 1]))
        label = f"{name}, skips, {'four-fold norms' if spread else 'norm 1'}"
        row = {"network": label, "N": count, "order": order, "direct": slow, "ntk": fast}
        rows.append({**row, "ratio": slow / fast, "difference": difference})
        print(f"{label:<30} {count:>5} {order:>6} {slow:>10.2f} {fast:>8.2f} {slow / fast:>8.1f} {difference:>11.1e}")
    return rows


def needed(x: Array, network: list[str], precise: Array) -> int:
    """The smallest order that is accurate for the examples of the largest norms, which need the most."""
    few = np.argsort(np.diagonal(precise))[-6:]
    for order in ORDERS:
        if off(direct(x[few], network, order), precise[np.ix_(few, few)]) <= ACCURACY:
            return order
    raise SystemExit(f"no order up to {ORDERS[-1]} reaches {ACCURACY:g}")


def data(count: int, dimensions: int, spread: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dimensions))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.exp(rng.uniform(-spread, spread, (count, 1))))


def direct(x: Array, network: list[str], order: int) -> Array:
    """The exact kernel with all skips, each expectation a Gauss-Hermite sum of order x order values."""
    z, weights = roots_hermitenorm(order)
    weights = weights / weights.sum()
    covariance, t, total = x @ x.T, np.zeros(len(x)), np.zeros((len(x), len(x)))
    i, j = np.triu_indices(len(x))
    for index, name in enumerate(network):
        a = np.sqrt(np.diagonal(covariance))
        rho = np.clip(covariance[i, j] / (a[i] * a[j]), -1, 1)
        product, slope = np.empty_like(covariance), np.empty_like(covariance)
        size = max(1, (1 << 20) // order**2)
        for start in range(0, len(i), size):
            part = slice(start, start + size)
            u = a[i[part], None] * z
            rest = np.sqrt(1 - rho[part] ** 2)[:, None, None] * z
            v = a[j[part], None, None] * (rho[part, None, None] * z[:, None] + rest)
            for f, out in ((function(name), product), (derivative(name), slope)):
                values = 2 * np.einsum("np,npq,q->n", weights * f(u), f(v), weights, optimize=True)
                out[i[part], j[part]] = out[j[part], i[part]] = values
        alpha = 1.0 if index else 0.0
        total = total * (slope + alpha) + covariance * slope
        e = mean(name, a)
        cross = np.multiply.outer(e, t)
        covariance = product + alpha * (covariance + cross + cross.T)
        t = e + alpha * t
    return total + covariance


def off(kernel: Array, other: Array) -> float:
    """The largest difference, relative to the diagonal."""
    return float(np.abs(kernel - other).max() / np.diagonal(other).max())


def clocks(run: Callable[[], Any]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    main()
