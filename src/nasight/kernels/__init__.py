"""Neural tangent kernels: infinitely wide networks, real ones, bounds, and scores without training."""

from nasight.gradients import GradientMoments, gradient_moments, per_example_square_norms
from nasight.kernels._activations import Constants, constants
from nasight.kernels._bounds import schur_bound, theorem_1, theorem_1_printed, theorem_2, theorem_3
from nasight.kernels._bounds_data import Assumption, Bound
from nasight.kernels._eigen_search import Found, eigen_search
from nasight.kernels._empirical import empirical_ntk, extreme_eigenvalues, ntk_diagonal, ntk_trace
from nasight.kernels._infinite import Layers, ntk
from nasight.kernels._nasi import nasi_search
from nasight.kernels._score_table import SCORES, Score, register
from nasight.kernels._scored import Scores
from nasight.kernels._scoring import resume_score, score
from nasight.kernels._te_nas import te_nas_prune

__all__ = [
    "SCORES",
    "Assumption",
    "Bound",
    "Constants",
    "Found",
    "GradientMoments",
    "Layers",
    "Score",
    "Scores",
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
    "te_nas_prune",
    "theorem_1",
    "theorem_1_printed",
    "theorem_2",
    "theorem_3",
]
