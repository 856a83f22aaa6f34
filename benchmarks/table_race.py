"""Black-box search on NAS-Bench-201's table beside the published figures, and what it costs here.

    python benchmarks/table_race.py --data-folder DATA [--found benchmarks/results/table_runs.json.gz]

races every method 500 times for 12,000 simulated seconds on CIFAR-10 (the protocol is in nasight.tables._racers),
prints Markdown and writes, in --work-folder, race.html. Finished trials in --work-folder are not repeated; the
throughput is that of the trials that were. --found shows what weight-sharing searches found beside them: a result of
search_nasbench201.py.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from _shared import Flags, mean_and_deviation, read_result, save
from nasight.compute import cores
from nasight.report import race_headline, race_page
from nasight.tables import DATASETS, RACERS, Race, RaceStanding, load, race

BEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"


def verdicts(outcome: Race) -> list[dict[str, Any]]:
    """For each published figure: ours, and how many of the published spreads lie between."""
    return [
        {
            "method": s.name,
            "dataset": dataset,
            "published": [mean, spread],
            "here": list(s.test[dataset]),
            "spreads": abs(s.test[dataset][0] - mean) / spread,
        }
        for s in outcome.standings
        for dataset, (mean, spread) in s.published.items()
    ]


def markdown(outcome: Race, facts: dict[str, Any]) -> str:
    names = list(DATASETS.values())
    lines = [
        f"### Black-box search: {race_headline(outcome)}",
        "",
        f"| method | settings | {' | '.join(f'{n} test, %' for n in names)} | trainings | simulated s |",
        "|---|---|---|---|---|---|---|",
    ]
    for s in outcome.standings:
        ends = " | ".join(f"{mean:.2f} ± {spread:.2f}" for mean, spread in s.test.values())
        lines.append(f"| {s.name} | {RACERS[s.name].settings} | {ends} | {s.trainings:.1f} | {s.cost:,.0f} |")
    lines.append(f"| optimum | | {' | '.join(f'{best:.2f}' for best in outcome.optimum.values())} | | |")
    lines += ["", "| method | data set | published | here | published spreads between |", "|---|---|---|---|---|"]
    for v in facts["verdicts"]:
        (a, b), (c, d) = v["published"], v["here"]
        lines.append(
            f"| {v['method']} | {DATASETS[v['dataset']]} | {a:.2f} ± {b:.2f} | {c:.2f} ± {d:.2f} | {v['spreads']:.2f} |"
        )
    lines += [
        "",
        f"{facts['trials_run']} trials in {facts['seconds']:.0f} s on {facts['workers']} workers. Reading the table "
        f"takes {facts['load_seconds']:.2f} s, a query {facts['query_seconds']:.2f} s. Of {facts['cells']:,} cells "
        f"{facts['forms']:,} have distinct forms.",
        "",
    ]
    return "\n".join(lines)


def searched(result: Path) -> list[RaceStanding]:
    """Where weight-sharing searches ended, from a result of search_nasbench201.py."""
    found = []
    for key, row in read_result(result)["results"]["cifar-10"].items():
        method, objective = key.split(" ")
        test = {name: mean_and_deviation(row[f"{name}_test200"]) for name in DATASETS}
        cells = {cell: row["cells"].count(cell) for cell in dict.fromkeys(row["cells"])}
        seconds = float(row["seconds"].split(" ")[0])
        name = f"{method} ({objective}), cifar-10"
        found.append(RaceStanding(name, "run", row["seeds"], test, seconds, None, cells, {}))
    return found


def main() -> None:
    flags = Flags(
        __doc__,
        "table_results",
        seeds=500,
        chance="trials per method",
        data="nasbench201.csv.gz",
        work="races/published",
    )
    flags.add_argument("--methods", default=",".join(RACERS))
    flags.add_argument("--workers", type=int, default=None)
    flags.add_argument("--found", type=Path, metavar="FILE", help="searches to show on the page too")
    given = flags.read(seeds=2, workers=1)
    clock = [time.perf_counter()]
    table = load(folder=given.data_folder)
    clock.append(time.perf_counter())
    table.query(BEST)
    clock.append(time.perf_counter())
    counts: list[int] = []
    outcome = race(
        given.methods.split(","),
        table=table,
        trials=given.seeds,
        out=given.work_folder,
        workers=given.workers,
        progress=lambda done, total: counts.append(done),
    )
    clock.append(time.perf_counter())
    facts = {
        "load_seconds": clock[1] - clock[0],
        "query_seconds": clock[2] - clock[1],
        "seconds": clock[3] - clock[2],
        "trials_run": counts[-1] - counts[0],
        "workers": given.workers or cores(),
        "cells": len(table),
        "forms": len(table.classes),
        "verdicts": verdicts(outcome),
    }
    print(markdown(outcome, facts))
    beside = [] if given.found is None else searched(given.found)
    (given.work_folder / "race.html").write_text(race_page(replace(outcome, standings=[*outcome.standings, *beside])))
    told = outcome.to_dict()
    told["settings"]["source"] = Path(told["settings"]["source"]).name  # where it lay is nobody's concern
    save(given, {"facts": facts, "race": told})


if __name__ == "__main__":
    main()
