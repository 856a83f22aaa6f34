"""What learning theory promises of a bilevel choice (FeatureMaps, Section 3 and Appendix A).

A choice is bilevel when every configuration c of a finite set C gets weights from the training rows T, and the pair
with the least loss on the validation rows V is taken. Each function gives a `Bound` on how much the risk of that
pair exceeds the best possible, says what it assumes, and says when it promises nothing. Where the paper gives
the order of growth only, the unknown constant is an argument and the `Bound` says so.

>>> bound = theorem_a2(validation=10_000, entropy=VersionEntropy.finite(256), delta=0.05)
>>> round(bound.value, 3), bound.vacuous()
(0.054, False)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nasight.errors import RequestError
from nasight.trust._entropy import VersionEntropy

__all__ = [
    "Bound",
    "VersionEntropy",
    "corollary_31",
    "corollary_32",
    "corollary_a1",
    "corollary_a2",
    "corollary_a3",
    "corollary_a4",
    "features_needed",
    "infimum",
    "theorem_31",
    "theorem_a1",
    "theorem_a2",
]

# Theorem A.1 as printed needs it: a cover at scale e leaves 3e - 2Le to Hoeffding's inequality, which must be e/2.
PRINTED_LIPSCHITZ = 1.25


@dataclass(frozen=True)
class Bound:
    """An upper bound on excess risk: its `value`, the `probability` with which it holds, and its `assumptions`."""

    name: str
    value: float
    probability: float
    assumptions: str
    terms: Mapping[str, float]
    constant: float | None = None  # None: every constant is the paper's own
    scale: float = 1.0

    def vacuous(self, scale: float | None = None) -> bool:
        """Whether it promises nothing: no excess risk exceeds the loss's own range (`scale`, B by default)."""
        return self.value >= (self.scale if scale is None else scale) or self.probability <= 0

    def to_dict(self) -> dict[str, Any]:
        shown = {"name": self.name, "value": self.value, "probability": self.probability, "terms": dict(self.terms)}
        return {**shown, "constant": self.constant, "vacuous": self.vacuous(), "assumptions": self.assumptions}


def infimum(entropy: VersionEntropy, *, validation: int, bound: float, delta: float, lipschitz: float = 1.0) -> float:
    """inf over e of 3e + B sqrt(2/|V| (entropy(e) + log 1/delta)): taken at the left end of a step.

    3e is right for Lipschitz constants up to 1.25 (in the printed Theorem A.1 no limit is given); beyond, it is
    (2L + 1/2)e, which the same proof gives. At e = 0 a finite set needs no Lipschitz constant at all.
    """
    slope = 3.0 if lipschitz <= PRINTED_LIPSCHITZ else 2 * lipschitz + 0.5
    return min(
        slope * scale + bound * math.sqrt(2 / validation * (height + math.log(1 / delta)))
        for scale, height in entropy.steps.items()
    )


def theorem_a1(
    *,
    examples: int,
    epsilon: float,
    covering: float,
    bound: float = 1.0,
    lipschitz: float = 1.0,
    printed: bool = False,
) -> float:
    """Theorem A.1: at most how probable it is that some function's loss on m examples is 3 epsilon off its risk.

    2 N exp(-m epsilon^2 / 2B^2), 1 at most. A cover of radius epsilon leaves 3 epsilon - 2 L epsilon of the deviation
    to Hoeffding's inequality at a center, so with t = (3 - 2L) epsilon the proof gives 2 N exp(-2 m t^2 / B^2). That is
    the printed form or better up to L = 1.25; beyond, the printed form does not follow and this function gives what
    does: 1 where t is not positive.

    Parameters
    ----------
    examples : m, drawn independently.
    epsilon : the radius of the cover; the deviation is 3 times as large.
    covering : N, how many balls of this radius in the largest-difference norm cover the functions.
    bound : B; losses are between 0 and B.
    lipschitz : L of the loss in its first argument.
    printed : the printed form for any L.

    >>> theorem_a1(examples=10_000, epsilon=0.05, covering=256) < 0.01
    True
    >>> theorem_a1(examples=10_000, epsilon=0.05, covering=256, lipschitz=1.6)
    1.0
    """
    _check(0.5, examples=examples, epsilon=epsilon, covering=covering, bound=bound)
    _nonnegative(lipschitz=lipschitz)
    room = 0.5 * epsilon if printed or lipschitz <= PRINTED_LIPSCHITZ else max(3 - 2 * lipschitz, 0.0) * epsilon
    return min(1.0, 2 * covering * math.exp(-2 * examples * (room / bound) ** 2))


