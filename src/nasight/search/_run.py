"""A finished or unfinished search, read from its folder."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.runs import RunFolder
from nasight.search._settings import SearchSettings, checked
from nasight.spaces import Space, load
from nasight.supernet import Supernet


class Run:
    """What a search did and found: `architecture`, `history`, `space`, `weights`, `settings`, `result`.

    A search over a user's own module needs its space again: `Run(path, space=space)`.
    """

    def __init__(self, path: str | Path, *, space: Space | None = None) -> None:
        self.folder = RunFolder.open(path, kind="search")
        self._space = space

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def settings(self) -> SearchSettings:
        return checked(self.folder.about["settings"])

    @cached_property
    def space(self) -> Space:
        return self._space or load(self.settings.space, **self.settings.space_options)

    @property
    def finished(self) -> bool:
        return self.folder.result is not None

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row an epoch."""
        return self.folder.history

    @property
    def result(self) -> dict[str, Any]:
        """What the search ended with: the object that `nasight search --json` prints."""
        result = self.folder.result
        if result is None:
            raise RequestError(f"the search in {self.path} is not finished; go on with --resume {self.path}")
        return result

    @property
    def architecture(self) -> Architecture:
        """The architecture found."""
        return self.space.parse(str(self._kept("architecture")))

    @property
    def weights(self) -> dict[str, Tensor]:
        """The architecture weights at the end, one tensor a group, rows on the simplex."""
        kept = self._kept("weights")
        try:
            return {name: torch.tensor(rows) for name, rows in kept.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise RequestError(f"the search in {self.path} is damaged: its weights are {kept!r:.40}") from error

    def _kept(self, name: str) -> Any:
        result = self.result
        if name not in result:
            raise RequestError(f"the search in {self.path} is damaged: its result has no {name}")
        return result[name]

    def supernet(self) -> Supernet:
        """The supernet with its shared weights as the search left them."""
        from nasight.search.methods import method

        state, about = self.folder.load(), self.folder.about
        if state is None:
            raise RequestError(f"the search in {self.path} has no checkpoint yet")
        engine = state["engine"]
        relaxation, size = method(self.settings.method).relaxation, engine.get("size", self.settings.size)
        inputs, classes = tuple(about["data"]["inputs"]), len(about["data"]["classes"])
        supernet = self.space.supernet(
            inputs, classes, path=self.settings.path, edges=relaxation.edges, partial=relaxation.partial, **size
        )
        supernet.load_state_dict((engine["kept"] or engine)["supernet"])
        return supernet

    def __repr__(self) -> str:
        s = self.settings
        state = f"accuracy {self.result['accuracy']:.2f}" if self.finished else f"{len(self.history)} epochs done"
        return f"Run({str(self.path)!r}: {s.method} on {s.space}, {s.data}, {state})"
