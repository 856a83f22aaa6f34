"""Whether the interval of a find holds what further seeds show.

    python benchmarks/find_calibration.py

Twenty finds of a minute on digits, with different seeds, in the space of plain networks (--space names another).
Winner and baseline of each are then trained with 20 further seeds in the same way, on the same rows. Their mean
difference should lie in the 95 % interval of at least 18 of the 20 finds. A find whose winner is its baseline makes no
claim: it is counted apart.

The same test rows judge the further seeds. These show how seeds vary, and not how rows do, while the interval of a find
allows for both, so it should hold more often than 95 times in 100. So there are two further counts. Welch's interval
of the paired differences of a find less those of the further seeds allows for what varies there, and no more: it should
hold zero 95 times in 100. (Accuracies are multiples of one row of 360. Where all seeds of a find show the same
difference, its variance says nothing; such finds are counted apart.) And the test rows are cut in two halves at
random: the seeds of the find are judged by one, the further seeds by the other. An interval of the difference of the
two, from the variances that a find takes, should hold zero at least 95 times in 100; rather more, since both halves
have rows added (Agresti and Min).

Winner and baseline have the same seeds, and the interval pairs them. What it gains by that depends on how far the same
seed moves both in the same direction: the correlation of their accuracies over the further seeds.

All finds run first, and for these nothing else may run on the machine: seconds count. The further trainings have the
epochs that the finds had, so other work beside them changes nothing but the time that they take.

What is done is kept in find_calibration_rows.json.gz beside the result, so an interrupted benchmark resumes.
"""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from statistics import correlation as pearson
from statistics import fmean, pstdev, variance
from typing import Any

import torch
from scipy.stats import t

from _shared import Flags, KeptRows, code_digest, mean_interval, save, states, without_folders
from nasight.compute import process_pool
from nasight.data import Dataset, load
from nasight.reproducible import generator_for
from nasight.spaces import PlainSpace
from nasight.spaces import load as load_space
from nasight.studies import find
from nasight.studies.finding import (
    Outcome,
    Recipe,
    Request,
    Trainings,
    answer_seeds,
    difference,
    kept_outcomes,
    outcome_from_json,
    outcome_to_json,
    shared,
    variances,
)

FIRST_SEED = 10_000_000
"""Seeds that no find has."""
QUICK = {"trainings": 26, "epochs": 1}
SPACE = "convnet"
UNNAMED = "nasbench201"
"""The space whose rows have no name of it: they were the first."""
LONG = ("result", "outcomes")
"""What is kept of a find for its further trainings, and is in no result."""
Sides = dict[str, list[Outcome]]


def requests(result: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, list[Request]]:
    """The trainings that answered, of both sides, with these seeds."""
    base = result["baseline"]
    key = "plain" if base["kind"] == "plain" else "space"
    asked = {}
    for name, side, space in (("winner", result, "space"), ("baseline", base, key)):
        size = result["target"]["size"] if space == "space" else {}
        epochs = side.get("epochs", result["epochs"])
        asked[name] = [
            Request(
                "plain" if space == "plain" else side["architecture"], space, epochs, seed,
                Recipe(**result["recipe"]), examples=result["examples"], validation="test",
                size=tuple(sorted(size.items())), batch_size=32,
            )
            for seed in seeds
        ]  # fmt: skip
    return asked


def further(result: Mapping[str, Any], data: Dataset, number: int, workers: int) -> Sides:
    """Outcomes of winner and baseline over further seeds, others for every find."""
    first = FIRST_SEED + 1_000 * result["seed"]
    seen: Sides = {}
    with shared(data) as mapped, process_pool(workers) as pool:
        work = Trainings({"space": load_space(result["space"]), "plain": PlainSpace()}, mapped)
        for name, asked in requests(result, range(first, first + number)).items():
            seen[name] = list(pool.map(work, asked))
    # A seed that diverged on one side counts on neither.
    both = [all(o is not None for o in pair) for pair in zip(*seen.values(), strict=True)]
    return {name: list(compress(outcomes, both)) for name, outcomes in seen.items()}


def found(place: Path, data: Dataset, given: Namespace, seed: int) -> dict[str, Any]:
    """A find: all that is asked of it later."""
    how, code = QUICK if given.budget is None else {"budget": given.budget}, code_digest()
    where: dict[str, Any] = {"out": place / "find", "overwrite": True}
    answer = find(data, space=given.space, seed=seed, workers=given.workers, **where, **how)
    result = answer.result
    asked = requests(result, answer_seeds(seed, number=len(result["accuracies"])))
    mine = {name: kept_outcomes(answer.path, [r.key() for r in of]) for name, of in asked.items()}
    return {
        "seed": seed, "difference": result["difference"], "interval": list(answer.interval), "better": answer.better,
        "same": answer.architecture == answer.baseline["architecture"], "epochs": result["epochs"],
        "winner": result["architecture"], "baseline": result["baseline"]["architecture"],
        "accuracies": [result["accuracies"], result["baseline"]["accuracies"]], "seconds": result["seconds"],
        "workers": given.workers, "code": code, "result": without_folders(result),
        "outcomes": {name: list(map(outcome_to_json, outcomes)) for name, outcomes in mine.items()},
    }  # fmt: skip


