"""A find, leg by leg: one budget's worth after the other, then the model and the page.

Everything that a clock or another process decides is kept in the journal, so a find that was killed takes the same way
again, without training anything twice. A later budget begins another leg: the leaders of the one before run again, in
longer trainings, beside new proposals.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from shlex import quote
from typing import Any

from nasight.errors import RequestError
from nasight.runs import is_code
from nasight.searching import Interrupted
from nasight.spaces import FixedSpace, ModuleSpace
from nasight.studies._model_folder import write_model
from nasight.studies._trained_model import trained_model
from nasight.studies.finding._answer import Answer
from nasight.studies.finding._budget import Budget
from nasight.studies.finding._context import Context, silent
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._leg import Leg, LegResult
from nasight.studies.finding._page import find_page
from nasight.studies.finding._planning import TooSmall
from nasight.studies.finding._stages import run_leg

NOTHING = Budget()
"""In place of a budget that was too small."""


def run_find(context: Context, more: Budget | None = None) -> Answer:
    """All legs, and the result of the last one, with `more` time or trainings; what an interrupt leaves is resumed."""
    try:
        return _run(context, more)
    except KeyboardInterrupt:
        code = {"--space": context.settings.space, "--baseline": context.settings.baseline}
        named = "".join(f" {flag} {quote(str(value))}" for flag, value in code.items() if is_code(value))
        where = quote(str(context.folder.path))
        raise Interrupted(f"stopped; resume with: nasight find --resume {where}{named}") from None


def legs(journal: Journal) -> int:
    """How many budgets a find was given."""
    return sum(key.startswith("budget ") for key in journal)


def has_ended(result: Mapping[str, Any], journal: Journal) -> bool:
    """Whether a result is that of the last budget: a kill in a later leg leaves the result of an earlier one."""
    worth = [n for n in range(legs(journal)) if Budget(**journal[f"budget {n}"]) != NOTHING]
    return not worth or result.get("legs", 1) == worth[-1] + 1


def add_budget(journal: Journal, more: Budget) -> None:
    """Give a find more: another leg, or more time for the last one where its answer has not begun.

    So the test part judges no answer that nobody has seen.
    """
    last = legs(journal) - 1
    if last < 0:
        raise RequestError(f"{journal.path} has no budget to add to: begin this find anew, with --overwrite")
    budget = Budget(**journal[f"budget {last}"])
    if f"epochs {last}" in journal or budget.seconds is None or more.seconds is None:
        journal.put(f"budget {last + 1}", asdict(more))
        return
    journal.put(f"budget {last}", asdict(replace(budget, seconds=budget.seconds + more.seconds)))
    if f"proposals {last}" in journal:
        # The race has begun: its rungs stay as they are, and have more time.
        journal.put(f"planned {last}", journal[f"planned {last}"] + more.seconds)
    else:
        # All that has not begun is planned anew.
        # The size last: a kill in between leaves what a find without the later ones decides again.
        for key in ("speed", "plan", "planned", "search length", "places 0", "size"):
            journal.forget(f"{key} {last}")
        for key in [key for key in journal if key.startswith(f"pace {last} ")]:
            journal.forget(key)


def _run(context: Context, more: Budget | None) -> Answer:
    with ExitStack() as stack:
        context.open(stack)
        if more is not None:
            add_budget(context.journal, more)
        previous: LegResult | None = None
        refused: TooSmall | None = None
        leg, began = 0, context.clock.before
        while f"budget {leg}" in context.journal:
            budget = Budget(**context.journal[f"budget {leg}"])
            if budget != NOTHING:
                ended = f"done {leg}" in context.journal
                try:
                    previous = _leg(context, Leg(context, leg, budget, previous, began))
                except TooSmall as error:
                    refused = error  # what the legs before came to is written all the same
                began = began if ended else context.clock()
            leg += 1
        if previous is None and refused is not None:
            raise refused
        if previous is None:
            raise RequestError(f"the find in {context.folder.path} never had a budget that was enough")
        _write_model(context, previous.result)
        result = {
            **previous.result,
            "page": str(context.folder.path / "report.html"),
            "seconds": round(context.clock(), 2),
        }
        context.folder.write_result(result)
        find_page(Answer(context.folder.path), space=context.space)
        if refused is not None:
            raise refused
        context.tell("answer", result)
    own = context.trainings.space(str(previous.result["taken_from"]))
    return Answer(context.folder.path, space=own if isinstance(own, ModuleSpace | FixedSpace) else None)


def _leg(context: Context, leg: Leg) -> LegResult:
    """One leg; of one that was done before nothing is told again."""
    tell, done = context.tell, f"done {leg.number}"
    if done in context.journal:
        context.tell = silent
    try:
        found = run_leg(leg)
    except TooSmall:
        context.journal.put(f"budget {leg.number}", asdict(NOTHING))
        raise
    finally:
        context.tell = tell
    context.journal.decide(done, lambda: True)
    return found


def _write_model(context: Context, result: Mapping[str, Any]) -> None:
    """The network that the answer says to take, for `predict`."""
    key = str(result["taken_from"])
    space = context.trainings.space(key)
    write_model(
        context.folder.path / "model", trained_model(context.folder.path / result["trained"], context.data, space=space)
    )
