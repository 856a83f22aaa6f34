"""A network as source: what a space writes, and the pieces of text that several spaces write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """The classes and functions of a file in their order, the last of them `Network`; and the sizes they have."""

    blocks: list[str]
    size: dict[str, int]


def module_text(name: str, says: str, takes: str, made: list[str], reads: str, lines: list[str]) -> str:
    """The class of a cell: `made` are the lines of its constructor, `lines` those of its pass."""
    # A cell without parameters does not need the channels, but is made like the others.
    return f'''
class {name}(nn.Module):
    """{says}"""

    def __init__(self, {takes}) -> None:
        super().__init__()
{indented(made)}
    def forward(self, {reads}) -> Tensor:
{indented(lines)}'''


def indented(lines: list[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)
