"""`Choice`: one of several modules, to be placed wherever its author is undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nasight.errors import RequestError


@dataclass(frozen=True, slots=True)
class Handed:
    """What a supernet hands a `Choice` for one call."""

    label: str
    weights: Tensor
    kept: tuple[bool, ...] | None = None
    """The options whose weight is not zero, where the others are to be left out."""


# Weights travel beside the call, not inside the modules: nothing is left behind when a pass ends or fails.
_HANDED: ContextVar[Mapping[Choice, Handed] | None] = ContextVar("handed", default=None)


@contextmanager
def handing(weights: Mapping[Choice, Handed]) -> Iterator[None]:
    """Inside, every `Choice` named here mixes its options with these weights."""
    token = _HANDED.set({**(_HANDED.get() or {}), **weights})
    try:
        yield
    finally:
        _HANDED.reset(token)


class Choice(nn.Module):
    """One of several modules, to be placed in any `nn.Module`: a decision of `ModuleSpace`.

    Inside a supernet it returns the mixture of its options with the architecture weights, elsewhere their mean.
    The options take the same arguments and return tensors of one shape; they may hold choices themselves. `name` is
    the name of the decision, by default the choice's path in the model.

    >>> act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    >>> act(torch.tensor([-1.0, 1.0]))
    tensor([-0.3808,  0.8808])
    """

    def __init__(self, options: Mapping[str, nn.Module], name: str | None = None) -> None:
        super().__init__()
        if not isinstance(options, Mapping):
            raise RequestError(f"a Choice needs a mapping from names to modules, got {type(options).__name__}")
        if not options:
            raise RequestError("a Choice needs at least one option, got an empty mapping")
        for option, module in options.items():
            check_name(option, "the option")
            if not isinstance(module, nn.Module):
                raise RequestError(f"option {option!r} of a Choice must be an nn.Module, got {type(module).__name__}")
        if name is not None:
            check_name(name, "the choice")
        self.name = name
        self.names = tuple(options)
        # A list, since torch's ModuleDict refuses names such as "half" or "a.b".
        self.options = nn.ModuleList(options.values())

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        handed = (_HANDED.get() or {}).get(self) or self._uniform()
        kept = list(range(len(self.names)))
        if handed.kept is not None:
            # A row of zeros still has to give zeros of the right shape.
            kept = [i for i in kept if handed.kept[i]] or [0]
        total = handed.weights[kept[0]] * (first := self._output(kept[0], handed.label, args, kwargs))
        for i in kept[1:]:
            out = self._output(i, handed.label, args, kwargs)
            if out.shape != first.shape:
                raise RequestError(
                    f"choice {handed.label!r}: option {self.names[kept[0]]!r} returns shape {tuple(first.shape)}, "
                    f"but option {self.names[i]!r} returns {tuple(out.shape)}"
                )
            total = total + handed.weights[i] * out
        return total

    def _output(self, i: int, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        out = self.options[i](*args, **kwargs)
        if not isinstance(out, Tensor):
            raise RequestError(
                f"choice {label!r}: option {self.names[i]!r} must return a tensor, got {type(out).__name__}"
            )
        return out

    def _uniform(self) -> Handed:
        size = len(self.names)
        # As single numbers the weights take the precision of what they multiply.
        weights = torch.full((size,), 1 / size, dtype=torch.float64)
        return Handed(self.name or f"of {', '.join(self.names)}", weights)

    def extra_repr(self) -> str:
        return ", ".join(self.names)


def check_name(name: object, what: str) -> None:
    """Names must survive "name=option, name=option"."""
    if not isinstance(name, str) or not name or name != name.strip() or any(c in name for c in "=,\n"):
        raise RequestError(f"{what} {name!r} needs a name without '=', ',' and outer spaces")
