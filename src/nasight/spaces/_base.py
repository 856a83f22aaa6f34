"""What every search space offers: decisions, their options, and the networks built from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError

if TYPE_CHECKING:
    from nasight.supernet import Supernet

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Decision:
    """A question with a finite number of answers."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One tensor of architecture weights: a stack of simplices, one a row.

    A regular group (every row has the same options) is a tensor (rows, options). A ragged one, such as the
    weights of the edges into each node of a cell, is flat: its rows stand one behind the other, `sizes` long.
    Of an `exclusive` row one option is chosen in the end; of any other row (edges) several are kept.
    """

    name: str
    rows: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    exclusive: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(o) for o in self.options)

    @property
    def ragged(self) -> bool:
        return len(set(self.options)) > 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(self.sizes),) if self.ragged else (len(self.rows), self.sizes[0])

    def split(self, weights: Tensor) -> list[Tensor]:
        """The simplices of the group, one tensor a row."""
        return list(torch.split(weights, list(self.sizes))) if self.ragged else list(weights.unbind(0))

    def uniform(self, **kwargs: Any) -> Tensor:
        """The centre of every simplex."""
        rows = [torch.full((size,), 1.0 / size, **kwargs) for size in self.sizes]
        return torch.cat(rows).reshape(self.shape)


class Space(ABC):
    """The decisions and their options; samples, parses and prints architectures; builds the networks.

    What a space can do is declared: `edge_weights` says whether a supernet can weigh the edges of a node
    (PC-DARTS), `partial_channels` whether it can send a part of the channels through the operations.
    """

    name: str
    decisions: tuple[Decision, ...]
    edge_weights: ClassVar[bool] = False
    partial_channels: ClassVar[bool] = False
    sizes: ClassVar[Mapping[str, int]] = {}
    """The size settings of `network` and `supernet`, with their defaults."""

    @abstractmethod
    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """The tensors of architecture weights a supernet takes; with `edges`, those of the edges too."""

    @abstractmethod
    def derive(self, weights: Weights) -> Architecture:
        """The architecture that discretising these weights gives."""

    @abstractmethod
    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        """The weights at which a supernet computes this architecture: ones and zeros."""

    @abstractmethod
    def parse(self, text: str) -> Architecture:
        """The architecture that a text names; a `RequestError` says where a wrong text is wrong."""

    @abstractmethod
    def format(self, arch: Architecture) -> str:
        """The text of an architecture, as the field writes it: `parse(format(a)) == a`."""

    @abstractmethod
    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """A stand-alone network of this architecture."""

    @abstractmethod
    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        """The supernet of this space; `how` is path, edges and partial, all checked."""

    def supernet(
        self,
        inputs: tuple[int, ...] = (3, 32, 32),
        classes: int = 10,
        *,
        path: str = "fast",
        edges: bool = False,
        partial: int = 1,
        **size: Any,
    ) -> Supernet:
        """The network of all architectures; its `path` is "fast" or "plain" (the same function).

        With `edges` the edges into a node have weights too; with `partial` = K one part in K of the channels goes
        through the operations.
        """
        if edges and not self.edge_weights:
            raise RequestError(f"space {self.name!r} has no edge weights, got edges=True")
        if partial != 1 and not self.partial_channels:
            raise RequestError(f"space {self.name!r} has no partial channels, so partial must be 1, got {partial!r}")
        sizes = self.size(**size)
        if partial < 1 or sizes.get("channels", partial) % partial:
            raise RequestError(f"{sizes['channels']} channels cannot be cut into {partial} equal parts")
        return self._supernet(tuple(inputs), classes, sizes, path=path, edges=edges, partial=partial)

    def sample(self, generator: torch.Generator) -> Architecture:
        """An architecture drawn uniformly."""
        return self.architecture(
            {d.name: d.options[int(torch.randint(len(d.options), (), generator=generator))] for d in self.decisions}
        )

    def architecture(self, choices: Mapping[str, str]) -> Architecture:
        """The architecture with these choices, checked against the decisions and put in their order."""
        unknown = sorted(set(choices) - {d.name for d in self.decisions})
        if unknown:
            raise RequestError(f"space {self.name!r} has no decision {unknown[0]!r}")
        for decision in self.decisions:
            if decision.name not in choices:
                raise RequestError(f"space {self.name!r}: decision {decision.name!r} has no option")
            if choices[decision.name] not in decision.options:
                raise RequestError(
                    f"decision {decision.name!r} is {choices[decision.name]!r}, "
                    f"not one of {', '.join(decision.options)}"
                )
        return Architecture(self.name, tuple((d.name, choices[d.name]) for d in self.decisions))

    def questions(self) -> dict[str, tuple[str, ...]]:
        """Questions to be answered independently of each other: the decisions, unless they restrict each other."""
        return {decision.name: decision.options for decision in self.decisions}

    def answered(self, answers: Mapping[str, str]) -> Architecture:
        """The architecture that answers to all `questions` describe."""
        return self.architecture(answers)

    def checked(self, arch: Architecture) -> Architecture:
        """The architecture, or a `RequestError` where it is not one of this space."""
        if arch.space != self.name:
            raise RequestError(f"this architecture is of space {arch.space!r}, not {self.name!r}")
        return self.architecture(dict(arch.choices))

    def usable(self, arch: Architecture) -> str | None:
        """None, or the reason why this architecture is no network (its output does not depend on its input)."""
        return None

    def canonical(self, arch: Architecture) -> str:
        """A text that architectures of the same form share (see each space); every one has its own by default."""
        return self.format(arch)

    def __contains__(self, arch: object) -> bool:
        if not isinstance(arch, Architecture) or arch.space != self.name:
            return False
        try:
            return self.architecture(dict(arch.choices)) == arch
        except RequestError:
            return False

    def __len__(self) -> int:
        return prod(len(d.options) for d in self.decisions)

    def __iter__(self) -> Iterator[Architecture]:
        from itertools import product

        for options in product(*(d.options for d in self.decisions)):
            yield Architecture(self.name, tuple(zip((d.name for d in self.decisions), options, strict=True)))

    def size(self, **given: Any) -> dict[str, int]:
        """The size settings with these changes; unknown names are refused."""
        for key, value in given.items():
            if key not in self.sizes:
                raise RequestError(
                    f"space {self.name!r} has no size {key!r}; it has {', '.join(sorted(self.sizes)) or 'none'}"
                )
            if not isinstance(value, Integral) or value < 1:
                raise RequestError(f"size {key!r} must be a whole number of at least 1, got {value!r}")
        return {**self.sizes, **given}
