"""How many parameters the stand-alone network of an architecture has, without building each one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice, product

import torch

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces import Space
from nasight.spaces._module import ModuleSpace

LOOKED_AT = 2_000
"""The smallest count of a space without a rule of its own is looked for among so many architectures."""


def read_count(text: str | int) -> int:
    """'300k', '1.5M' or '300000' -> a number of parameters.

    >>> read_count("300k"), read_count("1.5M"), read_count("300000")
    (300000, 1500000, 300000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgG]?)\s*", str(text).replace(",", "").replace("_", ""))
    if match is None or not (count := round(float(match[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match[2].lower()])):
        raise RequestError(f"a number of parameters is written as 300k, 1.5M or 300000, got {text!r}")
    return count


class Parameters:
    """Counts of the networks of a space at one size; what two architectures share is counted once."""

    def __init__(self, space: Space, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> None:
        self.space, self.inputs, self.classes, self.size = space, inputs, classes, dict(size)
        family = space.name.rsplit("-", 1)[0] if space.name.startswith("nasbench1shot1") else space.name
        self._key: Callable[[Architecture], Hashable] = _KEYS.get(family, self._own)
        self._known = dict[Hashable, int]()

    def __call__(self, arch: Architecture) -> int:
        if self.space.name == "darts":
            return self._sum(arch)
        key = self._key(arch)
        if key not in self._known:
            self._known[key] = self._count(arch)
        return self._known[key]

    def smallest(self) -> tuple[int, bool]:
        """The smallest count there is, and whether that is certain: in a large space of one's own it may not be."""
        space, certain = self.space, True
        found: Iterable[Architecture] = ()
        if space.name == "darts":
            found = [self._pooled()]
        elif space.name == "mlp":
            found = islice(space, 1)
        elif space.name.startswith("nasbench1shot1"):
            free = [d for d in space.decisions if not d.name.startswith("operation")]
            pooled = {d.name: "maxpool3x3" for d in space.decisions if d.name.startswith("operation")}
            found = (
                space.architecture({**pooled, **dict(zip((d.name for d in free), options, strict=True))})
                for options in product(*(d.options for d in free))
            )
        else:
            certain = len(space) <= LOOKED_AT or space.name == "nasbench201"
            found = (a for a in islice(space, None if certain else LOOKED_AT) if space.usable(a) is None)
        return min(map(self, found)), certain

    def _own(self, arch: Architecture) -> Hashable:
        return "" if self.space.name == "mlp" else arch

    def _pooled(self) -> Architecture:
        """The DARTS architecture of pools alone: they have no parameters, wherever they stand."""
        from_input = ("0->", "1->")
        decisions = self.space.decisions
        return self.space.architecture(
            {d.name: "max_pool_3x3" if d.name.split()[1].startswith(from_input) else "none" for d in decisions}
        )

    def _sum(self, arch: Architecture) -> int:
        """DARTS: what the operations of both cells add to a network of pools, each measured once."""
        pooled = self._pooled()
        if "" not in self._known:
            self._known[""] = self._count(pooled)
        total = self._known[""]
        for name, option in arch.choices:
            kind, edge = name.split()
            # A skip of stride 2 is a convolution, so whether an edge starts at an input matters.
            place = f"{kind} 0->2" if edge[0] in "01" else f"{kind} 2->3"
            if option == "none":
                continue
            if (place, option) not in self._known:
                with_one = {**dict(pooled.choices), place: option}
                if edge[0] not in "01":
                    with_one[f"{kind} 0->3"] = "none"
                self._known[place, option] = self._count(self.space.architecture(with_one)) - self._known[""]
            total += self._known[place, option]
        return total

    def _count(self, arch: Architecture) -> int:
        if isinstance(self.space, ModuleSpace):
            network = self.space.network(arch, self.inputs, self.classes, **self.size)
        else:
            # On no device at all: shapes without memory.
            with torch.device("meta"):
                network = self.space.network(arch, self.inputs, self.classes, **self.size)
        return sum(p.numel() for p in network.parameters())


def _nasbench201(arch: Architecture) -> Hashable:
    counted = Counter(option for _, option in arch.choices)
    return counted["nor_conv_1x1"], counted["nor_conv_3x3"]


def _nasbench1shot1(arch: Architecture) -> Hashable:
    """The nodes that lead to the output: their operations, how many read the cell's input, and what is joined."""
    choices = dict(arch.choices)
    operations = [option for name, option in arch.choices if name.startswith("operation")]
    inputs = {
        node: choices.get(f"inputs {node}", "+".join(map(str, range(node)))).split("+")
        for node in range(1, len(operations) + 1)
    }
    outputs = choices.get("inputs out", "").split("+")
    alive = set(outputs)
    for node in sorted(inputs, reverse=True):
        if str(node) in alive:
            alive.update(inputs[node])
    nodes = sorted(int(n) for n in alive if n != "0")
    kinds = tuple(sorted(Counter(operations[n - 1] for n in nodes).items()))
    return kinds, sum("0" in inputs[n] for n in nodes), "0" in outputs, len(outputs)


_KEYS: Mapping[str, Callable[[Architecture], Hashable]] = {
    "nasbench201": _nasbench201,
    "nasbench1shot1": _nasbench1shot1,
}
