"""Kernels and gradient variances of modules of many kinds against brute force, and the way that each one takes.

    python benchmarks/gradient_kinds.py

Brute force is one backward pass of the whole batch for every output of every example, in double precision. The
errors are relative: of the kernel of summed outputs, of that by class, of the full one, of the diagonal and of the
gradient's variance; the largest is printed.
"layers" is the contraction, "examples" torch.func, "passes" one backward pass of the batch per example.
"""

from __future__ import annotations

import warnings

from _module_kinds import KINDS, build, errors
from _shared import Flags, save
from nasight.gradients import SlowGradients, gradient_route


def main() -> None:
    given = Flags(__doc__, "gradient_kinds", seeds=3, chance="draws of weights and examples").read(seeds=1)
    warnings.simplefilter("ignore", SlowGradients)
    rows = []
    lines = ["| module | largest relative error | way | why not a faster one |", "|---|---|---|---|"]
    for name in KINDS:
        nets = [build(name, seed) for seed in range(given.seeds)]
        found = [errors(net, x) for net, x in nets]
        route = gradient_route(*nets[0], batch_norm="eval")
        rows.append({"module": name, "errors": found, "way": route.way, "why": route.why})
        worst = max(value for one in found for value in one.values())
        lines.append(f"| {name} | {worst:.1e} | {route.way} | {route.why} |")
    worst = max(value for row in rows for one in row["errors"] for value in one.values())
    ways = {way: sum(row["way"] == way for row in rows) for way in ("layers", "examples", "passes")}
    counted = ", ".join(f"{count} by {way}" for way, count in ways.items())
    lines += ["", f"{len(rows)} kinds of modules, {counted}. Largest relative error of all: {worst:.1e}.", ""]
    text = "\n".join(lines)
    print(text)
    save(given, {"rows": rows, "largest": worst}, table=text)


if __name__ == "__main__":
    main()
