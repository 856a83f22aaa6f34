"""NAS-Bench-1Shot1's supernet: every node a mixture of operations on a mixture of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.spaces._blocks import ConvNormRelu
from nasight.spaces._dropout import Dropout
from nasight.spaces._groups import Group
from nasight.spaces._placed import index, zeros_of
from nasight.spaces._supernet import Supernet
from nasight.spaces.fast._mix import images, rows, shuffle, weighted_sum
from nasight.spaces.nasbench1shot1._network import OPERATIONS, pooled_head

POOL, WIDE, NARROW = range(len(OPERATIONS))


class NasBench1Shot1Supernet(Supernet):
    """Stem, three stacks of mixed cells with pooling between them, a layer that narrows, linear head.

    This is the network of automl/nasbench-1shot1@cb0f0ec (optimizers/darts/model_search.py; with `partial` that of
    optimizers/pc_darts) but for running averages, of which there are none here. The last batch norm comes right before
    the pool over pixels, so a batch of one image says nothing about it: its logits are the bias of the linear layer.
    """

    def __init__(
        self,
        groups: tuple[Group, ...],
        forced: list[bool],
        colors: int,
        classes: int,
        *,
        path: str,
        partial: int,
        channels: int,
        cells: int,
    ) -> None:
        super().__init__(groups, path)
        self.forced = forced
        nodes = len(groups[0].rows)
        width = channels
        self.layers = nn.ModuleList([ConvNormRelu(colors, channels, 3, running=False)])
        for stack in range(3):
            if stack:
                # The release pads, so the size goes from n to n // 2 + 1: 32, 17, 9.
                self.layers.append(nn.MaxPool2d(2, padding=1))
            for _ in range(cells):
                self.layers.append(MixedCell(nodes, width, channels * 2**stack, partial))
                width = channels * 2**stack * nodes
        narrow = 4 * channels
        self.head = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(width, narrow, 1, bias=False),
            nn.BatchNorm2d(narrow, affine=False, track_running_stats=False),
            pooled_head(narrow, classes),
        )

    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        operations = weights["operations"]
        given = iter(self.groups[1].split(weights["inputs"]))
        # A place whose inputs are forced (node 1; node 2 of space 1) has no weights: it reads their plain sum.
        inputs = [operations.new_ones(i + 1) if forced else next(given) for i, forced in enumerate(self.forced)]
        known = iter(self.groups[1].split(zeros_of(weights, "inputs", skip_zeros)))
        read = [[1.0] * (i + 1) if forced else next(known).tolist() for i, forced in enumerate(self.forced)]
        plan = Plan.of(zeros_of(weights, "operations", skip_zeros).tolist(), read, skip_zeros)
        cell = self._cell(MixedCell.plain, MixedCell.fast, weights, skip_zeros)
        if self.path != "plain":
            x = x.contiguous(memory_format=torch.channels_last)
        for layer in self.layers:
            x = cell(layer, x, operations, inputs, plan) if isinstance(layer, MixedCell) else layer(x)
        out: Tensor = self.head(x)
        return out

    def _dropped_logits(
        self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool, dropout: Dropout | None
    ) -> Tensor:
        """The same: none of the operations is a skip connection."""
        return self._logits(x, weights, skip_zeros)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is evaluated: for each node its operations (none if nobody reads it), and for each place the nodes it reads.

    A node that reads nothing is evaluated: the shift of a batch norm makes something of zeros.
    """

    operations: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, operations: list[list[float]], inputs: list[list[float]], skip_zeros: bool) -> Plan:
        evaluated = [_kept(row, skip_zeros) for row in operations]
        read = [_kept(row, skip_zeros) for row in inputs]
        filled, wanted = {0, *(node for node, found in enumerate(evaluated, 1) if found)}, set(read[-1])
        for node in range(len(evaluated), 0, -1):
            if node in wanted and node in filled:
                wanted.update(read[node - 1])
        used = filled & (wanted | {0})
        return cls(
            tuple(found if node in used else () for node, found in enumerate(evaluated, 1)),
            tuple(
                tuple(s for s in sources if s in used) if node in used or node > len(evaluated) else ()
                for node, sources in enumerate(read, 1)
            ),
        )


def _kept(weights: list[float], skip_zeros: bool) -> tuple[int, ...]:
    return tuple(i for i, weight in enumerate(weights) if weight != 0 or not skip_zeros)


