"""Sources of data x commands: every cell of the table in docs/own_data.md is one test here.

Files go through the command line, what a Python program holds through the functions of the same names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import Dataset as TorchDataset

import nasight
from command import run
from nasight.anatomy import read_cells
from nasight.data import FORMATS, load, register
from nasight.kernels import score
from nasight.spaces import load as load_space
from nasight.studies import Protocol, compare_cells, load_model

ROWS = 60
CHANCE = np.random.default_rng(5)
X = CHANCE.normal(size=(ROWS, 4)).astype(np.float32)
SIDE = (X[:, 0] > 0).astype(int)
PRICE = (100 + 20 * X[:, 0] + CHANCE.normal(size=ROWS)).astype(np.float32)
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": np.where(SIDE, "Bern", "Chur"), "price": PRICE})
PIXELS = (60 * SIDE[:, None, None] + CHANCE.integers(0, 150, (ROWS, 8, 8))).astype(np.uint8)
NAMES = ("moon", "sun")
CELL = "|nor_conv_1x1~0|+|none~0|skip_connect~1|+|none~0|none~1|skip_connect~2|"
ARCH = "relu,relu,relu/0,0"
TINY = ("--preset", "tiny", "--epochs", "1", "--threads", "1")


class Moons(TorchDataset[Any]):
    classes = NAMES

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, row: int) -> tuple[Any, int]:
        return PIXELS[row, None], int(SIDE[row])


def _photo(path: Path, row: int) -> None:
    """A photo of a size and mode of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(PIXELS[row]).resize((8 + row % 5, 9 + row % 3))
    mode, kind = [("L", "png"), ("RGB", "jpg"), ("RGBA", "png"), ("P", "gif")][row % 4]
    picture.convert(mode).save(path.with_suffix(f".{kind}"))


def named_set(_: Path) -> str:
    """A name for few rows, for the sets that are known by name are large."""
    register(load((PIXELS, SIDE)), "moons")
    return "moons"


def class_photos(folder: Path) -> str:
    for row in range(ROWS):
        _photo(folder / "photos" / NAMES[SIDE[row]] / str(row), row)
    return str(folder / "photos")


def split_photos(folder: Path) -> str:
    for row in range(ROWS):
        part = ("train", "train", "train", "val", "test")[row // 2 % 5]
        _photo(folder / "parts" / part / NAMES[SIDE[row]] / str(row), row)
    return str(folder / "parts")


def listed_photos(folder: Path) -> str:
    files = sorted(Path(class_photos(folder)).rglob("*.*"))
    lines = ["path,label", *(f"{file.relative_to(folder)},{file.parent.name}" for file in files)]
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return str(folder / "list.csv")


def hub_table(_: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_pandas(TABLE.rename(columns={"price": "label"}))


def hub_images(_: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))})
    rows = {"image": [Image.fromarray(pixels) for pixels in PIXELS], "label": SIDE.tolist()}
    return datasets.Dataset.from_dict(rows, features=features)


def _written(name: str, write: Callable[[Path], Any]) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        write(folder / name)
        return str(folder / name)

    return make


@dataclass(frozen=True)
class Source:
    """What is given, what `predict` takes afterwards, and what the labels are."""

    make: Callable[[Path], Any]
    task: str
    new: Any = None
    """None: the source itself."""
    images: bool = False


