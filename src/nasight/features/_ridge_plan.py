"""What a ridge solve may hold in memory, and which form is worth trying."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import sparse

from nasight.errors import RequestError
from nasight.features._family import RowSource
from nasight.features._linear import BLOCK_BYTES

FORMS = ("auto", "primal", "dual", "cg")
RANK = 128
"""Columns of the low-rank preconditioner, where memory and the problem's size allow them."""
FEWEST_ROWS = 16
"""Rows of the smallest block worth reading."""
ENTRY = 32
"""Bytes that one entry of a block can take: the rows as made, shifted, as float64, and the block before it."""
SKETCHED = 48
"""Bytes that one entry of the low-rank preconditioner takes while it is made."""
SKINNY = 3.0
"""How much slower a multiplication with few columns is than a symmetric update, per operation."""
EXPECTED = 20
"""Iterations that conjugate gradients are expected to take."""


@dataclass(frozen=True)
class RidgePlan:
    """Sizes, and the forms to try in order."""

    n: int
    dimension: int
    targets: int
    forms: tuple[str, ...]
    step: int
    """Rows in a block."""
    rank: int
    hold: bool
    """Whether rows that are made on request are kept."""
    copy: bool
    """Whether there is room for a shifted copy of the rows."""
    limit: int
    """Iterations after which conjugate gradients give way to the next form."""
    wide: tuple[str, ...]
    """Forms whose factor fits in float64."""

    def peak_bytes(self, tried: Collection[str], copied: bool, double_factor: bool) -> int:
        """The most that a solve by these forms held."""
        factors = [_factor(form, self.n, self.dimension) * (2 if double_factor else 1) for form in tried]
        sketch = SKETCHED * self.rank * self.dimension if "cg" in tried else 0
        kept = 4 * self.n * self.dimension * (self.hold + copied)
        block = ENTRY * self.step * self.dimension
        return kept + block + max([sketch, *factors]) + _vectors(self.n, self.dimension, self.targets)


def make_plan(rows: Any, targets: int, memory: int, form: str) -> RidgePlan:
    """The plan for these rows within this many bytes, or an error that says how many would do."""
    made = isinstance(rows, RowSource)
    n, dimension = (rows.n, rows.dimension) if isinstance(rows, RowSource) else rows.shape
    fewest = min(n, FEWEST_ROWS)
    room = memory - _vectors(n, dimension, targets) - ENTRY * fewest * dimension
    if room < 0:
        raise RequestError(
            f"memory is {memory} bytes but a block of {fewest} rows and the vectors of {n} rows with {dimension}"
            f" features need {memory - room}"
        )
    if form in ("primal", "dual") and _factor(form, n, dimension) > room:
        needed = memory - room + _factor(form, n, dimension)
        raise RequestError(f"memory is {memory} bytes but the {form} form needs {needed}; form 'cg' needs less")
    fitting = [f for f in ("primal", "dual") if _factor(f, n, dimension) <= room]
    direct = sorted(fitting, key=lambda f: _cost(f, n, dimension))[:1] if form in ("auto", "cg") else [form]
    rank = max(0, min(RANK, dimension // 8, n // 8, room // 4 // (SKETCHED * dimension)))
    most = max([SKETCHED * rank * dimension, *(_factor(f, n, dimension) for f in direct)])
    kept = 4 * n * dimension
    block = ENTRY * min(n, BLOCK_BYTES // (4 * dimension)) * dimension
    hold = made and not rows.sparse and kept + most <= room
    copy = (hold or not (made or sparse.issparse(rows))) and kept * (1 + hold) + most + block <= room
    forms: tuple[str, ...] = tuple(direct) if form != "cg" else ("cg",)
    limit = 0
    if form == "auto" and (not made or hold or not direct):
        price = min((_cost(f, n, dimension) for f in direct), default=float("inf"))
        sketch, iteration = 4.0 * rank * n * dimension, SKINNY * 4 * targets * n * dimension
        if sketch + EXPECTED * iteration < price:
            forms = ("cg", *direct)
            limit = int((price - sketch) / iteration) if direct else 0
    room -= most + kept * (hold + copy)
    step = min(n, max(fewest, min(BLOCK_BYTES // (4 * dimension), fewest + room // (ENTRY * dimension))))
    wide = tuple(f for f in forms if _factor(f, n, dimension) <= room - ENTRY * (step - fewest) * dimension)
    return RidgePlan(n, dimension, targets, forms, step, rank, hold, copy, limit, wide)


def available_memory() -> int:
    """Bytes that this machine could give to a process now."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _factor(form: str, n: int, dimension: int) -> int:
    """Bytes of a float32 Gram matrix, which its factor replaces."""
    return {"primal": 4 * dimension**2, "dual": 4 * n**2, "cg": 0}[form]


def _vectors(n: int, dimension: int, targets: int) -> int:
    """Bytes of targets, weights, residuals and directions."""
    return 8 * (targets + 1) * (4 * n + 10 * dimension) + 64 * 1024


def _cost(form: str, n: int, dimension: int) -> float:
    """Multiplications of a Gram matrix and its factor."""
    size, other = (dimension, n) if form == "primal" else (n, dimension)
    return float(size) ** 2 * (other * (1 if form == "primal" else 1.1) + size / 3)
