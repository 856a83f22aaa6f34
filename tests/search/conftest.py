from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nasight.search import Run, search

TINY: dict[str, Any] = {
    "data": "digits",
    "preset": "tiny",
    "examples": 200,
    "size": {"channels": 4, "cells": 1},
    "epochs": 2,
    "batch_size": 32,
    "threads": 1,
}


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Run]:
    """A search of a few seconds on the digits."""

    def run(name: str = "run", **settings: Any) -> Run:
        return search(out=tmp_path / name, **{**TINY, **settings})

    return run
