"""Measurements of Cells' claims: widths and depths, the number of variants, and how fast wide cells train."""

from __future__ import annotations

import json
import math
from itertools import product
from math import factorial

from scipy import stats

from nasight.anatomy import count_variants, read_cells, variants
from nasight.data import Dataset
from nasight.errors import RunError
from nasight.studies._convergence import compare_cells
from nasight.studies._protocol import Protocol
from nasight.training import TrainingCurve

FIGURE_1 = {"NASNet": (5.0, 2), "AmoebaNet": (4.0, 4), "ENAS": (5.0, 2), "DARTS_V2": (3.5, 3), "SNAS": (4.0, 2)}
"""Cell -> width in units of c, depth, as the paper's Figure 1 says."""
SMALL_CELLS = ((5, 2), (6, 2), (7, 2), (6, 3))
"""(N nodes, M of them inputs); every intermediate node has M operations."""
RANDOM = 6
"""Random connections that train beside the cell of DARTS."""
PROTOCOL = Protocol(epochs=10, channels=4, cells=3, examples=400, test_examples=200, evaluations=2)


def published_cells(data: Dataset, seed: int) -> dict[str, float]:
    """Cells whose width or depth is another than the paper's."""
    graphs = {name: read_cells(name)["normal"] for name in FIGURE_1}
    wrong = [name for name, graph in graphs.items() if (graph.width, graph.depth) != FIGURE_1[name]]
    return {"violations": len(wrong), "cases": len(FIGURE_1)}


def connections(data: Dataset, seed: int) -> dict[str, float]:
    """Small cells whose connections, tried one by one, are not as many as the formula says."""
    wrong = 0
    for nodes, inputs in SMALL_CELLS:
        formula = (factorial(nodes - 2) // factorial(inputs - 1)) ** inputs
        wrong += _tried(nodes, inputs) != formula
        wrong += inputs == 2 and _counted(nodes) != formula
    return {"violations": wrong, "cases": len(SMALL_CELLS) + sum(inputs == 2 for _, inputs in SMALL_CELLS)}


def _tried(nodes: int, inputs: int) -> int:
    """Of all ways to give each operation any node to read, those where it reads a node before its own."""
    targets = [node for node in range(inputs, nodes - 1) for _ in range(inputs)]
    ways = product(range(nodes - 1), repeat=len(targets))
    return sum(all(s < t for s, t in zip(way, targets, strict=True)) for way in ways)


def _counted(nodes: int) -> int:
    """What the library counts for a cell of two inputs."""
    edges = [[node, source, "sep_conv_3x3"] for node in range(2, nodes - 1) for source in (0, 1)]
    return count_variants(read_cells(json.dumps(edges))["normal"]).choices


def trainings(data: Dataset, seed: int) -> dict[str, float]:
    """The rank correlation of width and mean test loss over a short training: DARTS's cell and random connections."""
    design = read_cells("DARTS_V2")
    designs = [design, *variants(design, RANDOM, seed=seed)]
    found = compare_cells(designs, data, protocol=PROTOCOL, seeds=(seed,), workers=1, device="cpu")
    widths = [each[each.main].width for each in designs]
    losses = [_mean_loss(training) for training in found.trainings]
    spearman = float(stats.spearmanr(widths, losses).statistic)
    if math.isnan(spearman):
        raise RunError(f"the cells of seed {seed} all have one width or one loss, so they have no ranks")
    others = losses[1:]
    return {"spearman": spearman, "loss, DARTS_V2": losses[0], "loss, random connections": sum(others) / len(others)}


def _mean_loss(training: TrainingCurve) -> float:
    """A training that broke off counts as one that never learned."""
    area = training.area()
    return training.curve[0].loss if area is None else area