def theorem_a2(
    *,
    validation: int,
    entropy: VersionEntropy,
    delta: float = 0.05,
    bound: float = 1.0,
    training_error: float = 0.0,
    gap: float = 0.0,
    lipschitz: float = 1.0,
) -> Bound:
    """Theorem A.2: e*(|T|, delta) + B sqrt(log(1/delta) / 2|V|) + the infimum, with probability 1 - 3 delta.

    `training_error` is e*: how far the weights that training finds for the best configuration may be from its
    best weights. With 0 the bound compares with the best configuration *as trained on T*. `gap` is by how much the
    chosen pair's validation loss exceeds the least: 0 for an exact search; it enters the proof's second step as it is.
    """
    _check(delta, bound=bound, validation=validation)
    _nonnegative(training_error=training_error, gap=gap, lipschitz=lipschitz)
    terms = {
        "training": training_error,
        "gap": gap,
        "hoeffding": bound * math.sqrt(math.log(1 / delta) / (2 * validation)),
        "infimum": infimum(entropy, validation=validation, bound=bound, delta=delta, lipschitz=lipschitz),
    }
    return Bound("Theorem A.2", sum(terms.values()), 1 - 3 * delta, _BILEVEL + _gap(gap), terms, scale=bound)


def theorem_31(
    *,
    validation: int,
    entropy: VersionEntropy,
    delta: float = 0.05,
    bound: float = 1.0,
    training_error: float = 0.0,
    gap: float = 0.0,
    lipschitz: float = 1.0,
) -> Bound:
    """Theorem 3.1: Theorem A.2 with Hoeffding's term folded into the infimum, whose root gains the factor 3/2."""
    _check(delta, bound=bound, validation=validation)
    _nonnegative(training_error=training_error, gap=gap, lipschitz=lipschitz)
    within = infimum(entropy, validation=validation, bound=1.5 * bound, delta=delta, lipschitz=lipschitz)
    terms = {"training": training_error, "gap": gap, "infimum": within}
    return Bound("Theorem 3.1", sum(terms.values()), 1 - 3 * delta, _BILEVEL + _gap(gap), terms, scale=bound)


def corollary_a1(
    *, training: int, norm: float, delta: float = 0.05, constant: float = 1.0, scale: float = 1.0
) -> Bound:
    """Corollary A.1: O(sqrt((||w*||^2 + 1) / |T| log 1/delta)), e* of a regularized linear model, up to a constant."""
    _check(delta, training=training, constant=constant, scale=scale)
    terms = {"training": constant * _linear(training, norm, delta)}
    assumptions = f"{_LIPSCHITZ}; lambda = {_penalty(training, delta)}, per row; the best configuration is known"
    return Bound("Corollary A.1", sum(terms.values()), 1 - delta, assumptions, terms, constant, scale)


def corollary_a2(
    *,
    training: int,
    validation: int,
    configurations: int,
    norm: float,
    delta: float = 0.05,
    constant: float = 1.0,
    scale: float = 1.0,
) -> Bound:
    """Corollary A.2: Corollary A.1 plus O(sqrt(log((|C| + 1)/delta) / |V|)), up to a constant."""
    _check(delta, training=training, validation=validation, configurations=configurations, constant=constant)
    terms = {
        "training": constant * _linear(training, norm, delta),
        "choice": constant * math.sqrt(math.log((configurations + 1) / delta) / validation),
    }
    assumptions = f"{_LIPSCHITZ}; lambda = {_penalty(training, delta)}, per row; {_EXACT}"
    return Bound("Corollary A.2", sum(terms.values()), 1 - 3 * delta, assumptions, terms, constant, scale)


def corollary_31(
    *,
    training: int,
    validation: int,
    configurations: int,
    norm: float,
    delta: float = 0.05,
    constant: float = 1.0,
    scale: float = 1.0,
) -> Bound:
    """Corollary 3.1: as Corollary A.2 with |C|/delta. The roots cover the logs, which in print they do not."""
    _check(delta, training=training, validation=validation, configurations=configurations, constant=constant)
    terms = {
        "training": constant * _linear(training, norm, delta),
        "choice": constant * math.sqrt(math.log(configurations / delta) / validation),
    }
    assumptions = f"{_LIPSCHITZ}; the best lambda for T; {_EXACT}"
    return Bound("Corollary 3.1", sum(terms.values()), 1 - 3 * delta, assumptions, terms, constant, scale)


def corollary_a3(
    *,
    training: int,
    validation: int,
    configurations: int,
    delta: float = 0.05,
    constant: float = 1.0,
    scale: float = 1.0,
) -> Bound:
    """Corollary A.3: O(log^2(1/delta) / sqrt|T| + sqrt(log((|C| + 1)/delta) / |V|)), up to a constant.

    The excess is over the best function of the configurations' kernel spaces, not over linear models on the features.
    """
    _check(delta, training=training, validation=validation, configurations=configurations, constant=constant)
    terms = {
        "training": constant * math.log(1 / delta) ** 2 / math.sqrt(training),
        "choice": constant * math.sqrt(math.log((configurations + 1) / delta) / validation),
    }
    assumptions = f"{_SQUARED}; lambda = {training**-0.5:.3g} per row; {_enough(training, delta)}; {_EXACT}"
    return Bound("Corollary A.3", sum(terms.values()), 1 - delta, assumptions, terms, constant, scale)


