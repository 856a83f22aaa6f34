"""Are short searches as decided as long ones? The entropy at the end, against the number of steps.

    python benchmarks/short_runs.py --data-folder DATA

GAEA-DARTS (ERM) on NAS-Bench-201 and CIFAR-10 at the proxy of search_nasbench201.py, with the default rate
(proportional to 1 / (G sqrt(T))) and with the published 0.1, for 4 to 32 epochs.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from _shared import Flags, save, search_or_resume, spread
from nasight.compute import map_resumable
from nasight.searching import Run
from search_nasbench201 import PROXIES

EPOCHS = (4, 8, 16, 32)
RATES = (None, 0.1)
Item = tuple[int, float | None, int]  # epochs, rate, seed


def find(item: Item, proxy: dict[str, Any], folder: Path, data_folder: str | None) -> str:
    """The path of a search of so many epochs, finished."""
    epochs, rate, seed = item
    settings = {**proxy, "method": "gaea-darts", "objective": "erm", "data": "cifar-10"}
    settings |= {"epochs": epochs, "arch_lr": rate, "seed": seed}
    path = folder / f"{epochs}-{rate or 'default'}-{seed}"
    return str(search_or_resume(path, data_folder=data_folder, **settings).path)


def main() -> None:
    given = Flags(__doc__, "search_short", seeds=2, data="CIFAR-10", work="runs/short").read(seeds=1)
    proxy, numbers = (PROXIES["quick"], (1, 2)) if given.quick else (PROXIES["minute"], EPOCHS)
    items = [(epochs, rate, s) for epochs in reversed(numbers) for rate in RATES for s in range(given.seeds)]
    work = partial(find, proxy=proxy, folder=given.work_folder, data_folder=given.data_folder)
    workers = 1 if given.quick else None
    found = map_resumable(work, items, workers=workers, on_result=lambda _, path: print(path, file=sys.stderr))
    paths = dict(zip(items, found, strict=True))
    lines = [
        "| epochs | architecture steps | rate | entropy at the end, nats | lost by discretizing, points |",
        "|---|---|---|---|---|",
    ]
    rows = []
    for rate in RATES:
        for epochs in numbers:
            runs = [Run(path) for item, path in paths.items() if item[:2] == (epochs, rate)]
            last, settings = [run.history[-1] for run in runs], runs[0].settings
            steps = round(epochs * (1 - settings.validation) * proxy["examples"] // settings.batch_size)
            used = f"{spread([row['arch_lr'] for row in last])} (default)" if rate is None else f"{rate}"
            rows.append({"epochs": epochs, "rate": rate, "entropy": [row["entropy"] for row in last]})
            entropy, lost = spread([row["entropy"] for row in last]), spread([row["drop"] for row in last])
            lines.append(f"| {epochs} | {steps} | {used} | {entropy} | {lost} |")
    print("\n".join(lines))
    save(given, {"proxy": proxy, "rows": rows})


if __name__ == "__main__":
    main()
