"""Networks of cells as source: the operations in use, each cell's wiring written out, and `Network`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nasight.architecture import Architecture
from nasight.export import _templates as t
from nasight.spaces._darts import EVALUATION, Darts
from nasight.spaces._darts_text import INPUTS, KINDS, Cell, cell
from nasight.spaces._nasbench1shot1 import NasBench1Shot1
from nasight.spaces._nasbench201 import EDGES, NODES, NasBench201, edge_name, image_channels

SEPARABLE = {"sep_conv": "SeparableConv", "dil_conv": "DilatedConv"}


@dataclass(frozen=True)
class Parts:
    """The classes and functions of a file in their order, the last of them `Network`; and the sizes they have."""

    blocks: list[str]
    size: dict[str, int]


def nasbench201(space: NasBench201, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Any) -> Parts:
    """Modules are registered in the order of nasight's own network, so that weights can be carried over."""
    sizes = space.size(**size)
    options = {edge: arch[edge_name(*edge)] for edge in EDGES}
    alive = _leading_to_output(options)
    made, lines = list[str](), list[str]()
    for source, target in EDGES:
        kernel = {"nor_conv_1x1": 1, "nor_conv_3x3": 3}.get(options[source, target])
        if kernel is not None:
            unused = "" if target in alive else "  # leads nowhere; kept so that trained weights fit"
            made.append(f"self.conv_{source}_{target} = ReluConvNorm(channels, channels, {kernel}){unused}")
    for target in range(1, NODES):
        if target in alive:
            terms = [_edge201(options[source, target], source, target) for source in range(target)]
            kept = [term for term in terms if term] or ["torch.zeros_like(x0)"]
            lines.append(f"x{target} = {' + '.join(kept)}" if target < NODES - 1 else f"return {' + '.join(kept)}")
    cell_text = _module(
        "Cell", "The cell that was found: x1 and x2 are its inner nodes.", "channels: int", made, "x0: Tensor", lines
    )
    pools = [t.AVG_POOL] if any("avg_pool" in line for line in lines) else []
    network = f'''
class Network(nn.Module):
    """Stem, three stages of cells at {sizes["channels"]}, twice and four times as many channels, linear head."""

    def __init__(self, classes: int = CLASSES, colours: int = {image_channels(inputs)}) -> None:
        super().__init__()
        channels, cells = {sizes["channels"]}, {sizes["cells"]}
        stem = [nn.Conv2d(colours, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        layers = [nn.Sequential(*stem), *(Cell(channels) for _ in range(cells))]
        for width in (2 * channels, 4 * channels):
            layers += [ResidualReduction(width // 2, width), *(Cell(width) for _ in range(cells))]
        self.body = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(4 * channels)
        self.classifier = nn.Linear(4 * channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.body(x)))
        return self.classifier(features.mean((2, 3)))
'''
    return Parts([*pools, t.RELU_CONV_NORM, t.RESIDUAL_REDUCTION, cell_text, network], sizes)


def _edge201(option: str, source: int, target: int) -> str:
    if option == "none":
        return ""
    if option == "skip_connect":
        return f"x{source}"
    return f"avg_pool(x{source})" if option == "avg_pool_3x3" else f"self.conv_{source}_{target}(x{source})"


def _leading_to_output(options: dict[tuple[int, int], str]) -> set[int]:
    alive = {NODES - 1}
    for source, target in sorted(EDGES, key=lambda edge: -edge[1]):
        if target in alive and options[source, target] != "none":
            alive.add(source)
    return alive


def darts(space: Darts, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Any) -> Parts:
    """Without the auxiliary head and drop path, which are for training."""
    sizes = space.size(**{**EVALUATION, **size})
    designs = {kind: cell(arch, kind) for kind in KINDS}
    texts = [_darts_cell("NormalCell", designs["normal"], 1), _darts_cell("ReductionCell", designs["reduce"], 2)]
    joined = "\n".join(texts)
    network = f'''
class Network(nn.Module):
    """Stem, {sizes["cells"]} cells with a reduction after each third, global pooling, linear layer."""

    def __init__(self, classes: int = CLASSES, colours: int = {image_channels(inputs)}) -> None:
        super().__init__()
        channels, cells = {sizes["channels"]}, {sizes["cells"]}
        before = last = 3 * channels
        self.stem = nn.Sequential(nn.Conv2d(colours, last, 3, padding=1, bias=False), nn.BatchNorm2d(last))
        self.cells = nn.ModuleList()
        after_reduction = False
        for index in range(cells):
            reduction = index in (cells // 3, 2 * cells // 3)
            channels *= 2 if reduction else 1
            kind = ReductionCell if reduction else NormalCell
            self.cells.append(kind(before, last, channels, after_reduction))
            before, last, after_reduction = last, kind.joined * channels, reduction
        self.classifier = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        before = last = self.stem(x)
        for cell in self.cells:
            before, last = last, cell(before, last)
        return self.classifier(last.mean((2, 3)))
'''
    used = {
        "SeparableConv(": t.SEPARABLE_CONV,
        "DilatedConv(": t.DILATED_CONV,
        "FactorizedConv(": t.FACTORIZED_CONV,
        "avg_pool(": t.AVG_POOL,
        "max_pool(": t.MAX_POOL,
    }
    operations = [text for word, text in used.items() if word in joined]
    return Parts([t.RELU_CONV_NORM, t.FACTORIZED_REDUCE, *operations, *texts, network], sizes)


