"""Measurements of GAEA's claims: entropy and discretization of paired searches, and the mirror step itself."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from nasight.data import Dataset
from nasight.errors import RunError
from nasight.geometry import ExponentiatedGradient
from nasight.searching import search

EPOCHS, EXAMPLES = 20, 1_200
STEPS = 50
"""Mirror steps per seed."""
Array = NDArray[np.float64]


def searches(data: Dataset, seed: int) -> dict[str, float]:
    """The ends of a DARTS and of a GAEA-DARTS search of one seed, and GAEA's less DARTS's."""
    base, gaea = _end("darts", data, seed), _end("gaea-darts", data, seed)
    return {
        "entropy difference": gaea[0] - base[0],
        "entropy, darts": base[0],
        "entropy, gaea-darts": gaea[0],
        "drop difference": gaea[1] - base[1],
        "drop, darts": base[1],
        "drop, gaea-darts": gaea[1],
    }


def _end(method: str, data: Dataset, seed: int) -> tuple[float, float]:
    """Mean entropy of the decisions in nats, and the points of accuracy that discretizing costs."""
    with TemporaryDirectory(prefix="nasight-reproduce-") as folder:
        run = search(
            "nasbench201",
            method,
            data,
            objective="bilevel",
            out=Path(folder) / "run",
            preset="tiny",
            none=False,
            epochs=EPOCHS,
            examples=EXAMPLES,
            seed=seed,
            threads=1,
            device="cpu",
        )
        last = run.history[-1]
    if last["drop"] is None:
        raise RunError(f"the architecture of {method} with seed {seed} is no network, so nothing is lost or kept")
    return float(last["entropy"]), float(last["drop"])


def mirror_steps(data: Dataset, seed: int) -> dict[str, float]:
    """How far a step of `ExponentiatedGradient` is from a minimum that was found numerically, at most."""
    rng = np.random.default_rng([seed, 1])
    return {"distance": max(_distance(rng) for _ in range(STEPS)), "cases": STEPS}


def _distance(rng: np.random.Generator) -> float:
    options = int(rng.integers(2, 9))
    theta, grad, lr = rng.dirichlet(np.ones(options)), rng.normal(size=options), float(10 ** rng.uniform(-2, 0))
    moved = torch.tensor(theta, requires_grad=True)
    moved.grad = torch.tensor(grad)
    ExponentiatedGradient([moved], lr=lr, floor=0.0).step()
    return float(np.abs(moved.detach().numpy() - _minimum(theta, grad, lr)).max())


def _minimum(theta: Array, grad: Array, lr: float) -> Array:
    """argmin over the simplex of lr <grad, u> + KL(u || theta) (GAEA, eq. 4 with the relative entropy), by BFGS.

    The points of the open simplex are written as a softmax of any numbers, which leaves no constraint.
    """

    def objective(z: Array) -> tuple[float, Array]:
        u = _softmax(z)
        log_ratio = np.log(u) - np.log(theta)
        slope = lr * grad + log_ratio + 1
        return float(u @ (lr * grad + log_ratio)), u * (slope - u @ slope)

    found = minimize(objective, np.zeros(len(theta)), jac=True, method="BFGS", options={"gtol": 1e-12})
    return _softmax(np.asarray(found.x))


def _softmax(z: Array) -> Array:
    powers = np.exp(z - z.max())
    shares: Array = powers / powers.sum()
    return shares
