"""Whether the interval of a find holds what further seeds show.

    python benchmarks/find_calibration.py

Twenty finds of a minute on digits, with different seeds. Winner and baseline of each are then trained with 20 further
seeds in the same way, on the same rows. Their mean difference should lie in the 95 % interval of at least 18 of the 20
finds. A find whose winner is its baseline makes no claim: it is counted apart. What is done is kept in
find_calibration_rows.json.gz beside the result, so an interrupted benchmark resumes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from _shared import Flags, KeptRows, save
from nasight.compute import process_pool
from nasight.data import Dataset, load
from nasight.spaces import PlainSpace
from nasight.studies import find, resume_find
from nasight.studies.finding import Answer, Recipe, Request, Trainings, shared

FIRST_SEED = 10_000_000
"""Seeds that no find has."""
QUICK = {"trainings": 26, "epochs": 1}


def found(place: Path, data: Dataset, seed: int, budget: float | None, workers: int) -> Answer:
    """A find that has ended."""
    if (place / "run.json").exists():
        return resume_find(place, data=data)
    how: dict[str, Any] = QUICK if budget is None else {"budget": budget}
    return find(data, space="nasbench201", seed=seed, workers=workers, out=place, **how)


def requests(answer: Answer, side: dict[str, Any], key: str, number: int) -> list[Request]:
    """The trainings that answered, with further seeds, others for every find."""
    result = answer.result
    first = FIRST_SEED + 1_000 * result["seed"]
    size = result["target"]["size"] if key == "space" else {}
    return [
        Request(
            side["architecture"], key, result["epochs"], first + k, Recipe(**result["recipe"]),
            examples=result["examples"], validation="test", size=tuple(sorted(size.items())), batch_size=32,
        )
        for k in range(number)
    ]  # fmt: skip


def further(answer: Answer, data: Dataset, number: int, workers: int) -> dict[str, list[float]]:
    """Accuracies of winner and baseline over further seeds."""
    base = dict(answer.baseline)
    keys = {"winner": "space", "baseline": "plain" if base["kind"] == "plain" else "space"}
    sides = {"winner": answer.result, "baseline": base}
    seen: dict[str, list[float]] = {}
    with shared(data) as mapped, process_pool(workers) as pool:
        work = Trainings({"space": ("nasbench201", {}), "plain": PlainSpace()}, mapped)
        for name, side in sides.items():
            outcomes = list(pool.map(work, requests(answer, side, keys[name], number)))
            seen[name] = [o.accuracy for o in outcomes if o is not None]
    return seen


def one(place: Path, data: Dataset, seed: int, budget: float | None, number: int, workers: int) -> dict[str, Any]:
    """A find, and what further seeds say of its difference."""
    answer = found(place / "find", data, seed, budget, workers)
    low, high = answer.interval
    row: dict[str, Any] = {
        "seed": seed, "difference": answer.result["difference"], "interval": [low, high], "better": answer.better,
        "same": answer.architecture == answer.baseline["architecture"], "epochs": answer.result["epochs"],
    }  # fmt: skip
    if not row["same"]:
        seen = further(answer, data, number, workers)
        row.update(seen)
        row["shown"] = fmean(seen["winner"]) - fmean(seen["baseline"])
        row["held"] = low <= row["shown"] <= high
    return row


def main() -> None:
    flags = Flags(__doc__, "find_calibration", seeds=20, chance="finds", work="runs/find-calibration")
    flags.add_argument("--further", type=int, default=20, help="further seeds of each side (default 20)")
    flags.add_argument("--budget", type=float, default=60.0, help="seconds of a find (default 60)")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(seeds=1, further=2, budget=None, workers=1)
    data, rows = load("digits"), []
    kept = KeptRows(given.out.with_name("find_calibration_rows.json.gz"))
    for seed in range(given.seeds):
        name = f"{given.budget}-{given.further}-{seed}"
        if name not in kept.rows:
            place = given.work_folder / name
            kept.put(name, one(place, data, seed, given.budget, given.further, given.workers))
        row = kept.rows[name]
        rows.append(row)
        print(
            json.dumps({k: v for k, v in row.items() if k not in ("winner", "baseline")}), file=sys.stderr, flush=True
        )
    apart = [row for row in rows if not row["same"]]
    held = sum(row["held"] for row in apart)
    lines = [
        "| finds | winner is the baseline | intervals | hold what others show | called better | of them not better |",
        "|---|---|---|---|---|---|",
        f"| {len(rows)} | {len(rows) - len(apart)} | {len(apart)} | {held} | {sum(bool(r['better']) for r in apart)} |"
        f" {sum(bool(r['better']) and r['shown'] <= 0 for r in apart)} |",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    save(given, {"budget": given.budget, "further": given.further, "rows": rows}, table=text)


if __name__ == "__main__":
    main()
