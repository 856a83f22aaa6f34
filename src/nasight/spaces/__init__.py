"""Search spaces: decisions, options, the networks built from them, and the facts that others need to know."""

from nasight.spaces._alternatives import Alternatives
from nasight.spaces._base import LARGE, PRESETS, Space
from nasight.spaces._cost import known_multiply_adds, multiply_adds
from nasight.spaces._counts import MultiplyAdds, Parameters
from nasight.spaces._dropout import Dropout
from nasight.spaces._elsewhere import in_order_of_worth
from nasight.spaces._form import NetworkForm
from nasight.spaces._graph import CellGraph, Edge
from nasight.spaces._groups import Decision, Group, Weights
from nasight.spaces._placed import Placed, placed, zeros_of
from nasight.spaces._registry import BASELINES, DEFAULT, SPACES, family_of, load, names, register, search_options
from nasight.spaces._source import Source
from nasight.spaces._supernet import CONSTANTS, Supernet
from nasight.spaces.module import Choice, ModuleSpace
from nasight.spaces.plain import FixedSpace, PlainSpace

__all__ = [
    "BASELINES",
    "CONSTANTS",
    "DEFAULT",
    "LARGE",
    "PRESETS",
    "SPACES",
    "Alternatives",
    "CellGraph",
    "Choice",
    "Decision",
    "Dropout",
    "Edge",
    "FixedSpace",
    "Group",
    "ModuleSpace",
    "MultiplyAdds",
    "NetworkForm",
    "Parameters",
    "Placed",
    "PlainSpace",
    "Source",
    "Space",
    "Supernet",
    "Weights",
    "family_of",
    "in_order_of_worth",
    "known_multiply_adds",
    "load",
    "multiply_adds",
    "names",
    "placed",
    "register",
    "search_options",
    "zeros_of",
]
