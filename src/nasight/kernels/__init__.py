"""Neural tangent kernels: infinitely wide networks, real ones, bounds, and scores without training."""

from nasight.gradients import GradientMoments, gradient_moments, per_example_square_norms
from nasight.kernels._activations import Constants, checked_layers, constants
from nasight.kernels._algorithm_1 import TrainedIterate, algorithm_1
from nasight.kernels._bounds import schur_bound, theorem_1, theorem_1_printed, theorem_2, theorem_3
from nasight.kernels._bounds_data import BoundAssumption, KernelBound
from nasight.kernels._eigen_search import Candidate, EigenSearch, best_forms, eigen_search
from nasight.kernels._empirical import empirical_ntk, extreme_eigenvalues, ntk_diagonal, ntk_trace
from nasight.kernels._infinite import Layers, ntk
from nasight.kernels._nasi import nasi_search
from nasight.kernels._score_table import SCORES, Score, register, score_row
from nasight.kernels._scored import Scores
from nasight.kernels._scoring import resume_score, score
from nasight.kernels._te_nas import te_nas_prune

__all__ = [
    "SCORES",
    "BoundAssumption",
    "Candidate",
    "Constants",
    "EigenSearch",
    "GradientMoments",
    "KernelBound",
    "Layers",
    "Score",
    "Scores",
    "TrainedIterate",
    "algorithm_1",
    "best_forms",
    "checked_layers",
    "constants",
    "eigen_search",
    "empirical_ntk",
    "extreme_eigenvalues",
    "gradient_moments",
    "nasi_search",
    "ntk",
    "ntk_diagonal",
    "ntk_trace",
    "per_example_square_norms",
    "register",
    "resume_score",
    "schur_bound",
    "score",
    "score_row",
    "te_nas_prune",
    "theorem_1",
    "theorem_1_printed",
    "theorem_2",
    "theorem_3",
]
