"""How long the trainings and searches of a find are: epochs, rows and rungs, from numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nasight.studies.finding._plan import JUDGE_SHARE, SEEDS

FEWEST_EPOCHS, MOST_EPOCHS = 6, 100
"""Of the trainings that answer."""
FEWEST_ROWS = 400
LEAST_RUNG = 6
"""Epochs of the shortest whole schedule; a rung that has time for fewer has fewer rows (`benchmarks/find_rungs.py`)."""
NARROWING = 3
CHEAPER = 0.7
"""A rung costs at most so much of the next one, or is left out."""
LEAST_SEARCH = 4
"""Epochs of the shortest search; one that has time for fewer has fewer rows."""
LEAST_PACED = 2
"""Epochs that a network has at least where all have the same time; one that is far slower than the reference."""
SLACK = 0.93
"""Clocks are noisy: so much of the budget is planned with."""
PER_TRAINING = 0.4
"""Seconds that a training takes besides its steps."""
JUDGE_ROWS, MOST_JUDGES = 2_000, 5_000
"""Where the share that judges would be more rows than the first, no more judge than learn, and at most the second."""


def waves(trainings: int, workers: int) -> int:
    """How often so many workers train one after the other.

    >>> waves(6, 2), waves(6, 4), waves(6, 64)
    (3, 2, 1)
    """
    return math.ceil(trainings / workers)


def training_seconds(seconds: float, workers: int, share: float) -> float:
    """Seconds for each training of the answer, of a budget of which it has this share."""
    return share * SLACK * seconds / waves(2 * SEEDS, workers) - PER_TRAINING


def paced_epochs(epochs: float, pace: float) -> int:
    """The epochs that a network has in the time of so many of the reference, if each takes `pace` times as long.

    >>> paced_epochs(12, 1.5), paced_epochs(12, 0.5), paced_epochs(6, 4.0), paced_epochs(1, 3.0)
    (8, 24, 2, 1)
    """
    return max(1, min(LEAST_PACED, round(epochs)), round(epochs / pace))


def least_rows(rows: int, classes: int) -> int:
    """Rows that a training or a search learns from at least."""
    return min(rows, max(FEWEST_ROWS, 20 * classes))


def judge_share(rows: int, examples: int) -> float:
    """The share of the rows that judge where trainings learn from so many: more would take time and tell little.

    >>> judge_share(8_000, 8_000), judge_share(50_000, 1_000), judge_share(50_000, 50_000)
    (0.25, 0.04, 0.1)
    """
    return min(JUDGE_SHARE, max(JUDGE_ROWS, min(examples, MOST_JUDGES)) / rows)


def taught_rows(rows: int, examples: int, judges: float = JUDGE_SHARE) -> int:
    """Of `rows` those that a training of the race learns from, if it may take so many and a share judges."""
    return min(examples, round((1 - judges) * rows))


def rung_lengths(epochs: int, rows: int, least_rows: int) -> list[tuple[int, int]]:
    """Epochs and rows of the rungs: of a ninth, a third and all of the cost of the trainings that answer.

    A shorter schedule has fewer epochs, and where these would be too few, fewer rows.
    """
    found = [(epochs, rows)]
    for part in (NARROWING, NARROWING**2):
        e = max(min(LEAST_RUNG, epochs), round(epochs / part))
        few = epochs / part < LEAST_RUNG
        r = max(least_rows, round(rows * epochs / (part * e))) if few else rows
        if e * r <= CHEAPER * found[0][0] * found[0][1]:
            found.insert(0, (e, r))
    return found


def rung_share(left: float, least: Sequence[float]) -> float:
    """Seconds of a rung, of those that are left for it and the longer ones after it.

    Parameters
    ----------
    left : for all of them.
    least : what this rung and each after it takes with the fewest candidates.

    All have the same share, unless a longer one needs more: then those before it have less. A rung for which there is
    no time whatever the others take is not counted.

    >>> rung_share(90.0, [10.0, 20.0, 30.0]), rung_share(90.0, [10.0, 15.0, 50.0]), rung_share(90.0, [10.0, 90.0])
    (30.0, 20.0, 90.0)
    """
    later = list(least[1:])
    while later and left - sum(later) < least[0]:
        later.pop()
    # What needs more than an equal share has what it needs, and the others share the rest.
    while later and max(later) > left / (len(later) + 1):
        left -= max(later)
        later.remove(max(later))
    return left / (len(later) + 1)


def search_length(
    passes: float, rows: int, least_rows: int, most_epochs: int = 50, beside: float = 0.0
) -> tuple[int, int]:
    """Epochs and rows of a search that has time to pass so many rows through the supernet.

    `beside` is what an epoch takes besides its steps, in rows.

    >>> search_length(90_000, 8_000, 400), search_length(20_000, 8_000, 400), search_length(9_000, 200, 100, beside=100)
    ((11, 8000), (4, 5000), (30, 200))
    """
    epochs = min(most_epochs, int(passes / (rows + beside)))
    if epochs >= LEAST_SEARCH:
        return epochs, rows
    return LEAST_SEARCH, max(min(rows, least_rows), int(passes / LEAST_SEARCH - beside))
