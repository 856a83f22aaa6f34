"""Where architecture parameters live and how they move: mirror descent on the simplex, the softmax, distributions."""

from nasight.geometry._base import Geometry
from nasight.geometry._controller import Controller
from nasight.geometry._distribution import Distribution
from nasight.geometry._exponentiated import ExponentiatedGradient
from nasight.geometry._mirror import MirrorDescent
from nasight.geometry._natural import Categorical, NaturalGradient
from nasight.geometry._potentials import Euclidean, NegativeEntropy, Potential, bregman, project_simplex
from nasight.geometry._simplex import Fixed, Simplex
from nasight.geometry._softmax import Softmax
from nasight.geometry._wipeout import ExpertAdvice, Wipeout

__all__ = [
    "Categorical",
    "Controller",
    "Distribution",
    "Euclidean",
    "ExpertAdvice",
    "ExponentiatedGradient",
    "Fixed",
    "Geometry",
    "MirrorDescent",
    "NaturalGradient",
    "NegativeEntropy",
    "Potential",
    "Simplex",
    "Softmax",
    "Wipeout",
    "bregman",
    "project_simplex",
]
