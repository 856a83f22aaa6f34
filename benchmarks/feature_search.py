"""A whole fast-weight-sharing search: ours against the same search written with scikit-learn calls.

    python benchmarks/feature_search.py --data-folder DATA --seeds 2 --dtype float64 --without-hand

All see the same rows, configurations and dimensions, and all configurations of a round share their frequencies.
`pipelines` is the search as one writes it: for every configuration a scaler and an RBFSampler (with Cauchy draws for
the Laplacian kernel) of the round's random_state, fitted and applied to the configuration's rows, then Ridge (lsqr, as
in the paper's runs). `by hand` scales once per search and draws once per round, as no scikit-learn call does. Both in
the precision of --dtype. Repeats alternate; ratios are of medians. Choices may differ, as random assignments do.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from _shared import Flags, save
from nasight.compute import cores
from nasight.data import rows as load_rows
from nasight.features import Evaluator, SelectionData, SelectionRun, family, split
from nasight.features._evaluator import seed_for
from nasight.features._methods import Outcome, fast_dimensions, halvings, survivors
from nasight.features._settings import resolve
from nasight.runs import versions

SCALERS = {"none": FunctionTransformer, "min-max": MinMaxScaler, "normalize": Normalizer, "standardize": StandardScaler}
Array = NDArray[Any]


def ours(problem: SelectionData, configs: int, dimension: int, seed: int) -> dict[str, Any]:
    """The search as `nasight select` makes it."""
    settings = resolve(
        maps="fourier", data="own", method="fast-weight-sharing", configs=configs, dimension=dimension, seed=seed
    )
    clock = Clock()
    maps = family("fourier")
    run = SelectionRun(maps, Evaluator(maps, problem, seed=seed), settings)
    run.finish()
    spent, found = clock.read(), run.result()
    return {**spent, "accuracy": found["validation_accuracy"], "config": found["config"]}


class CauchySampler(RBFSampler):  # type: ignore[misc]
    """RBFSampler with the frequencies of the Laplacian kernel."""

    def fit(self, X: Array, y: Array | None = None) -> CauchySampler:
        super().fit(X)
        rng = np.random.default_rng(self.random_state)
        draws = rng.standard_cauchy((X.shape[1], self.n_components))
        self.random_weights_ = (self.gamma * draws).astype(X.dtype)
        return self


class Pipelines:
    """Features of one configuration by a scikit-learn pipeline, fitted when it is needed."""

    def __init__(self, train: Array, held: Array) -> None:
        self.sides = train, held

    def start(self, width: int, seed: int) -> None:
        self.width, self.seed = width, seed

    def rows(self, config: dict[str, Any], parts: list[Array]) -> list[Array]:
        sampler = RBFSampler if config["kernel"] == "gaussian" else CauchySampler
        made = sampler(gamma=config["gamma"], n_components=self.width, random_state=self.seed)
        chain = make_pipeline(SCALERS[config["scaling"]](), made).fit(self.sides[0])
        return [
            chain.transform(side[index]) if len(index) else side[:0, :1]
            for side, index in zip(self.sides, parts, strict=True)
        ]


class ByHand:
    """The same features from rows scaled once per search and frequencies drawn once per round."""

    def __init__(self, train: Array, held: Array) -> None:
        scalers = {name: scaler().fit(train) for name, scaler in SCALERS.items()}
        self.sides = {name: (s.transform(train), s.transform(held)) for name, s in scalers.items()}
        self.dtype, self.inputs = train.dtype, train.shape[1]

    def start(self, width: int, seed: int) -> None:
        rng, shape = np.random.default_rng(seed), (self.inputs, width)
        draws = {"gaussian": rng.standard_normal(shape), "laplacian": rng.standard_cauchy(shape)}
        self.weights = {kernel: draw.astype(self.dtype) for kernel, draw in draws.items()}
        self.offsets = rng.uniform(0, 2 * math.pi, width).astype(self.dtype)

    def rows(self, config: dict[str, Any], parts: list[Array]) -> list[Array]:
        scale = math.sqrt(2 * config["gamma"]) if config["kernel"] == "gaussian" else config["gamma"]
        weights, factor = self.weights[config["kernel"]], self.dtype.type(math.sqrt(2 / len(self.offsets)))
        sides = zip(self.sides[config["scaling"]], parts, strict=True)
        return [factor * np.cos(self.dtype.type(scale) * (x[index] @ weights) + self.offsets) for x, index in sides]


def with_scikit_learn(
    problem: SelectionData, configs: int, dimension: int, seed: int, maker: type[Pipelines] | type[ByHand], dtype: str
) -> dict[str, Any]:
    """The same search from scikit-learn's parts."""
    left = family("fourier").sample(configs, np.random.default_rng(seed_for(seed, "configurations", 0)))
    rng = np.random.default_rng([seed, 1])
    train, held = problem.train, problem.validation
    sides = train.x.astype(dtype), held.x.astype(dtype)
    clock = Clock()
    maps = maker(*sides)
    targets = _signs(train.y, problem.classes).astype(dtype)
    for width in [*fast_dimensions(dimension, halvings(configs)), dimension]:
        maps.start(width, int(rng.integers(2**31)))
        given = [rng.integers(len(left), size=len(part)) for part in (train, held)]
        features = [np.empty((len(part), width), dtype) for part in (train, held)]
        for number, config in enumerate(left):
            parts = [np.flatnonzero(assigned == number) for assigned in given]
            for whole, index, piece in zip(features, parts, maps.rows(config, parts), strict=True):
                if len(index):
                    whole[index] = piece
        model = Ridge(alpha=0.5, solver="lsqr").fit(features[0], targets)
        scores = model.predict(features[1])
        right, losses = scores.argmax(1) == held.y, np.square(scores - _signs(held.y, problem.classes)).mean(1)
        groups = [given[1] == i for i in range(len(left))]
        outcome = Outcome(
            tuple(float(right[group].mean()) if group.any() else None for group in groups),
            tuple(float(losses[group].mean()) if group.any() else None for group in groups),
        )
        left = [left[i] for i in survivors(outcome, "accuracy")]
    return {**clock.read(), "accuracy": float(right.mean()), "config": left[0]}


