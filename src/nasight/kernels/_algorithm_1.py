"""EigenNAS's Algorithm 1: search without training, one epoch of SGD, one of its iterates; and Theorem 3 beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nasight.errors import RequestError
from nasight.kernels._bounds import theorem_3
from nasight.kernels._bounds_data import KernelBound
from nasight.kernels._infinite import ntk
from nasight.kernels._scoring import score
from nasight.reproducible import generator_for, seeded
from nasight.spaces.mlp import Mlp


@dataclass(frozen=True)
class TrainedIterate:
    """What Algorithm 1 gives, and what Theorem 3 says of it."""

    architecture: str
    network: nn.Module
    """With the weights of the iterate that was drawn."""
    iterate: int
    """Which of the N it is, 0 the initial weights."""
    step: float
    error: float
    """0-1 error of the drawn iterate on the test examples."""
    errors: list[float]
    """0-1 error of every iterate; their mean is the expectation over the draw."""
    losses: list[float]
    """Loss of each training example before its step."""
    bound: KernelBound

    @property
    def expected_error(self) -> float:
        """The mean error of the iterates, which Theorem 3 bounds up to constants."""
        return float(np.mean(self.errors))

    @property
    def holds(self) -> bool:
        """Whether the expected error is below the bound; one above 1 cannot fail."""
        return self.bound.upper is not None and self.expected_error <= self.bound.upper


def algorithm_1(
    X: Any,
    labels: Sequence[float],
    test: tuple[Any, Sequence[float]],
    *,
    architecture: str | None = None,
    layers: int = 3,
    candidates: int = 20,
    metric: str = "eigen",
    width: int = 256,
    kappa: float = 1.0,
    step: float | None = None,
    delta: float = 0.05,
    seed: int = 0,
) -> TrainedIterate:
    """Search a fully connected network, train it by one epoch of SGD, and draw one of its iterates.

    The network has single output and the loss is log(1 + exp(-y f)). An epoch takes the examples one by one in their
    order; the iterate is drawn uniformly from the weights before each step. The step size is Theorem 3's, kappa C_1
    sqrt(y^T K^-1 y / N) / m for weights of variance 1/m, which is m times that for the standard normal weights here.

    Parameters
    ----------
    X : training examples, (N, d), of norm 1.
    labels : -1 or +1 for each, (N,).
    test : examples and labels for the 0-1 error.
    architecture : such as "relu,tanh/1"; where it is not given, the best of `candidates` random ones by `metric`.
    layers : how many layers the networks that are searched have.
    candidates, metric : how many are scored, and by which score.
    width : units per layer.
    kappa : the factor of the step size.
    step : another step size, for the standard normal weights.
    delta : the probability with which the bound may fail.
    seed : candidates, initial weights and the drawn iterate follow from it.

    >>> x = np.eye(4)
    >>> found = algorithm_1(x, [1, 1, -1, -1], (x, [1, 1, -1, -1]), architecture="relu", width=32)
    >>> len(found.errors), found.bound.name
    (4, 'Theorem 3, 0-1 error up to constants')
    """
    rows, y = _examples(X, labels)
    text = architecture if architecture is not None else _searched(rows, y, layers, candidates, metric, width, seed)
    space = Mlp(_depth(text), parametrization="ntk")
    arch = space.parse(text)
    names = [arch[name] for name in space.activations]
    kernel = ntk(rows.numpy(), names, [float(arch[name]) for name in space.skips])
    bound = theorem_3(rows.numpy(), kernel, y.numpy(), names, delta=delta, kappa=kappa, width=width)
    with seeded(seed, "initial weights"):
        network = space.network(arch, (rows.shape[1],), 1, width=width).double()
    size = bound.values["step size x width"] if step is None else step
    chosen = int(torch.randint(len(y), (), generator=generator_for(seed, "iterate")))
    errors, losses, kept = _epoch(network, rows, y, _examples(*test), size, chosen)
    network.load_state_dict(kept)
    return TrainedIterate(text, network, chosen, size, errors[chosen], errors, losses, bound)


def _epoch(
    network: nn.Module, rows: Tensor, y: Tensor, test: tuple[Tensor, Tensor], step: float, chosen: int
) -> tuple[list[float], list[float], dict[str, Tensor]]:
    """Test error of every iterate, loss of every example before its step, and the weights of the chosen iterate."""
    errors, losses, kept = list[float](), list[float](), dict[str, Tensor]()
    parameters = list(network.parameters())
    for i in range(len(y)):
        if i == chosen:
            kept = {name: value.clone() for name, value in network.state_dict().items()}
        with torch.no_grad():
            errors.append(float((test[1] * network(test[0])[:, 0] < 0).double().mean()))
        loss = softplus(-y[i] * network(rows[i : i + 1])[0, 0])
        losses.append(float(loss.detach()))
        with torch.no_grad():
            for p, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                p.sub_(step * grad)
    return errors, losses, kept


def _searched(rows: Tensor, y: Tensor, layers: int, candidates: int, metric: str, width: int, seed: int) -> str:
    """The best of random architectures by a score, on the training examples."""
    data = (rows.float().numpy(), (y > 0).long().numpy())
    space = Mlp(layers, parametrization="ntk")
    found = score(space, metric, data, sample=candidates, size={"width": width}, seed=seed, workers=1)
    return found.top(metric, 1)[0][0]


def _depth(text: str) -> int:
    return len(text.partition("/")[0].split(",")) + 1


def _examples(X: Any, labels: Sequence[float]) -> tuple[Tensor, Tensor]:
    rows = torch.as_tensor(np.asarray(X, dtype=np.float64))
    y = torch.as_tensor(np.asarray(labels, dtype=np.float64))
    if rows.dim() != 2 or y.shape != (len(rows),) or not bool((y.abs() == 1).all()):
        raise RequestError(f"examples must be rows with a label of -1 or +1 each, got {tuple(rows.shape)} and {len(y)}")
    return rows, y
