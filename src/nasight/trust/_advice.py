"""What to do about a decision, and about a run, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from nasight.architecture import Architecture
from nasight.spaces import Space
from nasight.trust._collapse import Collapse
from nasight.trust._decisions import Evidence
from nasight.trust._seeds import Agreement
from nasight.trust._verdict import SAFE, UNSAFE, Verdict

HIGH = 0.8
"""A row whose entropy is above this share of the largest possible has not made up its mind."""
FALLING = 0.01
"""An entropy that fell by this share of the largest possible in the last quarter of a search is still falling."""
CANDIDATES = 3


@dataclass(frozen=True)
class EntropyTrend:
    """The weights of a decision at the end: their entropy, as a share of the largest possible, and how it fell."""

    entropy: float
    fell: float

    @property
    def high(self) -> bool:
        return self.entropy > HIGH

    @property
    def falling(self) -> bool:
        return self.fell > FALLING

    @classmethod
    def of(cls, entropies: Sequence[float], options: int) -> EntropyTrend:
        """From the entropies, in nats, of all epochs."""
        most = log(options) if options > 1 else 1.0
        before = entropies[-1 - max(1, len(entropies) // 4)] if len(entropies) > 1 else entropies[-1]
        return cls(entropies[-1] / most, (before - entropies[-1]) / most)


@dataclass(frozen=True)
class Advice:
    """One thing to do, the evidence for it, and the command that does it, where there is one."""

    action: str
    why: str
    command: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def decision_advice(
    verdict: Verdict, trend: EntropyTrend | None = None, *, twin: str | None = None, agreement: Agreement | None = None
) -> str:
    """One sentence; `twin` is the GAEA variant of a softmax method, where there is one."""
    if verdict.within_noise:
        return "stop: the choice does not matter, every difference is within noise"
    if agreement is not None and agreement.flips:
        counts = ", ".join(f"{option} {count}" for option, count in agreement.counts.items())
        return f"average seeds: the choice flips with the seed ({counts})"
    if verdict.verdict == SAFE:
        return "keep it"
    if verdict.verdict == UNSAFE:
        return f"retrain briefly with {verdict.rival} instead and compare"
    if trend is not None and trend.high and twin is not None:
        return f"switch to {twin}: the weights are still at {100 * trend.entropy:.0f} % of the largest entropy"
    if trend is not None and trend.falling:
        return f"search longer: the entropy fell by {100 * trend.fell:.0f} % of its range in the last quarter"
    if verdict.local_rival is not None:
        return f"retrain briefly with {verdict.local_rival} instead and compare: the answer depends on the others"
    return f"either will do: {' and '.join(verdict.ties)} cannot be told from it"


def candidates(
    space: Space, arch: Architecture, evidence: Sequence[Evidence], verdicts: Sequence[Verdict]
) -> list[str]:
    """The architectures worth a short retraining: the one found, it with all better options at once, and the single
    changes with the least loss."""
    combined = arch
    names = {name for name, _ in arch}
    for verdict in verdicts:
        if verdict.verdict == UNSAFE and verdict.name in names:
            combined = combined.replace(verdict.name, verdict.rival)
    single = sorted((a.loss, a.architecture) for each in evidence for a in each.alternatives)
    first = [space.format(arch)]
    if space.usable(combined) is None:
        first.append(space.format(combined))
    return list(dict.fromkeys([*first, *(text for _, text in single)]))[:CANDIDATES]


def run_advice(
    verdicts: Sequence[Verdict],
    trends: Mapping[str, EntropyTrend],
    *,
    run: str,
    again: Callable[..., str],
    epochs: int,
    twin: str | None = None,
    drift: Collapse | None = None,
    flips: Sequence[str] = (),
    averaged: str | None = None,
) -> list[Advice]:
    """What to do about the whole run, most urgent first; `again(method=..., epochs=...)` is the command of a search."""
    found = []
    open_ = [v for v in verdicts if v.verdict != SAFE and not v.within_noise]
    bad = [v.name for v in verdicts if v.verdict == UNSAFE and v.name not in flips]
    if drift is not None and drift.flagged is not None and drift.shares[-1] >= drift.shares[drift.flagged]:
        share = f"{100 * drift.shares[-1]:.0f} % of the operations at the end"
        found.append(
            Advice("do not trust the drift to skips", f"flagged in epoch {drift.flagged + 1}; skips are {share}")
        )
    if flips:
        noun = "decision flips" if len(flips) == 1 else "decisions flip"
        why = f"{len(flips)} {noun} with the seed ({', '.join(flips)})"
        found.append(Advice("average seeds", why if averaged is None else f"{why}; the mean weights give {averaged}"))
    mean = sum(m.entropy for m in trends.values()) / len(trends) if trends else 0.0
    fell = sum(m.fell for m in trends.values()) / len(trends) if trends else 0.0
    if open_ and twin is not None and mean > HIGH:
        why = f"the weights end at {100 * mean:.0f} % of the largest entropy, so the arg max hangs on little"
        found.append(Advice(f"switch to {twin}", why, again(method=twin)))
    elif open_ and fell > FALLING:
        why = f"the entropy still fell by {100 * fell:.0f} % of its range in the last quarter"
        found.append(Advice("search longer", why, again(epochs=2 * epochs)))
    if open_:
        why = f"{len(bad)} of {len(verdicts)} decisions have a better alternative under the shared weights"
        if not bad:
            why = f"{len(open_)} of {len(verdicts)} decisions are not settled"
        found.append(Advice("retrain candidates briefly", why, f"nasight explain {run} --resolve"))
    if not found:
        found.append(Advice("stop", "every decision is safe or does not matter"))
    return found
