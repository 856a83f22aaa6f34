"""Names of folders that nobody named."""

from __future__ import annotations


def folder_name(name: str) -> str:
    """The name of a space or of data, or of the file it is in, as a part of a folder's name.

    >>> folder_name("photos/birds.v2/")
    'birds-v2'
    """
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name.rstrip("/").rsplit("/", 1)[-1])
