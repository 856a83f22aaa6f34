"""Names of spaces; each is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from torch import nn

from nasight.arguments import typed
from nasight.errors import RequestError
from nasight.registry import Registry
from nasight.spaces._base import Space

Factory = Callable[..., Space]
"""Makes a space from its options; the class of a space is one."""
DEFAULT = "nasbench201"
"""The space that is searched where none is named."""


def _built_in(module: str, kind: str, **fixed: Any) -> Factory:
    def make(**options: Any) -> Space:
        space: Space = _class(module, kind)(**{**options, **fixed})
        return space

    make.space_class = partial(_class, module, kind)  # type: ignore[attr-defined]
    return make


def _class(module: str, kind: str) -> type[Space]:
    found: type[Space] = getattr(import_module(f"nasight.spaces.{module}"), kind)
    return found


def _as_it_is(space: Space) -> Factory:
    """Gives a space that was registered ready-made; options that it has may be named, others not."""

    def make(**options: Any) -> Space:
        for key, value in options.items():
            if space.options.get(key, ...) != value:
                raise RequestError(f"space {space.name!r} was registered ready-made and does not take {key}={value!r}")
        return space

    return make


def _checked(name: str, thing: object) -> Factory:
    if isinstance(thing, Space):
        return _as_it_is(thing)
    if not callable(thing):
        raise RequestError(f"space {name!r} must be a Space, its class or a function that makes one, got {thing!r}")
    return thing


SPACES: Registry[Factory] = Registry(
    "space",
    "nasight.spaces",
    {
        "nasbench201": _built_in("nasbench201", "NasBench201"),
        "darts": _built_in("darts", "Darts"),
        "nasbench1shot1-1": _built_in("nasbench1shot1", "NasBench1Shot1", number=1),
        "nasbench1shot1-2": _built_in("nasbench1shot1", "NasBench1Shot1", number=2),
        "nasbench1shot1-3": _built_in("nasbench1shot1", "NasBench1Shot1", number=3),
        "convnet": _built_in("convnet", "ConvNet"),
        "mlp": _built_in("mlp", "Mlp"),
    },
    check=_checked,
)

BASELINES: Mapping[str, Factory] = {"plain": _built_in("plain", "PlainSpace")}
"""Spaces without a choice, which `load` knows and nobody searches."""


def names() -> tuple[str, ...]:
    """The names that `load` takes."""
    return tuple(SPACES)


def register(space: Space | Factory, name: str | None = None) -> None:
    """Let a name stand for a space: a `Space`, its class, or a function that makes one from options.

    Without `name` it is the space's own.
    """
    own = name or getattr(space, "name", None)
    if not isinstance(own, str):
        raise RequestError(f"a space that is made by a function needs a name, got {own!r}")
    SPACES.add(own, space)  # type: ignore[arg-type]


def search_options(name: str) -> dict[str, Any]:
    """The options with which a space is searched where the caller names none: those that it declares."""
    if ".py:" in name or name not in SPACES:
        return {}
    factory: Any = SPACES[name]
    kind = factory.space_class() if hasattr(factory, "space_class") else factory
    declared: Mapping[str, Any] = getattr(kind, "search_options", {})
    return dict(declared)


def family_of(space: object) -> str:
    """The family of a space given by name or as it is; for a name no space is made, where its class declares it."""
    if isinstance(space, Space):
        return space.family
    return load(space).family if isinstance(space, str) and space in SPACES else ""


@typed
def load(name: str | Space | nn.Module | Callable[[], nn.Module], **options: Any) -> Space:
    """The space that a name, a file or a model means.

    Parameters
    ----------
    name : a name of `names()`; FILE.py:NAME, a space or a model with `Choice`s in a Python file, which is run; a
        `Space`, which is returned as it is; an `nn.Module` (or a function that makes one) with `Choice`s.
    options : the space's own, such as `none=False` for nasbench201 and `layers=3` for mlp.

    >>> len(load("nasbench201", none=False))
    4096
    """
    if isinstance(name, Space):
        return name
    if not isinstance(name, str):
        from nasight.spaces.module import ModuleSpace

        return ModuleSpace(name)
    if ".py:" in name:
        from nasight.spaces.module import from_file

        return from_file(name)
    factory = BASELINES[name] if name in BASELINES else SPACES[name]
    try:
        space = factory(**options)
    except TypeError as error:
        given = ", ".join(sorted(options)) or "no options"
        raise RequestError(f"space {name!r} does not take {given}: {error}") from error
    if not isinstance(space, Space):
        raise RequestError(f"what makes the space {name!r} must give a Space, it gave {type(space).__name__}")
    return space
