"""Names of spaces; each is imported only when it is asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from nasight.errors import RequestError
from nasight.spaces._base import Space

# name -> (module, class, settings that the name fixes)
SPACES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nasbench201": ("_nasbench201", "NasBench201", {}),
    "darts": ("_darts", "Darts", {}),
    "nasbench1shot1-1": ("_nasbench1shot1", "NasBench1Shot1", {"number": 1}),
    "nasbench1shot1-2": ("_nasbench1shot1", "NasBench1Shot1", {"number": 2}),
    "nasbench1shot1-3": ("_nasbench1shot1", "NasBench1Shot1", {"number": 3}),
    "mlp": ("_mlp", "Mlp", {}),
}


def names() -> tuple[str, ...]:
    """The names that `load` takes."""
    return tuple(SPACES)


def load(name: str, **options: Any) -> Space:
    """The space of this name; `options` are its own (`none=False` for nasbench201, `layers=3` for mlp).

    FILE.py:NAME is the space of a user's own module with `Choice`s.
    """
    if ".py:" in name:
        from nasight.spaces._module import from_file

        return from_file(name)
    if name not in SPACES:
        near = get_close_matches(name, SPACES, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(f"there is no space {name!r}, only {', '.join(SPACES)}{hint}")
    module, kind, fixed = SPACES[name]
    space_class = getattr(import_module(f"nasight.spaces.{module}"), kind)
    try:
        space: Space = space_class(**{**options, **fixed})
    except TypeError as error:
        raise RequestError(f"space {name!r} does not take {', '.join(sorted(options))}: {error}") from error
    return space