class Clock:
    """Seconds on the wall, and of all cores of this process."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self.wall, "cpu_seconds": time.process_time() - self.cpu}


def _signs(y: Array, classes: int) -> Array:
    return np.where(y[:, None] == np.arange(classes), 1.0, -1.0)


def main() -> None:
    flags = Flags(__doc__, "feature_search", seeds=3, chance="searches of each kind", data="the data set")
    flags.add_argument("--data", default="cifar-10")
    flags.add_argument("--examples", type=int, default=8_000)
    flags.add_argument("--validation", type=int, default=2_000)
    flags.add_argument("--dimension", type=int, default=4_000)
    flags.add_argument("--configs", type=int, default=64)
    flags.add_argument("--seed", type=int, default=0, help="the first seed")
    flags.add_argument("--dtype", choices=("float32", "float64", "both"), default="both")
    flags.add_argument("--without-hand", action="store_true", help="leave the search by hand out")
    given = flags.read(seeds=1, examples=300, validation=100, dimension=64, configs=4)
    whole = split(load_rows(given.data, folder=given.data_folder), given.validation, given.examples)
    problem = replace(whole, test=None)  # nobody tests
    sizes = (problem, given.configs, given.dimension)
    makers: dict[str, type[Pipelines] | type[ByHand]] = {"pipelines": Pipelines}
    if not given.without_hand:
        makers["by hand"] = ByHand
    kinds = ["float32", "float64"] if given.dtype == "both" else [given.dtype]
    runs: dict[str, list[dict[str, Any]]] = {"ours": []}
    for seed in range(given.seed, given.seed + given.seeds):
        runs["ours"].append(ours(*sizes, seed))
        print(f"ours: {runs['ours'][-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
        for name, maker in makers.items():
            for kind in kinds:
                found = with_scikit_learn(*sizes, seed, maker, kind)
                runs.setdefault(f"scikit-learn {name}, {kind}", []).append(found)
                print(f"{name}, {kind}: {found['seconds']:.1f} s", file=sys.stderr, flush=True)
    middle = {
        name: {key: statistics.median(run[key] for run in made) for key in ("seconds", "cpu_seconds")}
        for name, made in runs.items()
    }
    print(
        f"### A fast-weight-sharing search: {len(problem.train):,} rows, {given.dimension:,} features, "
        f"{given.configs} configurations, {cores()} cores\n\n| search | seconds, median of {given.seeds} | "
        "times ours | CPU seconds | times ours | validation accuracy, % |\n|---|---|---|---|---|---|"
    )
    for name, made in runs.items():
        accuracy = 100 * statistics.fmean(run["accuracy"] for run in made)
        cells = [
            f"{middle[name][key]:.2f} | {middle[name][key] / middle['ours'][key]:.2f}"
            for key in ("seconds", "cpu_seconds")
        ]
        print(f"| {name} | {' | '.join(cells)} | {accuracy:.2f} |")
    places = ("data_folder", "out")
    asked = {key: value for key, value in vars(given).items() if key not in places}
    facts = {"arguments": asked, "cores": cores(), "versions": versions(), "median": middle}
    save(given, {**facts, "runs": runs})


if __name__ == "__main__":
    main()
