"""ENAS's controller, trained in a phase of its own behind the shared weights of every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nasight.searching._objectives import Objective
from nasight.searching._step import Step


@dataclass(frozen=True)
class ReinforcePhase(Objective):
    """REINFORCE in a phase after every epoch, while the shared weights stand still (ENAS on NAS-Bench-201).

    A step of the shared weights trains one architecture that the distribution draws. A step of the phase draws
    `samples` of them, measures each on a batch of its own from the other half of the data, and descends on

        -mean(log p (reward - baseline)),  reward = accuracy + entropy H,  baseline = decay b + (1 - decay) reward

    H is the sum of the entropies of the questions. As in the released code it is differentiated where it stands,
    within the reward. b is the baseline of the last sample of the epoch before. In the first epoch the baseline is
    the accuracy, so that only the entropy is left.

    Parameters
    ----------
    samples : architectures per step of the phase.
    ratio : steps of the phase per step of the shared weights. The published phase has 50 steps, behind 196 of the
        shared weights (25,000 images in batches of 128); a shorter epoch has a phase that is shorter in proportion.
    entropy, decay : as above.
    clip : the largest norm of the gradient.

    >>> [ReinforcePhase().phase(steps) for steps in (196, 50, 2)]
    [50, 13, 1]
    """

    name: str = "reinforce-phase"
    halves: ClassVar[bool] = True
    samples: int = 20
    ratio: float = 50 / 196
    entropy: float = 1e-4
    decay: float = 0.99
    clip: float = 5.0

    def step(self, step: Step) -> None:
        step.descend(step.loss("weights", learn=False), weights=True)

    def phase(self, steps: int) -> int:
        return max(1, round(self.ratio * steps))

    def phase_step(self, step: Step) -> None:
        answers = step.policy.sample(self.samples, step.generator("answers"))
        _, accuracies = step.evaluated(answers, "architecture")
        log_prob, entropy = step.policy.likelihood(answers)
        reward = accuracies + self.entropy * entropy
        loss = -(log_prob * (reward - self._baseline(step, accuracies, reward))).mean()
        grads = torch.autograd.grad(loss, step.theta, allow_unused=True, materialize_grads=True)
        step.move_architecture(_clipped(grads, self.clip))

    def _baseline(self, step: Step, accuracies: Tensor, reward: Tensor) -> Tensor:
        """The baseline of each sample; that of the last one is kept for the next epoch."""
        memory = step.memory
        if memory.get("epoch") != step.epoch:
            memory["epoch"] = step.epoch
            if "last" in memory:
                memory["baseline"] = memory["last"]
        known = "baseline" in memory
        baseline = self.decay * memory["baseline"] + (1 - self.decay) * reward if known else accuracies
        memory["last"] = float(baseline[-1].detach())
        return baseline


def _clipped(grads: Sequence[Tensor], bound: float) -> list[Tensor]:
    """The gradients, scaled down together where their norm exceeds the bound."""
    norm = float(torch.cat([grad.flatten() for grad in grads]).norm())
    return [grad * min(1.0, bound / norm) if norm else grad for grad in grads]
