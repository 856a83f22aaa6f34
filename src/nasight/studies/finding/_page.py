"""The page of a find: what each section shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from nasight.data import Units, figure_lines, majority_warning
from nasight.errors import RequestError
from nasight.report import SECTIONS, page
from nasight.report.finding import (
    FIND_SECTIONS,
    FindRaceValues,
    FoundValues,
    FrontPoint,
    FrontValues,
    ProposalsValues,
    ProposerSummary,
    ProposingSearch,
    RacedCandidate,
    RecipeValues,
    RungAgreement,
    TrainedSide,
    TriedRecipe,
    UntriedValues,
    proposer_words,
)
from nasight.spaces import Space
from nasight.studies._deepen import kept
from nasight.studies._report import NAME, write_page
from nasight.studies.finding._again import reproduce_values
from nasight.studies.finding._answer import Answer
from nasight.studies.finding._budget import time_text
from nasight.studies.finding._cost import cost_values
from nasight.studies.finding._plan import rung_text
from nasight.studies.finding._race import Agreement, agreement
from nasight.studies.finding._read import FinishedFind, verdicts
from nasight.studies.finding._work import BOOSTING


def find_page(answer: Answer | str | Path, *, space: Space | None = None, out: str | Path | None = None) -> Path:
    """Write the page of a find, by default FOLDER/report.html, and return where it is.

    Parameters
    ----------
    answer : what `find` returned, or its folder.
    space : the space that was searched, where that is a model of your own or in a file; without it the page does not
        say how many architectures it has.
    out : the file, or a folder that gets report.html.
    """
    answer = answer if isinstance(answer, Answer) else Answer(answer)
    try:
        find = FinishedFind(answer, space)
        sections = [(section, GATHER[name](find)) for name, section in FIND_SECTIONS.items()]
        sections.append((SECTIONS["reproduce"], reproduce_values(find)))
    except RequestError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestError(f"the find in {answer.path} is damaged: {error!r}") from error
    title = f"find on {find.result['data']}: what was found, and what it is worth"
    text = page(sections, title=title, subject=quote(str(find.path)))
    return write_page(text, find.path if out is None else out)


def _answer(find: FinishedFind) -> FoundValues:
    result, base = find.result, find.result["baseline"]
    took = result.get("training_seconds", {})
    by = (result["proposed_by"], *result["also_proposed_by"])
    winner = _side("the winner of the race", result, by, find, took.get("winner"))
    baseline = _side(proposer_words(base["kind"]), base, (base["kind"],), find, took.get("baseline"))
    return FoundValues(
        heading=f"Find: a network for {result['data']}, in {find.where}",
        sentence=result["sentence"],
        better=find.answer.better,
        winner=winner,
        baseline=baseline,
        difference=result["difference"],
        interval=find.answer.interval,
        level=100 * result["level"],
        time=time_text(result["seconds"]),
        budget=find.budget,
        trainings=result["trainings"],
        test_rows=find.judging_rows(test=True),
        design=find.design(result["architecture"]),
        described=find.described(result["architecture"]),
        command=find.answer.command,
        units=Units.of(result),
        figures=figure_lines(result["figures"]) if result.get("figures") else (),
        figures_network=find.answer.figures_network,
        warning=majority_warning(result.get("figures") or {}),
        target=result["target"].get("says"),
        shallow=result.get("shallow"),
        cautions=find.answer.cautions,
    )


def _side(
    name: str, side: Mapping[str, Any], proposed_by: tuple[str, ...], find: FinishedFind, seconds: float | None
) -> TrainedSide:
    # Finds of before kept the epochs of both sides once.
    epochs = None if BOOSTING in proposed_by else side.get("epochs", find.result["epochs"])
    return TrainedSide(
        name=name,
        architecture=side["architecture"],
        accuracies=side["accuracies"],
        parameters=side["parameters"],
        multiply_adds=side.get("multiply_adds"),
        proposed_by=proposed_by,
        taken=side["architecture"] == find.result["take"],
        epochs=epochs,
        seconds=seconds,
    )


def _race(find: FinishedFind) -> FindRaceValues:
    return FindRaceValues(
        rungs=[find.rung_text(rung) for rung in range(len(find.rungs))],
        candidates=find.candidates,
        agreements=[_agreement(find, rung) for rung in range(len(find.rungs) - 1)],
        seed_deviation=find.result["race"]["seed_deviation"],
        whole=find.plan is not None and find.plan.whole,
        judged_rows=find.judging_rows(test=False),
        equal_time=find.equal_time,
        units=Units.of(find.result),
    )


def _agreement(find: FinishedFind, rung: int) -> RungAgreement:
    """That which the race kept, or, of the last two rungs, after which nothing depends on it, a new one."""
    kept_ones = (Agreement(**each) for each in find.result["race"]["agreements"])
    found = next((each for each in kept_ones if each.rung == rung), None)
    if found is None:
        pairs = [(c.accuracies[rung], c.accuracies[rung + 1]) for c in find.candidates]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        found = agreement(rung, [a for a, _ in both], [b for _, b in both])
    before, after = find.rung_text(rung), find.rung_text(rung + 1)
    return RungAgreement(before, after, found.candidates, found.tau, found.p, found.predicts)


def _front(find: FinishedFind) -> FrontValues | None:
    known = {c.architecture: c for c in find.candidates}
    points = [
        FrontPoint(
            number=None if (raced := known.get(p.architecture)) is None else raced.number,
            architecture=p.architecture,
            parameters=p.parameters,
            multiply_adds=p.multiply_adds,
            accuracy=p.accuracy,
            proposed_by=p.proposed_by,
            latency=p.latency,
            epochs=None if raced is not None and find.finished(raced) else p.epochs,
            winner=raced is not None and raced.role == "winner",
            best=p.best,
            best_latency=p.best_latency,
        )
        for p in find.answer.front
    ]
    if not points:
        return None
    there = {point.architecture for point in points}
    controls = [c for c in find.candidates if c.control and c.architecture not in there]
    return FrontValues(
        points=[*points, *(_outside(find, c, c.reached) for c in controls if c.reached is not None)],
        length=_length(find),
        take=f"nasight train {quote(str(find.path))} --max-params {points[0].parameters}",
        units=Units.of(find.result),
    )


def _outside(find: FinishedFind, control: RacedCandidate, rung: int) -> FrontPoint:
    """A control that is no architecture of the space."""
    return FrontPoint(
        number=control.number,
        architecture=control.architecture,
        parameters=control.parameters,
        multiply_adds=control.multiply_adds,
        accuracy=control.accuracies[rung] or 0.0,
        proposed_by=control.proposed_by[0],
        epochs=None if find.finished(control) else find.epochs_of(control, rung),
        outside=True,
    )


def _proposals(find: FinishedFind) -> ProposalsValues:
    names = dict.fromkeys(c.proposed_by[0] for c in find.rivals)
    return ProposalsValues(
        winner=(find.result["proposed_by"], *find.result["also_proposed_by"]),
        proposers=[_proposer(find, name) for name in names],
        searches=_searches(find),
        scored=find.scored,
        units=Units.of(find.result),
    )


def _proposer(find: FinishedFind, name: str) -> ProposerSummary:
    its = [c for c in find.rivals if c.proposed_by[0] == name]
    best = min((c.number for c in its if c.reached is not None), default=None)
    return ProposerSummary(name, len(its), sum(map(find.finished, its)), best)


def _searches(find: FinishedFind) -> list[ProposingSearch]:
    """The searches that have ended; those that ended at a network are numbered as in the race of their leg."""
    found, numbers = list[ProposingSearch](), Counter[int]()
    for folder in find.searches:
        result = kept(folder / "result.json")
        if result is not None:
            leg, label = int(folder.name.partition("-")[0]), "another search"
            if not result["unusable"]:
                numbers[leg] += 1
                label = f"search {numbers[leg]}" + ("" if leg == find.leg else f" of leg {leg + 1}")
            found.append(_search(find, folder, result, label))
    return found


def _search(find: FinishedFind, folder: Path, result: Mapping[str, Any], label: str) -> ProposingSearch:
    name = f"{folder.parent.name}/{folder.name}"
    return ProposingSearch(
        label=label,
        name=name,
        method=result["method"],
        epochs=result["epochs"],
        seconds=result["seconds"],
        architecture=result["architecture"],
        accuracy=result["accuracy"],
        verdicts=verdicts(folder),
        raced=next((c for c in find.candidates if c.architecture == result["architecture"]), None),
        page=f"{name}/{NAME}" if (folder / NAME).is_file() else None,
        explain_command=f"nasight explain {quote(str(folder))}",
    )


def _recipe(find: FinishedFind) -> RecipeValues:
    used, base = find.result["recipe"], find.result["baseline"]
    # Those of an earlier version do not say how long they were.
    short = {} if find.plan is None else {"epochs": find.plan.recipe_epochs}
    rows = find.result["recipes"]
    first = next((row for row in rows if used.items() <= row.items()), None)
    tried = [TriedRecipe(**{**short, **row}, chosen=row is first) for row in rows]
    return RecipeValues(
        chosen=next((r for r in tried if r.chosen), TriedRecipe(**used, accuracy=None, chosen=True)),
        tried=tried,
        batch_size=find.settings["batch_size"],
        images=len(find.answer.folder.about["data"]["inputs"]) == 3,
        units=Units.of(find.result),
        own=[
            TriedRecipe(**row["recipe"], accuracy=row["accuracy"], chosen=row["recipe"] == base.get("recipe"))
            for row in find.result.get("own_rates", [])
        ],
    )


def _untried(find: FinishedFind) -> UntriedValues:
    result, target = find.result, find.result["target"]
    return UntriedValues(
        space=find.where,
        architectures=None if find.space is None else len(find.space),
        searches=len(find.searches),
        scored=find.scored,
        raced=sum(c.trained for c in find.rivals),
        finished=sum(map(find.finished, find.rivals)),
        compared=1 if find.same else 2,
        seeds=len(result["accuracies"]),
        rows=result["rows"],
        examples=result["examples"],
        fewest=min(find.rung_rows) if len(find.rung_rows) > 1 else None,
        judged_rows=find.judging_rows(test=False),
        test_rows=find.judging_rows(test=True),
        size=target.get("decided_at", target)["size"],
        target=None if target["reached"] else target["preset"],
        target_size=target["size"],
        longest=find.longest,
        epochs=result["epochs"],
        max_params=find.settings["max_params"],
        max_latency=find.settings["max_latency"],
        most_products=None if find.plan is None else find.plan.most_products,
    )


def _length(find: FinishedFind) -> str:
    """How long the trainings were that the front tells of, as a sentence."""
    epochs = rung_text(find.rungs[-1], 0, 0)
    if find.equal_time:
        return f"Each network was trained for as long as {epochs} of the reference take."
    return f"Each network was trained for {epochs}."


GATHER: Mapping[str, Callable[[FinishedFind], Any | None]] = {
    "answer": _answer,
    "race": _race,
    "front": _front,
    "proposals": _proposals,
    "recipe": _recipe,
    "untried": _untried,
    "cost": cost_values,
}
"""Section -> what gathers its values."""