SOURCES = {
    "named set": Source(named_set, "classes", PIXELS, images=True),
    ".npz": Source(_written("i.npz", lambda path: np.savez(path, x=PIXELS, y=SIDE)), "classes", images=True),
    "folder of class photos": Source(class_photos, "classes", images=True),
    "train, val, test folders": Source(split_photos, "classes", images=True),
    ".csv of paths and labels": Source(listed_photos, "classes", "photos", images=True),
    ".csv table": Source(_written("t.csv", lambda path: TABLE.to_csv(path, index=False)), "numbers"),
    ".tsv table": Source(_written("t.tsv", lambda path: TABLE.to_csv(path, index=False, sep="\t")), "numbers"),
    ".jsonl": Source(_written("t.jsonl", lambda path: TABLE.to_json(path, orient="records", lines=True)), "numbers"),
    ".parquet": Source(_written("t.parquet", TABLE.to_parquet), "numbers"),
    "pandas": Source(lambda _: TABLE, "numbers"),
    "polars": Source(lambda _: pl.from_pandas(TABLE), "numbers"),
    "NumPy arrays": Source(lambda _: (X, (X[:, :3] > 0).astype(int)), "labels", X),
    "torch Dataset": Source(lambda _: Moons(), "classes", PIXELS, images=True),
    "DataLoader": Source(
        lambda _: DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(PRICE)), 8), "numbers", X
    ),
    "datasets.Dataset, images": Source(hub_images, "classes", PIXELS, images=True),
    "datasets.Dataset, table": Source(hub_table, "numbers", TABLE),
}
METRIC = {"classes": "accuracy", "labels": "F1", "numbers": "R2"}


