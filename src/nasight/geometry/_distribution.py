"""Parameters of a distribution over architectures: the answers to questions, asked one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from nasight.geometry._base import Geometry, Params
from nasight.spaces import Group

SAMPLES = 256
"""How many draws stand for a distribution whose marginals have no formula."""

Choose = Callable[[int, Tensor], Tensor]
"""(question, log-probabilities of its options (n, k)) -> the answers (n,)."""


class Distribution(Geometry):
    """A geometry from which architectures are drawn; answers are indices of options, (n, questions).

    Its `groups` are one group with a row per question, and need not be those of a supernet.
    """

    @abstractmethod
    def walk(self, params: Params, groups: Iterable[Group], number: int, choose: Choose) -> tuple[Tensor, list[Tensor]]:
        """`number` walks through the questions: the answers, and for each question the log-probabilities (n, k)
        of its options given the answers before it; differentiable."""

    def sample(self, params: Params, groups: Iterable[Group], number: int, generator: torch.Generator) -> Tensor:
        """`number` rows of answers drawn from the distribution: (number, questions)."""

        def draw(question: int, log_probs: Tensor) -> Tensor:
            return torch.multinomial(log_probs.exp(), 1, generator=generator)[:, 0]

        with torch.no_grad():
            return self.walk(params, groups, number, draw)[0]

    def mode(self, params: Params, groups: Iterable[Group]) -> Tensor:
        """The likeliest answer to each question, given those before it: (questions,)."""
        with torch.no_grad():
            return self.walk(params, groups, 1, lambda _, log_probs: log_probs.argmax(1))[0][0]

    def likelihood(self, params: Params, groups: Iterable[Group], answers: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probability of each row of answers, and the sum of the entropies met on its way; differentiable."""
        _, each = self.walk(params, groups, len(answers), lambda question, _: answers[:, question])
        log_prob = torch.stack(
            [row.gather(1, answers[:, question, None])[:, 0] for question, row in enumerate(each)]
        ).sum(0)
        entropy = torch.stack([torch.special.entr(row.exp()).sum(1) for row in each]).sum(0)
        return log_prob, entropy

    def weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        """The marginals of every question: probabilities given the answers before it, averaged over draws.

        The noise is always the same, so the same parameters have the same marginals.
        """
        (group,) = groups
        answers = self.sample(params, (group,), SAMPLES, torch.Generator().manual_seed(0))
        _, each = self.walk(params, (group,), SAMPLES, lambda question, _: answers[:, question])
        return {group.name: torch.cat([row.exp().mean(0) for row in each]).reshape(group.shape)}

    def log_weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        found = self.weights(params, groups)
        return {name: w.clamp(min=torch.finfo(w.dtype).tiny).log() for name, w in found.items()}
