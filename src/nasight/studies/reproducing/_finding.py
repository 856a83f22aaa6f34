"""What became of the claims: figures, intervals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from nasight.errors import RequestError
from nasight.studies.reproducing._claim import Claim
from nasight.studies.reproducing._rules import CASES, FEW, Judgment, Values


@dataclass(frozen=True)
class Finding:
    """One claim as it was measured, one row of values per seed, and the verdict on it."""

    claim: Claim
    seeds: tuple[int, ...]
    values: tuple[Values, ...]
    judgment: Judgment
    seconds: float

    @classmethod
    def of(cls, claim: Claim, seeds: Sequence[int], values: Sequence[Values], seconds: float) -> Finding:
        """The finding on these measurements."""
        return cls(claim, tuple(seeds), tuple(values), claim.rule.judge(values, claim.figure), seconds)

    @property
    def verdict(self) -> str:
        """holds, does not hold, or undecided."""
        return self.judgment.verdict

    @property
    def cases(self) -> int | None:
        """Of an exact claim, how many cases were tried."""
        return None if self.claim.rule.statistical else int(sum(row[CASES] for row in self.values))

    @property
    def beside(self) -> dict[str, float]:
        """Means over the seeds of the values that are shown beside the figure."""
        return {name: fmean(row[name] for row in self.values) for name in self.claim.beside}

    @property
    def note(self) -> str | None:
        """What weakens the verdict, if anything does."""
        if self.claim.rule.statistical and len(self.seeds) < FEW:
            return (
                f"with {len(self.seeds)} of the {FEW} seeds or more that a statistical claim needs, chance may decide"
            )
        return None

    def to_dict(self) -> dict[str, Any]:
        """What `nasight reproduce --json` prints of a claim."""
        found = self.judgment
        return {
            "claim": self.claim.name,
            **{name: getattr(self.claim, name) for name in ("paper", "sentence", "measured")},
            "figure": found.value,
            "interval": None if found.low is None else [found.low, found.high],
            "cases": self.cases,
            "beside": self.beside,
            "seeds": list(self.seeds),
            "values": [dict(row) for row in self.values],
            "rule": self.claim.rule.text,
            "verdict": found.verdict,
            "note": self.note,
            "scale": self.claim.scale,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Reproduction:
    """The findings on some claims."""

    data: str
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        """The finding on the claim of this name."""
        measured = {found.claim.name: found for found in self.findings}
        if name not in measured:
            raise RequestError(f"{name!r} was not measured, only {', '.join(measured)}")
        return measured[name]

    def to_dict(self) -> dict[str, Any]:
        """What `nasight reproduce --json` prints."""
        return {"data": self.data, "claims": [found.to_dict() for found in self.findings]}
