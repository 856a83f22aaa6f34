"""How well one order of architectures agrees with another: Kendall and Spearman, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasight.errors import RequestError

PAIRS_AT_ONCE = 2_000
"""Up to this many values, all pairs are held at once; with more, resamples are sorted one by one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankAgreement:
    """Two orders of the same things: Kendall's tau-b and Spearman's rho with intervals at `level`.

    `ties` are the shares of pairs that are equal in the one and in the other. Where there is nothing to compare, the
    figures are None and `undecided` says why.
    """

    count: int
    level: float
    kendall: float | None = None
    kendall_interval: tuple[float, float] | None = None
    spearman: float | None = None
    spearman_interval: tuple[float, float] | None = None
    ties: tuple[float, float] = (0.0, 0.0)
    undecided: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if self.kendall is None or self.kendall_interval is None:
            return f"undecided: {self.undecided}"
        low, high = self.kendall_interval
        return f"Kendall {self.kendall:.2f} ({low:.2f} to {high:.2f} at {self.level:.0%}, {self.count} pairs of values)"


def rank_agreement(
    a: ArrayLike, b: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> RankAgreement:
    """How alike `a` and `b`, values of the same things, order them.

    tau-b and rho with mean ranks allow for ties. The intervals are percentiles over bootstrap resamples of the
    things; a thing drawn twice is a tie with itself. Fewer than four values have no interval worth the name.

    >>> rank_agreement([1, 2, 3, 4, 5], [2, 1, 3, 4, 5]).kendall
    0.8
    >>> rank_agreement([1, 1, 1, 1], [1, 2, 3, 4]).undecided
    'all 4 values of the first are equal, so they order nothing'
    """
    x, y = _values(a, "the first"), _values(b, "the second")
    _check(x, y, level, resamples)
    ties = _tied(x), _tied(y)
    reason = _undecided(x, y)
    if reason is not None:
        return RankAgreement(len(x), level, ties=ties, undecided=reason)
    kendall, spearman = _both(x, y, np.ones((1, len(x))))
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(len(x), np.full(len(x), 1 / len(x)), size=resamples).astype(np.float64)
    drawn = _both(x, y, counts)
    return RankAgreement(
        len(x),
        level,
        float(kendall[0]),
        _interval(drawn[0], level),
        float(spearman[0]),
        _interval(drawn[1], level),
        ties,
    )


@dataclass(frozen=True)
class Predictor:
    """One way to rank: its agreement with the truth, and what following it would have cost.

    `regret` is the best true value less that of the thing this predictor puts first (of equals, their mean), `top` the
    share of the true best tenth (at least one) that it puts into its own best tenth.
    """

    agreement: RankAgreement
    regret: float
    top: float


@dataclass(frozen=True)
class Ranking:
    """Several predictors against one truth; `leads` is how often each has the highest Kendall in a resample."""

    count: int
    predictors: dict[str, Predictor]
    leads: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def ranking(
    truth: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Ranking:
    """How well predictors rank architectures: larger is better in all of them and in the truth.

    The truth is the stand-alone accuracy of a sample of architectures, from training or from a table; predictors
    are, for the same architectures, their log-probability under the architecture weights (`log_probabilities`),
    their accuracy under shared weights, train-free scores. All predictors see the same resamples.

    >>> found = ranking([90, 91, 92, 93, 94], {"good": [1, 2, 3, 5, 4], "bad": [5, 4, 3, 2, 1]})
    >>> found.predictors["good"].regret, found.predictors["bad"].regret
    (1.0, 4.0)
    """
    if not predictors:
        raise RequestError("a ranking needs at least one predictor, got none")
    true = _values(truth, "the truth")
    found, drawn = dict[str, Predictor](), dict[str, Floats]()
    counts = np.random.default_rng(seed).multinomial(len(true), np.full(len(true), 1 / len(true)), size=resamples)
    for name, values in predictors.items():
        x = _values(values, f"predictor {name!r}")
        agreement = rank_agreement(x, true, level=level, resamples=resamples, seed=seed)
        first = true[x == x.max()].mean()
        best = max(1, round(len(true) / 10))
        chosen, right = (set(np.argsort(-v, kind="stable")[:best].tolist()) for v in (x, true))
        found[name] = Predictor(agreement, float(true.max() - first), len(chosen & right) / best)
        if agreement.undecided is None:
            drawn[name] = _both(x, true, counts.astype(np.float64))[0]
    return Ranking(len(true), found, _leads(drawn, list(predictors)))


def log_probabilities(rows: Sequence[ArrayLike], picks: ArrayLike) -> Floats:
    """log p of architectures under architecture weights that are independent, row by row: (n,).

    `rows` are the simplices, one a decision, and `picks` (n, decisions) the index that each architecture takes.
    A weight of 0 counts as 1e-300, so that all figures are finite.

    >>> log_probabilities([[0.5, 0.5], [0.9, 0.1]], [[0, 0], [0, 1]]).round(3).tolist()
    [-0.799, -2.996]
    """
    index = np.atleast_2d(np.asarray(picks))
    if index.shape[1] != len(rows):
        raise RequestError(f"an architecture decides {len(rows)} rows here, but {index.shape[1]} picks were given")
    total = np.zeros(len(index))
    for number, row in enumerate(rows):
        weights = _values(row, f"row {number}")
        if index[:, number].min() < 0 or index[:, number].max() >= len(weights):
            raise RequestError(f"row {number} has {len(weights)} options, so picks are 0 to {len(weights) - 1}")
        total += np.log(np.maximum(weights, 1e-300))[index[:, number]]
    return total


def _leads(drawn: Mapping[str, Floats], names: Sequence[str]) -> dict[str, float]:
    if not drawn:
        return dict.fromkeys(names, 0.0)
    each = np.stack([np.where(np.isfinite(v), v, -2.0) for v in drawn.values()])
    first = each == each.max(0)
    shares = dict(zip(drawn, (first / first.sum(0)).mean(1).tolist(), strict=True))
    return {name: float(shares.get(name, 0.0)) for name in names}


def _both(x: Floats, y: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """tau-b and rho of resamples given by how often each thing was drawn: counts (resamples, n)."""
    if len(x) <= PAIRS_AT_ONCE:
        sx, sy = np.sign(x[:, None] - x[None, :]), np.sign(y[:, None] - y[None, :])
        return _kendall(sx, sy, counts), _spearman(counts @ sx.T, counts @ sy.T, counts)
    from scipy.stats import kendalltau, spearmanr

    results = []
    for row in counts.astype(int):
        at = np.repeat(np.arange(len(x)), row)
        results.append((kendalltau(x[at], y[at]).statistic, spearmanr(x[at], y[at]).statistic))
    kendall, spearman = np.array(results).T
    return kendall, spearman


def _kendall(sx: Floats, sy: Floats, counts: Floats) -> Floats:
    """Sums over pairs of drawn things are quadratic forms in the counts."""
    agree, in_x, in_y = (np.einsum("bi,bi->b", counts @ pairs, counts) for pairs in (sx * sy, abs(sx), abs(sy)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(agree / np.sqrt(in_x * in_y), dtype=np.float64)


def _spearman(ranks_x: Floats, ranks_y: Floats, counts: Floats) -> Floats:
    """Pearson's coefficient of mean ranks; how many are smaller less how many are larger is twice the centered rank."""
    product, in_x, in_y = (
        (counts * a * b).sum(1) for a, b in ((ranks_x, ranks_y), (ranks_x, ranks_x), (ranks_y, ranks_y))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(product / np.sqrt(in_x * in_y), dtype=np.float64)


def _interval(drawn: Floats, level: float) -> tuple[float, float]:
    # A resample of one value again and again orders nothing.
    low, high = np.quantile(drawn[np.isfinite(drawn)], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _undecided(x: Floats, y: Floats) -> str | None:
    for values, which in ((x, "the first"), (y, "the second")):
        if len(values) < 4:
            return f"{len(values)} values are too few for an interval; 4 are the least"
        if values.min() == values.max():
            return f"all {len(values)} values of {which} are equal, so they order nothing"
    return None


def _tied(values: Floats) -> float:
    _, sizes = np.unique(values, return_counts=True)
    pairs = len(values) * (len(values) - 1)
    return float((sizes * (sizes - 1)).sum() / pairs) if pairs else 0.0


def _values(given: ArrayLike, which: str) -> Floats:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise RequestError(f"the values of {which} must be numbers, got {given!r:.80}") from None
    if values.ndim != 1 or not len(values):
        raise RequestError(f"the values of {which} must be a row of numbers, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise RequestError(f"{int((~np.isfinite(values)).sum())} of {len(values)} values of {which} are not finite")
    return values


def _check(x: Floats, y: Floats, level: float, resamples: int) -> None:
    if len(x) != len(y):
        raise RequestError(f"the values must be of the same things, got {len(x)} and {len(y)}")
    if not 0 < level < 1 or resamples < 2:
        raise RequestError(f"level must be between 0 and 1 and resamples at least 2, got {level!r} and {resamples!r}")
