"""A space as questions that can be answered independently of each other, and distributions over the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.geometry import Distribution
from nasight.spaces import Group, Space

DRAWS = 256
"""Architectures whose frequencies stand for weights that are no marginals of a question."""


class Questions:
    """The questions of a space as one group, with a row for each."""

    def __init__(self, space: Space) -> None:
        self.space = space
        asked = space.questions()
        self.group = Group("questions", tuple(asked), tuple(asked.values()))

    def architecture(self, answers: Sequence[int]) -> Architecture:
        """The architecture of these answers, one index a question."""
        rows = zip(self.group.rows, self.group.options, answers, strict=True)
        return self.space.answered({name: options[i] for name, options, i in rows})

    def asks(self, group: Group) -> bool:
        """Whether every row of this group is a question."""
        asked = dict(zip(self.group.rows, self.group.options, strict=True))
        return all(asked.get(row) == options for row, options in zip(group.rows, group.options, strict=True))


class Policy:
    """A distribution over the architectures of a space: its parameters, and what can be asked of it."""

    def __init__(self, geometry: Distribution, questions: Questions, params: Mapping[str, Tensor]) -> None:
        self.geometry, self.questions, self.params = geometry, questions, params
        self.groups = (questions.group,)

    def sample(self, number: int, generator: torch.Generator) -> Tensor:
        """Answers, (number, questions)."""
        return self.geometry.sample(self.params, self.groups, number, generator)

    def mode(self) -> Tensor:
        """The likeliest answers, (questions,)."""
        return self.geometry.mode(self.params, self.groups)

    def likelihood(self, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies, (number,) each; differentiable."""
        return self.geometry.likelihood(self.params, self.groups, answers)

    def architecture(self, answers: Tensor) -> Architecture:
        return self.questions.architecture(answers.tolist())

    def draw(self, generator: torch.Generator) -> Architecture:
        """One architecture."""
        return self.architecture(self.sample(1, generator)[0])

    @torch.no_grad()
    def weights(self, groups: Sequence[Group], generator: torch.Generator) -> dict[str, Tensor]:
        """Simplex rows for the groups of a supernet.

        A row that is a question has its marginals, any other (the edges of DARTS, the inputs of 1Shot1) the
        frequencies among some architectures.
        """
        questions, found = self.questions, dict[str, Tensor]()
        marginals = self.geometry.weights(self.params, self.groups)[questions.group.name]
        rows = dict(zip(questions.group.rows, questions.group.split(marginals), strict=True))
        if not all(map(questions.asks, groups)):
            edges = any(not group.exclusive for group in groups)
            drawn = [self.architecture(answers) for answers in self.sample(DRAWS, generator)]
            encoded = [questions.space.encode(arch, edges=edges) for arch in drawn]
        for group in groups:
            if questions.asks(group):
                split = [rows[name] for name in group.rows]
            else:
                split = group.split(torch.stack([weights[group.name] for weights in encoded]).mean(0))
            found[group.name] = group.join([_normal(row) for row in split])
        return found


def _normal(row: Tensor) -> Tensor:
    """The row with sum 1; uniform where nothing was ever drawn."""
    total = float(row.sum())
    return row / total if total else torch.full_like(row, 1 / len(row))
