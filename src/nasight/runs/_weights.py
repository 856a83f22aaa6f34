"""Weights from a file, looked at before a network takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from nasight.errors import RequestError


def check_weights(network: nn.Module, state: Mapping[str, Any], what: str) -> None:
    """Refuse weights that are not those of this network; the network may have shapes and no memory ("meta")."""
    wanted = network.state_dict()
    for name, value in wanted.items():
        there = state.get(name)
        if not isinstance(there, Tensor):
            raise RequestError(f"{what} is damaged: it has no weights {name!r}")
        if there.shape != value.shape or there.is_floating_point() != value.is_floating_point():
            raise RequestError(f"{what} is damaged: its weights {name!r} are {_kind(there)}, not {_kind(value)}")
    for name in state:
        if name not in wanted:
            raise RequestError(f"{what} is damaged: the network that it belongs to has no weights {name!r:.60}")


def load_weights(network: nn.Module, state: Mapping[str, Any], what: str) -> None:
    """Give a network the weights of a file, if they are its own; `what` names the file."""
    check_weights(network, state, what)
    network.load_state_dict(state)


def _kind(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"


def load_optimizer(optimizer: Optimizer, state: Mapping[str, Any], what: str) -> None:
    """Give an optimizer the state of a file, if it is one of its own kind.

    torch looks at the number of parameters alone; what else is wrong would show in the middle of a step.
    """
    before = optimizer.state_dict()["param_groups"]
    try:
        optimizer.load_state_dict(dict(state))
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, IndexError) as error:
        raise RequestError(f"{what} is damaged: its optimizer cannot be restored: {str(error)[:80]}") from error
    published = type(optimizer).__module__.startswith("torch.optim")
    for group, usual in zip(optimizer.param_groups, before, strict=True):
        for name, value in usual.items():
            if name not in group and name != "lr" and not published:
                group[name] = value  # a setting that came later than the file
            elif name not in group or not _alike(group[name], value):
                raise RequestError(f"{what} is damaged: its optimizer has {name} {group.get(name)!r:.40}")
    if published:
        _check_moments(optimizer, what)


def _alike(value: Any, usual: Any) -> bool:
    """Whether a setting of an optimizer is of the kind that it was."""
    if isinstance(usual, bool) or usual is None:
        return value is None or isinstance(value, bool)
    if isinstance(usual, int | float):
        # A number that is not finite would spoil every weight.
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return isinstance(value, type(usual)) and (not isinstance(usual, tuple | list) or len(value) == len(usual))


def _check_moments(optimizer: Optimizer, what: str) -> None:
    """What torch's optimizers keep of a parameter is a number or has its shape, and all parameters have as much."""
    kept = {id(p): sorted(found) for p, found in optimizer.state.items() if found}
    names = max(kept.values(), key=len, default=[])
    for parameter, found in optimizer.state.items():
        if found and sorted(found) != names:
            raise RequestError(f"{what} is damaged: its optimizer lacks {sorted(set(names) - set(found))[0]!r}")
        for name, value in found.items():
            number = value is None or isinstance(value, int | float)
            if not number and not (isinstance(value, Tensor) and value.shape in (parameter.shape, ())):
                raise RequestError(f"{what} is damaged: its optimizer has {name!r:.40} of another shape")
