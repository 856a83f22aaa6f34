"""A network of an architecture for other data than its space is searched on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkForm:
    """The size of a network, and the data that it is for."""

    data: str
    """What a person calls the data, such as "ImageNet"."""
    inputs: tuple[int, ...]
    classes: int
    size: Mapping[str, int]
