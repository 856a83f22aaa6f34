"""Whose data is this, and is it still the same: what a run keeps of its data, and how it is found again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from nasight.data import EARLIER, Dataset
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.runs._folder import RunFolder


class Named(Protocol):
    """Data with a name and a checksum of its content."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


Data = TypeVar("Data", bound=Named)


@dataclass(frozen=True)
class DataRecord:
    """What run.json keeps of the data under "data"."""

    name: str
    fingerprint: str
    inputs: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    """How photos were read, if not in the usual way."""
    augmentation: str | None = None
    """The random changes of its images in words; None: what the data set declares, or earlier versions assumed."""

    @classmethod
    def of(cls, data: Dataset, inputs: tuple[int, ...] | None = None) -> DataRecord:
        """The record of a data set; `inputs` is the shape of an example as the run uses it, if not the data's own."""
        shape, classes = tuple(inputs or data.inputs), tuple(data.classes)
        return cls(data.name, data.fingerprint, shape, classes, dict(data.reading), data.changes)

    @classmethod
    def read(cls, folder: RunFolder) -> DataRecord:
        """The record of a run."""
        kept: Any = folder.about.get("data")
        try:
            return cls(
                str(kept["name"]),
                str(kept["fingerprint"]),
                tuple(int(n) for n in kept.get("inputs", ())),
                tuple(map(str, kept.get("classes", ()))),
                dict(kept.get("reading", {})),
                None if kept.get("augmentation") is None else str(kept["augmentation"]),
            )
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise RequestError(f"{folder.path}/run.json is damaged: what it says of its data lacks {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """The record as run.json keeps it."""
        later: dict[str, Any] = {
            "reading": {},
            "augmentation": None,
        }  # left out where they say nothing, as in runs of before
        kept = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {key: value for key, value in kept.items() if key not in later or value != later[key]}

    def load(self, source: Any, data_folder: str | Path | None = None, *, strict: bool = False) -> Dataset:
        """The data of a source, read and randomly changed as this run had it."""
        known = {key: value for key, value in self.reading.items() if key in ("resolution", "fit")}
        how = {} if isinstance(source, Dataset) else {"strict": strict, **known}
        return load_data(source, folder=data_folder, augment=self.augmentation or EARLIER, **how)


def data_of(
    folder: RunFolder,
    source: str,
    given: Any = None,
    *,
    data_folder: str | Path | None = None,
    may_differ: bool = False,
) -> Dataset:
    """The data of a run, loaded again and compared with what the run keeps of it.

    Parameters
    ----------
    folder : the run.
    source : the name, file or folder that the run was given.
    given : where the data is now, if the caller says so.
    data_folder : the folder of the data sets that have names.
    may_differ : data that the caller `given` may be other data than the run's, which is then meant.
    """
    record = DataRecord.read(folder)
    return found_again(folder, source, given, load=lambda it: record.load(it, data_folder), may_differ=may_differ)


def found_again(
    folder: RunFolder, source: str, given: Any, *, load: Callable[[Any], Data], may_differ: bool = False
) -> Data:
    """`data_of` for anything with a name and a fingerprint that `load` reads."""
    record = DataRecord.read(folder)
    if given is not None:
        data = load(given)
        if not may_differ:
            _check(folder, record, data, "")
        return data
    try:
        data = load(source)
    except RequestError as error:
        raise RequestError(
            f"the data of {folder.path} cannot be loaded again ({error}); name it with --data"
        ) from error
    _check(folder, record, data, f"; if that is meant, say --data {source}" if may_differ else "")
    return data


def _check(folder: RunFolder, record: DataRecord, data: Named, hint: str) -> None:
    if data.fingerprint != record.fingerprint:
        changed = ": its content has changed" if data.name == record.name else ""
        raise RequestError(
            f"{folder.path} was searched on other data ({record.name!r}, fingerprint {record.fingerprint[:12]}) than "
            f"this ({data.name!r}, {data.fingerprint[:12]}){changed}{hint}"
        )
