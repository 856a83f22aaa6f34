"""Feature maps of a linear model, and choosing one of them with shared weights."""

from nasight.features._correlation import Correlation, correlation
from nasight.features._evaluator import Evaluator
from nasight.features._families import family
from nasight.features._family import AssignedRows, Config, Family, FittedFamily, RowSource
from nasight.features._fourier import RandomFourierFeatures
from nasight.features._linear import LinearModel, one_vs_rest
from nasight.features._methods import SELECTION_METHODS, SelectionMethod
from nasight.features._ngrams import HashedNgrams
from nasight.features._ridge import ridge
from nasight.features._run import SelectionRun
from nasight.features._selection import SelectedMap, resume, select
from nasight.features._selector import FeatureMapSelector
from nasight.features._split import SelectionData, split
from nasight.features._svm import svm

__all__ = [
    "SELECTION_METHODS",
    "AssignedRows",
    "Config",
    "Correlation",
    "Evaluator",
    "Family",
    "FeatureMapSelector",
    "FittedFamily",
    "HashedNgrams",
    "LinearModel",
    "RandomFourierFeatures",
    "RowSource",
    "SelectedMap",
    "SelectionData",
    "SelectionMethod",
    "SelectionRun",
    "correlation",
    "family",
    "one_vs_rest",
    "resume",
    "ridge",
    "select",
    "split",
    "svm",
]
