"""A cell of DARTS's supernet computed by what its edges share."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from nasight.spaces._dropout import NO_MASKS, Masks
from nasight.spaces._placed import index
from nasight.spaces.darts._network import grids
from nasight.spaces.darts._supernet_cell import CONVOLUTIONS, INTO, OUT_OF, STRIDED, Active, MixedCell, pass_by
from nasight.spaces.darts._text import EDGES, INPUTS, NODES
from nasight.spaces.fast._depthwise import average_pool, depthwise
from nasight.spaces.fast._fold import add_normalized, normalized_relu
from nasight.spaces.fast._mix import images, rows, shuffle, weighted_sum


def fast_cell(
    cell: MixedCell,
    nodes: list[Tensor],
    weights: Tensor,
    shares: Tensor,
    active: Active,
    masks: Masks,
    paths: Masks = NO_MASKS,
) -> Tensor:
    """The value of `cell.plain` with the same arguments."""
    return _Pass(cell, nodes, weights, shares, active, masks, paths).output()


class _Pass:
    """One evaluation of a cell: node by node, what leaves a node is begun once, what enters it is summed once.

    Images are laid out channels last, so that they are rows of channels to the sums.
    """

    def __init__(
        self,
        cell: MixedCell,
        nodes: list[Tensor],
        weights: Tensor,
        shares: Tensor,
        active: Active,
        masks: Masks,
        paths: Masks,
    ) -> None:
        self.cell, self.weights, self.shares, self.active = cell, weights, shares, active
        self.masks, self.paths = masks, paths
        self.column = {name: o for o, name in enumerate(cell.operations)}
        self.nodes = nodes
        # For each node what enters it: (edge, operation, rows), to be weighed alone or after a pointwise kernel.
        self.ready: list[list[tuple[int, str, Tensor]]] = [[] for _ in range(NODES)]
        self.folded: list[list[tuple[int, str, Tensor]]] = [[] for _ in range(NODES)]
        self.past: list[list[Tensor]] = [[] for _ in range(NODES)]
        # One unbind has one backward; an index for each kernel would fill a tensor of zeros for each.
        self.depthwise = {name: [p.unbind() for p in cell.depthwise[name].unbind()] for name in CONVOLUTIONS}
        self.pointwise = {name: [p.unbind() for p in cell.pointwise[name].unbind()] for name in CONVOLUTIONS}
        stride = cell.stride(0)
        self.like = nodes[0][:, :, ::stride, ::stride]

    def output(self) -> Tensor:
        for node in range(NODES):
            if node >= INPUTS:
                self.nodes = [*self.nodes, self._enter(node)]
            self._leave(node)
        return torch.cat(self.nodes[INPUTS:], 1)

    def _leave(self, source: int) -> None:
        """Begin all that leaves a node."""
        edges, a, stride = OUT_OF[source], self.cell.active, self.cell.stride(source)
        node = self.nodes[source]
        if self.cell.partial > 1 and edges:
            passed = rows(pass_by(node[:, a:], stride))
            for e in edges:
                self.past[EDGES[e][1]].append(passed)
            node = node[:, :a].contiguous(memory_format=torch.channels_last)
        wanted = {name for e in edges for name in self.active[e]}
        shared = dict[str, Tensor]()
        if "max_pool_3x3" in wanted:
            shared["max_pool_3x3"] = rows(_norm(F.max_pool2d(node, 3, stride, 1)))
        if "avg_pool_3x3" in wanted:
            shared["avg_pool_3x3"] = rows(_norm(average_pool(node, stride)))
        if "skip_connect" in wanted and stride == 1:
            shared["skip_connect"] = rows(node)
        for e in edges:
            ready = self.ready[EDGES[e][1]]
            for name, x in shared.items():
                if name in self.active[e]:
                    dropped = name == "skip_connect" and e in self.masks
                    ready.append((e, name, x * rows(self.masks[e]) if dropped else x))
        if wanted - set(shared):
            self._convolutions(source, F.relu(node), stride)

    def _convolutions(self, source: int, x: Tensor, stride: int) -> None:
        pixels: Tensor | None = None
        for e in OUT_OF[source]:
            folded = self.folded[EDGES[e][1]]
            if "skip_connect" in self.active[e] and stride > 1:
                if pixels is None:
                    pixels = torch.cat([rows(grid) for grid in grids(x)], 1)
                folded.append((e, "skip_connect", pixels))
            for name, (_, dilation, repeats) in CONVOLUTIONS.items():
                if name in self.active[e]:
                    out = depthwise(x, self.depthwise[name][0][e], stride, dilation)
                    if repeats == 2:
                        again = normalized_relu(rows(out), self.pointwise[name][0][e])
                        out = depthwise(images(again, out), self.depthwise[name][1][e])
                    folded.append((e, name, rows(out)))

    def _enter(self, target: int) -> Tensor:
        """The sum of all that enters a node; one edge after the other where they are dropped on their own."""
        edges, parts = INTO[target], self.cell.partial
        if self.paths:
            first, *others = (self._given(target, (e,)) * self.paths[e] for e in edges)
            out = sum(others, first)
        else:
            out = self._given(target, edges)
        return out if parts == 1 else shuffle(out, parts).contiguous(memory_format=torch.channels_last)

    def _given(self, target: int, edges: tuple[int, ...]) -> Tensor:
        """The sum of what these edges give to a node, as images whose channels are not yet shuffled."""
        cell = self.cell
        ready = [part for part in self.ready[target] if part[0] in edges]
        folded = [part for part in self.folded[target] if part[0] in edges]
        if ready:
            mixed = weighted_sum([], self._weights(ready), [x for _, _, x in ready])
        else:
            mixed = rows(torch.zeros_like(self.like[:, : cell.active]))
        skips = [part for part in folded if part[1] == "skip_connect"]
        others = [part for part in folded if part[1] != "skip_connect"]
        if skips:
            kernel = self._grid_kernel(cell.skips[index((STRIDED.index(e) for e, _, _ in skips), cell.skips)])
            mixed = add_normalized(mixed, self._weights(skips), kernel, [x for _, _, x in skips])
        if others:
            kernel = torch.stack([self.pointwise[name][-1][e] for e, name, _ in others])
            mixed = add_normalized(mixed, self._weights(others), kernel, [x for _, _, x in others])
        if cell.partial > 1:
            passed = [x for e, x in zip(INTO[target], self.past[target], strict=True) if e in edges]
            mixed = torch.cat([mixed, weighted_sum([], self.shares[index(edges, self.shares)], passed)], 1)
        return images(mixed, self.like)

    def _weights(self, parts: list[tuple[int, str, Tensor]]) -> Tensor:
        edges = index((e for e, _, _ in parts), self.weights)
        return self.weights[edges, index((self.column[name] for _, name, _ in parts), self.weights)]

    def _grid_kernel(self, kernel: Tensor) -> Tensor:
        """(k, c, c) -> (k, c, 2 c): the first half of the outputs reads the even grid, the other the odd one."""
        even, odd = kernel.tensor_split(2, 1)
        return torch.cat([F.pad(even, (0, kernel.shape[2])), F.pad(odd, (kernel.shape[2], 0))], 1)


def _norm(x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True)
