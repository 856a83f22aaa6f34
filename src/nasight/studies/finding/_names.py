"""Names of candidates: an architecture of the searched space, or a network of another one."""

from __future__ import annotations

from nasight.studies.finding._race import Candidate
from nasight.studies.finding._work import BOOSTING

SPACE, PLAIN, OWN = "space", "plain", "baseline"
"""Keys of the spaces that candidates come from."""

REFERENCE, PLAIN_REFERENCE, FIRST_OPTIONS = "reference", "plain reference", "first options"
"""Who proposed the control of the searched space: its reference, which may be the plain network or the user's own."""
STAND_IN = "stand-in"
"""Who proposed the control that stands for a reference beyond the limits."""

ONE_SIZE = "it has no larger size to train later"
"""Why a control does not run along where a larger network is meant."""


def split_name(name: str) -> tuple[str, str]:
    """The key of a candidate's space, and its architecture there.

    >>> split_name("plain:"), split_name("relu,tanh/1")
    (('plain', 'plain'), ('space', 'relu,tanh/1'))
    """
    for key in (PLAIN, OWN, BOOSTING):
        if name == f"{key}:":
            return key, key
    return SPACE, name


def is_searched(candidate: Candidate) -> bool:
    """Whether a candidate is of the searched space."""
    return split_name(candidate.architecture)[0] == SPACE


def shown(candidate: Candidate) -> str:
    """A candidate's architecture as a person reads it."""
    return split_name(candidate.architecture)[1]
