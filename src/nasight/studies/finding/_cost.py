"""What the stages of a find cost, as its page shows it."""

from __future__ import annotations

from nasight.report.finding import CostValues, Stage
from nasight.studies.finding._budget import time_text
from nasight.studies.finding._plan import Plan
from nasight.studies.finding._read import FinishedFind
from nasight.studies.finding._used import STAGES, used_seconds


def cost_values(find: FinishedFind) -> CostValues | None:
    """What was done in each stage, and how long that took; None where no plan was kept."""
    plan = find.plan
    if plan is None:
        return None
    used = used_seconds(find.journal.path, find.leg, _tuned(find))
    names, work = {"recipe": "start and recipe", "propose": "proposals"}, _work(find, plan)
    stages = [
        Stage(names.get(stage, stage), work[stage], _time(plan.seconds.get(stage)), _time(used.get(stage)))
        for stage in STAGES
    ]
    return CostValues(
        stages, time_text(find.result["seconds"]), find.budget, find.settings["workers"], find.result["legs"]
    )


def _work(find: FinishedFind, plan: Plan) -> dict[str, str]:
    """What was done in each stage, and where that is not so, what was planned."""
    result, recipes = find.result, _tuned(find)
    trained = [sum(c.accuracies[rung] is not None for c in find.rivals) for rung in range(len(find.rungs))]
    rungs = [
        f"{_of(trained[rung], places) if rung < len(trained) else places} candidates for {find.rung_text(rung)}"
        for rung, places in enumerate(plan.places)
    ]
    run, missed = ", ".join(rungs[: len(trained)]), ", ".join(rungs[len(trained) :])
    sides = "the baseline" if find.same else "winner and baseline"
    answered = f"{_of(result['epochs'], plan.epochs)} epochs"
    if find.equal_time:
        epochs = result["baseline"]["epochs"]
        both = "" if find.same or epochs is None else f" and {epochs}"
        answered = f"{result['epochs']}{both} epochs (planned: {plan.epochs} of the reference)"
    return {
        "recipe": f"{recipes} trainings of {_lengths(find, plan)} epochs" if recipes else "kept from an earlier leg",
        "propose": f"{plan.searches} searches of {plan.search_text}, {plan.scored} architectures scored",
        "race": f"{run}, with {len(find.candidates) - len(find.rivals)} controls"
        + (f"; planned and not reached: {missed}" if missed else ""),
        "answer": f"{sides}, {len(result['accuracies'])} seeds of {answered}",
    }


def _lengths(find: FinishedFind, plan: Plan) -> str:
    """The epochs of the trainings by which the recipe was chosen.

    Those of an earlier version do not say them.
    """
    return " or ".join(map(str, sorted({row.get("epochs", plan.recipe_epochs) for row in find.result["recipes"]})))


def _tuned(find: FinishedFind) -> int:
    """Trainings by which the recipe of this leg was chosen."""
    recipes = find.result["recipes"]
    return len(recipes) + (len(find.result.get("own_rates", [])) if recipes else 0)


def _of(done: int, planned: int) -> str:
    return str(done) if done == planned else f"{done} (planned: {planned})"


def _time(seconds: float | None) -> str:
    return "" if seconds is None else time_text(seconds)
