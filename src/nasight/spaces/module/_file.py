"""A space from a user's Python file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces.module._space import ModuleSpace


def from_file(text: str, name: str = "module") -> Space:
    """The space in a Python file, "path.py:attribute": a `Space`, its class, a model with `Choice`s or what makes one.

    The file is run, as `python path.py` would.
    """
    found = attribute_of(text)
    if isinstance(found, Space):
        return found
    return found() if isinstance(found, type) and issubclass(found, Space) else ModuleSpace(found, name)


def attribute_of(text: str) -> Any:
    """What a Python file, which is run, calls by this name: "path.py:attribute"."""
    place, colon, attribute = text.rpartition(":")
    if not colon or not place.endswith(".py") or not attribute:
        raise RequestError(f"expected 'path.py:attribute', where the attribute makes a model, got {text!r}")
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise RequestError(f"there is no file {place!r}")
    values = vars(_run(path, place))
    if attribute not in values:
        near = sorted(n for n, v in values.items() if not n.startswith("_") and callable(v))
        raise RequestError(
            f"{place!r} defines no {attribute!r}, only {', '.join(near) or 'nothing that makes a model'}"
        )
    return values[attribute]


def _run(path: Path, place: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"nasight_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered, so that classes defined in the file can be found again by copies and dataclasses.
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        raise RequestError(f"{place!r} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module
