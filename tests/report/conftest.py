"""A browser, and a page of two runs to look at."""

from collections.abc import Iterator
from pathlib import Path

import chromium
import numpy as np
import pytest
from PIL import Image

import nasight
from nasight.runs import write_json
from nasight.studies import report

TINY = {"size": {"channels": 4, "cells": 1}, "epochs": 2, "batch_size": 32, "threads": 1}


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    if chromium.PATH is None:
        pytest.skip("there is no chromium to look at the page with")
    found = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def evil() -> str:
    """A name that must not become a part of a page."""
    return "<script>alert(1)"


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory, evil: str) -> Path:
    """Two methods on images whose classes have unpleasant names, the first with a landscape."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.integers(0, 120, (120, 8, 8, 1), dtype=np.uint8) + (y * 100).astype(np.uint8)[:, None, None, None]
    for i, image in enumerate(x[..., 0]):
        place = folder / "images" / (evil, "a & b")[y[i]] / f"{i}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    for method in ("gaea-darts", "darts"):
        data, out = str(folder / "images"), folder / method
        nasight.search("nasbench201", method, data, objective="erm", out=out, **TINY)
    deep = folder / "gaea-darts" / "deep"
    grid = np.linspace(-1, 1, 5)
    bowl = (0.1 + grid[:, None] ** 2 + grid**2).tolist()
    bowl[0][0] = None  # what overflowed
    about = {"settings": {"examples": 64}, "hessian": {"largest": 3.0, "trace": 9.0}, "data": evil, "part": "test"}
    (deep / "landscape").mkdir(parents=True)
    write_json(deep / "landscape" / "result.json", {"grid": grid.tolist(), "losses": bowl, "variances": bowl, **about})
    return folder


@pytest.fixture(scope="session")
def run_page(searched: Path) -> Path:
    """The report of the first run beside the second."""
    found = report(searched / "gaea-darts", searched / "darts", out=searched / "report.html")
    assert found.path is not None
    return found.path
