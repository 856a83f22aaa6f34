"""Names that stand for things: the built-in ones, those that a program adds, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from nasight.errors import RequestError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to things of one kind, open to the outside.

    Built-in rows come first. `add` puts one there for this process. A package that is installed adds its own by an
    entry point in `group`: they are looked for when a name is not among the others, or when all names are asked for.

    Parameters
    ----------
    noun : what the things are called in messages, such as "space".
    group : the entry points that are read, such as "nasight.spaces".
    rows : the built-in ones.
    check : given what an entry point or a caller brings, the thing itself; raises `RequestError` if it is none.

    >>> shapes = Registry("shape", "nasight.shapes", {"circle": 1})
    >>> shapes.add("square", 4)
    >>> list(shapes), shapes["square"]
    (['circle', 'square'], 4)
    """

    def __init__(
        self,
        noun: str,
        group: str,
        rows: Mapping[str, T] | None = None,
        *,
        check: Callable[[str, object], T] | None = None,
    ) -> None:
        self.noun, self.group = noun, group
        self._rows: dict[str, T] = dict(rows or {})
        self._check = check
        self._looked = False
        self._broken = dict[str, RequestError]()

    def add(self, name: str, thing: T, *, replace: bool = False) -> None:
        """Let `name` stand for `thing` in this process; a name that is taken is refused unless `replace`."""
        if not isinstance(name, str) or not name.strip() or ":" in name:
            raise RequestError(f"a {self.noun} needs a name without ':', got {name!r}")
        if name in self and not replace:
            raise RequestError(f"there is a {self.noun} {name!r} already; choose another name")
        self._rows[name] = thing if self._check is None else self._check(name, thing)

    def remove(self, name: str) -> None:
        """Forget a name."""
        self._rows.pop(name, None)

    def __getitem__(self, name: str) -> T:
        if name not in self._rows:
            self._look()
        if name in self._broken:
            raise self._broken[name]
        if name not in self._rows:
            raise self.unknown(name)
        return self._rows[name]

    def unknown(self, name: object) -> RequestError:
        """The error that says which names there are, and which one was probably meant."""
        self._look()
        near = get_close_matches(str(name), self._rows, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return RequestError(f"there is no {self.noun} {name!r}, only {', '.join(self._rows)}{hint}")

    def __contains__(self, name: object) -> bool:
        if name not in self._rows:
            self._look()
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        self._look()
        return iter(dict(self._rows))

    def __len__(self) -> int:
        self._look()
        return len(self._rows)

    def _look(self) -> None:
        """Read the entry points of installed packages, once; a broken one is refused when its name is asked for."""
        if self._looked:
            return
        self._looked = True
        for entry in entry_points(group=self.group):
            if entry.name in self._rows:
                continue
            try:
                found = entry.load()
                self._rows[entry.name] = found if self._check is None else self._check(entry.name, found)
            except Exception as error:
                package = getattr(getattr(entry, "dist", None), "name", entry.value)
                self._broken[entry.name] = RequestError(
                    f"the {self.noun} {entry.name!r} of the package {package!r} cannot be loaded "
                    f"({type(error).__name__}: {error}); repair or uninstall that package"
                )
