"""Spaces of one architecture, with which what a search finds is compared."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces._groups import Decision
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.module._file import attribute_of


class OneArchitecture(Space):
    """A space without a choice: its only architecture goes by the space's name."""

    decisions: tuple[Decision, ...] = ()

    def parse(self, text: str) -> Architecture:
        if text != self.name:
            raise RequestError(f"the only architecture of space {self.name!r} is {self.name!r}, got {text!r}")
        return self.architecture({})

    def format(self, arch: Architecture) -> str:
        self.checked(arch)
        return self.name

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        raise RequestError(f"space {self.name!r} has one architecture: there is nothing to search")

    @abstractmethod
    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """The network itself."""


class PlainSpace(OneArchitecture):
    """A plain network. Images: three 3x3 convolutions with batch norm and pooling; vectors: two hidden layers.

    >>> net = PlainSpace().network(PlainSpace().reference, (1, 8, 8), 10)
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    name = "plain"
    channels_last: ClassVar[bool] = True
    sizes: ClassVar[Mapping[str, int]] = {"channels": 32, "width": 256}

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        self.checked(arch)
        sizes = self.size(**size)
        if len(inputs) != 3:
            width, features = sizes["width"], prod(inputs)
            return nn.Sequential(
                nn.Flatten(), *_dense(features, width), *_dense(width, width), nn.Linear(width, classes)
            )
        layers, channels = list[nn.Module](), inputs[0]
        side = min(inputs[1:])
        for stage in range(3):
            wide = sizes["channels"] * 2**stage
            layers += [nn.Conv2d(channels, wide, 3, padding=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()]
            if side >= 2 and stage < 2:
                layers.append(nn.MaxPool2d(2))
                side //= 2
            channels = wide
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        """The layers as torch prints them, which is how they are written."""
        layers = self.network(arch, inputs, classes, **size)
        assert isinstance(layers, nn.Sequential)
        lines = [f"            nn.{layer!r}," for layer in layers]
        lines[-1] = lines[-1].replace(f"out_features={classes}", "out_features=classes")
        body = "\n".join(lines)
        text = f'''
class Network(nn.Sequential):
    """A plain network: what a person writes first."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__(
{body}
        )
'''
        return Source([text], dict(self.size(**size)))


def _dense(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]


class FixedSpace(OneArchitecture):
    """A model of the user's own, made anew by a function for every training.

    Parameters
    ----------
    build : makes the model; it must have as many outputs as the data has classes.
    name : what it is called.
    """

    builds_without_memory: ClassVar[bool] = False

    def __init__(self, build: Callable[[], nn.Module], name: str = "baseline") -> None:
        if not callable(build):
            raise RequestError(f"{name!r} must be a function that makes a model, got {type(build).__name__}")
        self.build, self.name = build, name
        self.file: str | None = None
        """Where another process finds the function, "path.py:function"."""

    @classmethod
    def from_file(cls, text: str, name: str = "baseline") -> FixedSpace:
        """The model that a function in a Python file makes, "path.py:function"; the file is run."""
        found = cls(attribute_of(text), name)
        found.file = text
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A module made from a file has no name that another process could import.
        return (FixedSpace, (self.build, self.name)) if self.file is None else (_from_file, (self.file, self.name))

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        self.checked(arch)
        self.size(**size)
        try:
            made = self.build()
        except (Exception, SystemExit) as error:
            raise RequestError(f"what makes {self.name!r} cannot make a model: {_told(error)}") from error
        if not isinstance(made, nn.Module):
            raise RequestError(f"what makes {self.name!r} must give an nn.Module, it gave {type(made).__name__}")
        made.eval()
        try:
            with torch.no_grad():
                out = made(torch.zeros(2, *inputs))
        except (Exception, SystemExit) as error:
            raise RequestError(f"{self.name!r} does not take examples of shape {inputs}: {_told(error)}") from error
        if not isinstance(out, Tensor) or tuple(out.shape) != (2, classes):
            shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise RequestError(f"{self.name!r} must give {classes} outputs per example, it gave {shape} for two")
        return made.train()


def _told(error: BaseException) -> str:
    """An error of the user's code, in a line."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _from_file(text: str, name: str) -> FixedSpace:
    return FixedSpace.from_file(text, name)
