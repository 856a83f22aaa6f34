"""Feature maps of a linear model, and choosing one of them with shared weights."""

from nasight.features._correlation import Correlation, correlation
from nasight.features._families import family
from nasight.features._family import Config, Family, FittedFamily, RowSource
from nasight.features._fourier import RandomFourierFeatures
from nasight.features._linear import LinearModel, one_vs_rest
from nasight.features._methods import METHODS
from nasight.features._ngrams import HashedNgrams
from nasight.features._problem import Bench, Problem, split
from nasight.features._ridge import ridge
from nasight.features._selection import Selection, resume, select
from nasight.features._selector import FeatureMapSelector
from nasight.features._svm import svm

__all__ = [
    "METHODS",
    "Bench",
    "Config",
    "Correlation",
    "Family",
    "FeatureMapSelector",
    "FittedFamily",
    "HashedNgrams",
    "LinearModel",
    "Problem",
    "RandomFourierFeatures",
    "RowSource",
    "Selection",
    "correlation",
    "family",
    "one_vs_rest",
    "resume",
    "ridge",
    "select",
    "split",
    "svm",
]
