"""Fully connected networks: activations and skip connections."""

from nasight.spaces.mlp._network import ACTIVATIONS
from nasight.spaces.mlp._space import Mlp

__all__ = ["ACTIVATIONS", "Mlp"]
