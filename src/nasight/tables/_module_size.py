"""How large the benchmark's network of a cell of NAS-Bench-101 is."""

from __future__ import annotations

from dataclasses import dataclass

from nasight.tables._modules import Module

CHANNELS, SIDE, CLASSES = 128, 32, 10
STACKS, MODULES = 3, 3
"""Three stacks of three cells; before the second and third the image is halved, and the channels are doubled."""


@dataclass(frozen=True)
class ModuleSize:
    """Parameters of the network, and products of its convolutions and its last layer for one image.

    >>> ModuleSize.of(Module.parse("conv3x3-bn-relu(0)|out(1)"))
    ModuleSize(parameters=10177674, multiply_adds=1496716288)
    """

    parameters: int = 0
    multiply_adds: int = 0

    @classmethod
    def of(cls, module: Module) -> ModuleSize:
        """Of a cell that is pruned: every node is on a path from the input to the output."""
        size, given, side = cls().with_convolution(3, 3, CHANNELS, SIDE), CHANNELS, SIDE
        for stack in range(STACKS):
            for place in range(MODULES):
                first = stack > 0 and place == 0
                side, wide = (side // 2, 2 * given) if first else (side, given)
                for kernel, inner, outer in _convolutions(module, given, wide):
                    size = size.with_convolution(kernel, inner, outer, side)
                given = wide
        last = given * CLASSES
        return cls(size.parameters + last + CLASSES, size.multiply_adds + last)

    def with_convolution(self, kernel: int, given: int, wide: int, side: int) -> ModuleSize:
        """With one more convolution, which has no bias, and the scale and shift of its batch norm."""
        weights = kernel**2 * given * wide
        return ModuleSize(self.parameters + weights + 2 * wide, self.multiply_adds + weights * side**2)


def _convolutions(module: Module, given: int, wide: int) -> list[tuple[int, int, int]]:
    """Kernel, input and output channels of each in a cell; a 1x1 brings the cell's input to whoever reads it."""
    found = [(1, given, wide)] if 0 in module.inputs[-1] else []
    for node, channels in _channels(module, wide).items():
        if 0 in module.inputs[node - 1]:
            found.append((1, given, channels))
        name = module.operations[node - 1]
        if name.startswith("conv"):
            found.append((int(name[len("conv")]), channels, channels))
    return found


def _channels(module: Module, wide: int) -> dict[int, int]:
    """Channels of each node: those that the output reads share its channels, others have those of their widest reader.

    Where they do not divide evenly, the first nodes have one more.
    """
    last = [node for node in module.inputs[-1] if node > 0]
    found = {node: wide // len(last) + (place < wide % len(last)) for place, node in enumerate(last)}
    for node in range(len(module.operations), 0, -1):
        if node not in found:
            readers = range(node + 1, len(module.operations) + 1)
            found[node] = max(found[reader] for reader in readers if node in module.inputs[reader - 1])
    return found
