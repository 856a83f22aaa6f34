"""What scores without training are worth on NAS-Bench-201, beside the number of parameters and FLOPs.

    python benchmarks/score_nasbench201.py --data-folder DATA

scores random cells on CIFAR-10 images at the size that `nasight score` has by default, one run folder per seed (an
interrupted benchmark resumes), and then looks at DATA/nasbench201.csv.gz. One thing was chosen with that table in
view: the default size has five cells per stage because with one, on 130 cells, the trace ranked them the wrong way
round, and of three sizes with five cells, tried on 60 cells, the best and cheapest was kept. All else was fixed before.

1. rank correlation of every score with test accuracy after 200 epochs, on three data sets, over the first seeds;
2. EigenNAS's Table 2: of a sample keep the k best by a score, pick by validation accuracy after 12 epochs (of the data
   set in question, from the table; --validation val200 for that after 200), and report test accuracy after 200. k = 1
   is the score alone. Over all repeats, each with its own sample, batch and initial weights.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

from _shared import Flags, mean_interval, rank_correlation, save, spread
from nasight.kernels import Scores, best_forms, score
from nasight.tables import DATASETS, Table
from nasight.tables import load as load_table

METRICS = ("eigen", "eigen-min", "knas", "knas-mean", "knas-released", "naswot", "te-nas", "nasi", "params", "flops")
KEPT = (1, 5, 20)


def column(table: Table, scores: Scores, name: str) -> list[float]:
    values = table.column(name)
    return [float(values[table.index(text)]) for text in scores.architectures]


def correlations(
    runs: list[Scores], table: Table, metrics: tuple[str, ...]
) -> dict[str, dict[str, dict[str, list[float | None]]]]:
    """Metric -> data set -> kind -> one number per seed."""
    return {
        metric: {
            d: {
                kind: [rank_correlation(r.goodness(metric), column(table, r, f"{d}_test200"), kind) for r in runs]
                for kind in ("spearman", "kendall")
            }
            for d in DATASETS
        }
        for metric in metrics
    }


def picked(table: Table, cells: list[str], validation: str) -> dict[str, float]:
    """Data set -> test accuracy of the cell that is best by validation accuracy."""
    places = [table.index(cell) for cell in cells]
    found = {}
    for d in DATASETS:
        judged = table.column(f"{d}_{validation}")
        found[d] = float(table.column(f"{d}_test200")[max(places, key=lambda i, judged=judged: float(judged[i]))])
    return found


def selections(
    runs: list[Scores], table: Table, validation: str, metrics: tuple[str, ...]
) -> dict[str, dict[str, list[float]]]:
    """ "metric, k" -> data set -> test accuracy of the cell picked, one number per repeat.

    "random, k" has the first k cells of each sample, which no score has chosen.
    """

    def first(run: Scores, metric: str, k: int) -> list[str]:
        if metric == "random":
            return list(run.architectures[:k])
        return [text for text, _ in best_forms(table.space, run, metric, k)]

    found: dict[str, dict[str, list[float]]] = {}
    for metric in (*metrics, "random"):
        for k in KEPT:
            rows = [picked(table, first(run, metric, k), validation) for run in runs]
            found[f"{metric}, {k}"] = {d: [row[d] for row in rows] for d in DATASETS}
    return found


def less_params(facts: dict[str, Any], metric: str, d: str) -> str:
    """The difference from the number of parameters, seed by seed, with half of its 95 % interval."""
    rows = facts["correlations"]
    if metric == "params" or "params" not in rows or facts["seeds"] < 2:
        return ""
    pairs = zip(rows[metric][d]["spearman"], rows["params"][d]["spearman"], strict=True)
    return "{:+.3f} ± {:.3f}".format(*mean_interval([(a or 0.0) - (b or 0.0) for a, b in pairs]))


def markdown(facts: dict[str, Any]) -> str:
    heads = [*(f"{d}, Spearman" for d in DATASETS.values()), "CIFAR-10, Kendall"]
    heads += [f"{d} less params, 95 %" for d in DATASETS.values()]
    lines = [
        f"### Rank correlation with test accuracy, {facts['sample']} random cells, {facts['seeds']} seeds",
        "",
        f"| score | {' | '.join(heads)} | ms per cell |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for metric, row in facts["correlations"].items():
        cells = [spread([v or 0.0 for v in row[d]["spearman"]], 3) for d in DATASETS]
        cells.append(spread([v or 0.0 for v in row["c10"]["kendall"]], 3))
        cells += [less_params(facts, metric, d) for d in DATASETS]
        lines.append(f"| {metric} | {' | '.join(cells)} | {1e3 * facts['seconds'][metric]:.0f} |")
    lines += [
        "",
        f"### The cell found, of {facts['sample']}: k best by score, then {facts['validation']} "
        f"({facts['repeats']} repeats; test accuracy after 200 epochs, %)",
        "",
        f"| score, k | {' | '.join(DATASETS.values())} |",
        "|---|---|---|---|",
    ]
    for name, row in facts["selections"].items():
        lines.append(f"| {name} | {' | '.join(spread(row[d]) for d in DATASETS)} |")
    best = " | ".join(f"{facts['optimum'][d]:.2f}" for d in DATASETS)
    return "\n".join([*lines, f"| optimum | {best} |", ""])


def main() -> None:
    data = "CIFAR-10 and nasbench201.csv.gz"
    flags = Flags(__doc__, "kernels_scores", seeds=3, chance="seeds of the correlations", data=data, work="runs/scores")
    flags.add_argument("--sample", type=int, default=1000)
    flags.add_argument("--repeats", type=int, default=5, help="of the selections; the first seeds are among them")
    flags.add_argument("--validation", choices=("val12", "val200"), default="val12")
    flags.add_argument("--metrics", default=",".join(METRICS), help="names joined by commas (default: all)")
    flags.add_argument("--workers", type=int, default=None)
    given = flags.read(seeds=1, repeats=1, sample=4, workers=1)
    metrics = tuple(given.metrics.split(","))
    runs = []
    for seed in range(max(given.seeds, given.repeats)):

        def tell(done: int, total: int, seed: int = seed) -> None:
            if done % 160 == 0 or done == total:
                print(f"seed {seed}: {done} of {total} forms", file=sys.stderr, flush=True)

        runs.append(
            score(
                "nasbench201",
                metrics,
                "cifar-10",
                sample=given.sample,
                seed=seed,
                data_folder=given.data_folder,
                workers=given.workers,
                out=given.work_folder / f"seed-{seed}",
                progress=tell,
            )
        )
    table = load_table(folder=given.data_folder)
    facts: dict[str, Any] = {
        "sample": given.sample,
        "seeds": given.seeds,
        "repeats": given.repeats,
        "validation": given.validation,
        "settings": runs[0].settings,
        "correlations": correlations(runs[: given.seeds], table, metrics),
        "selections": selections(runs[: given.repeats], table, given.validation, metrics),
        "seconds": {m: statistics.mean(run.seconds[m] for run in runs) for m in metrics},
        "forms": [run.forms for run in runs],
        "optimum": {d: table.optimum(d) for d in DATASETS},
    }
    text = markdown(facts)
    print(text)
    save(given, facts, table=text)


if __name__ == "__main__":
    main()
