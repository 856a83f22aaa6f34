"""From evidence to a verdict at a level: safe, unsafe or unknown.

Differences are paired over examples. The choice is safe where every alternative is worse, each by a one-sided t-test at
(1 - level) / alternatives (Bonferroni), and where the local question does not say, as surely, that another
option is better. It is unsafe where one alternative is better at the same corrected level. Otherwise it is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from nasight.data import Units
from nasight.errors import RequestError
from nasight.trust._decisions import Alternative, Evidence

SAFE, UNSAFE, UNKNOWN = "safe", "unsafe", "unknown"


@dataclass(frozen=True)
class Verdict:
    """What the evidence says of one decision.

    `margin`: by how much loss (nats, where that is its unit) the strongest alternative is worse than the choice;
    negative where it is better. `confidence`: of a safe choice that it is the best; of an unsafe one that `rival` is
    better; of an unknown one the larger of these two, below the level. `ties`: alternatives that cannot be told from
    the choice. `within_noise`: all of them are.
    """

    name: str
    choice: str
    verdict: str
    margin: float
    confidence: float
    rival: str
    rival_architecture: str
    ties: tuple[str, ...]
    within_noise: bool
    local_rival: str | None
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "ties": list(self.ties)}


def judge(evidence: Evidence, *, level: float = 0.95, least: float = 0.0, units: Units | None = None) -> Verdict:
    """The verdict on one decision; a margin below `least` is not called safe. `units` are those of the evidence."""
    if not 0.5 <= level < 1:
        raise RequestError(f"level must be at least 0.5 and below 1, got {level!r}")
    n, alternatives = evidence.examples, evidence.alternatives
    worse = corrected([a.loss for a in alternatives], [a.error for a in alternatives], n)
    better = corrected([-a.loss for a in alternatives], [a.error for a in alternatives], n)
    near = [-a.local_loss for a in alternatives]
    local = corrected(near, [a.local_error for a in alternatives], evidence.local_examples)
    strongest = alternatives[int(np.argmin([a.loss for a in alternatives]))]
    rival = alternatives[int(better.argmax())] if better.max() >= level else strongest
    local_rival = alternatives[int(local.argmax())].option if local.max() >= level else None
    ties = tuple(a.option for a, w, b in zip(alternatives, worse, better, strict=True) if max(w, b) < level)
    if worse.min() >= level and strongest.loss >= least and local_rival is None:
        verdict, confidence = SAFE, worse.min()
    elif better.max() >= level:
        verdict, confidence = UNSAFE, better.max()
    else:
        verdict, confidence = UNKNOWN, max(worse.min(), better.max())
    said = _said(evidence, rival, level, verdict, local_rival, least, units or Units())
    return Verdict(
        evidence.name,
        evidence.choice,
        verdict,
        float(strongest.loss),
        float(confidence),
        rival.option,
        rival.architecture,
        ties,
        len(ties) == len(alternatives),
        local_rival,
        said,
    )


def corrected(means: list[float], errors: list[float], n: int) -> NDArray[np.float64]:
    """For each mean the confidence that it is positive when this many are looked at: 1 - k p, not below 0."""
    mean, error = np.asarray(means, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    # Without spread a mean of zero says nothing and any other says all.
    sure = np.where(mean > 0, np.inf, np.where(mean < 0, -np.inf, 0.0))
    t = np.divide(mean, error, out=sure, where=error > 0)
    p = np.where(np.isnan(mean), 1.0, stdtr(max(n - 1, 1), -t))
    found: NDArray[np.float64] = np.maximum(1 - len(mean) * p, 0.0)
    return found


def _said(
    evidence: Evidence,
    rival: Alternative,
    level: float,
    verdict: str,
    local_rival: str | None,
    least: float,
    units: Units,
) -> str:
    count, percent = len(evidence.alternatives), f"{100 * level:g} %"
    sides = "worse" if rival.loss > 0 else "better"
    sides = f"{units.loss} {sides}" if units.loss else f"{sides} in loss"
    gained = 0.0 - rival.accuracy
    points = f"{gained:+.1f} points" if units.percent else units.difference(gained, sign=True)
    text = (
        f"{rival.option} is {abs(rival.loss):.3g} ± {rival.error:.2g} {sides} ({points}) on {evidence.examples} "
        f"examples, the others as found; tested against {count} alternative{'s' if count > 1 else ''} at {percent} "
        "together"
    )
    if local_rival is not None:
        text += f"; with the others at their weights {local_rival} is better, so the answer depends on the others"
    elif verdict == UNKNOWN and rival.loss > 0 and 0 < rival.loss < least:
        text += f"; a margin below {least:.3g} is not called safe"
    return text
