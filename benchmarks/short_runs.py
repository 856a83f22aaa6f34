"""Are short searches as decided as long ones? The entropy at the end, against the number of steps.

GAEA-DARTS (ERM) on NAS-Bench-201 and CIFAR-10 at the proxy of search_nasbench201.py, with the default rate
(proportional to 1 / (G sqrt(T))) and with the published 0.1, for 4 to 32 epochs.

    python benchmarks/short_runs.py --data-folder DATA --out runs/short --report docs/search_short
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from nasight.parallel import map_resumable
from nasight.search import Run, resume, search
from search_nasbench201 import PROXY, spread

EPOCHS = (4, 8, 16, 32)
RATES = (None, 0.1)
Item = tuple[int, float | None, int, str, str]  # epochs, rate, seed, out, data folder


def one(item: Item) -> str:
    epochs, rate, seed, out, folder = item
    path = Path(out) / f"{epochs}-{rate or 'default'}-{seed}"
    if (path / "run.json").exists():
        return str(resume(path, data_folder=folder).path)
    settings: dict[str, Any] = {**PROXY, "epochs": epochs, "arch_lr": rate, "seed": seed}
    run = search(method="gaea-darts", objective="erm", data="cifar-10", out=path, data_folder=folder, **settings)
    return str(run.path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", required=True)
    parser.add_argument("--out", default="runs/short")
    parser.add_argument("--report", default=None)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    items: list[Item] = [
        (epochs, rate, seed, given.out, given.data_folder)
        for epochs in reversed(EPOCHS)
        for rate in RATES
        for seed in range(given.seeds)
    ]
    paths = dict(
        zip(
            items,
            map_resumable(one, items, on_result=lambda item, path: print(path, file=sys.stderr, flush=True)),
            strict=True,
        )
    )
    lines = [
        "| epochs | architecture steps | rate | entropy at the end, nats | lost by discretising, points |",
        "|---|---|---|---|---|",
    ]
    rows = []
    for rate in RATES:
        for epochs in EPOCHS:
            runs = [Run(path) for item, path in paths.items() if item[:2] == (epochs, rate)]
            last = [run.history[-1] for run in runs]
            steps = round(epochs * (1 - runs[0].settings.validation) * PROXY["examples"] // runs[0].settings.batch_size)
            used = f"{spread([row['arch_lr'] for row in last])} (default)" if rate is None else f"{rate}"
            rows.append({"epochs": epochs, "rate": rate, "entropy": [row["entropy"] for row in last]})
            entropy, lost = spread([row["entropy"] for row in last]), spread([row["drop"] for row in last])
            lines.append(f"| {epochs} | {steps} | {used} | {entropy} | {lost} |")
    text = "\n".join(lines)
    print(text)
    if given.report:
        Path(f"{given.report}.md").write_text(text + "\n")
        Path(f"{given.report}.json").write_text(json.dumps({"proxy": PROXY, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
