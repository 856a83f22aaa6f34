"""Supernets: one shared-weights network for all architectures of a space."""

from nasight.supernet._base import Supernet

__all__ = ["Supernet"]
