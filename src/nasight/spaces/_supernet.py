"""One network for all architectures of a space: shared weights inside, architecture weights from outside."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import ClassVar

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.spaces._dropout import Dropout
from nasight.spaces._groups import Group
from nasight.spaces._placed import placed, zeros_of

PATHS = ("fast", "plain", "compiled")
Cell = Callable[..., Tensor]
CONSTANTS = "constants"
"""Beside the groups, weights may have this entry where a space takes it: a number for every row of operations, added to
each entry of what that edge gives."""


class Supernet(nn.Module, ABC):
    """`supernet(x, weights)`: logits of the mixture that `weights` (one tensor a group) describe.

    An entry that is exactly zero can be left out of the pass. That is right for an architecture in ones and
    zeros and for sampled weights whose estimator ignores what was not drawn, but not for the gradient of a mixture
    with respect to a weight that happens to be zero. So by default zeros are skipped only where no gradient
    of the weights is asked for; `skip_zeros=True` says that the caller's estimator wants it so.

    With `skip_dropout` the numbers behind skip connections that keep the size of the image are dropped at random, in
    training mode alone (P-DARTS). Not every space has it: see `Space.skip_dropout`. With `drop_path` all that an edge
    gives is dropped at random, image by image, in training mode alone (SNAS); the DARTS space alone has it.

    Weights may come from the CPU while the network is on a device: see `Placed`.

    Batch norm always uses the statistics of the batch: those of a running average belong to no single architecture.

    Of the paths to the logits, `plain` goes edge by edge, operation by operation; `fast` computes what these share
    once; `compiled` lets torch compile the plain cells, which takes minutes before the first step.
    """

    compiles: ClassVar[bool] = True
    """Whether there are cells to compile."""

    def __init__(self, groups: tuple[Group, ...], path: str) -> None:
        super().__init__()
        if path not in PATHS:
            raise RequestError(f"path must be one of {', '.join(PATHS)}, got {path!r}")
        if path == "compiled":
            self._check_compiler()
        self.groups = groups
        self.path = path

    def forward(
        self,
        x: Tensor,
        weights: Mapping[str, Tensor],
        *,
        skip_zeros: bool | None = None,
        skip_dropout: Dropout | None = None,
        drop_path: Dropout | None = None,
    ) -> Tensor:
        self._check(weights)
        weights = placed(weights, x.device)
        if skip_zeros is None:
            skip_zeros = not (torch.is_grad_enabled() and any(w.requires_grad for w in weights.values()))
        if skip_dropout is not None and drop_path is not None:
            raise RequestError("a pass has dropout behind skip connections or drops whole edges, not both")
        if skip_dropout is not None and self.training:
            return self._dropped_logits(x, weights, skip_zeros, skip_dropout)
        if drop_path is not None and self.training:
            return self._thinned_logits(x, weights, skip_zeros, drop_path)
        return self._logits(x, weights, skip_zeros)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take the shared weights of a checkpoint; a `RequestError` where they are of another supernet."""
        try:
            self.load_state_dict(state)
        except RuntimeError as error:
            raise RequestError(
                "the checkpoint does not fit, as the supernet of this space has changed since: what was found can be "
                "read, trained and exported, but to resume, explain or rank, run the search again"
            ) from error

    def _cell(self, plain: Cell, fast: Cell, weights: Mapping[str, Tensor], skip_zeros: bool) -> Cell:
        """Which of a cell's functions a pass takes.

        Only training passes that evaluate every operation are compiled: they have one shape. A pass that leaves some
        out would be compiled anew for each set of them, so it takes the fast path, and so does evaluation.
        """
        training = self.path == "compiled" and torch.is_grad_enabled()
        if training and (not skip_zeros or all(bool(zeros_of(weights, name).all()) for name in weights)):
            return compiled(plain)
        return plain if self.path == "plain" else fast

    def _check_compiler(self) -> None:
        if not self.compiles:
            raise RequestError("path 'compiled' is for spaces of cells; this network has none: take 'fast'")
        if not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
            raise RequestError("path 'compiled' needs a C++ compiler (g++ or clang++), and there is none: take 'fast'")

    @abstractmethod
    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        """The pass itself; `weights` have been checked."""

    def _dropped_logits(
        self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool, dropout: Dropout | None
    ) -> Tensor:
        """The pass with dropout behind skip connections, for spaces that say that they have it."""
        raise RequestError("this supernet has no dropout behind skip connections")

    def _thinned_logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool, drop_path: Dropout) -> Tensor:
        """The pass in which whole edges are dropped, image by image."""
        raise RequestError("this supernet does not drop whole edges: the space 'darts' does")

    def _check(self, weights: Mapping[str, Tensor]) -> None:
        for group in self.groups:
            if group.name not in weights:
                raise RequestError(f"weights lack the group {group.name!r}; given: {', '.join(sorted(weights))}")
            if tuple(weights[group.name].shape) != group.shape:
                raise RequestError(
                    f"weights[{group.name!r}] must have shape {group.shape}, got {tuple(weights[group.name].shape)}"
                )


@cache
def compiled(cell: Cell) -> Cell:
    """A cell's function, compiled for each shape it meets."""
    inner = torch.compile(cell, dynamic=False)

    @wraps(cell)
    def call(*args: object) -> Tensor:
        # Widths, kinds of cells, and passes with and without gradients of the weights are more than torch's eight.
        with torch._dynamo.config.patch(recompile_limit=64):
            return inner(*args)

    return call
