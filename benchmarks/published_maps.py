"""N-grams as the authors' code makes them beside ours: maps chosen for parts of IMDb.

    python benchmarks/published_maps.py --data-folder DATA

A seed draws training and test reviews of its own, and configurations. For both versions `nasight.select` chooses a map
by fast weight-sharing and trains it alone; their test errors are compared seed by seed. An interrupted benchmark
resumes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from _shared import Flags, kept, save, spread
from nasight.data import Rows, rows
from nasight.features import select
from nasight.studies.finding import Outcome, difference

VERSIONS = {False: "default", True: "published"}


def part_of(data: Rows, count: int, seed: int) -> Rows:
    """As many training and as many test reviews, drawn at random."""
    assert data.test_x is not None
    assert data.test_y is not None
    draw = np.random.default_rng(seed)
    train, test = (draw.permutation(len(x))[:count] for x in (data.train_x, data.test_x))
    return replace(
        data,
        train_x=[data.train_x[i] for i in train],
        train_y=data.train_y[train],
        test_x=[data.test_x[i] for i in test],
        test_y=data.test_y[test],
    )


def chosen(item: tuple[int, bool], given: Any, data: Rows) -> dict[str, Any]:
    """What a version's selection of a seed ends with."""
    seed, published = item
    start = time.process_time()
    found = select(
        "ngrams",
        part_of(data, given.examples, seed),
        configs=given.configs,
        dimension=given.dimension,
        published=published,
        seed=seed,
        threads=1,
    )
    return {
        "seed": seed,
        "version": VERSIONS[published],
        "error": 100 * (1 - found.result["test_accuracy"]),
        "seconds": time.process_time() - start,
        "config": found.config,
    }


def markdown(facts: list[dict[str, Any]], given: Any) -> str:
    errors = {v: [fact["error"] for fact in facts if fact["version"] == v] for v in VERSIONS.values()}
    seconds = {v: [fact["seconds"] for fact in facts if fact["version"] == v] for v in VERSIONS.values()}
    lines = [
        f"{given.examples:,} training and as many test reviews, {given.configs} configurations, "
        f"{given.dimension:,} bins, {given.seeds} seed(s), mean ± deviation:",
        "",
        "| n-grams | test error, % | processor seconds |",
        "|---|---|---|",
        *(f"| {v} | {spread(errors[v])} | {spread(seconds[v], 1)} |" for v in VERSIONS.values()),
        "",
    ]
    if given.seeds > 1:
        pairs = [[Outcome(e) for e in errors[v]] for v in ("published", "default")]
        found = difference(*pairs, 0.95)
        lines += [
            f"Published less default: {found.mean:+.2f} points, 95 % interval {found.low:+.2f} to {found.high:+.2f}.",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    work = "runs/published-maps"
    flags = Flags(__doc__, "features_published", seeds=8, data="IMDb", work=work)
    flags.add_argument("--examples", type=int, default=2000, help="reviews of each part (default 2000)")
    flags.add_argument("--configs", type=int, default=16)
    flags.add_argument("--dimension", type=int, default=1 << 16)
    given = flags.read(seeds=1, examples=60, configs=4, dimension=1 << 10)
    data = rows("imdb", folder=given.data_folder)
    items = [(seed, published) for seed in range(given.seeds) for published in VERSIONS]
    settings = [given.examples, given.configs, given.dimension]
    facts = kept(
        given.work_folder / "chosen.json", items, partial(chosen, given=given, data=data), workers=1, settings=settings
    )
    text = markdown(facts, given)
    print(text)
    save(given, facts, table=text)


if __name__ == "__main__":
    main()
