"""When may a user believe the arg max? Theorems on random problems, verdicts against the truth, and collapses.

    python benchmarks/trust.py --data-folder DATA

theorems      Theorem 1 on 10,000 random two-activation problems, Theorem 7 at h = 3 to 8, and the proposition without
              realizability at several sizes of noise. Two-layer networks with random weights and common activations.
nasbench201   verdicts on the searches of search_nasbench201.py (made here where they are not in --work-folder yet),
              against two truths: the loss of every one-decision change on the test part, under the shared weights, and
              the accuracy of the same changes in DATA/nasbench201.csv.gz. Nothing is set on these runs; where more is
              asked for, a least margin is set on even seeds and reported on odd ones.
ranking       how well the architecture weights and the shared weights of the same searches rank 100 random cells,
              against the table, beside the number of parameters and a score without training.
collapse      DARTS where the shared weights overfit few images: when a drift to skips is flagged, when it is complete.

Every item is kept in --work-folder as it arrives and not computed again. Writes a result and a table, which get the
parts that were run now and keep the others; --parts theorems needs no data.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from _shared import Flags, kept, parts_so_far, save, search_or_resume, shrunk, spread
from nasight import explain, rank, trust
from nasight.data import batches, load, prepare, split_indices
from nasight.reproducible import generator_for
from nasight.searching import METHODS as TABLE
from nasight.searching import Run
from search_nasbench201 import PROXIES, Item, accuracies, find, read_table

SEARCHED = (
    ("darts", "erm-joint"),
    ("gaea-darts", "erm-joint"),
    ("gaea-darts", "erm"),
    ("darts", "bilevel"),
    ("gaea-darts", "bilevel"),
    ("rs-ws", "weights"),
    ("gdas", "bilevel"),
    ("gdas-drawn", "bilevel"),
    ("gdas-straight", "bilevel"),
    ("gaea-gdas", "bilevel"),
    ("pc-darts", "bilevel"),
    ("gaea-pc-darts", "erm"),
)
"""Methods and objectives whose searches are judged."""
PARTS = ("theorems", "nasbench201", "ranking", "collapse")
BLOCK = 500
LEVEL = 0.95
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
ACTIVATIONS = (
    lambda z: np.maximum(z, 0),
    np.tanh,
    lambda z: 1 / (1 + np.exp(-z)) - 0.5,
    lambda z: z / (1 + np.exp(-z)),
    lambda z: np.where(z > 0, z, 0.1 * z),
    np.sin,
    lambda z: np.log1p(np.exp(z)),
    np.abs,
)
NOISE = (0.0, 0.1, 0.3, 1.0)
"""Deviation of the residual as a share of that of the mixture."""
# Few images, no augmentation, a late architecture: the shared weights overfit, and operations without weights win.
COLLAPSING: dict[str, Any] = {
    "space": "nasbench201",
    "method": "darts",
    "objective": "bilevel",
    "data": "cifar-10",
    "size": {"channels": 4, "cells": 3},
    "examples": 300,
    "resolution": 8,
    "epochs": 60,
    "schedule_epochs": 60,
    "warmup": 20,
    "arch_lr": 0.01,
    "batch_size": 32,
    "augment": False,
    "threads": 1,
}
QUICK = {"examples": 200, "epochs": 4, "schedule_epochs": 4, "warmup": 1, "size": {"channels": 2, "cells": 1}}
NoiseItem = tuple[str, int, float, int]  # what, h, noise, block


# Part: theorems


def problem(rng: np.random.Generator, h: int, noise: float) -> tuple[Any, Any, Any]:
    """Outputs of h activations between two random matrices, uniform weights on the simplex, targets."""
    x, w, v = rng.normal(size=(200, 8)), rng.normal(size=(8, 16)) * rng.uniform(0.2, 1), rng.normal(size=16) / 4
    kinds = rng.choice(len(ACTIVATIONS), size=h, replace=False)
    f = np.stack([ACTIVATIONS[k](x @ w) @ v for k in kinds])
    alpha = rng.dirichlet(np.ones(h))
    mixture = alpha @ f
    return f, alpha, mixture + noise * mixture.std() * rng.normal(size=len(mixture))


def theorem_block(item: NoiseItem) -> dict[str, int]:
    """Counts over a block of problems."""
    _, h, noise, block = item
    rng = np.random.default_rng([h, block, round(100 * noise)])
    keys = ("problems", "pairs", "proved", "proved_wrong", "unproved_right")
    argmax = ("argmax_right", "best_proved", "best_proved_right", "best_unproved_right")
    count = dict.fromkeys((*keys, *argmax), 0)
    for _ in range(BLOCK):
        f, alpha, y = problem(rng, h, noise)
        found = trust.without_realizability(f, alpha, y, resamples=1) if noise else trust.check(f, alpha, y)
        ordered = found.losses[:, None] < found.losses[None, :]
        right = alpha[:, None] > alpha[None, :]
        best, proved = int(found.losses.argmin()), found.concludes & ordered
        sure = all(proved[best, j] for j in range(h) if j != best)
        hit = best == int(alpha.argmax())
        count["problems"] += 1
        count["pairs"] += int(ordered.sum())
        count["proved"] += int(proved.sum())
        count["proved_wrong"] += int((proved & ~right).sum())
        count["unproved_right"] += int((ordered & ~proved & right).sum())
        count["argmax_right"] += hit
        count["best_proved"] += sure
        count["best_proved_right"] += sure and hit
        count["best_unproved_right"] += hit and not sure
    return count


def theorems(given: argparse.Namespace) -> tuple[str, Any]:
    first, later = (1, 1) if given.quick else (20, 4)
    items: list[NoiseItem] = [("theorem", 2, 0.0, b) for b in range(first)]
    items += [("theorem", h, 0.0, b) for h in range(3, 9) for b in range(later)]
    items += [("proposition", h, noise, b) for h in (3, 5) for noise in NOISE[1:] for b in range(later)]
    found = kept(given.work_folder / "theorems.json", items, theorem_block, workers=given.workers)
    rows: dict[tuple[str, int, float], dict[str, int]] = {}
    for item, counts in zip(items, found, strict=True):
        total = rows.setdefault(item[:3], dict.fromkeys(counts, 0))
        for key, value in counts.items():
            total[key] += value
    lines = [
        "| | h | noise | problems | pairs with L_i < L_j | proved, % | of these wrong |"
        " order right where not proved, % |"
        " arg max right, % | arg max proved right, % | arg max right where not proved, % |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (what, h, noise), c in rows.items():
        name = {2: "Theorem 1", 3: "Theorem 4"}.get(h, "Theorem 7") if what == "theorem" else "Proposition"
        rest, open_ = c["pairs"] - c["proved"], c["problems"] - c["best_proved"]
        lines.append(
            f"| {name} | {h} | {noise:g} | {c['problems']:,} | {c['pairs']:,} | {share(c['proved'], c['pairs'])} |"
            f" {c['proved_wrong']} | {share(c['unproved_right'], rest)} | {share(c['argmax_right'], c['problems'])} |"
            f" {share(c['best_proved'], c['problems'])} | {share(c['best_unproved_right'], open_)} |"
        )
    return "\n".join(lines), [{"what": w, "h": h, "noise": n, **c} for (w, h, n), c in rows.items()]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


# Part: nasbench201

EVIDENCE = ("name", "choice", "examples", "local_examples", "alternatives")
TOLERANCE = 0.5
SHARED = "best on the test part, shared weights"
STAND_ALONE = "best in the table, stand-alone"
CLOSE = f"in the table within {TOLERANCE:g} points of the best"


def held_out(run: Run, folder: str | None, number: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Images of the test part as the run would see them; no verdict uses them."""
    s = run.settings
    small, halves = shrunk(load(s.data, folder=folder), s.resolution), TABLE[s.method].objective(s.objective).halves
    total = min(s.examples or len(small.train_y), len(small.train_y))
    kept_out = round(s.validation * total)
    parts = [(total - kept_out + 1) // 2, (total - kept_out) // 2] if halves else [total - kept_out]
    *rows, _ = split_indices(small.train_y, [*parts, kept_out], generator_for(s.seed, "split"))
    prepared = prepare(small, torch.cat(rows))
    assert small.test_x is not None
    assert small.test_y is not None
    order = torch.randperm(len(small.test_y), generator=generator_for(s.seed, "held out"))[:number]
    return list(batches(small.test_x[order], small.test_y[order], size=250, mean=prepared.mean, std=prepared.std))


def judged(item: Item, number: int) -> list[dict[str, Any]]:
    """A run's decisions: what `explain` measures of them, and the same on the test part."""
    run = Run(find(item))
    folder = item[5]
    found = explain(run, data_folder=folder, level=LEVEL)
    test = trust.measure(
        run.supernet(), run.space, run.architecture, run.weights, held_out(run, folder, number), local=0
    )
    by_name = {each.name: [vars(a) for a in each.alternatives] for each in test}
    rows = []
    for d in found.decisions:
        truth = {a["option"]: a["loss"] for a in by_name[d["name"]]}
        rows.append(
            {
                **{key: d[key] for key in EVIDENCE},
                "method": f"{item[0]} {item[1]}",
                "data": item[2],
                "seed": item[3],
                "test_losses": truth,
                "architecture": found.about["architecture"],
            }
        )
    return rows


def searches(given: argparse.Namespace) -> list[Item]:
    return [
        (method, objective, data, seed, str(given.work_folder / "searches"), given.data_folder, given.proxy)
        for seed in range(given.seeds)
        for method, objective in (SEARCHED[:2] if given.quick else SEARCHED)
        for data in given.data.split(",")
    ]


def nasbench201(given: argparse.Namespace) -> tuple[str, Any]:
    number = 500 if given.quick else 10_000
    path, work = given.work_folder / f"decisions-{number}.json", partial(judged, number=number)
    rows = [row for rows in kept(path, searches(given), work, workers=given.workers) for row in rows]
    table = read_table(given.data_folder)
    for row in rows:
        row["right"] = {SHARED: min(row["test_losses"].values()) > 0}
        if row["data"] == "cifar-10" and table:
            cells = [row["architecture"], *(a["architecture"] for a in row["alternatives"])]
            own, *others = accuracies(table, cells)["c10_test200"]
            behind = max(others) - own
            row["right"] |= {STAND_ALONE: behind <= 0, CLOSE: behind <= TOLERANCE}
    report = []
    lines = [
        "| truth | runs | least margin | decisions | right, % | safe | of these right, % (95 % interval) |"
        " recall, % | unsafe | of these wrong, % |",
        "|---" * 10 + "|",
    ]
    for truth in (SHARED, STAND_ALONE, CLOSE):
        known = [row for row in rows if truth in row["right"]]
        setting, shown = ([r for r in known if r["seed"] % 2 == k] for k in (0, 1))
        fitted = least_margin(setting, truth)
        parts = [("all", 0.0, known)]
        # A margin of 0 is what all runs have anyway; none at all is a finding.
        if fitted != 0:
            parts.append(("odd seeds", fitted, shown))
        for which, least, of in parts:
            if least is None:
                lines.append(f"| {truth} | {which} | none reaches {100 * LEVEL:g} % on even seeds | | | | | | | |")
                continue
            c = counts(of, truth, least)
            report.append({"truth": truth, "runs": which, "least": least, **c})
            lines.append(f"| {truth} | {which} | {least:.3g} | {_counted(c)} |")
    lines += ["", "Under the shared weights, by the level that is asked for:", ""]
    lines += ["| level | safe | of these right, % (95 % interval) | recall, % | unsafe | of these wrong, % |"]
    lines += ["|---" * 6 + "|"]
    for level in LEVELS:
        c = counts(rows, SHARED, 0.0, level)
        report.append({"truth": SHARED, "runs": "all", "level": level, **c})
        lines.append(f"| {100 * level:g} % | {' | '.join(_counted(c).split(' | ')[2:])} |")
    lines += ["", "By method at 95 %, under the shared weights and in the table:", ""]
    lines += [
        "| method | decisions | right, % | safe | of these right | unsafe | of these wrong | right in the table, % |"
    ]
    lines += ["|---" * 8 + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        of = [row for row in rows if row["method"] == method]
        c, known = counts(of, SHARED, 0.0), [row["right"][STAND_ALONE] for row in of if STAND_ALONE in row["right"]]
        report.append({"truth": SHARED, "method": method, **c, "table": [sum(known), len(known)]})
        lines.append(
            f"| {method} | {c['decisions']} | {share(c['right'], c['decisions'])} | {c['safe']} | {c['safe_right']} |"
            f" {c['unsafe']} | {c['unsafe_wrong']} | {share(sum(known), len(known))} |"
        )
    agreed = seeds_agree(rows)
    lines += ["", agreed[0]]
    return "\n".join(lines), {"report": report, "seeds": agreed[1]}


def _counted(c: dict[str, int]) -> str:
    """Decisions, right; safe, right of these with an interval, recall; unsafe, wrong of these."""
    low, high = wilson(c["safe_right"], c["safe"])
    said = f"{share(c['safe_right'], c['safe'])} ({100 * low:.1f} to {100 * high:.1f})"
    return (
        f"{c['decisions']} | {share(c['right'], c['decisions'])} | {c['safe']} | {said} |"
        f" {share(c['safe_right'], c['right'])} | {c['unsafe']} | {share(c['unsafe_wrong'], c['unsafe'])}"
    )


def verdict(row: dict[str, Any], least: float, level: float) -> str:
    return trust.judge(trust.Evidence.from_dict({k: row[k] for k in EVIDENCE}), level=level, least=least).verdict


def counts(rows: list[dict[str, Any]], truth: str, least: float, level: float = LEVEL) -> dict[str, int]:
    said = [(verdict(row, least, level), bool(row["right"][truth])) for row in rows]
    return {
        "decisions": len(said),
        "right": sum(right for _, right in said),
        "safe": sum(v == "safe" for v, _ in said),
        "safe_right": sum(v == "safe" and right for v, right in said),
        "unsafe": sum(v == "unsafe" for v, _ in said),
        "unsafe_wrong": sum(v == "unsafe" and not right for v, right in said),
    }


def least_margin(rows: list[dict[str, Any]], truth: str) -> float | None:
    """The least margin at which enough of these safe decisions are right; None where no margin does it."""
    margins = sorted({0.0, *(min(a["loss"] for a in row["alternatives"]) for row in rows)})
    for least in (m for m in margins if m >= 0):
        c = counts(rows, truth, least)
        if c["safe"] >= 5 and c["safe_right"] >= LEVEL * c["safe"]:
            return least
    return None


def seeds_agree(rows: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """How often a choice is right in the table when all seeds of a method make it, and when they do not."""
    truth, groups = STAND_ALONE, dict[tuple[str, str], list[dict[str, Any]]]()
    for row in rows:
        if truth in row["right"]:
            groups.setdefault((row["method"], row["name"]), []).append(row)
    found = []
    for agree in (True, False):
        of = [r for rs in groups.values() if (len({r["choice"] for r in rs}) == 1) is agree for r in rs]
        found.append({"agree": agree, "choices": len(of), "right": sum(r["right"][truth] for r in of)})
    said = [f"{share(f['right'], f['choices'])} % of {f['choices']}" for f in found]
    return f"Right in the table: where all seeds agree {said[0]} choices, where they do not {said[1]}.", found


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    if not total:
        return 0.0, 1.0
    p, d = right / total, 1 + z * z / total
    center, half = (p + z * z / (2 * total)) / d, z * (p * (1 - p) / total + (z / (2 * total)) ** 2) ** 0.5 / d
    return center - half, center + half


# Part: ranking


def ranked(item: Item, sample: int) -> dict[str, Any]:
    scores = ("naswot",) if item[3] == 0 and item[:2] == SEARCHED[0] else ()  # the same for all: once will do
    found = rank(find(item), sample=sample, table="nasbench201", metrics=scores, data_folder=item[5])
    shown = ("kendall", "kendall_interval", "spearman", "spearman_interval", "regret", "top", "says")
    predictors = found.to_dict()["predictors"]
    return {
        "method": f"{item[0]} {item[1]}",
        "seed": item[3],
        "predictors": {name: {k: value[k] for k in shown} for name, value in predictors.items()},
    }


def ranking(given: argparse.Namespace) -> tuple[str, Any]:
    items = [item for item in searches(given) if item[2] == "cifar-10"]
    sample = 5 if given.quick else 100
    path, work = given.work_folder / f"ranking-{sample}.json", partial(ranked, sample=sample)
    rows = kept(path, items, work, workers=given.workers)
    lines = [
        "| search | predictor | seeds | Kendall | Spearman | its first of the sample is behind by, points |"
        " better than chance in |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        for name, found in row["predictors"].items():
            same = name in ("parameters", "naswot")  # no search changes them: one row
            if not same or row is rows[0]:
                groups.setdefault(("any" if same else row["method"], name), []).append(found)
    for (method, name), of in groups.items():
        known = [f for f in of if f["kendall"] is not None]  # random search has no weights that order anything
        cells = [spread([f[k] for f in known]) if known else "-" for k in ("kendall", "spearman", "regret")]
        better = sum(f["says"] == "better than chance" for f in of)
        lines.append(f"| {method} | {name} | {len(of)} | {' | '.join(cells)} | {better} of {len(of)} |")
    return "\n".join(lines), rows


# Part: collapse


def collapsed(
    seed: int, method: str, settings: dict[str, Any], folder: Path, data_folder: str | None
) -> dict[str, Any]:
    # The rate of one geometry means nothing in another: GAEA has its own.
    rate = settings["arch_lr"] if method == "darts" else None
    settings = {**settings, "method": method, "arch_lr": rate, "seed": seed}
    run = search_or_resume(folder / f"{method}-{seed}", data_folder=data_folder, **settings)
    found = trust.collapse([row["weights"] for row in run.history], run.space)
    assert found is not None
    accuracies = [row["discrete_accuracy"] for row in run.history]
    return {"seed": seed, "method": method, **found.to_dict(), "discrete_accuracy": accuracies}


def collapse(given: argparse.Namespace) -> tuple[str, Any]:
    # The setting was looked for with seed 0, until one collapsed: seed 0 is no evidence.
    seeds = list(range(1, 1 + given.seeds))
    settings = {**COLLAPSING, **(QUICK if given.quick else {})}
    places = {"folder": given.work_folder / "collapse", "data_folder": given.data_folder}
    rows = []
    for method in ("darts", "gaea-darts"):
        work = partial(collapsed, method=method, settings=settings, **places)
        rows += kept(given.work_folder / f"collapse-{method}.json", seeds, work, workers=given.workers)
    lines = [
        "| method | seed | flagged in epoch | then skips of 6 | all skips first in epoch | most skips | at the end |"
    ]
    lines.append("|---" * 7 + "|")
    for row in rows:
        shares, warm = row["shares"], settings["warmup"]  # before that all weights are equal, and an arg max is none
        first = next((e for e in range(warm, len(shares)) if shares[e] == 1), None)
        flagged, complete = ("-" if epoch is None else str(epoch + 1) for epoch in (row["flagged"], first))
        then = "-" if row["flagged"] is None else round(6 * shares[row["flagged"]])
        most, last = (round(6 * value) for value in (max(shares[warm:]), shares[-1]))
        lines.append(f"| {row['method']} | {row['seed']} | {flagged} | {then} | {complete} | {most} | {last} |")
    return "\n".join(lines), rows


RUN = dict(zip(PARTS, (theorems, nasbench201, ranking, collapse), strict=True))


def main() -> None:
    flags = Flags(__doc__, "trust_results", seeds=4, data="CIFAR-10 and nasbench201.csv.gz", work="runs/trust")
    flags.add_argument("--parts", default=",".join(PARTS))
    flags.add_argument("--data", default="cifar-10")
    flags.add_argument("--proxy", choices=sorted(PROXIES), default="minute")
    flags.add_argument("--workers", type=int, default=None)
    given = flags.read(seeds=1, proxy="quick", workers=1)
    wanted = given.parts.split(",")
    if set(wanted) - set(PARTS):
        flags.error(f"parts are {', '.join(PARTS)}, got {given.parts}")
    torch.set_num_threads(1)
    report = parts_so_far(given.out)
    for part in wanted:
        text, value = RUN[part](given)
        report[part] = {"table": text, "figures": value}
        print(f"### {part}\n\n{text}\n", flush=True)
    texts = [f"### {part}\n\n{report[part]['table']}\n" for part in PARTS if part in report]
    save(given, report, table="\n".join(texts))


if __name__ == "__main__":
    main()
