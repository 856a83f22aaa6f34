"""A candidate of a race as a page shows it, and the words for who proposed it and why it left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Protocol

PROPOSERS = {
    "likeliest": "among the likeliest of the searches",
    "open decision": "a rival where trust calls a decision open",
    "close decision": "the second option where a search's weights are closest",
    "score": "best score without training",
    "size": "most parameters of those scored",
    "largest": "most parameters of the space, within the limits",
    "score and size": "best score and size without training",
    "chance": "drawn at random",
    "well on other data": "better than the reference on other data sets",
    "near the reference": "close to the reference",
    "mutation": "a leader of the race with one change",
    "an earlier leg": "a leader of an earlier leg",
    "reference": "the space's reference",
    "plain reference": "the plain network",
    "first options": "your model's first options",
    "stand-in": "what stands for the reference within the limits",
    "plain": "a plain network",
    "boosting": "gradient boosting (scikit-learn)",
    "baseline": "your baseline",
}
"""Who proposed a candidate, in words; those with a number are in `proposer_words`."""
REASONS = {"behind": "surely behind", "time": "no time for it", "failed": "its training failed"}
HOVER_WIDTH, HOVER_LINES = 44, 5


class Sized(Protocol):
    """What has the size of a network."""

    @property
    def parameters(self) -> int: ...

    @property
    def multiply_adds(self) -> int | None: ...


@dataclass(frozen=True)
class RacedCandidate:
    """One candidate of a race."""

    number: int
    """Its place in the table; the best one is number 1."""
    architecture: str
    """As text."""
    proposed_by: Sequence[str]
    """Who proposed it, the first one first."""
    parameters: int
    """Of its network."""
    accuracies: Sequence[float | None]
    """In percent, one per rung; None where it was not trained."""
    left_at: int | None = None
    """The rung on which it left; None: it is in the race to the end."""
    reason: str | None = None
    """Why it left: "behind", "time" or "failed"."""
    control: bool = False
    """Whether it ran along to be compared with."""
    role: str = ""
    """ "winner", "baseline" or nothing."""
    multiply_adds: int | None = None
    """Per example; None: unknown."""

    @property
    def proposers(self) -> str:
        """Who proposed it, in words."""
        return "; ".join(map(proposer_words, self.proposed_by))

    @property
    def why(self) -> str:
        """Why it left, in words; nothing for one that did not."""
        return "" if self.reason is None else REASONS.get(self.reason, self.reason)

    @property
    def trained(self) -> bool:
        """Whether a training of it was begun: not where there was no time for the first."""
        return self.reached is not None or self.reason != "time"

    @property
    def reached(self) -> int | None:
        """The last rung on which it has an accuracy."""
        return max((rung for rung, accuracy in enumerate(self.accuracies) if accuracy is not None), default=None)


def proposer_words(name: str) -> str:
    """Who proposed a candidate, in words; a name that is not known stays as it is.

    >>> proposer_words("search 2"), proposer_words("search 1 of leg 1"), proposer_words("likeliest of 25%")
    ('arg max of search 2', 'arg max of search 1 of leg 1', 'likeliest of the searches within a size of 25 %')
    >>> proposer_words("near the reference within 25%")
    'closest to the reference within a size of 25 %'
    """
    if re.fullmatch(r"search \d+( of leg \d+)?", name):
        return f"arg max of {name}"
    if share := re.fullmatch(r"likeliest of (\d+)%", name):
        return f"likeliest of the searches within a size of {share[1]} %"
    if share := re.fullmatch(r"near the reference within (\d+)%", name):
        return f"closest to the reference within a size of {share[1]} %"
    return PROPOSERS.get(name, name)


def size_lines(of: Sized) -> tuple[str, ...]:
    """The size of a network for a hover text."""
    parameters = f"{of.parameters:,} parameters"
    return (parameters,) if of.multiply_adds is None else (parameters, f"{of.multiply_adds:,} multiply-adds")


def hover(*lines: str, architecture: str = "") -> str:
    """Lines of a hover text in Plotly's own markup, in which nothing of what is shown is markup."""
    wrapped = wrap(architecture, HOVER_WIDTH, break_on_hyphens=False)
    if len(wrapped) > HOVER_LINES:
        wrapped = [*wrapped[: HOVER_LINES - 1], "…"]
    return "<br>".join(escape(line, quote=False) for line in (*lines, *wrapped) if line)
