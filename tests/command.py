"""The command as a shell runs it, in this process."""

from __future__ import annotations

import pytest

from nasight.cli import main


def run(*arguments: str) -> int:
    """The exit code of `nasight ARGUMENTS`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code