class MixedCell(nn.Module):
    """One cell of mixtures; `plain` and `fast` compute the same function of the same parameters.

    With `partial` = K, a K-th of a node's channels goes through the operations, the others pass by, and a
    channel shuffle mixes the two (PC-DARTS).
    """

    def __init__(self, nodes: int, channels_in: int, channels: int, partial: int) -> None:
        super().__init__()
        self.nodes = nodes
        self.channels = channels
        self.partial = partial
        self.active = channels // partial
        # From the cell's input to node 1, 2, ...; then, as long as all nodes together, to the output.
        self.project = nn.Parameter(torch.empty(2 * nodes * channels, channels_in, 1, 1))
        self.wide = nn.Parameter(torch.empty(nodes, self.active, self.active, 3, 3))
        self.narrow = nn.Parameter(torch.empty(nodes, self.active, self.active, 1, 1))
        for kernel in (self.project, *self.wide, *self.narrow):
            nn.init.kaiming_uniform_(kernel, a=5**0.5)
        self.project_norm = NormRelu(2 * nodes * channels)
        self.wide_norm = NormRelu(nodes, self.active)
        self.narrow_norm = NormRelu(nodes, self.active)

    def plain(self, x: Tensor, operations: Tensor, inputs: list[Tensor], plan: Plan) -> Tensor:
        """Node by node, input by input, operation by operation."""
        c = self.channels
        nothing = x.new_zeros(len(x), c, *x.shape[2:])
        states = [x]
        for node in range(1, self.nodes + 1):
            place, entering = node - 1, nothing
            for source in plan.inputs[place]:
                part = states[source] if source else self._project(x, [place])
                entering = entering + inputs[place][source] * part
            if not plan.operations[place]:
                states.append(nothing)
                continue
            through, past = entering[:, : self.active], entering[:, self.active :]
            mixed = torch.zeros_like(through)
            for o in plan.operations[place]:
                mixed = mixed + operations[place, o] * self._operation(o, place, through)
            states.append(shuffle(torch.cat([mixed, past], 1), self.partial))
        shares, read = inputs[-1], plan.inputs[-1]
        out = torch.cat([shares[n] * states[n] if n in read else nothing for n in range(1, self.nodes + 1)], 1)
        if 0 in read:
            out = out + shares[0] * self._project(x, [self.nodes])
        return out

    def _operation(self, o: int, place: int, x: Tensor) -> Tensor:
        if o == POOL:
            return F.max_pool2d(x, 3, 1, 1)
        kernel, norm = (self.wide, self.wide_norm) if o == WIDE else (self.narrow, self.narrow_norm)
        out: Tensor = norm(F.conv2d(x, kernel[place], padding=1 if o == WIDE else 0), [place])
        return out

    def _project(self, x: Tensor, places: list[int]) -> Tensor:
        """The cell's input on its way to each of these places, side by side: (b, channels of them all, h, w)."""
        c = self.channels
        parts = [slice(place * c, (place + 1) * c if place < self.nodes else None) for place in places]
        out: Tensor = self.project_norm(F.conv2d(x, torch.cat([self.project[part] for part in parts])), parts)
        return out

    def fast(self, x: Tensor, operations: Tensor, inputs: list[Tensor], plan: Plan) -> Tensor:
        """All projections of the cell's input are one matrix product, one batch norm and one ReLU."""
        c = self.channels
        projected = self._projections(x, plan)
        nothing = x.new_zeros(x.numel() // x.shape[1], c)
        states = dict[int, Tensor]()
        for node in range(1, self.nodes + 1):
            place = node - 1
            if not plan.operations[place]:
                continue
            read = list(plan.inputs[place])
            parts = [states[source] if source else projected[place] for source in read]
            entering = images(weighted_sum([], inputs[place][index(read, operations)], parts) if parts else nothing, x)
            through = entering[:, : self.active]
            terms = [rows(self._operation(o, place, through)) for o in plan.operations[place]]
            mixed = weighted_sum([], operations[place, index(plan.operations[place], operations)], terms)
            if self.partial > 1:
                whole = images(torch.cat([mixed, rows(entering[:, self.active :])], 1), x)
                mixed = rows(shuffle(whole, self.partial))
            states[node] = mixed
        shares = inputs[-1]
        out = torch.cat([states[n] if n in plan.inputs[-1] else nothing for n in range(1, self.nodes + 1)], 1)
        out = out * shares[1:].repeat_interleave(c)
        if self.nodes in projected:
            out = weighted_sum([out], shares[:1], [projected[self.nodes]])
        return images(out, x)

    def _projections(self, x: Tensor, plan: Plan) -> dict[int, Tensor]:
        """For each place that reads the cell's input its projection, as rows."""
        c = self.channels
        places = [place for place, read in enumerate(plan.inputs) if 0 in read]
        if not places:
            return {}
        sizes = [c if place < self.nodes else self.nodes * c for place in places]
        out = rows(self._project(x, places))
        return dict(zip(places, torch.split(out, sizes, 1), strict=True))


class NormRelu(nn.Module):
    """Batch norms, each with its scale and shift, and ReLU; a call says which of them apply."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(shape))
        self.shift = nn.Parameter(torch.zeros(shape))

    def forward(self, x: Tensor, parts: Sequence[int | slice]) -> Tensor:
        scale, shift = (torch.cat([each[part] for part in parts]) for each in (self.scale, self.shift))
        # In place, as batch norm's backward pass does not need its output.
        return F.relu_(F.batch_norm(x, None, None, scale, shift, training=True))
