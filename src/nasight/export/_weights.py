"""Trained weights under the names of a written module, and the proof that both compute the same."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nasight.errors import RunError

TOLERANCE = 1e-5


def fitted(state: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """The state under the names of `network`, whose modules stand in the same order; training's extras are left out."""
    given = [(name, value) for name, value in state.items() if not name.startswith("auxiliary.")]
    wanted = network.state_dict()
    if len(given) != len(wanted):
        raise RunError(f"the weights do not fit the written network: {len(given)} tensors for {len(wanted)} places")
    found = dict[str, Tensor]()
    for (old, value), (new, place) in zip(given, wanted.items(), strict=True):
        if value.shape != place.shape or old.rsplit(".", 1)[-1] != new.rsplit(".", 1)[-1]:
            raise RunError(
                f"the weights do not fit the written network: {old} {tuple(value.shape)} for {new} {tuple(place.shape)}"
            )
        found[new] = value.detach().clone().contiguous()
    return found


@torch.no_grad()
def same_outputs(one: nn.Module, other: nn.Module, inputs: tuple[int, ...]) -> float:
    """The largest difference of their outputs on random inputs, relative to the largest output; both evaluated.

    More than 1e-5 raises `RunError`.
    """
    x = torch.randn(4, *inputs, generator=torch.Generator().manual_seed(0))
    modes = [(m, m.training) for m in (one, other)]
    a, b = (m.eval()(x) for m in (one, other))
    for m, training in modes:
        m.train(training)
    apart = float((a - b).abs().max() / a.abs().max().clamp(min=1.0))
    if not apart <= TOLERANCE:
        raise RunError(f"the exported network differs from nasight's by {apart:.2g}, more than {TOLERANCE:g}")
    return apart
