"""Where architecture parameters live and how they move: mirror descent on the simplex, and the softmax."""

from nasight.geometry._base import Geometry
from nasight.geometry._exponentiated import ExponentiatedGradient
from nasight.geometry._mirror import MirrorDescent
from nasight.geometry._potentials import Euclidean, NegativeEntropy, Potential, bregman, project_simplex
from nasight.geometry._simplex import Fixed, Simplex
from nasight.geometry._softmax import Softmax

__all__ = [
    "Euclidean",
    "ExponentiatedGradient",
    "Fixed",
    "Geometry",
    "MirrorDescent",
    "NegativeEntropy",
    "Potential",
    "Simplex",
    "Softmax",
    "bregman",
    "project_simplex",
]
