"""DARTS's supernet: every edge of both cells a mixture of all operations."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nasight.spaces._blocks import stem as plain_stem
from nasight.spaces._dropout import Dropout
from nasight.spaces._groups import Group
from nasight.spaces._placed import zeros_of
from nasight.spaces._supernet import Supernet
from nasight.spaces.darts._network import STEM, HalvingStem, check_stem
from nasight.spaces.darts._supernet_cell import MixedCell
from nasight.spaces.darts._supernet_fast import fast_cell
from nasight.spaces.darts._text import EDGES, INPUTS, NODES


class DartsSupernet(Supernet):
    """Stem, mixed cells with a reduction after each third, global pooling, linear layer."""

    def __init__(
        self,
        groups: tuple[Group, ...],
        colors: int,
        classes: int,
        *,
        path: str,
        partial: int,
        channels: int,
        cells: int,
        stem: int = 0,
    ) -> None:
        super().__init__(groups, path)
        check_stem(stem)
        self.operations = groups[0].options[0]
        # On ImageNet too the stem of a search has three times the channels of its cells; that of a training has not.
        first = HalvingStem if stem else plain_stem
        self.stem = first(colors, STEM * channels, running=False)
        before = last = STEM * channels
        reduced = bool(stem)
        self.cells = nn.ModuleList()
        for index in range(cells):
            reduce = index in (cells // 3, 2 * cells // 3)
            channels *= 2 if reduce else 1
            self.cells.append(
                MixedCell(self.operations, (before, last), channels, partial, reduce=reduce, reduced=reduced)
            )
            before, last, reduced = last, (NODES - INPUTS) * channels, reduce
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, classes))

    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        return self._passed(x, weights, skip_zeros)

    def _dropped_logits(
        self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool, dropout: Dropout | None
    ) -> Tensor:
        return self._passed(x, weights, skip_zeros, dropout=dropout)

    def _thinned_logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool, drop_path: Dropout) -> Tensor:
        return self._passed(x, weights, skip_zeros, drop_path=drop_path)

    def _passed(
        self,
        x: Tensor,
        weights: Mapping[str, Tensor],
        skip_zeros: bool,
        *,
        dropout: Dropout | None = None,
        drop_path: Dropout | None = None,
    ) -> Tensor:
        given = {kind: _given(weights, kind, self.operations, skip_zeros) for kind in ("normal", "reduce")}
        evaluate = self._cell(MixedCell.plain, fast_cell, weights, skip_zeros)
        if self.path != "plain":
            x = x.contiguous(memory_format=torch.channels_last)
        start = self.stem(x)
        before, last = start if isinstance(start, tuple) else (start, start)
        for cell in self.cells:
            assert isinstance(cell, MixedCell)
            nodes = [cell.inputs[0](before), cell.inputs[1](last)]
            kind = given["reduce" if cell.reduce else "normal"]
            masks = {} if dropout is None else dropout.masks(cell.skip_edges(kind[2]), cell.image_of(nodes))
            paths = {} if drop_path is None else drop_path.paths(len(EDGES), nodes[0])
            before, last = last, evaluate(cell, nodes, *kind, masks, paths)
        out: Tensor = self.head(last)
        return out


def _given(
    weights: Mapping[str, Tensor], kind: str, names: tuple[str, ...], skip_zeros: bool
) -> tuple[Tensor, Tensor, list[frozenset[str]]]:
    """(weights of operations times those of edges, those of edges, the operations that are evaluated) of a cell."""
    operations, known = weights[kind], zeros_of(weights, kind, skip_zeros)
    shares = operations.new_ones(len(EDGES))
    if f"{kind}_edges" in weights:
        # The group lists the edges by target, as EDGES does.
        shares = weights[f"{kind}_edges"]
        operations = operations * shares[:, None]
        known = known * zeros_of(weights, f"{kind}_edges", skip_zeros)[:, None]
    active = [
        frozenset(n for n, value in zip(names, row, strict=True) if n != "none" and (value != 0 or not skip_zeros))
        for row in known.tolist()
    ]
    return operations, shares, active
