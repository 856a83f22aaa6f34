"""What every search space offers: decisions, their options, and the networks built from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from math import prod
from numbers import Integral
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.memory import check_room
from nasight.spaces._alternatives import Alternatives
from nasight.spaces._counts import MultiplyAdds, Parameters
from nasight.spaces._form import NetworkForm
from nasight.spaces._graph import CellGraph
from nasight.spaces._groups import Decision, Group, Weights
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet

PRESETS = ("tiny", "small", "paper")
"""Sizes that go together: seconds on a laptop, minutes, and what the papers did."""


MOST_SIZE, MOST_CELLS = 2**16, 1_000
"""Beyond these no size is built: a folder or a slip of the finger must not take a machine's memory."""
LARGE = 512
"""Beyond this a supernet is first built without memory, to see how much it needs."""
TAKEN = 12
"""Bytes for each weight: itself, its gradient and its momentum."""


class Space(ABC):
    """The decisions and their options, the networks built from them, and every fact about them that others need.

    A space of your own sets `name` and `decisions` and defines `network` and `_supernet`. Everything else has a
    default, which suits decisions that do not restrict each other: one group "choices" with a row per decision, the
    arg max of every row, and texts like "name=option, name=option". The class attributes below are what the rest of
    the library asks a space for; it never asks for its name.
    """

    name: str
    decisions: tuple[Decision, ...]

    edge_weights: ClassVar[bool] = False
    """Whether a supernet can weigh the edges into a node (PC-DARTS)."""
    channels_last: ClassVar[bool] = False
    """Whether its networks may hold images with the channels last, which a CPU is faster with."""
    partial_channels: ClassVar[bool] = False
    """Whether a supernet can send a part of the channels through the operations (PC-DARTS)."""
    constants: ClassVar[bool] = False
    """Whether the supernet takes a number for every edge that is added to all that leaves it (`CONSTANTS`; GDAS)."""
    per_example: ClassVar[bool] = False
    """Whether the plain path of the supernet takes other weights for every example of a batch (XNAS)."""
    skip_dropout: ClassVar[bool] = False
    """Whether a supernet drops numbers behind its skip connections on request, or has none to drop (P-DARTS)."""
    plain_reference: ClassVar[bool] = False
    """Whether the reference is the plain network that a person writes first: then no other has to run along."""
    builds_without_memory: ClassVar[bool] = True
    """Whether `network` can be built on torch's device "meta", where weights have shapes and no values."""

    sizes: ClassVar[Mapping[str, int]] = {}
    """The size settings of `network` and `supernet`, with their defaults."""
    optional_sizes: ClassVar[Mapping[str, int]] = {}
    """Further size settings, with what holds where they are not given; they are at least that."""
    search_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {}
    """Preset -> the size of the supernet; `sizes` where a preset is not listed."""
    train_settings: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"epochs": 8, "batch_size": 32, "lr": 0.05},
        "small": {"epochs": 20, "lr": 0.05},
    }
    """Preset -> how its networks are trained from scratch: settings of `nasight.train`, their size among them."""
    photo_pixels: ClassVar[Mapping[str, int]] = {}
    """Preset -> pixels per side of the photos it was published for: photos are brought to it, and changed at random as
    published, where the caller says nothing else. Other data stay as they are."""
    score_size: ClassVar[Mapping[str, int]] = {}
    """The size at which networks are scored without training."""
    prune_size: ClassVar[Mapping[str, int]] = {}
    """The size of the networks whose kernels TE-NAS conditions; empty: `score_size`."""
    thin_size: ClassVar[Mapping[str, int]] = {}
    """The smallest size that makes sense, for scores that count linear regions; empty: they take `score_size`."""
    search_options: ClassVar[Mapping[str, Any]] = {}
    """Options with which the space is searched where the caller names none."""
    cosine_stretch: ClassVar[float] = 1.0
    """Over how many times the epochs of a search the cosine of its learning rate is laid."""
    stages: ClassVar[int] = 1
    """How often the size "cells" is repeated in a network: 3 where each of three stages has as many."""
    study_cells: ClassVar[int] = 1
    """The size "cells" of the networks that variants of one cell are compared by."""
    repeated_inputs: ClassVar[bool] = False
    """Whether two operations of a node of a cell may read the same input."""
    published: ClassVar[Mapping[str, str]] = {}
    """Names of published architectures, and where they were published."""
    found_by: ClassVar[Mapping[str, str]] = {}
    """Names of published architectures -> the method that found them, where it is one of this library's."""
    transferred: ClassVar[Mapping[str, NetworkForm]] = {}
    """Names of published architectures -> the network that other, larger data was published with."""
    pruned: ClassVar[str | None] = None
    """The option of a decision that is not taken at all, where a space keeps only some of its edges."""

    @property
    def family(self) -> str:
        """The name that variants of a space share."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """The options with which `nasight.spaces.load(space.name, **options)` makes this space again."""
        return {}

    @property
    def reference(self) -> Architecture:
        """What a person would have used without a search: the first option of every decision, unless a space says so.

        It may have an option that a search leaves out; `network` builds it all the same.
        """
        return self.architecture({d.name: d.options[0] for d in self.decisions})

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """The tensors of architecture weights a supernet takes; with `edges`, those of the edges too."""
        return (Group("choices", tuple(d.name for d in self.decisions), tuple(d.options for d in self.decisions)),)

    def derive(self, weights: Weights) -> Architecture:
        """The architecture that discretizing these weights gives: the arg max of every decision."""
        choices = dict[str, str]()
        for group in self.groups():
            for name, options, row in zip(group.rows, group.options, group.split(weights[group.name]), strict=True):
                choices[name] = options[int(row.argmax())]
        return self.architecture(choices)

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        """The weights at which a supernet computes this architecture: ones and zeros."""
        self.checked(arch)
        found = dict[str, Tensor]()
        for group in self.groups(edges=edges):
            rows = zip(group.rows, group.options, strict=True)
            ones = [torch.tensor([float(option == arch[name]) for option in options]) for name, options in rows]
            found[group.name] = group.join(ones)
        return found

    def parse(self, text: str) -> Architecture:
        """The architecture that a text names; a `RequestError` says where a wrong text is wrong.

        By default from "name=option, name=option", in any order.
        """
        choices = dict[str, str]()
        for i, entry in enumerate(text.split(","), 1):
            name, equals, option = (part.strip() for part in entry.partition("="))
            if not equals:
                raise RequestError(f"part {i}: expected 'name=option', got {entry.strip()!r}")
            if name in choices:
                raise RequestError(f"part {i}: choice {name!r} is decided twice")
            choices[name] = option
        return self.architecture(choices)

    def format(self, arch: Architecture) -> str:
        """The text of an architecture, as the field writes it: `parse(format(a)) == a`."""
        return ", ".join(f"{name}={option}" for name, option in self.checked(arch))

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
        if self.builds_without_memory and max(sizes.values(), default=0) > LARGE:
            self._check_room(tuple(inputs), classes, sizes, path=path, edges=edges, partial=partial)
        if partial < 1 or sizes.get("channels", partial) % partial:
            raise RequestError(f"{sizes['channels']} channels cannot be cut into {partial} equal parts")
        return self._supernet(tuple(inputs), classes, sizes, path=path, edges=edges, partial=partial)

    def thin_network(self, arch: Architecture, inputs: tuple[int, ...], classes: int, **size: Any) -> nn.Module:
        """The smallest network of an architecture, for counting linear regions; by default that of `thin_size`."""
        return self.network(arch, inputs, classes, **{**size, **self.thin_size})

    def pruning_supernet(self, inputs: tuple[int, ...], classes: int, *, thin: bool = False, **size: Any) -> Supernet:
        """The supernet that TE-NAS prunes; `thin` for counting linear regions, by default at `thin_size`."""
        return self.supernet(inputs, classes, path="plain", **({**size, **self.thin_size} if thin else size))

    def _check_room(self, inputs: tuple[int, ...], classes: int, sizes: dict[str, int], **how: Any) -> None:
        """Refuse a supernet whose weights do not fit into memory, before they take any."""
        with torch.device("meta"):
            bare = self._supernet(inputs, classes, sizes, **how)
        weights = TAKEN * sum(p.numel() for p in bare.parameters())
        shown = ", ".join(f"{name} {value}" for name, value in sizes.items())
        check_room(weights, f"a supernet of space {self.name!r} with {shown}")

    def bare_network(self, arch: Architecture, inputs: tuple[int, ...], classes: int, **size: Any) -> nn.Module | None:
        """The network without memory for its weights; None where this space cannot build that.

        One that cannot be built, or whose weights would not fit into memory, is refused.
        """
        if not self.builds_without_memory:
            return None
        shown = ", ".join([f"inputs {inputs}", f"{classes} outputs", *(f"{k} {v}" for k, v in size.items())])
        try:
            with torch.device("meta"):
                network = self.network(arch, inputs, classes, **size)
        except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
            first = str(error).partition("\n")[0]
            raise RequestError(f"a network of space {self.name!r} with {shown} cannot be built: {first}") from error
        check_room(
            TAKEN * sum(p.numel() for p in network.parameters()), f"a network of space {self.name!r} with {shown}"
        )
        return network

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
            known = {**self.sizes, **self.optional_sizes}
            if key not in known:
                raise RequestError(
                    f"space {self.name!r} has no size {key!r}; it has {', '.join(sorted(known)) or 'none'}"
                )
            least = self.optional_sizes.get(key, 1)
            if not isinstance(value, Integral) or value < least:
                raise RequestError(f"size {key!r} must be a whole number of at least {least}, got {value!r}")
            most = MOST_CELLS if key == "cells" else MOST_SIZE
            if int(value) > most:
                raise RequestError(f"size {key!r} must be at most {most:,}, got {value:.6g}")
        usual = self.optional_sizes
        return {**self.sizes, **{key: value for key, value in given.items() if usual.get(key) != value}}

    def train_size(self, preset: str) -> dict[str, int] | None:
        """The size at which networks of this preset are trained from scratch; None where there is no such preset."""
        if preset not in self.train_settings:
            return None
        return self.size(**self.train_settings[preset].get("size", {}))

    # What trust, limits and scores ask

    def alternatives(self, arch: Architecture, weights: Weights) -> Iterator[Alternatives]:
        """What else each decision of this architecture could have been, all others left as they are."""
        group_of = {row: group.name for group in self.groups() for row in group.rows}
        for decision in self.decisions:
            archs = tuple(arch.replace(decision.name, option) for option in decision.options)
            rows = ((group_of[decision.name], decision.name),) if decision.name in group_of else ()
            yield Alternatives(decision.name, arch[decision.name], decision.options, archs, rows)

    def changed(self, arch: Architecture, decision: str, option: str) -> Architecture | None:
        """The architecture with this one change; None where it is no change, or gives no architecture of the space."""
        if arch[decision] == option:
            return None
        return self.architecture({**dict(arch.choices), decision: option})

    def neighbors(self, arch: Architecture) -> Iterator[Architecture]:
        """The architectures that are one change away, in the order of the decisions and their options."""
        for decision in self.decisions:
            for option in decision.options:
                near = self.changed(arch, decision.name, option)
                if near is not None:
                    yield near

    def well_elsewhere(self, data: str) -> tuple[Architecture, ...]:
        """What did better than the reference in the same time on data sets other than this one, the best first.

        Of most spaces nothing is known.
        """
        return ()

    def reduces(self, decision: str) -> bool:
        """Whether a decision is about a cell that halves the image, where a skip connection is none."""
        return False

    def parameters(self, inputs: tuple[int, ...], classes: int, **size: int) -> Parameters:
        """A function from architectures to the number of parameters of their networks at this size."""
        return Parameters(self, inputs, classes, size)

    def multiply_adds(self, inputs: tuple[int, ...], classes: int, **size: int) -> MultiplyAdds:
        """A function from architectures to the multiply-adds per example of their networks; None: not known."""
        return MultiplyAdds(self, inputs, classes, size)

    def counts_alike(self, arch: Architecture) -> Hashable:
        """A key that architectures share whose networks have equally many parameters and multiply-adds."""
        return arch

    def counted(self, arch: Architecture, built: Callable[[Architecture], int]) -> int:
        """The parameters or multiply-adds of an architecture; `built` counts those of a network, each key's once.

        A space whose networks are sums of parts needs to build fewer of them.
        """
        return built(arch)

    def lightest(self) -> tuple[Architecture, ...]:
        """Architectures among which is one with the fewest parameters; empty: all must be looked at."""
        return ()

    # What drawings and written files ask

    def described(self, arch: Architecture, **size: int) -> tuple[str, ...]:
        """The network in words, a line for each part, where the text of the architecture is short for them."""
        return ()

    def cells(self, arch: Architecture) -> dict[str, CellGraph]:
        """The cells of an architecture as graphs, by their kind; empty where architectures are no cells."""
        return {}

    def from_cells(self, cells: Mapping[str, CellGraph]) -> Architecture:
        """The architecture of these cells: the way back from `cells`."""
        raise RequestError(f"architectures of space {self.name!r} are not made of cells")

    def read_cells(self, text: str) -> dict[str, CellGraph] | None:
        """The cells that a text describes in this space's way of writing; None where it is written in another."""
        return None

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        """The network of an architecture as the text of Python classes that need torch alone."""
        raise RequestError(f"networks of space {self.name!r} cannot be written as source; take --torch-export net.pt2")
