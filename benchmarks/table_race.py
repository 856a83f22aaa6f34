"""Black-box search on NAS-Bench-201's table beside the published figures, and what it costs here.

    python benchmarks/table_race.py --data-folder DATA --out races/published --report docs/table_results

races every method 500 times for 12,000 simulated seconds on CIFAR-10 (the protocol is in nasight.tables._methods),
prints Markdown and writes REPORT.md, REPORT.json and, in --out, race.html. Finished trials in --out are not repeated;
the throughput is that of the trials that were.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from nasight.parallel import cores
from nasight.report._race import headline, race_page
from nasight.tables import DATASETS, METHODS, Race, load, race

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
        f"### Black-box search: {headline(outcome)}",
        "",
        f"| method | settings | {' | '.join(f'{n} test, %' for n in names)} | trainings | simulated s |",
        "|---|---|---|---|---|---|---|",
    ]
    for s in outcome.standings:
        ends = " | ".join(f"{mean:.2f} ± {spread:.2f}" for mean, spread in s.test.values())
        lines.append(f"| {s.name} | {METHODS[s.name].settings} | {ends} | {s.trainings:.1f} | {s.cost:,.0f} |")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", required=True)
    parser.add_argument("--out", default="races/published")
    parser.add_argument("--report", default=None, help="write REPORT.md and REPORT.json")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    clock = [time.perf_counter()]
    table = load(folder=given.data_folder)
    clock.append(time.perf_counter())
    table.query(BEST)
    clock.append(time.perf_counter())
    counts: list[int] = []
    outcome = race(
        given.methods.split(","),
        table=table,
        trials=given.trials,
        out=given.out,
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
    text = markdown(outcome, facts)
    print(text)
    (Path(given.out) / "race.html").write_text(race_page(outcome))
    if given.report:
        Path(f"{given.report}.md").write_text(text)
        Path(f"{given.report}.json").write_text(
            json.dumps({"facts": facts, "race": outcome.to_dict()}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