class Grid:
    """Each source made once, and each command run on it once; a later command may use what an earlier one left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given: dict[str, Any] = {}
        self.done: dict[tuple[str, str], Path] = {}

    def source(self, name: str) -> Any:
        if name not in self.given:
            place = self.folder / str(len(self.given))
            place.mkdir(exist_ok=True)
            self.given[name] = SOURCES[name].make(place)
        return self.given[name]

    def ran(self, name: str, command: str) -> Path:
        """The folder that the command wrote for this source."""
        if (name, command) not in self.done:
            out = self.folder / f"{command}-{list(SOURCES).index(name)}"
            given = self.source(name)
            by_name = isinstance(given, str)
            (COMMAND_LINES if by_name else FUNCTIONS)[command](given, out, SOURCES[name])
            self.done[name, command] = out
        return self.done[name, command]


def _line(*words: str) -> Callable[[str, Path, Source], None]:
    def call(given: str, out: Path, source: Source) -> None:
        size = () if not source.images or given == "moons" or given.endswith(".npz") else ("--resolution", "8")
        assert run(words[0], *words[1:], "--data", given, *size, "--out", str(out)) == 0

    return call


COMMAND_LINES: dict[str, Callable[[str, Path, Source], None]] = {
    "find": _line("find", "--space", "mlp", "--trainings", "32", "--epochs", "1", "--workers", "1"),
    "search": _line("search", "--space", "mlp", "--examples", "60", *TINY),
    "train": _line("train", "--space", "mlp", "--arch", ARCH, "--seeds", "1", *TINY),
    "score": _line("score", "--space", "mlp", "--metric", "eigen", "--sample", "2", "--workers", "1"),
    "cell": _line(
        *("cell", CELL, "--variants", "1", "--kind", "operations", "--epochs", "1", "--seeds", "1"),
        *("--channels", "2", "--examples", "40", "--workers", "1"),
    ),
}
HOW: dict[str, Any] = {"preset": "tiny", "epochs": 1, "threads": 1}
SMALL = Protocol(epochs=1, channels=2, cells=1, examples=40)
FUNCTIONS: dict[str, Callable[[Any, Path, Source], Any]] = {
    "find": lambda data, out, _: nasight.find(data, space="mlp", trainings=32, epochs=1, workers=1, out=out),
    "search": lambda data, out, _: nasight.search("mlp", data=data, out=out, **HOW),
    "train": lambda data, out, _: nasight.train("mlp", ARCH, data, out=out, **HOW),
    "score": lambda data, out, _: score("mlp", "eigen", data, sample=2, workers=1, out=out),
    "cell": lambda data, out, _: compare_cells([read_cells(CELL)], data, protocol=SMALL, seeds=[0], workers=1, out=out),
}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    yield Grid(tmp_path_factory.mktemp("grid"))
    if "moons" in FORMATS:
        FORMATS.remove("moons")


def _again(grid: Grid, name: str) -> Any:
    """The data, where a folder cannot find it by its name."""
    given = grid.source(name)
    return None if isinstance(given, str) else given


def _result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def check_find(grid: Grid, name: str) -> None:
    folder = grid.ran(name, "find")
    result, model = _result(folder), json.loads((folder / "model" / "model.json").read_text())
    assert result["metric"] == model["task"]["metric"] == METRIC[SOURCES[name].task]
    assert {"network.py", "predict.py"} <= set(model["files"])


def check_search(grid: Grid, name: str) -> None:
    found = nasight.Run(grid.ran(name, "search"))
    assert found.result["metric"] == METRIC[SOURCES[name].task]
    size = 8 if SOURCES[name].images else None
    assert found.load_data(_again(grid, name)).fingerprint == load(grid.source(name), resolution=size).fingerprint


def check_train(grid: Grid, name: str) -> None:
    (found,) = grid.ran(name, "train").rglob("result.json")
    assert _result(found.parent)["metric"] == METRIC[SOURCES[name].task]


def check_score(grid: Grid, name: str) -> None:
    rows = _result(grid.ran(name, "score"))["scores"]
    assert len(rows) == 2
    assert all(row["eigen"] > 0 for row in rows)


def check_predict(grid: Grid, name: str) -> None:
    source, given, trained = SOURCES[name], grid.source(name), grid.ran(name, "train")
    new = given if source.new is None else source.new
    model = load_model(trained)
    if isinstance(given, str):
        if not isinstance(new, str):
            np.savez(grid.folder / "new.npz", x=new)
            new = str(grid.folder / "new.npz")
        found = grid.folder / "found.csv"
        assert run("predict", str(trained), str(Path(given).parent / new), "--csv", str(found)) == 0
        told = pd.read_csv(found, dtype={"class": str})["class" if source.task == "classes" else "price"].to_numpy()
    else:
        told = model.predict(new)
    assert len(told) == ROWS
    if source.task == "numbers":
        assert np.isfinite(told).all()
    else:
        assert {label for each in told for label in (each if source.task == "labels" else [each])} <= set(model.classes)


def check_explain(grid: Grid, name: str) -> None:
    folder = grid.ran(name, "search")
    if isinstance(grid.source(name), str):
        assert run("explain", str(folder), "--json") == 0
    found = nasight.explain(folder, data=_again(grid, name))
    assert [each["name"] for each in found.decisions] == [d.name for d in load_space("mlp").decisions]


def check_cell(grid: Grid, name: str) -> None:
    assert list(grid.ran(name, "cell").rglob("result.json"))


CHECKS = {
    "find": check_find,
    "search": check_search,
    "train": check_train,
    "score": check_score,
    "predict": check_predict,
    "explain": check_explain,
    "cell": check_cell,
}
CELLS = [(name, c) for name, source in SOURCES.items() for c in CHECKS if c != "cell" or source.images]


def _marked(name: str, command: str) -> Any:
    marks = [pytest.mark.slow] if command == "find" else []
    return pytest.param(name, command, marks=marks, id=f"{name}-{command}".replace(" ", "-"))


@pytest.mark.parametrize(("name", "command"), [_marked(*cell) for cell in CELLS])
def test_every_command_takes_every_source(name: str, command: str, grid: Grid) -> None:
    CHECKS[command](grid, name)


def table() -> str:
    """The table of the documents."""
    lines = ["| source | " + " | ".join(f"`{command}`" for command in CHECKS) + " |", "|---" * (1 + len(CHECKS)) + "|"]
    for name in SOURCES:
        cells = ("yes" if (name, command) in CELLS else "needs images" for command in CHECKS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_table_in_the_documents_lists_the_cells_that_are_tested() -> None:
    page = Path(__file__).parents[2] / "docs" / "own_data.md"
    assert table() in page.read_text()