def corollary_32(
    *,
    training: int,
    validation: int,
    configurations: int,
    delta: float = 0.05,
    constant: float = 1.0,
    scale: float = 1.0,
) -> Bound:
    """Corollary 3.2: as Corollary A.3 with |C|/delta. The root covers the log, which in print it does not."""
    _check(delta, training=training, validation=validation, configurations=configurations, constant=constant)
    terms = {
        "training": constant * math.log(1 / delta) ** 2 / math.sqrt(training),
        "choice": constant * math.sqrt(math.log(configurations / delta) / validation),
    }
    assumptions = f"{_SQUARED}; the best lambda for T; {_enough(training, delta)}; {_EXACT}"
    return Bound("Corollary 3.2", sum(terms.values()), 1 - delta, assumptions, terms, constant, scale)


def corollary_a4(
    *,
    training: int,
    validation: int,
    entropy: VersionEntropy,
    generalization_error: float = 0.0,
    delta: float = 0.05,
    bound: float = 1.0,
    gap: float = 0.0,
    lipschitz: float = 1.0,
) -> Bound:
    """Corollary A.4: Theorem A.2 for plain empirical risk minimizers, plus B sqrt(log(1/delta) / 2|T|).

    `generalization_error` is e*: by how much the risk of a minimizer of the best configuration exceeds its loss on T.
    """
    _check(delta, training=training, bound=bound, validation=validation)
    _nonnegative(generalization_error=generalization_error, gap=gap, lipschitz=lipschitz)
    terms = {
        "generalization": generalization_error,
        "gap": gap,
        "hoeffding": bound * math.sqrt(math.log(1 / delta) / (2 * validation)),
        "hoeffding on T": bound * math.sqrt(math.log(1 / delta) / (2 * training)),
        "infimum": infimum(entropy, validation=validation, bound=bound, delta=delta, lipschitz=lipschitz),
    }
    assumptions = _MINIMIZERS + _gap(gap)
    return Bound("Corollary A.4", sum(terms.values()), 1 - 4 * delta, assumptions, terms, scale=bound)


def features_needed(training: int, delta: float = 0.05, constant: float = 1.0) -> int:
    """How many random features Corollary A.3 asks for: O(sqrt|T| log(sqrt|T| / delta)), up to a constant."""
    _check(delta, training=training, constant=constant)
    return math.ceil(constant * math.sqrt(training) * math.log(math.sqrt(training) / delta))


def of_selection(result: Mapping[str, Any], delta: float = 0.05) -> list[Bound]:
    """What each bound gives for the `result` of `nasight select`, of the 0-1 loss where a loss is free to choose."""
    sizes = {"training": result["training_rows"], "validation": result["validation_rows"], "delta": delta}
    chosen = {**sizes, "configurations": result["configs"]}
    entropy = VersionEntropy.finite(result["configs"])
    apart = {name: value for name, value in sizes.items() if name != "training"}
    found = [theorem_a2(**apart, entropy=entropy), theorem_31(**apart, entropy=entropy)]
    found.append(corollary_a1(training=result["training_rows"], norm=result["norm"], delta=delta))
    found += [corollary_a2(**chosen, norm=result["norm"]), corollary_31(**chosen, norm=result["norm"])]
    if result["maps"] == "fourier":
        found += [corollary_a3(**chosen), corollary_32(**chosen)]
    return [*found, corollary_a4(**sizes, entropy=entropy)]


_EXACT = "the pair of least validation loss over all of C is found, by training each configuration alone"
_BILEVEL = (
    "training and validation rows are independent draws from one distribution; the loss lies in [0, B]; "
    f"{_EXACT}; training finds weights within e* of the best for the best configuration"
)
_MINIMIZERS = (
    "training and validation rows are independent draws from one distribution; the loss lies in [0, B]; training "
    "minimizes the mean loss on T without a penalty, and for the best configuration some minimizer's risk is within "
    f"e* of its loss on T; {_EXACT}"
)
_LIPSCHITZ = "the loss is Lipschitz (hinge: yes; squared: on bounded outputs only) and features have norm at most 1"
_SQUARED = "squared loss, random Fourier features of continuous shift-invariant kernels, bounded labels"


def _gap(gap: float) -> str:
    return f", up to a validation loss {gap:.4g} above the least" if gap else ""


def _penalty(training: int, delta: float) -> str:
    return f"sqrt(log(1/delta)/|T|) = {math.sqrt(math.log(1 / delta) / training):.3g}"


def _enough(training: int, delta: float) -> str:
    return f"of the order of {features_needed(training, delta):,} features or more"


def _linear(training: int, norm: float, delta: float) -> float:
    _nonnegative(norm=norm)
    return math.sqrt((norm**2 + 1) / training * math.log(1 / delta))


def _nonnegative(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0 or math.isinf(value):
            raise RequestError(f"{name} is a number of at least 0, got {value}")


def _check(delta: float, **positive: float) -> None:
    if not 0 < delta < 1:
        raise RequestError(f"delta is a probability between 0 and 1, got {delta}")
    for name, value in positive.items():
        if not value > 0 or math.isinf(value):
            raise RequestError(f"{name} is more than 0, got {value}")
