"""How the columns of a table become the numbers of a network, and the same way again for new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.data._frames import is_number, missing
from nasight.errors import RequestError

MOST_VALUES = 64
"""Texts of a column that get a number of their own; the rarer ones share one."""

LARGEST = 1e100
"""Numbers beyond it are taken for it: their squares would be infinite."""


@dataclass(frozen=True)
class Column:
    """One column: a number, in standard units, or texts, one number of 0 and 1 each.

    Parameters
    ----------
    name : of the column.
    center, scale : of a number: mean and deviation of the training rows.
    fill : the number that stands for a missing one: the median.
    values : the texts that have a number of their own; none for a column of numbers.
    other : whether rarer texts share a number.
    flag : whether a number says that the value was missing; it is there if the training rows had such.
    """

    name: str
    center: float = 0.0
    scale: float = 1.0
    fill: float = 0.0
    values: tuple[str, ...] = ()
    other: bool = False
    flag: bool = False

    @property
    def width(self) -> int:
        return (len(self.values) + self.other if self.values else 1) + self.flag

    def apply(self, cells: NDArray[Any]) -> NDArray[np.float32]:
        """The numbers (n, width) of the cells of this column."""
        absent = missing(cells)
        if self.values:
            texts = [None if gone else _text(cell) for cell, gone in zip(cells, absent, strict=True)]
            place = {value: i for i, value in enumerate(self.values)}
            found = np.zeros((len(cells), len(self.values) + self.other), dtype=np.float32)
            for row, text in enumerate(texts):
                at = place.get(text, len(self.values)) if text is not None else None
                if at is not None and at < found.shape[1]:
                    found[row, at] = 1.0
        else:
            if not is_number(cells) and not absent.all():
                wrong = cells[int(np.flatnonzero(~absent)[0])]
                raise RequestError(f"column {self.name!r} held numbers in the training, and here {str(wrong)!r}")
            known = np.clip(np.where(absent, 0.0, cells).astype(np.float64), -LARGEST, LARGEST)
            numbers = np.where(absent, self.fill, known)
            with np.errstate(over="ignore"):
                found = ((numbers - self.center) / self.scale).astype(np.float32)[:, None]
            found = np.clip(found, -1e30, 1e30)
        return np.concatenate([found, absent[:, None].astype(np.float32)], 1) if self.flag else found

    def refitted(self, x: NDArray[np.float32], rows: NDArray[np.int64]) -> tuple[Column, NDArray[np.float32]] | None:
        """This column as these rows alone would have it, with its numbers of all rows; None: it says nothing in them.

        Parameters
        ----------
        x : its numbers (n, width).
        rows : the numbers of the rows to learn from.
        """
        absent = x[:, -1] > 0 if self.flag else np.zeros(len(x), dtype=bool)
        there, flag = rows[~absent[rows]], bool(absent[rows].any())
        found = self._texts_in(x, there, flag) if self.values else self._number_in(x, there, flag, absent)
        if found is None:
            return None
        column, numbers = found
        return column, np.concatenate([numbers, absent[:, None].astype(np.float32)], 1) if flag else numbers

    def _texts_in(
        self, x: NDArray[np.float32], rows: NDArray[np.int64], flag: bool
    ) -> tuple[Column, NDArray[np.float32]] | None:
        texts = x[:, : len(self.values) + self.other]
        used: NDArray[np.bool_] = np.any(texts[rows], axis=0)
        values = tuple(value for value, kept in zip(self.values, used, strict=False) if kept)
        if not values or (used.sum() < 2 and not flag):
            return None
        numbers, other = texts[:, used], self.other and bool(used[-1])
        if other:
            # Texts that these rows do not have are rare ones now.
            numbers[:, -1] += texts[:, ~used].sum(1)
        return replace(self, values=values, other=other, flag=flag), numbers

    def _number_in(
        self, x: NDArray[np.float32], rows: NDArray[np.int64], flag: bool, absent: NDArray[np.bool_]
    ) -> tuple[Column, NDArray[np.float32]] | None:
        if len(np.unique(x[rows, 0])) < (1 if flag else 2):
            return None
        numbers = x[:, 0].astype(np.float64) * self.scale + self.center
        column = _number(self.name, numbers[rows], flag)
        filled = np.where(absent, column.fill, numbers)
        return column, ((filled - column.center) / column.scale).astype(np.float32)[:, None]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table in the order in which a network gets them."""

    columns: tuple[Column, ...]

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def numbers(self) -> tuple[bool, ...]:
        """Which of the `width` numbers are measured ones, which are standardized; the others are 0 or 1."""
        return tuple(not column.values and i == 0 for column in self.columns for i in range(column.width))

    def apply(self, table: Mapping[str, NDArray[Any]], what: str) -> NDArray[np.float32]:
        """The numbers (n, width) of the rows of a table; columns that the layout does not know are left out.

        Parameters
        ----------
        table : columns as `read_columns` gives them.
        what : what messages call the table.
        """
        absent = [column.name for column in self.columns if column.name not in table]
        if absent:
            raise RequestError(f"{what} lacks the column {absent[0]!r}, which the model was trained with")
        return np.concatenate([column.apply(table[column.name]) for column in self.columns], 1)

    def to_list(self) -> list[dict[str, Any]]:
        return [{**asdict(column), "values": list(column.values)} for column in self.columns]

    @classmethod
    def from_list(cls, columns: Sequence[Mapping[str, Any]]) -> TableLayout:
        return cls(tuple(Column(**{**column, "values": tuple(column["values"])}) for column in columns))

    def refitted(self, x: NDArray[np.float32], rows: NDArray[np.int64]) -> tuple[TableLayout, NDArray[np.float32]]:
        """The layout that these rows alone would have, and all rows in it: the others leave no trace.

        Parameters
        ----------
        x : numbers (n, width) in this layout.
        rows : the numbers of the rows to learn from.

        What says the same in all of them is left out, be it a column, a text or a flag. One thing stays: where a column
        has more texts than get a number of their own, all rows counted which ones are common.
        """
        columns, parts, at = list[Column](), list[NDArray[np.float32]](), 0
        for column in self.columns:
            found = column.refitted(x[:, at : at + column.width], rows)
            at += column.width
            if found is not None:
                columns.append(found[0])
                parts.append(found[1])
        if not columns:
            raise RequestError("in the rows to learn from every column of the table is always the same")
        return TableLayout(tuple(columns)), np.concatenate(parts, 1)


