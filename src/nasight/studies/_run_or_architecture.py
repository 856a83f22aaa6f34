"""Whether a run was named, or an architecture of a space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasight.errors import RequestError
from nasight.runs import is_code


def named_architecture(
    run: object, space: str | None, arch: str | None, options: Mapping[str, Any], verb: str
) -> tuple[str, str] | None:
    """The space and architecture that were named, or None where a run was; both, or neither, are refused."""
    if run is not None:
        if arch is not None or options or (space is not None and not is_code(space)):
            raise RequestError(f"give the run {run} or --space and --arch, not both")
        return None
    if space is None or arch is None:
        missing = "a RUN, or --space and --arch" if space is arch else "--space" if space is None else "--arch"
        raise RequestError(f"there is nothing to {verb}: {missing} is missing")
    return space, arch