def _darts_cell(name: str, design: Cell, stride: int) -> str:
    made, lines, terms = list[str](), list[str](), list[str]()
    for number, (node, source, option) in enumerate(design.entries):
        step = stride if source < INPUTS else 1
        made_here, term = _darts_edge(option, source, node, step, number % 2)
        made += [made_here] if made_here else []
        terms.append(term)
        if len(terms) == 2:
            lines.append(f"x{node} = {terms[0]} + {terms[1]}")
            terms.clear()
    lines.append(f"return torch.cat([{', '.join(f'x{n}' for n in design.concat)}], 1)")
    # A node that nothing reads would be a variable without a use.
    text = "\n".join(lines)
    lines = [line for line in lines if line.startswith("return") or text.count(line.split(" ")[0]) > 1]
    what = "reduction" if stride == 2 else "normal"
    return f'''
class {name}(nn.Module):
    """The {what} cell that was found: x0 and x1 come from the two cells before."""

    joined = {len(design.concat)}

    def __init__(self, before: int, last: int, channels: int, after_reduction: bool) -> None:
        super().__init__()
        fit = FactorizedReduce(before, channels) if after_reduction else ReluConvNorm(before, channels, 1)
        self.fit_0, self.fit_1 = fit, ReluConvNorm(last, channels, 1)
{_indented(made)}
    def forward(self, before: Tensor, last: Tensor) -> Tensor:
        x0, x1 = self.fit_0(before), self.fit_1(last)
{_indented(lines)}'''


def _darts_edge(option: str, source: int, node: int, stride: int, place: int) -> tuple[str, str]:
    """The line that makes the operation of an edge, if it has parameters, and the term of the sum."""
    strided = ", stride=2" if stride == 2 else ""
    if option in ("max_pool_3x3", "avg_pool_3x3"):
        return "", f"{option[:8]}(x{source}{strided})"
    if option == "skip_connect" and stride == 1:
        return "", f"x{source}"
    # Two operations of a node may read the same input, so the name tells them apart.
    name = f"self.op_{node}{'ab'[place]}"
    if option == "skip_connect":
        return f"{name} = FactorizedReduce(channels, channels)", f"{name}(x{source})"
    if option == "conv_7x1_1x7":
        return f"{name} = FactorizedConv(channels{strided})", f"{name}(x{source})"
    return f"{name} = {SEPARABLE[option[:8]]}(channels, {option[-1]}{strided})", f"{name}(x{source})"


def nasbench1shot1(
    space: NasBench1Shot1, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Any
) -> Parts:
    sizes = space.size(**size)
    *read, outputs = space.inputs_of(arch)
    alive = set(outputs)
    for node in range(space.nodes, 0, -1):
        if node in alive:
            alive.update(read[node - 1])
    nodes, past = sorted(alive - {0}), 0 in outputs
    kinds = {node: arch[f"operation {node}"] for node in nodes}
    made = [
        f"self.conv_{n} = ConvNormRelu(channels, channels, {3 if kinds[n].startswith('conv3x3') else 1})"
        for n in nodes
        if kinds[n] != "maxpool3x3"
    ]
    made += [f"self.input_to_{n} = ConvNormRelu(channels_in, channels, 1)" for n in nodes if 0 in read[n - 1]]
    if past:
        made.append(f"self.input_to_out = ConvNormRelu(channels_in, {space.nodes} * channels, 1)")
    lines = list[str]()
    for node in nodes:
        terms = [f"self.input_to_{node}(x)" if source == 0 else f"x{source}" for source in read[node - 1]]
        mean = terms[0] if len(terms) == 1 else f"({' + '.join(terms)}) / {len(terms)}"
        lines.append(f"x{node} = {'max_pool' if kinds[node] == 'maxpool3x3' else f'self.conv_{node}'}({mean})")
    blocks = tuple(range(1, space.nodes + 1)) if past else outputs
    if any(n not in outputs for n in blocks):
        lines.append(f"nothing = torch.zeros_like(x{nodes[0]})")
    joined = f"torch.cat([{', '.join(f'x{n}' if n in outputs else 'nothing' for n in blocks)}], 1)"
    lines.append(
        f"return ({joined} + self.input_to_out(x)) / {len(outputs)}" if past else f"return {joined} / {len(outputs)}"
    )
    cell_text = _module(
        "Cell",
        "The cell that was found: x1, x2, ... are its nodes.",
        "channels_in: int, channels: int",
        made,
        "x: Tensor",
        lines,
    )
    network = f'''
class Network(nn.Module):
    """Convolution, three stacks of cells at {sizes["channels"]}, twice and four times as many channels, linear head."""

    def __init__(self, classes: int = CLASSES, colours: int = {image_channels(inputs)}) -> None:
        super().__init__()
        channels, cells = {sizes["channels"]}, {sizes["cells"]}
        layers: list[nn.Module] = [ConvNormRelu(colours, channels, 3)]
        width = channels
        for stack in range(3):
            if stack:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
            for _ in range(cells):
                layers.append(Cell(width, channels * 2**stack))
                width = {len(blocks)} * channels * 2**stack
        self.body = nn.Sequential(*layers)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.body(x).mean((2, 3)))
'''
    pools = [t.MAX_POOL] if any("max_pool" in line for line in lines) else []
    return Parts([*pools, t.CONV_NORM_RELU, cell_text, network], sizes)


def _module(name: str, says: str, takes: str, made: list[str], reads: str, lines: list[str]) -> str:
    # A cell without parameters does not need the channels, but is made like the others.
    return f'''
class {name}(nn.Module):
    """{says}"""

    def __init__(self, {takes}) -> None:
        super().__init__()
{_indented(made)}
    def forward(self, {reads}) -> Tensor:
{_indented(lines)}'''


def _indented(lines: list[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)
