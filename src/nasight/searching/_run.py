"""A finished or unfinished search, read from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.data import Batches, Dataset, resized
from nasight.errors import RequestError
from nasight.runs import DataRecord, RunFolder, data_of, is_code, named_again
from nasight.searching._settings import SearchSettings, read_settings
from nasight.searching._streams import Streams
from nasight.searching.methods import Method, method_row
from nasight.spaces import Group, Space, Supernet, load

TRAIN_FREE = "train-free"
"""The objective of a search that scores architectures instead of training a supernet."""


def check_rows(rows: list[dict[str, Any]], groups: Sequence[Group], path: Path) -> list[dict[str, Any]]:
    """The rows of a history, once their architecture weights are known to be those of the space."""
    for number, row in enumerate(rows, 1):
        for group in groups:
            if group.exclusive and not _fits(row["weights"].get(group.name), group):
                raise RequestError(
                    f"{path}/history.jsonl, line {number}, is damaged: its weights {group.name!r} are not those of the "
                    "space"
                )
    return rows


def _fits(value: Any, group: Group) -> bool:
    if not isinstance(value, list) or len(value) != group.shape[0]:
        return False
    inner = group.shape[1:]
    return all(isinstance(each, list) == bool(inner) and (not inner or len(each) == inner[0]) for each in value)


class Run:
    """What a search did and found: `architecture`, `history`, `space`, `weights`, `settings`, `result`.

    A search over a user's own module needs its space again, one with a method that has no name here the method:
    `Run(path, space=space, method=method)`. Code that a folder names, as "FILE.py:NAME", is run only where the caller
    names it too: `Run(path, space="FILE.py:NAME")`.
    """

    def __init__(self, path: str | Path, *, space: Space | str | None = None, method: Method | None = None) -> None:
        self.folder = RunFolder.open(path, kind="search")
        self._space, self._method = space, method

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def settings(self) -> SearchSettings:
        return read_settings(self.folder.about["settings"])

    @cached_property
    def space(self) -> Space:
        if isinstance(self._space, Space):
            return self._space
        return load(self.space_name, **self.settings.space_options)

    @property
    def space_name(self) -> str:
        """The name that the space is loaded by; that of a file only if the caller has named it."""
        given = self._space if isinstance(self._space, str) else None
        return named_again(self.path, self.folder.about, self.settings.space, given)

    @property
    def sendable_space(self) -> Space | str:
        """The space as other processes can have it: one from a file goes by its name."""
        by_name = is_code(self.settings.space) and not isinstance(self._space, Space)
        return self.space_name if by_name else self.space

    @cached_property
    def method(self) -> Method:
        """The row of the method."""
        return self._method or method_row(self.settings.method)

    @property
    def train_free(self) -> bool:
        """Whether the search scored architectures without a supernet: it then has no weights and no epochs."""
        return self.settings.objective == TRAIN_FREE

    @cached_property
    def data(self) -> DataRecord:
        """What the run keeps of its data."""
        return DataRecord.read(self.folder)

    def load_data(
        self, given: Any = None, *, data_folder: str | Path | None = None, may_differ: bool = False
    ) -> Dataset:
        """The data that was searched on, loaded again and compared; see `nasight.runs.data_of`."""
        return data_of(self.folder, self.settings.data, given, data_folder=data_folder, may_differ=may_differ)

    def held_out(self, dataset: Dataset) -> Batches:
        """Batches (examples, labels) of the rows that figures of the search are of.

        No part of the search has learned from them, unless it held nothing out (`settings.validation` is 0, as under
        most published protocols): then the architecture has, or, with one part for both, all of the search has.
        """
        s = self.settings
        halves = self.method.objective(s.objective).halves
        return Streams(s, resized(dataset, s.resolution, test=False), halves=halves).validation

    @property
    def finished(self) -> bool:
        return self.folder.result is not None

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row per epoch."""
        rows = self.folder.history
        if not rows and self.finished and not self.train_free:
            raise RequestError(f"{self.folder.path}/history.jsonl is damaged: it has no rows, and the search has ended")
        try:
            groups = self.space.groups()
        except RequestError:  # code of the user's own that was not named again; nothing is asked of the weights then
            return rows
        return check_rows(rows, groups, self.folder.path)

    @property
    def result(self) -> dict[str, Any]:
        """What the search ended with: the object that `nasight search --json` prints."""
        result = self.folder.result
        if result is None:
            raise RequestError(
                f"the search in {self.path} is not finished; resume it with --resume {quote(str(self.path))}"
            )
        return result

    @property
    def architecture(self) -> Architecture:
        """The architecture found."""
        return self.space.parse(str(self._kept("architecture")))

    @property
    def weights(self) -> dict[str, Tensor]:
        """The architecture weights at the end, one tensor per group, rows on the simplex."""
        if self.train_free:
            raise RequestError(
                f"the search in {self.path} was made without training ({self.settings.method}): it has no "
                "architecture weights to judge"
            )
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
        state = self.folder.load()
        if state is None:
            raise RequestError(f"the search in {self.path} has no checkpoint yet")
        engine = state["engine"]
        relaxation, size = self.method.relaxation, engine.get("size", self.settings.size)
        supernet = self.space.supernet(
            self.data.inputs,
            len(self.data.classes),
            path=self.settings.path,
            edges=relaxation.edges,
            partial=self.settings.partial or relaxation.partial,
            **size,
        )
        supernet.restore((engine["kept"] or engine)["supernet"])
        return supernet

    def __repr__(self) -> str:
        s = self.settings
        state = f"{len(self.history)} epochs done"
        if self.finished:
            accuracy = self.result["accuracy"]
            state = "ended at no network" if accuracy is None else f"accuracy {accuracy:.2f}"
        return f"Run({str(self.path)!r}: {s.method} on {s.space}, {s.data}, {state})"
