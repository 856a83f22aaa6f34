"""BOHB's model: kernel densities of the good and of the other cells, one pair per rung (Falkner et al. 2018).

As in the released code: the best 15 % are good; each side has at least one cell more than there are decisions;
bandwidths follow the normal reference rule and have a least value; categories have the kernel of Aitchison and Aitken.
Of some cells drawn around good ones, the one with the best ratio of densities is proposed. Two things differ. The
kernel knows how many options a decision has, where the released one counts those it has seen. And a bandwidth ends
where the kernel is uniform, where the released kernel becomes negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

GOOD = 15
"""Percent of the cells that count as good."""


@dataclass(frozen=True)
class Density:
    """A kernel density over all cells of a space, from some of them."""

    cells: np.ndarray
    """(n,) the cells it was made of."""
    bandwidths: np.ndarray
    """(decisions,) from 0 (only what was seen) to where the kernel is uniform."""
    values: np.ndarray
    """(cells of the space,) what it says of each."""

    @classmethod
    def of(cls, cells: np.ndarray, sizes: tuple[int, ...], least: float) -> Density:
        """The mean over cells of the product over decisions of Aitchison and Aitken's kernel.

        k(a, b) = 1 - h where a = b and h / (options - 1) elsewhere, h = 1.06 * deviation * n^(-1 / (4 + decisions)).
        """
        options = np.stack(np.unravel_index(cells, sizes))  # (decisions, n)
        widest = 1 - 1 / np.array(sizes)
        h = 1.06 * options.std(axis=1) * len(cells) ** (-1 / (4 + len(sizes)))
        h = np.minimum(np.maximum(h, least), widest)
        # The sum over cells factors into one small product per decision.
        density = np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes) / len(cells)
        for axis, (size, width) in enumerate(zip(sizes, h, strict=True)):
            kernel = np.full((size, size), width / max(size - 1, 1))
            np.fill_diagonal(kernel, 1 - width)
            density = np.moveaxis(np.tensordot(kernel, density, axes=(1, axis)), 0, axis)
        return cls(cells, h, density.ravel())


class KernelModel:
    """Proposes cells from what was seen on the highest rung that has seen enough; uniform draws before that.

    Parameters
    ----------
    sizes : options of each decision.
    rng : everything random is drawn from it.
    rungs : lengths of training, each with cells of its own.
    candidates : cells that are drawn for each proposal.
    least : the least bandwidth.
    """

    def __init__(
        self, sizes: tuple[int, ...], rng: np.random.Generator, *, rungs: int, candidates: int = 4, least: float = 0.3
    ) -> None:
        self.sizes, self.rng, self.candidates, self.least = sizes, rng, candidates, least
        self.fewest = len(sizes) + 1
        self.seen: list[list[tuple[float, int]]] = [[] for _ in range(rungs)]
        self.fitted = [0] * rungs
        self.models: list[tuple[Density, Density] | None] = [None] * rungs

    def learn(self, cell: int, rung: int, accuracy: float) -> None:
        """What a training showed; below a rung that has a model it is not kept."""
        if all(model is None for model in self.models[rung + 1 :]):
            self.seen[rung].append((accuracy, cell))
            self._fit(rung)

    def _fit(self, rung: int) -> None:
        seen = self.seen[rung]
        good = max(self.fewest, GOOD * len(seen) // 100)
        # After each training as published; where there are thousands, after each percent.
        if len(seen) - good < self.fewest or len(seen) <= self.fitted[rung] + self.fitted[rung] // 100:
            return
        order = np.argsort([-accuracy for accuracy, _ in seen], kind="stable")
        cells = np.array([cell for _, cell in seen])[order]
        rest = cells[good : good + max(self.fewest, (100 - GOOD) * len(seen) // 100)]
        self.models[rung] = (
            Density.of(cells[:good], self.sizes, self.least),
            Density.of(rest, self.sizes, self.least),
        )
        self.fitted[rung] = len(seen)

    def propose(self) -> int:
        """A cell to train next."""
        model = next((model for model in reversed(self.models) if model is not None), None)
        if model is None:
            return int(np.ravel_multi_index(self.rng.integers(self.sizes).tolist(), self.sizes))
        good, rest = model
        drawn = np.stack(np.unravel_index(self.rng.choice(good.cells, self.candidates), self.sizes))
        moved = self.rng.random(drawn.shape) < good.bandwidths[:, None]
        uniform = self.rng.integers(np.array(self.sizes)[:, None], size=drawn.shape)
        cells = np.ravel_multi_index(tuple(np.where(moved, uniform, drawn)), self.sizes)
        return int(cells[np.argmax(good.values[cells] / rest.values[cells])])
