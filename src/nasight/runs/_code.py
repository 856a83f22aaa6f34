"""Code of the user's own that a run was made with: named in its folder, run only where the user names it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from nasight.errors import RequestError

ENDING = ".py:"


def is_code(name: object) -> bool:
    """Whether a name means a Python file, which would be run: "FILE.py:NAME"."""
    return isinstance(name, str) and ENDING in name


def digest_of(name: str) -> str:
    """The checksum of the file in "FILE.py:NAME"."""
    file = name.removeprefix("-").rpartition(":")[0]
    try:
        return hashlib.sha256(Path(file).expanduser().read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        raise RequestError(f"there is no file {file!r}") from error


def digests_of(names: Iterable[str | None]) -> dict[str, str]:
    """What run.json keeps of the user's own code: name -> checksum."""
    return {name: digest_of(name) for name in names if name is not None and is_code(name)}


def named_again(
    folder: str | Path, about: Mapping[str, Any], recorded: str, given: str | None, *, flag: str = "--space"
) -> str:
    """The code that a run was made with, once the user has named it again; else it is refused, and not run.

    Parameters
    ----------
    folder : the run.
    about : its run.json, whose "sources" has the checksum of the file.
    recorded : the name in the folder; one that means no file is given back as it is.
    given : what the user names, "FILE.py:NAME", wherever the file lies now.
    flag : the option that names it.
    """
    if not is_code(recorded):
        return recorded
    if given is None:
        raise RequestError(
            f"{folder} was made with code of its author ({recorded!r}), which is not run because a folder names it; "
            f"if you trust it, name it yourself: {flag} {quote(recorded)}"
        )
    if not is_code(given):
        raise RequestError(f"{folder} was made with the code {recorded!r}; name that file with {flag}, got {given!r}")
    known = about.get("sources", {}).get(recorded) if isinstance(about.get("sources"), dict) else None
    if known is not None and digest_of(given) != known:
        raise RequestError(
            f"{given!r} is not the code that {folder} was made with: the checksum of the file is not the one in "
            "run.json; restore the file as it was"
        )
    return given
