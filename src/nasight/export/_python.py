"""The network of an architecture as the text of one Python file that needs torch alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from torch import nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces import Source, Space


@dataclass(frozen=True)
class ExportDesign:
    """What is to be written: an architecture, and the network it is to be."""

    space: Space
    arch: Architecture
    inputs: tuple[int, ...] = (3, 32, 32)
    classes: int = 10
    size: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # They go into source that is run, and may come from the file of a stranger.
        for what, number in (*(("input", n) for n in self.inputs), ("classes", self.classes), *self.size.items()):
            if type(number) is not int or number < 1:
                raise RequestError(f"sizes of a network are whole numbers of at least 1, got {number!r} for {what}")

    def network(self) -> nn.Module:
        """nasight's own network of this design."""
        return self.space.network(self.arch, self.inputs, self.classes, **self.size)

    def multiply_adds(self) -> int | None:
        """Those of the network for one example; None where they cannot be counted."""
        return self.space.multiply_adds(self.inputs, self.classes, **self.size)(self.arch)


def python_source(
    design: ExportDesign,
    *,
    weights: str | None = None,
    statistics: tuple[Sequence[float], Sequence[float]] | None = None,
) -> str:
    """The text of the file: the operations used, the cells written out, `Network`, `load`, and a small main.

    `weights` is the name of the file of trained weights that lies beside it, of torch (.pt) or .safetensors;
    `statistics` mean and deviation of the channels it was trained on.
    """
    space, arch = design.space, design.arch
    reason = space.usable(arch)
    if reason is not None:
        raise RequestError(f"{space.format(arch)} is not a network: {reason}")
    parts = space.source(arch, design.inputs, design.classes, dict(design.size))
    products = design.multiply_adds()
    head, tail = _head(design, parts, weights, statistics, products), _tail(weights, statistics, products)
    sections = [head, *parts.blocks, tail]
    return "\n\n\n".join(section.strip("\n") for section in sections) + "\n"


def module_from(source: str) -> nn.Module:
    """The network of a text that `python_source` wrote."""
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(source, "exported", "exec"), names)
    network: nn.Module = names["Network"]()
    return network


def predict_source() -> str:
    """The text of a program that predicts with the model folder in which it lies, without nasight."""
    return files("nasight.export").joinpath("_alone.py").read_text("utf-8")


def _head(
    design: ExportDesign,
    parts: Source,
    weights: str | None,
    statistics: tuple[Sequence[float], Sequence[float]] | None,
    products: int | None,
) -> str:
    size = ", ".join(f"{name} {value}" for name, value in parts.size.items())
    functional = ["import torch.nn.functional as F"] if any("F." in block for block in parts.blocks) else []
    pathlib = ["from pathlib import Path", ""] if weights else []
    needs = "torch, and safetensors for its weights" if _safe(weights) else "torch alone"
    shape = ", ".join(map(str, design.inputs)) + ("," if len(design.inputs) == 1 else "")
    lines = [
        f'"""A network found with nasight (space {design.space.name}, {size}); it needs {needs}.',
        "",
        "    python THIS_FILE    prints the size of the network and the shape of its output",
        '"""',
        "",
        *pathlib,
        "import torch",
        *functional,
        "from torch import Tensor, nn",
        "",
        f"ARCHITECTURE = {_quoted(design.space.format(design.arch))}",
        f"INPUTS = ({shape})",
        f"CLASSES = {design.classes}",
    ]
    if products is not None:
        lines.append(f"MULTIPLY_ADDS = {products}  # per example")
    if weights:
        lines.append(f"WEIGHTS = Path(__file__).with_name({_quoted(weights)})")
    if statistics is not None:
        lines += [
            f"{name} = {list(map(float, values))}" for name, values in zip(("MEAN", "STD"), statistics, strict=True)
        ]
    return "\n".join(lines)


def _tail(weights: str | None, statistics: tuple[Sequence[float], Sequence[float]] | None, products: int | None) -> str:
    counted = "" if products is None else ", {MULTIPLY_ADDS:,} multiply-adds per example"
    path = "path: str | Path = WEIGHTS" if weights else "path: str"
    safe = _safe(weights)
    prepare = [
        "def prepare(x: Tensor) -> Tensor:",
        '    """Inputs as the network was trained on them; images come with values from 0 to 1."""',
        "    shape = (1, -1) + (1,) * (x.dim() - 2)",
        "    return (x - torch.tensor(MEAN).view(shape)) / torch.tensor(STD).view(shape)",
        "",
        "",
    ]
    return "\n".join(
        [
            *(prepare if statistics is not None else []),
            f"def load({path}) -> Network:",
            '    """The network with trained weights, ready to be used."""',
            *(["    from safetensors.torch import load_file", ""] if safe else []),
            "    network = Network()",
            f"    network.load_state_dict({'load_file(path)' if safe else 'torch.load(path, weights_only=True)'})",
            "    return network.eval()",
            "",
            "",
            'if __name__ == "__main__":',
            f"    network = {'load()' if weights else 'Network().eval()'}",
            "    parameters = sum(p.numel() for p in network.parameters())",
            "    output = network(torch.randn(2, *INPUTS))",
            f'    print(f"{{parameters:,}} parameters{counted}, output {{tuple(output.shape)}}")',
        ]
    )


def _safe(weights: str | None) -> bool:
    return weights is not None and weights.endswith(".safetensors")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
