"""Reproduce: claims of the papers, measured at this machine's scale by rules that were fixed before."""

from nasight.studies.reproducing._claim import Claim, Measure
from nasight.studies.reproducing._claims import CLAIMS
from nasight.studies.reproducing._finding import Finding, Reproduction
from nasight.studies.reproducing._reproduce import reproduce
from nasight.studies.reproducing._rules import InsideInterval, Judgment, NoViolation, Rule, Within

__all__ = [
    "CLAIMS",
    "Claim",
    "Finding",
    "InsideInterval",
    "Judgment",
    "Measure",
    "NoViolation",
    "Reproduction",
    "Rule",
    "Within",
    "reproduce",
]
