"""The table of claims: one row each, with the rule that was fixed before it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from nasight.errors import RequestError
from nasight.studies.reproducing._cells import connections, published_cells, trainings
from nasight.studies.reproducing._claim import Claim
from nasight.studies.reproducing._eigen import printed_bounds, repaired_bounds, wide_networks
from nasight.studies.reproducing._features import maps
from nasight.studies.reproducing._gaea import mirror_steps, searches
from nasight.studies.reproducing._rules import InsideInterval, NoViolation, Within
from nasight.studies.reproducing._simplex import conditions

ALL = "all"
SEARCHES = (
    "the paper: DARTS, NAS-Bench-1Shot1 and NAS-Bench-201 on CIFAR-10, up to 50 epochs; here: NAS-Bench-201 without "
    "`none`, one cell per stage, 1,200 rows, 20 epochs, both bilevel, each method with this library's default rates"
)

GAEA = (
    Claim(
        name="gaea-entropy",
        paper="GAEA",
        sentence="At the end of a search the architecture weights of GAEA-DARTS have less entropy than those of DARTS.",
        measured="mean entropy of a decision, GAEA-DARTS less DARTS, nats, paired by seeds",
        measure=searches,
        figure="entropy difference",
        beside=("entropy, darts", "entropy, gaea-darts"),
        rule=InsideInterval(high=0.0),
        scale=SEARCHES,
        seconds=150,
    ),
    Claim(
        name="gaea-discretization",
        paper="GAEA",
        sentence="GAEA-DARTS loses less accuracy by discretizing than DARTS.",
        measured="held-out accuracy of the supernet less that of the arg max with the same weights, GAEA-DARTS less "
        "DARTS, points, paired by seeds",
        measure=searches,
        figure="drop difference",
        beside=("drop, darts", "drop, gaea-darts"),
        rule=InsideInterval(high=0.0),
        scale=SEARCHES,
        seconds=150,
    ),
    Claim(
        name="gaea-eg",
        paper="GAEA",
        sentence="The exponentiated gradient step is the minimum of lr <grad, u> + KL(u || theta) over the simplex.",
        measured="largest distance of a weight from a minimum found by BFGS, over random steps",
        measure=mirror_steps,
        figure="distance",
        rule=Within(1e-6),
        scale="exact at any scale: rows of 2 to 8 weights, rates from 0.01 to 1",
        seconds=5,
    ),
)
SIMPLEX = (
    Claim(
        name="simplex-condition",
        paper="Simplex",
        sentence="Where the paper's condition holds, the arg max of the weights is the best option under the shared "
        "weights.",
        measured="problems with the condition whose arg max is not the best",
        measure=conditions,
        figure="violations",
        beside=("condition holds, % of problems", "arg max is best, % of problems"),
        rule=NoViolation(),
        scale="the paper proves it for the optimum of a search; here: weights drawn uniformly, labels that the mixture "
        "realizes, two-layer networks with 2 to 5 activations, 64 examples",
        seconds=3,
    ),
)
FEATURES = (
    Claim(
        name="features-correlation",
        paper="FeatureMaps",
        sentence="Accuracies with shared weights rank feature maps like their accuracies alone.",
        measured="Spearman's correlation of the two over 32 random Fourier maps",
        measure=maps,
        figure="spearman",
        beside=("pearson",),
        rule=InsideInterval(low=0.0),
        scale="the paper: CIFAR-10, 40,000 rows, up to 100,000 features; here: at most 3,000 rows, 500 features",
        seconds=5,
    ),
)
EIGEN = (
    Claim(
        name="eigen-kernel",
        paper="EigenNAS",
        sentence="Lemma 1, repaired: wide networks with skips have the exact form's kernel, K_ii = 15.977 for ReLU, "
        "L = 4 and both skips.",
        measured="K_ii of networks of width 512, off the exact form, %",
        measure=wide_networks,
        figure="off the exact form, %",
        beside=("simulated", "exact", "printed"),
        rule=InsideInterval(-5.0, 5.0),
        scale="the paper proves it for infinite width; here: width 512, the mean of 50 networks per seed",
        seconds=5,
    ),
    Claim(
        name="eigen-kernel-printed",
        paper="EigenNAS",
        sentence="Lemma 1 as printed: the same networks have the printed form's kernel, K_ii = 9.",
        measured="K_ii of networks of width 512, off the printed form, %",
        measure=wide_networks,
        figure="off the printed form, %",
        beside=("simulated", "exact", "printed"),
        rule=InsideInterval(-5.0, 5.0),
        scale="the paper proves it for infinite width; here: width 512, the mean of 50 networks per seed",
        seconds=5,
    ),
    Claim(
        name="eigen-bounds",
        paper="EigenNAS",
        sentence="Theorem 1, repaired: its bounds hold for the smallest eigenvalue of the kernel.",
        measured="bounds that the smallest eigenvalue leaves, over random networks and rows of norm 1",
        measure=repaired_bounds,
        figure="violations",
        beside=("Theorem 1 says more than 0, cases",),
        rule=NoViolation(),
        scale="infinite width as in the paper; here: 2 to 7 layers, at most 8 rows of at most 24 numbers",
        seconds=15,
    ),
    Claim(
        name="eigen-bounds-printed",
        paper="EigenNAS",
        sentence="Theorem 1 as printed: its bounds with N/d hold for the smallest eigenvalue of the printed kernel.",
        measured="printed bounds that the smallest eigenvalue leaves, over random networks where all assumptions hold",
        measure=printed_bounds,
        figure="violations",
        rule=NoViolation(),
        scale="the constant of the paper's Theta(N/d) is taken as 1; here: 16 to 64 points of a circle, 2 to 7 layers",
        seconds=5,
    ),
)
CELLS = (
    Claim(
        name="cells-width-depth",
        paper="Cells",
        sentence="Width and depth are 5c, 2 for NASNet, 4c, 4 for AmoebaNet, 5c, 2 for ENAS, 3.5c, 3 for DARTS and "
        "4c, 2 for SNAS.",
        measured="published cells with another width or depth",
        measure=published_cells,
        figure="violations",
        rule=NoViolation(),
        scale="none: these are the paper's cells",
        seconds=1,
        seeds=1,
        chance=False,
    ),
    Claim(
        name="cells-variants",
        paper="Cells",
        sentence="A cell of N nodes, M of them inputs, has ((N-2)!/(M-1)!)^M connections.",
        measured="small cells where trying all connections, or this library's count, gives another number",
        measure=connections,
        figure="violations",
        rule=NoViolation(),
        scale="N from 5 to 7, M of 2 and 3, M operations per node; the paper prints the formula without the power M, "
        "which is one operation per node",
        seconds=2,
        seeds=1,
        chance=False,
    ),
    Claim(
        name="cells-convergence",
        paper="Cells",
        sentence="Wider cells converge faster.",
        measured="Spearman's correlation of width and mean test loss over a training: DARTS's cell and 6 random "
        "connections",
        measure=trainings,
        figure="spearman",
        beside=("loss, DARTS_V2", "loss, random connections"),
        rule=InsideInterval(high=0.0),
        scale="the paper: CIFAR-10, 20 cells, 600 epochs; here: 400 rows, 10 epochs, 3 cells of 4 channels, other "
        "connections for every seed",
        seconds=80,
    ),
)
CLAIMS: Mapping[str, Claim] = {row.name: row for row in (*GAEA, *SIMPLEX, *FEATURES, *EIGEN, *CELLS)}


def chosen_claims(names: Sequence[str] | str) -> list[Claim]:
    """The rows of these names, each once; "all" stands for every one.

    >>> [row.paper for row in chosen_claims(["gaea-eg", "cells-variants"])]
    ['GAEA', 'Cells']
    """
    asked = [names] if isinstance(names, str) else list(names or ())
    if not asked:
        raise RequestError(f"name one or more claims, or {ALL}; there are {', '.join(CLAIMS)}")
    for name in asked:
        if name != ALL and name not in CLAIMS:
            near = get_close_matches(name, CLAIMS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RequestError(f"there is no claim {name!r:.60}, only {', '.join(CLAIMS)}, or {ALL}{hint}")
    return list(CLAIMS.values()) if ALL in asked else [CLAIMS[name] for name in dict.fromkeys(asked)]
