"""NAS-Bench-201's supernet: every edge a mixture of all operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.spaces._blocks import ResidualReduction, head, stem
from nasight.spaces._dropout import Dropout, Masks
from nasight.spaces._groups import Group
from nasight.spaces._placed import index, zeros_of
from nasight.spaces._supernet import CONSTANTS, Supernet
from nasight.spaces.fast._depthwise import average_pool
from nasight.spaces.fast._joined import joined
from nasight.spaces.fast._mix import images, rows, shuffle, weighted_sum
from nasight.spaces.nasbench201._cell import EDGES, NODES

KERNELS = {"nor_conv_1x1": 1, "nor_conv_3x3": 3}
OUT_OF = tuple(tuple(e for e, (source, _) in enumerate(EDGES) if source == node) for node in range(NODES))
INTO = tuple(tuple(e for e, (_, target) in enumerate(EDGES) if target == node) for node in range(NODES))


class NasBench201Supernet(Supernet):
    """Stem, three stages of mixed cells with residual blocks between them, linear head.

    With `affine` the batch norms of the operations learn scale and shift, as those of a cell do that is trained alone;
    a `bare` supernet is one cell on the image itself and the head (both for TE-NAS; the plain path only).
    """

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
        affine: bool = False,
        bare: bool = False,
    ) -> None:
        super().__init__(groups, path)
        self.operations = groups[0].options[0]
        self.layers = nn.ModuleList()
        if bare:
            self.layers.append(MixedCell(self.operations, colors, partial, affine))
            self.head = head(colors, classes, running=False)
            return
        for stage in range(3):
            width = channels * 2**stage
            self.layers.append(
                stem(colors, channels, running=False)
                if stage == 0
                else ResidualReduction(width // 2, width, running=False)
            )
            self.layers.extend(MixedCell(self.operations, width, partial, affine) for _ in range(cells))
        self.head = head(4 * channels, classes, running=False)

    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        return self._dropped_logits(x, weights, skip_zeros, None)

    def _dropped_logits(
        self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool, dropout: Dropout | None
    ) -> Tensor:
        operations = weights["operations"]
        shares, known = operations.new_ones(len(EDGES)), zeros_of(weights, "operations", skip_zeros)
        if "edges" in weights:
            # The group lists the edges by target, as EDGES does.
            shares = weights["edges"]
            operations = operations * shares[:, None]
            known = known * zeros_of(weights, "edges", skip_zeros)[:, None]
        active = _active(known, self.operations, skip_zeros)
        constants = weights.get(CONSTANTS)
        cell = self._cell(MixedCell.plain, MixedCell.fast, weights, skip_zeros)
        skips = [e for e in range(len(EDGES)) if "skip_connect" in active[e]]
        if self.path != "plain":
            x = x.contiguous(memory_format=torch.channels_last)
        for layer in self.layers:
            if isinstance(layer, MixedCell):
                masks = {} if dropout is None else dropout.masks(skips, x[:, : layer.active])
                x = cell(layer, x, operations, shares, active, masks, constants)
            else:
                x = layer(x)
        out: Tensor = self.head(x)
        return out


Active = Sequence[frozenset[str]]


def _active(weights: Tensor, names: tuple[str, ...], skip_zeros: bool) -> list[frozenset[str]]:
    """For each edge the operations that are evaluated: `none` never is, zeros on request."""
    return [
        frozenset(n for n, value in zip(names, row, strict=True) if n != "none" and (value != 0 or not skip_zeros))
        for row in weights.tolist()
    ]


class MixedCell(nn.Module):
    """One cell whose edges are mixtures; `plain` and `fast` compute the same function of the same parameters.

    With `partial` = K, a K-th of the channels goes through the operations, the others pass by, and a channel
    shuffle mixes the two (PC-DARTS). The skip connection of an edge in `masks` is multiplied by its mask (P-DARTS).
    """

    def __init__(self, operations: tuple[str, ...], channels: int, partial: int, affine: bool = False) -> None:
        super().__init__()
        self.operations = operations
        self.partial = partial
        self.active = channels // partial
        self.kernels = nn.ParameterDict()
        for name, side in KERNELS.items():
            kernel = torch.empty(len(EDGES), self.active, self.active, side, side)
            for edge in kernel:
                nn.init.kaiming_uniform_(edge, a=5**0.5)
            self.kernels[name] = nn.Parameter(kernel)
        shape = (len(EDGES), self.active)
        self.scales = nn.ParameterDict({name: torch.ones(shape) for name in KERNELS} if affine else {})
        self.biases = nn.ParameterDict({name: torch.zeros(shape) for name in KERNELS} if affine else {})

    def plain(
        self,
        x: Tensor,
        weights: Tensor,
        shares: Tensor,
        active: Active,
        masks: Masks,
        constants: Tensor | None = None,
    ) -> Tensor:
        """Edge by edge, operation by operation."""
        nodes = [x]
        for target in range(1, NODES):
            total = torch.zeros_like(x)
            for source, e in enumerate(INTO[target]):
                through, past = nodes[source][:, : self.active], nodes[source][:, self.active :]
                mixed = torch.zeros_like(through) if constants is None else constants[e].expand_as(through)
                for o, name in enumerate(self.operations):
                    if name in active[e]:
                        mixed = mixed + weights[e, o] * self._operation(name, e, through, masks)
                total = total + shuffle(torch.cat([mixed, shares[e] * past], 1), self.partial)
            nodes.append(total)
        return nodes[-1]

    def _operation(self, name: str, edge: int, x: Tensor, masks: Masks) -> Tensor:
        if name == "skip_connect":
            return x * masks[edge] if edge in masks else x
        if name == "avg_pool_3x3":
            return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        out = F.conv2d(F.relu(x), self.kernels[name][edge], padding=KERNELS[name] // 2)
        scale = self.scales[name][edge] if name in self.scales else None
        bias = self.biases[name][edge] if name in self.biases else None
        return F.batch_norm(out, None, None, scale, bias, training=True)

    def fast(
        self,
        x: Tensor,
        weights: Tensor,
        shares: Tensor,
        active: Active,
        masks: Masks,
        constants: Tensor | None = None,
    ) -> Tensor:
        """Node by node: what the edges out of a node share is computed once, what enters a node is summed once."""
        nodes, pools = [x], list[Tensor]()
        parts: list[list[Tensor]] = [[] for _ in range(NODES)]
        column = {name: o for o, name in enumerate(self.operations)}
        for source in range(NODES - 1):
            node = nodes[source][:, : self.active]
            for e, part in self._convolutions(node, source, weights, active, column):
                parts[EDGES[e][1]].append(part)
            pooled = any("avg_pool_3x3" in active[e] for e in OUT_OF[source])
            pools.append(rows(average_pool(node)) if pooled else node)
            entering = parts[source + 1]
            node = self._node(source + 1, nodes, pools, entering, weights, shares, active, masks, column)
            nodes.append(node if constants is None else node + constants[index(INTO[source + 1], constants)].sum())
        return nodes[-1]

    def _convolutions(
        self, node: Tensor, source: int, weights: Tensor, active: Active, column: dict[str, int]
    ) -> list[tuple[int, Tensor]]:
        """(edge, weighted and normalized convolution as rows) for the convolutions that leave one node."""
        edges = {name: [e for e in OUT_OF[source] if name in active[e]] for name in KERNELS}
        narrow, wide = edges.values()
        # Both in one where the same edges have both, otherwise each alone.
        groups = [edges] if narrow == wide else [{name: leaving} for name, leaving in edges.items()]
        found = list[tuple[int, Tensor]]()
        for group in groups:
            given = {
                name: (
                    self.kernels[name][index(leaving, weights)].flatten(0, 1),
                    weights[index(leaving, weights), column[name]].repeat_interleave(self.active),
                )
                for name, leaving in group.items()
            }
            leaving = next(iter(group.values()))
            if leaving:
                out = joined(node, given.get("nor_conv_1x1"), given.get("nor_conv_3x3"))
                found.extend(zip(leaving, torch.split(out, self.active, 1), strict=True))
        return found

    def _node(
        self,
        target: int,
        nodes: list[Tensor],
        pools: list[Tensor],
        parts: list[Tensor],
        weights: Tensor,
        shares: Tensor,
        active: Active,
        masks: Masks,
        column: dict[str, int],
    ) -> Tensor:
        """The sum of all that enters one node."""
        terms, coefficients = list[Tensor](), list[Tensor]()
        for source, e in enumerate(INTO[target]):
            if "skip_connect" in active[e]:
                skip = rows(nodes[source][:, : self.active])
                terms.append(skip * rows(masks[e]) if e in masks else skip)
                coefficients.append(weights[e, column["skip_connect"]])
            if "avg_pool_3x3" in active[e]:
                terms.append(pools[source])
                coefficients.append(weights[e, column["avg_pool_3x3"]])
        empty = weights.new_zeros(0)
        if parts or terms:
            mixed = weighted_sum(parts, torch.stack(coefficients) if coefficients else empty, terms)
        else:
            mixed = rows(torch.zeros_like(nodes[0][:, : self.active]))
        if self.partial > 1:
            past = [rows(nodes[source][:, self.active :]) for source in range(target)]
            mixed = torch.cat([mixed, weighted_sum([], shares[index(INTO[target], shares)], past)], 1)
        return shuffle(images(mixed, nodes[0]), self.partial)
