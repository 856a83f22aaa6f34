"""An LSTM that decides one question after the other (ENAS)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.geometry._base import Params
from nasight.geometry._distribution import Choose, Distribution
from nasight.spaces import Group


@dataclass(frozen=True)
class Controller(Distribution):
    """The parameters are an LSTM's; it reads its last answer and gives the probabilities of the next (ENAS).

    Questions with the same options share embeddings and output weights. The published learning rate is that of
    NAS-Bench-201's ENAS: 250 epochs of 50 steps of the controller.

    Parameters
    ----------
    hidden, layers : the size of the LSTM.
    temperature, bound : logits are bound * tanh(logits / temperature).
    lr, steps : the published learning rate, and the steps of the search that it is for; see `Geometry`.
    betas, eps : Adam's.
    spread : the first weights of the embeddings, of the output and of the LSTM's first layer are uniform within it. All
        others, biases among them, are uniform within 1 / sqrt(hidden), PyTorch's default, as in the released code.
    """

    hidden: int = 32
    layers: int = 2
    temperature: float = 5.0
    bound: float = 2.5
    lr: float = 1e-3
    steps: int = 12_500
    betas: tuple[float, float] = (0.0, 0.999)
    eps: float = 1e-3
    spread: float = 0.1

    def initial(self, groups: Iterable[Group], generator: torch.Generator) -> dict[str, nn.Parameter]:
        """Uniform, each within its bound. A layer has two biases, one for what it reads and one for its state."""
        (group,) = groups
        words, h = sum(len(options) for options in dict.fromkeys(group.options)), self.hidden
        spread, default = self.spread, h**-0.5
        drawn = {
            "output": ((words, h), spread),
            "output_bias": ((words,), default),
            "start": ((h,), spread),
            "embedding": ((words, h), spread),
        }
        for layer in range(self.layers):
            drawn[f"lstm_{layer}"] = ((4 * h, 2 * h), default if layer else spread)
            drawn[f"lstm_{layer}_biases"] = ((2, 4 * h), default)
        return {
            name: nn.Parameter(torch.empty(shape, device=generator.device).uniform_(-bound, bound, generator=generator))
            for name, (shape, bound) in drawn.items()
        }

    def walk(self, params: Params, groups: Iterable[Group], number: int, choose: Choose) -> tuple[Tensor, list[Tensor]]:
        (group,) = groups
        start_of = _vocabulary(group)
        zeros = params["start"].new_zeros(number, self.hidden)
        states = [(zeros, zeros)] * self.layers
        x = params["start"].expand(number, -1)
        answers, each = list[Tensor](), list[Tensor]()
        for question, options in enumerate(group.options):
            for layer in range(self.layers):
                states[layer] = _lstm(x, states[layer], params[f"lstm_{layer}"], params[f"lstm_{layer}_biases"])
                x = states[layer][0]
            words = slice(start_of[options], start_of[options] + len(options))
            logits = F.linear(x, params["output"][words], params["output_bias"][words])
            each.append((self.bound * (logits / self.temperature).tanh()).log_softmax(1))
            answers.append(choose(question, each[-1]))
            x = params["embedding"][start_of[options] + answers[-1]]
        return torch.stack(answers, 1), each

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> torch.optim.Optimizer:
        return torch.optim.Adam(list(params.values()), lr, betas=self.betas, eps=self.eps)


def _vocabulary(group: Group) -> dict[tuple[str, ...], int]:
    """Where the words of each kind of question begin."""
    found, at = dict[tuple[str, ...], int](), 0
    for options in group.options:
        if options not in found:
            found[options] = at
            at += len(options)
    return found


def _lstm(x: Tensor, state: tuple[Tensor, Tensor], kernel: Tensor, biases: Tensor) -> tuple[Tensor, Tensor]:
    h, c = state
    enter, forget, candidate, leave = F.linear(torch.cat([x, h], 1), kernel, biases.sum(0)).chunk(4, 1)
    c = forget.sigmoid() * c + enter.sigmoid() * candidate.tanh()
    return leave.sigmoid() * c.tanh(), c
