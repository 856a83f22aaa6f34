"""One network for all architectures of a space: shared weights inside, architecture weights from outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.spaces._base import Group

PATHS = ("fast", "plain")


class Supernet(nn.Module, ABC):
    """`supernet(x, weights)`: logits of the mixture that `weights` (one tensor a group) describe.

    An entry that is exactly zero can be left out of the pass. That is right for an architecture in ones and
    zeros and for sampled weights whose estimator ignores what was not drawn, but not for the gradient of a mixture
    with respect to a weight that happens to be zero. So by default zeros are skipped only where no gradient
    of the weights is asked for; `skip_zeros=True` says that the caller's estimator wants it so.

    Batch norm always uses the statistics of the batch: those of a running average belong to no single architecture.
    """

    def __init__(self, groups: tuple[Group, ...], path: str) -> None:
        super().__init__()
        if path not in PATHS:
            raise RequestError(f"path must be one of {', '.join(PATHS)}, got {path!r}")
        self.groups = groups
        self.path = path

    def forward(self, x: Tensor, weights: Mapping[str, Tensor], *, skip_zeros: bool | None = None) -> Tensor:
        self._check(weights)
        if skip_zeros is None:
            skip_zeros = not (torch.is_grad_enabled() and any(w.requires_grad for w in weights.values()))
        return self._logits(x, weights, skip_zeros)

    @abstractmethod
    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        """The pass itself; `weights` have been checked."""

    def _check(self, weights: Mapping[str, Tensor]) -> None:
        for group in self.groups:
            if group.name not in weights:
                raise RequestError(f"weights lack the group {group.name!r}; given: {', '.join(sorted(weights))}")
            if tuple(weights[group.name].shape) != group.shape:
                raise RequestError(
                    f"weights[{group.name!r}] must have shape {group.shape}, got {tuple(weights[group.name].shape)}"
                )
