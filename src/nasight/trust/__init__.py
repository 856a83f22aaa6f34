"""How far a search can be trusted."""

from nasight.trust import bounds
from nasight.trust._advice import Advice, EntropyTrend, candidates, decision_advice, run_advice
from nasight.trust._check import Assumption, Assumptions, Check, check, factor
from nasight.trust._collapse import Collapse, collapse
from nasight.trust._decisions import (
    Alternative,
    Batches,
    Evidence,
    decisions,
    example_losses,
    first_examples,
    measure,
)
from nasight.trust._deep_linear import check_linear, joint_weights, linear_outputs, mixture_output
from nasight.trust._ranking import Predictor, RankAgreement, Ranking, log_probabilities, rank_agreement, ranking
from nasight.trust._residual import ResidualCheck, without_realizability
from nasight.trust._seeds import Agreement, agreement, average
from nasight.trust._verdict import Verdict, judge

__all__ = [
    "Advice",
    "Agreement",
    "Alternative",
    "Assumption",
    "Assumptions",
    "Batches",
    "Check",
    "Collapse",
    "EntropyTrend",
    "Evidence",
    "Predictor",
    "RankAgreement",
    "Ranking",
    "ResidualCheck",
    "Verdict",
    "agreement",
    "average",
    "bounds",
    "candidates",
    "check",
    "check_linear",
    "collapse",
    "decision_advice",
    "decisions",
    "example_losses",
    "factor",
    "first_examples",
    "joint_weights",
    "judge",
    "linear_outputs",
    "log_probabilities",
    "measure",
    "mixture_output",
    "rank_agreement",
    "ranking",
    "run_advice",
    "without_realizability",
]
