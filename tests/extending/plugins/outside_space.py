"""A space from outside: a small network for images that chooses the kernel of a convolution and a way of pooling."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from nasight.spaces import CellGraph, Decision, Group, Source, Space, Supernet

KERNELS, POOLS = {"wide": 3, "narrow": 1}, {"max": nn.AdaptiveMaxPool2d, "mean": nn.AdaptiveAvgPool2d}


def convolution(name: str, colors: int, channels: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(colors, channels, KERNELS[name], padding="same"), nn.BatchNorm2d(channels))


class Pooled(Space):
    name = "pooled"
    decisions = (Decision("kernel", tuple(KERNELS)), Decision("pool", tuple(POOLS)))
    sizes: ClassVar[dict[str, int]] = {"channels": 8}
    search_sizes: ClassVar[dict[str, dict[str, int]]] = {"tiny": {"channels": 4}}

    def network(self, arch: Any, inputs: Any = (3, 32, 32), classes: int = 10, **size: Any) -> nn.Module:
        n = self.size(**size)["channels"]
        pool = POOLS[arch["pool"]](1)
        return nn.Sequential(
            convolution(arch["kernel"], inputs[0], n), nn.ReLU(), pool, nn.Flatten(), nn.Linear(n, classes)
        )

    def _supernet(self, inputs: Any, classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        return PooledSupernet(self.groups(), inputs[0], classes, size["channels"], how["path"])

    def cells(self, arch: Any) -> dict[str, CellGraph]:
        return {"cell": CellGraph(1, 1, ((0, 1, arch["kernel"]), (1, 2, arch["pool"])), ())}

    def from_cells(self, cells: Any) -> Any:
        (_, _, kernel), (_, _, pool) = cells["cell"].edges
        return self.architecture({"kernel": kernel, "pool": pool})

    def source(self, arch: Any, inputs: Any, classes: int, size: Any) -> Source:
        n, k, pool = self.size(**size)["channels"], KERNELS[arch["kernel"]], POOLS[arch["pool"]].__name__
        layers = f"nn.Sequential(nn.Conv2d({inputs[0]}, {n}, {k}, padding='same'), nn.BatchNorm2d({n})), nn.ReLU()"
        body = f"super().__init__({layers}, nn.{pool}(1), nn.Flatten(), nn.Linear({n}, CLASSES))"
        return Source([f"class Network(nn.Sequential):\n    def __init__(self):\n        {body}"], {"channels": n})


class PooledSupernet(Supernet):
    def __init__(self, groups: tuple[Group, ...], colors: int, classes: int, channels: int, path: str) -> None:
        super().__init__(groups, path)
        self.convolutions = nn.ModuleList(convolution(name, colors, channels) for name in KERNELS)
        self.head = nn.Linear(channels, classes)

    def _logits(self, x: Any, weights: Any, skip_zeros: bool) -> Any:
        kernel, pool = self.groups[0].split(weights["choices"])
        h = sum(w * c(x) for w, c in zip(kernel, self.convolutions, strict=True)).relu()
        return self.head(pool[0] * h.amax((2, 3)) + pool[1] * h.mean((2, 3)))