def judged(row: dict[str, Any], data: Dataset, given: Namespace) -> dict[str, Any]:
    """What further seeds say of the difference that a find came to."""
    mine = {name: [o for o in map(outcome_from_json, of) if o is not None] for name, of in row["outcomes"].items()}
    more = further(row["result"], data, given.further, given.workers)
    shown = fmean(o.accuracy for o in more["winner"]) - fmean(o.accuracy for o in more["baseline"])
    # As it is taken now, whatever the version was that made the find.
    now = difference(mine["winner"], mine["baseline"]).within(100.0)
    told = {
        "shown": shown,
        "interval": [now.low, now.high],
        "better": now.better,
        "held": now.low <= shown <= now.high,
        "further": {name: [o.accuracy for o in outcomes] for name, outcomes in more.items()},
    }
    return row | told | {"halves agree": halves_agree(mine, more, row["seed"])}


def by_seeds(row: dict[str, Any]) -> bool | None:
    """Whether Welch's interval of the pairs of a find less the further ones holds zero; None: its pairs are alike."""
    further = row["further"]["winner"], row["further"]["baseline"]
    mine, more = ([a - b for a, b in zip(*sides, strict=True)] for sides in (row["accuracies"], further))
    if variance(mine) < 1e-6:
        return None
    parts = [(variance(pairs) / len(pairs), len(pairs) - 1) for pairs in (mine, more)]
    return _holds(fmean(mine) - fmean(more), parts)


def correlation(row: dict[str, Any]) -> float | None:
    """Of the accuracies of winner and baseline over the further seeds; None: one of them is always the same."""
    winner, baseline = row["further"]["winner"], row["further"]["baseline"]
    return None if min(pstdev(winner), pstdev(baseline)) < 1e-9 else pearson(winner, baseline)


def _holds(apart: float, parts: Sequence[tuple[float, int]]) -> bool:
    """Whether the 95 % interval of a difference, from the variances of its parts, holds zero."""
    total = sum(v for v, _ in parts)
    if total == 0:
        return apart == 0
    freedom = total**2 / sum(v**2 / k for v, k in parts)
    return abs(apart) <= float(t.ppf(0.975, freedom)) * math.sqrt(total)


def halves_agree(mine: Sides, more: Sides, seed: int) -> bool:
    """Whether the seeds of a find on one half of the test rows and the further seeds on the other agree at 95 %."""
    rows = len(mine["winner"][0].right)  # type: ignore[arg-type]
    order = torch.randperm(rows, generator=generator_for(seed, "halves")).numpy()
    means, parts = list[float](), list[tuple[float, int]]()
    for sides, chosen in ((mine, order[: rows // 2]), (more, order[rows // 2 :])):
        cut = [_on(sides[name], chosen) for name in ("winner", "baseline")]
        means.append(difference(*cut).mean)
        parts += variances(*cut)
    return _holds(means[0] - means[1], parts)


def _on(outcomes: Sequence[Outcome], rows: Any) -> list[Outcome]:
    """The outcomes, judged by some of the rows."""
    cut = []
    for outcome in outcomes:
        assert outcome.right is not None
        right = outcome.right[rows]
        cut.append(replace(outcome, accuracy=100 * float(right.mean()), right=right))
    return cut


def table(rows: Sequence[dict[str, Any]]) -> str:
    apart = [row for row in rows if not row["same"]]
    better, by = [row for row in apart if row["better"]], [by_seeds(row) for row in apart]
    lines = [
        "| finds | winner is the baseline | intervals | hold what further seeds show | seeds agree |"
        " halves of the rows agree | called better | of them not better | correlation of the same seeds (95 %) |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| {len(rows)} | {len(rows) - len(apart)} | {len(apart)} | {sum(row['held'] for row in apart)} |"
        f" {by.count(True)} of {len(by) - by.count(None)} | {sum(row['halves agree'] for row in apart)} |"
        f" {len(better)} | {sum(row['shown'] <= 0 for row in better)} | {_correlations(apart)} |",
    ]
    return "\n".join(lines) + "\n" + states(row["code"] for row in rows)


def _correlations(rows: Sequence[dict[str, Any]]) -> str:
    known = [value for row in rows if (value := correlation(row)) is not None]
    if len(known) < 2:
        return ""
    mean, half = mean_interval(known)
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


def main() -> None:
    flags = Flags(__doc__, "find_calibration_{space}", seeds=20, chance="finds", work="runs/find-calibration")
    flags.add_argument("--space", default=SPACE, help=f"the space that is searched (default {SPACE})")
    flags.add_argument("--further", type=int, default=20, help="further seeds of each side (default 20)")
    flags.add_argument("--budget", type=float, default=60.0, help="seconds of a find (default 60)")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(seeds=1, further=2, budget=None, workers=1)
    if given.further < 2:
        flags.error("--further must be at least 2")
    data, rows = load("digits"), []
    kept = KeptRows(given.out.with_name("find_calibration_rows.json.gz"))
    named = "" if given.space == UNNAMED else f"{given.space}-"
    names = [f"{named}{given.budget}-{given.further}-{given.workers}-{seed}" for seed in range(given.seeds)]
    for seed, name in enumerate(names):
        if name not in kept.rows:
            kept.put(name, found(given.work_folder / name, data, given, seed))
            print(_line(kept.rows[name]), file=sys.stderr, flush=True)
    for name in names:
        row = kept.rows[name]
        if not row["same"] and "shown" not in row:
            kept.put(name, judged(row, data, given))
        rows.append({key: value for key, value in kept.rows[name].items() if key not in LONG})
        print(_line(rows[-1]), file=sys.stderr, flush=True)
    text = table(rows)
    print(text)
    save(given, {"budget": given.budget, "further": given.further, "rows": rows}, table=text)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in row.items() if key not in (*LONG, "further")})


if __name__ == "__main__":
    main()
