"""Arguments of public functions, checked against their annotations: a wrong type is a sentence, not a traceback."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

from nasight.errors import RequestError

Function = TypeVar("Function", bound=Callable[..., Any])


def typed(function: Function) -> Function:
    """Let a function refuse arguments of another type than it says, by a `RequestError` that names both.

    Annotations that cannot be decided by looking at a value (protocols, types that are imported for checkers alone) are
    left to the function itself.

    >>> @typed
    ... def twice(number: int) -> int:
    ...     return 2 * number
    >>> twice("3")
    Traceback (most recent call last):
    nasight.errors.RequestError: number of twice() must be int, got str '3'
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name, value in _named(function, args, kwargs).items():
            hint = _hints(function).get(name, Any)
            # None stands for what is not given, where an argument has a default.
            unset = value is None and name in _optional(function)
            if not unset and not fits(value, hint):
                raise RequestError(
                    f"{name} of {function.__name__}() must be {_words(hint)}, got {type(value).__name__} {value!r:.60}"
                )
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [
        name
        for name, p in _signature(function).parameters.items()
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    return {**dict(zip(names, args, strict=False)), **kwargs}


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _optional(function: Callable[..., Any]) -> frozenset[str]:
    """Arguments that may be left out."""
    named = _signature(function).parameters
    needed = {name for name, p in named.items() if p.default is inspect.Parameter.empty}
    return frozenset(name for name in {*named, *_hints(function)} if name not in needed)


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Argument -> its type; those of settings that are taken by name are listed too."""
    found = {}
    for name, annotation in function.__annotations__.items():
        try:
            found[name] = typing.get_type_hints(_Holder(name, annotation), function.__globals__)[name]
        except Exception:  # a name that exists for type checkers alone
            found[name] = Any
    for name, hint in list(found.items()):
        if typing.get_origin(hint) is typing.Unpack:
            found.pop(name)
            (settings,) = typing.get_args(hint)
            found.update(typing.get_type_hints(settings))
    return found


class _Holder:
    """One annotation, so that another that cannot be read does not hide it."""

    def __init__(self, name: str, annotation: Any) -> None:
        self.__annotations__ = {name: annotation}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; True where that cannot be told."""
    if hint is Any:
        return True
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return fits(value, typing.get_args(hint)[0])
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in typing.get_args(hint))
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is not None:
        return _contained(value, origin, typing.get_args(hint)) if isinstance(origin, type) else True
    if hint is type(None):
        return value is None
    if hint is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool_"
    if hint is int:
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)


def _contained(value: Any, origin: type, inside: tuple[Any, ...]) -> bool:
    if getattr(origin, "_is_protocol", False):
        return True
    if inside and inside[0] is str and isinstance(value, list | tuple):
        return issubclass(type(value), origin) and all(isinstance(each, str) for each in value)
    if origin is collections.abc.Sequence and not (inside and inside[0] is str):
        # Arrays and ranges are taken too.
        return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)
    return isinstance(value, origin) and not isinstance(value, bytes)


def _words(hint: Any) -> str:
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    names = [part.__name__ if isinstance(part, type) else str(part) for part in parts if part is not type(None)]
    return " or ".join(dict.fromkeys(name.rsplit(".", 1)[-1] if "[" not in name else name for name in names))
