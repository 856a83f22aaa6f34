"""One option for every decision: the value that a search finds and a training starts from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nasight.errors import RequestError


@dataclass(frozen=True, slots=True)
class Architecture:
    """One option for every decision of a space; immutable, hashable, equal when space and choices are.

    >>> a = Architecture("mlp", (("activation 1", "relu"), ("activation 2", "tanh")))
    >>> a["activation 2"]
    'tanh'
    >>> Architecture.from_json(a.to_json()) == a
    True
    """

    space: str
    choices: tuple[tuple[str, str], ...]

    def __getitem__(self, decision: str) -> str:
        for name, option in self.choices:
            if name == decision:
                return option
        raise KeyError(decision)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.choices)

    def get(self, decision: str, default: str) -> str:
        """The option chosen for `decision`, or `default` where the architecture does not decide it."""
        return next((option for name, option in self.choices if name == decision), default)

    def replace(self, decision: str, option: str) -> Architecture:
        """The same architecture with one decision changed."""
        self[decision]
        return Architecture(self.space, tuple((n, option if n == decision else o) for n, o in self.choices))

    def to_json(self) -> str:
        return json.dumps({"space": self.space, "choices": dict(self.choices)})

    @classmethod
    def from_json(cls, text: str) -> Architecture:
        try:
            value: Any = json.loads(text)
            return cls(str(value["space"]), tuple((str(n), str(o)) for n, o in value["choices"].items()))
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise RequestError(
                f'not an architecture: expected JSON like {{"space": ..., "choices": {{...}}}}, got {text[:80]!r}'
            ) from error