def fit_layout(table: Mapping[str, NDArray[Any]]) -> tuple[TableLayout, dict[str, str]]:
    """The layout of the training rows of a table, and the columns that are left out, with the reason."""
    columns, left = list[Column](), dict[str, str]()
    for name, cells in table.items():
        absent = missing(cells)
        there = cells[~absent]
        distinct = Counter(there.tolist())
        if len(distinct) < 2 and not (absent.any() and len(distinct)):
            left[name] = "always the same" if distinct else "empty"
        elif is_number(cells):
            columns.append(_number(name, there.astype(np.float64), bool(absent.any())))
        elif len(distinct) > MOST_VALUES and max(distinct.values()) == 1:
            left[name] = "another text in every row"
        else:
            values = sorted(value for value, _ in distinct.most_common(MOST_VALUES))
            columns.append(
                Column(name, values=tuple(values), other=len(distinct) > len(values), flag=bool(absent.any()))
            )
    return TableLayout(tuple(columns)), left


def _number(name: str, there: NDArray[np.float64], flag: bool) -> Column:
    there = np.clip(there, -LARGEST, LARGEST)
    center, scale = float(there.mean()), float(there.std())
    scale = scale if scale > 1e-9 * (1 + abs(center)) else 1.0
    return Column(name, center, scale, float(np.median(there)), flag=flag)


def _text(cell: Any) -> str:
    """A cell as text: a whole number that was read as a fraction is written as the whole number."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else str(cell)
    return str(cell)
