from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nasight.data import load as load_data
from nasight.searching import Run, search
from nasight.searching._engine import Engine
from nasight.searching._settings import resolve
from nasight.searching.methods import method_row
from nasight.spaces import load

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


@pytest.fixture
def engine() -> Callable[..., Engine]:
    """The moving parts of a tiny search, before its first step."""

    def make(name: str, space: str = "nasbench201", objective: str | None = None, **settings: Any) -> Engine:
        values = {"examples": 200, "epochs": 4, "batch_size": 32, "threads": 1, "augment": False, **settings}
        values.setdefault("size", {"channels": 4, "cells": 3 if space == "darts" else 1})
        where = load(space, none=False) if space == "nasbench201" else load(space)
        resolved = resolve(method_row(name), where, data="digits", objective=objective, preset="tiny", **values)
        made = Engine(resolved, where, load_data("digits"), method_row(name))
        made.set_epoch(0)
        return made

    return make
