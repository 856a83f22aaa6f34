"""What an objective and a selection may ask of a search: narrow views of it, with nothing of its inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from nasight.searching._questions import Policy
from nasight.spaces import Group, Space


class Step(Protocol):
    """One step of a search, handed to an `Objective`.

    Most objectives need `loss` and `descend` alone. Streams of data are "weights" and "architecture": the same rows in
    other orders, or two parts of them (by default halves) where the objective says so (`halves`).
    """

    epoch: int
    index: int
    """The step within the epoch; those of an objective's phase are counted on from the others."""
    learns: bool
    """Whether the architecture moves in this step: False during warm-up."""

    @property
    def weights_first(self) -> bool:
        """Whether the shared weights are to move before the architecture, where the two take turns."""

    @property
    def memory(self) -> dict[str, float]:
        """What an objective keeps from step to step; it is saved with the search."""

    def loss(self, stream: str, *, learn: bool, record: bool = True, draws: int = 1) -> Tensor:
        """The loss of one batch of a stream; with `learn` it is differentiable in the architecture too.

        With `record` the batch counts in the figures of the epoch. Where weights are drawn, it is the mean over so
        many `draws`.
        """

    def descend(self, loss: Tensor, *, weights: bool = False, architecture: bool = False) -> None:
        """Take the gradient of a loss and move these blocks of variables once."""

    def gradients(self, loss: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of a loss, zero where it does not depend on a tensor.

        A loss may be that of this rank's slices of a batch alone; these are the gradients of the whole batch.
        """

    def move_architecture(self, grads: Sequence[Tensor]) -> None:
        """Move the architecture along gradients of your own, one tensor for each of `theta`."""

    @property
    def theta(self) -> list[Tensor]:
        """The parameters of the architecture."""

    @property
    def shared(self) -> list[nn.Parameter]:
        """The shared weights."""

    def generator(self, purpose: str) -> torch.Generator:
        """Chance that depends on the seed, the purpose, the epoch and the step alone."""

    # For objectives that look ahead

    @property
    def weight_lr(self) -> float:
        """The learning rate of the shared weights."""

    def weights_after(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """The shared weights after the step that their optimizer would take (momentum and decay included)."""

    # For objectives that look at examples or architectures one by one

    def example_gradients(self, stream: str) -> list[Tensor]:
        """The gradients of the architecture weights that each example of a batch asks for: (examples, ...) each."""

    @property
    def policy(self) -> Policy:
        """The distribution that the search learns, where it learns one."""

    def scores(self, answers: Tensor, stream: str) -> tuple[Tensor, Tensor]:
        """Losses and accuracies (from 0 to 1) of the architectures of these answers on one batch."""

    def evaluated(self, answers: Tensor, stream: str) -> tuple[Tensor, Tensor]:
        """The same in evaluation mode, every architecture on a batch of its own."""


class SearchState(Protocol):
    """What a search knows at some moment, handed to a `Selection`."""

    @property
    def space(self) -> Space:
        """The space that is searched."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of architecture weights."""

    @property
    def policy(self) -> Policy:
        """The distribution that the search learns, where it learns one."""

    def weights(self) -> dict[str, Tensor]:
        """The architecture weights, rows on the simplex."""
