"""Bad data files, texts, words of commands and Python values."""

from __future__ import annotations

import io
import json
import random
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import nasight
from faults.fuzz import Input, command
from nasight.anatomy import read_cells
from nasight.data import load as load_data
from nasight.data import rows as load_rows
from nasight.spaces import load as load_space

Content = Callable[[random.Random], bytes]


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _good(chance: random.Random) -> dict[str, Any]:
    return {"x": np.zeros((40, 8, 8), np.uint8), "y": np.arange(40) % 4}


LABELS: tuple[Any, ...] = (
    2**62, -1, 2**31, 1000, 10**6, 0.5, float("nan"), float("inf"), 2**63 - 1, -(2**63), "a", None, b"x", 1 + 2j,
)  # fmt: skip


def _labels(chance: random.Random) -> bytes:
    """One label that is far out, or of another kind."""
    label = chance.choice(LABELS)
    values: list[Any] = [i % 4 for i in range(40)]
    values[chance.randrange(40)] = label
    try:
        y = np.array(values)
    except (ValueError, OverflowError):
        y = np.array(values, dtype=object)
    if y.dtype == object:
        y = np.array([str(v) for v in values])
    return _npz(x=np.zeros((40, 8, 8), np.uint8), y=y)


def _shapes(chance: random.Random) -> bytes:
    shape = chance.choice([(0, 8, 8), (40,), (40, 0), (39, 8, 8), (40, 8, 8, 3, 2), (40, 1, 1), (), (1, 40, 8)])
    kind = chance.choice([np.uint8, np.float16, np.float64, np.int64, np.complex64, bool, "U3", "datetime64[s]"])
    return _npz(x=np.zeros(shape, kind), y=np.arange(40) % 4)


def _lying_header(chance: random.Random) -> bytes:
    """An array whose header says more, or other things, than the file holds."""
    says = chance.choice([
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 8, 8), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (40,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-5,), }",
        "{'descr': '<f4', 'shape': (40,), }",
        "{'descr': '<f99', 'fortran_order': False, 'shape': (40,), }",
        "__import__('os').system('true')",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
        "(" * 5000,
        "",
    ])  # fmt: skip
    head = says.encode().ljust(64)
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(head), 65535)) + head + bytes(chance.randrange(200))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        names = ["x.npy", "y.npy"]
        chance.shuffle(names)
        archive.writestr(names[0], array)
        good = io.BytesIO()
        np.save(good, np.arange(40) % 4)
        archive.writestr(names[1], good.getvalue())
    return buffer.getvalue()


def _bomb(chance: random.Random) -> bytes:
    """A few hundred kilobytes that unpack to gigabytes."""
    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (300000000, 8, 8), }".ljust(117) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        for _ in range(4):
            member.write(bytes(2**24))
    return buffer.getvalue()


def _broken(make: Content) -> Content:
    def broken(chance: random.Random) -> bytes:
        content = bytearray(make(chance) or b" ")
        for _ in range(chance.choice((1, 4, 30))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        return bytes(content[: chance.randrange(len(content))] if chance.random() < 0.4 else content)

    return broken


def _table(chance: random.Random) -> bytes:
    """A table with something wrong in it."""
    cell = chance.choice(["", "nan", "inf", "1e999", "x", '"', "9" * 5000, "\x00", "\ud83d\ude00", "1,2", "-", "0x10"])
    lines = ["a,b,label"] + [f"{i},{i * i},{i % 3}" for i in range(20)]
    way = chance.randrange(6)
    if way == 0:
        lines[chance.randrange(21)] = f"{cell},{cell},{cell}"
    elif way == 1:
        lines[0] = chance.choice(["", "1,2,3", "a,a,label", "a,b", ",,", "a,b,label,d"])
    elif way == 2:
        lines = lines[: chance.randrange(3)]
    elif way == 3:
        lines = [",".join(f"c{i}" for i in range(120_000)), ",".join("1" for _ in range(120_000))]
    elif way == 4:
        lines[3] = "1" + "," * chance.randrange(3000)
    else:
        lines[5] = f"{cell}" * 3 + ",1,1"
    return "\n".join(lines).encode("utf-8", "replace")


def _json_lines(chance: random.Random) -> bytes:
    line = chance.choice([
        "[" * 100_000, "9" * 6000, "{", "null", '{"text": 1, "label": 0}', '{"label": 0}', '{"text": "a", "label": []}',
        '{"text": "a", "label": NaN}', '{"text": "a", "label": {"a": 1}}', '{"text": "a"}', '"a"', "\x00",
    ])  # fmt: skip
    lines = [json.dumps({"text": f"word {i}", "label": i % 2}) for i in range(10)]
    lines[chance.randrange(10)] = line
    return "\n".join(lines).encode()


def _picture(chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    Image.new(chance.choice(["L", "RGB", "P", "RGBA", "1"]), (8, 8)).save(buffer, "PNG")
    return buffer.getvalue()


def _huge_picture(chance: random.Random) -> bytes:
    """A PNG whose header says 60,000 x 60,000 pixels."""
    content = bytearray(_picture(chance))
    side = chance.choice([60_000, 12_000, 2**31 - 1, 0])
    content[16:24] = struct.pack(">II", side, side)
    return bytes(content)


FILES: tuple[tuple[str, str, Content], ...] = (
    ("labels", ".npz", _labels),
    ("labels", ".npz", _labels),
    ("shapes", ".npz", _shapes),
    ("header", ".npz", _lying_header),
    ("harmed", ".npz", _broken(lambda chance: _npz(**_good(chance)))),
    ("table", ".csv", _table),
    ("harmed table", ".csv", _broken(_table)),
    ("lines", ".jsonl", _json_lines),
    ("picture", ".png", _broken(_picture)),
    ("huge picture", ".png", _huge_picture),
    ("nothing", ".npz", lambda chance: b""),
    ("gzip", ".csv.gz", _broken(_table)),
)


def _read_file(ending: str, make: Content, seed: str) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if ending == ".png":
            good, bad = place / "photos" / "a", place / "photos" / "b"
            good.mkdir(parents=True)
            bad.mkdir()
            (good / "1.png").write_bytes(_picture(chance))
            (bad / "1.png").write_bytes(make(chance))
            load_data(str(place / "photos"))
            return
        path = place / f"data{ending}"
        path.write_bytes(make(chance))
        if chance.random() < 0.2:
            command(["search", "--data", str(path), "--preset", "tiny", "--epochs", "1", "--out", str(place / "run")])
        elif ending == ".npz":
            load_data(str(path))
        else:
            load_rows(str(path), target=chance.choice([None, "label", "text", "nothing"]))


def data_files(number: int, seed: int = 0) -> Iterator[Input]:
    """Files of data that are wrong in one way or another."""
    for index in range(number):
        name, ending, make = FILES[index % len(FILES)]
        yield f"data: {name} {index}", partial(_read_file, ending, make, f"{seed} {index}")


def bombs() -> Iterator[Input]:
    yield "data: an archive that unpacks to gigabytes", partial(_read_file, ".npz", _bomb, "0.99")


PIECES = (
    "|", "+", "~", "none", "nor_conv_3x3", "skip_connect", "~0", "~1", "|none~0|", "Genotype(", "normal=", "[", "]",
    "(", ")", ",",
    "'sep_conv_3x3'", "0", "1", "99999999999999999999", "9" * 5000, "{", "}", '"normal"', ":", "relu", "/",
    "tanh", "\x00", "\n", "é", "DARTS_V2", "-1", "1e400", "null", "lambda: 0", "__import__('os')", "normal_concat=",
    "range(2, 6)", "range(10**9)", "*", "activation 1=relu",
)  # fmt: skip


def cell_texts(number: int, seed: int = 0) -> Iterator[Input]:
    """Texts that look a little like architectures."""
    chance = random.Random(seed)
    published = str(load_space("darts").format(load_space("darts").parse("DARTS_V2")))
    spaces = ("nasbench201", "darts", "mlp", "nasbench1shot1-1")
    for index in range(number):
        if chance.random() < 0.3:
            text = _spoiled(published, chance)
        else:
            text = "".join(chance.choice(PIECES) for _ in range(chance.randrange(12)))
        if chance.random() < 0.02:
            text = "[" * 100_000
        if chance.random() < 0.5:
            yield f"cell text {index}", partial(read_cells, text)
        else:
            yield f"architecture text {index}", partial(load_space(chance.choice(spaces)).parse, text)


def _spoiled(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text))
    return text[:place] + chance.choice(PIECES) + text[place + chance.randrange(4) :]


WRONG: tuple[Any, ...] = (
    None, 3, -1, 1.5, "", "nothing", [], {}, (), object(), b"bytes", True, float("nan"), 2**70, ["a"], {"a": 1},
    "9" * 50, np.zeros(3), lambda: 0, int,
)  # fmt: skip


def python_values(number: int, seed: int = 0) -> Iterator[Input]:
    """Arguments of public functions that are of another type, or out of bounds."""
    chance = random.Random(seed)
    small = {"preset": "tiny", "epochs": 1, "examples": 40, "batch_size": 16, "threads": 1}
    calls: list[tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = [
        (
            nasight.search,
            {"space": "mlp", "method": "gaea-darts", "data": "digits", **small, "size": {"width": 4}},
            (
                "space", "method", "data", "preset", "epochs", "examples", "batch_size", "threads", "size", "objective",
                "seed", "lr", "warmup", "validation", "overwrite", "track", "out", "data_folder", "space_options",
            ),
        ),
        (
            nasight.train,
            {"space": "mlp", "arch": "relu,relu,relu/0,0", "data": "digits", **small, "size": {"width": 4}},
            ("space", "arch", "data", "preset", "epochs", "examples", "batch_size", "threads", "size", "seed", "out"),
        ),
        (
            nasight.kernels.score,
            {"space": "mlp", "metrics": "params", "data": "digits", "sample": 2, "workers": 1},
            ("space", "metrics", "data", "sample", "seed", "size", "batch", "resolution", "architectures", "out"),
        ),
        (
            nasight.features.select,
            {"maps": "fourier", "data": "digits", "configs": 2, "dimension": 10, "examples": 60, "threads": 1},
            ("maps", "data", "method", "configs", "dimension", "validation", "examples", "score", "max_calls", "seed"),
        ),
        (
            nasight.reproduce,
            {"claims": "cells-width-depth", "workers": 1},
            ("claims", "seeds", "seed", "data", "data_folder", "out", "workers"),
        ),
        (nasight.explain, {"run": "nowhere"}, ("run", "level", "examples", "data")),
        (nasight.data.load, {"source": "digits"}, ("source", "folder")),
        (nasight.spaces.load, {"name": "mlp", "layers": 3}, ("name", "layers")),
    ]  # fmt: skip
    every = [(function, usual, name, value) for function, usual, names in calls for name in names for value in WRONG]
    # Each once before any comes again.
    chance.shuffle(every)
    for index in range(number):
        function, usual, name, value = every[index % len(every)]
        yield f"{function.__name__}({name}={value!r:.30}) {index}", partial(_called, function, usual, name, value)


def _called(function: Callable[..., Any], usual: dict[str, Any], name: str, value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        given = {**usual, name: value}
        if function is nasight.search:
            given.setdefault("out", str(Path(folder) / "run"))
        if function is nasight.data.load:
            nasight.data.load(given.pop("source"), **given)
            return
        if function is nasight.explain:
            nasight.explain(given.pop("run"), **given)
            return
        if function is nasight.spaces.load:
            nasight.spaces.load(given.pop("name"), **given)
            return
        function(**given)


class _inside:
    """The current folder, for a while: what a wrong `out` writes lands there."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        import os

        self.before = Path.cwd()
        os.chdir(self.folder)

    def __exit__(self, *_: object) -> None:
        import os

        os.chdir(self.before)


OWN = {
    "raises": "def build():\n    raise RuntimeError('boom')\n",
    "no module": "def build():\n    return 3\n",
    "arity": "def build(a, b):\n    return None\n",
    "syntax": "def build(:\n",
    "exits": "import sys\ndef build():\n    sys.exit(3)\n",
    "recursion": "def build():\n    return build()\n",
    "no choice": "from torch import nn\ndef build():\n    return nn.Linear(2, 2)\n",
    "import": "import nothing_of_this_name\n",
    "text": "build = 'text'\n",
    "wrong shape": "from torch import nn\nfrom nasight.spaces import Choice\ndef build():\n"
    "    return nn.Sequential(nn.Flatten(), nn.Linear(3, 2), Choice({'a': nn.ReLU(), 'b': nn.Tanh()}))\n",
}


def own_code() -> Iterator[Input]:
    """Models, metrics and maps of the user's own that raise, or are something else."""
    for name, source in OWN.items():
        yield f"own build: {name}", partial(_own, source, "search")
        yield f"own metric: {name}", partial(_own, source, "score")
        yield f"own baseline: {name}", partial(_own, source, "export")
    for name in ("transform raises", "fit raises", "text", "arity"):
        yield f"own map: {name}", partial(_own_map, name)


def _own(source: str, what: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "own.py"
        file.write_text(source)
        words = {
            "search": [
                "search",
                "--space",
                f"{file}:build",
                "--preset",
                "tiny",
                "--epochs",
                "1",
                "--out",
                f"{folder}/r",
            ],
            "score": ["score", "--space", "mlp", "--metric", f"{file}:build", "--sample", "2", "--workers", "1"],
            "export": ["export", "--space", f"{file}:build", "--arch", "a", "--genotype"],
        }[what]
        command(words)


class _OwnMap:
    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"wrong": self.wrong}

    def fit(self, x: Any, y: Any = None) -> Any:
        if self.wrong == "fit raises":
            raise RuntimeError("boom")
        return self

    def transform(self, x: Any, *more: Any) -> Any:
        if self.wrong == "transform raises":
            raise KeyError("boom")
        return "text" if self.wrong == "text" else np.zeros((3, 2))


def _own_map(wrong: str) -> None:
    nasight.features.select([_OwnMap(wrong)], "digits", configs=1, dimension=5, examples=60, threads=1)


def command_words(number: int, seed: int = 0) -> Iterator[Input]:
    """Commands with words that are wrong."""
    chance = random.Random(seed)
    options = (
        "--epochs", "--seed", "--lr", "--channels", "--width", "--preset", "--space", "--method", "--data", "--sample",
        "--objective", "--out", "--threads", "--examples", "--layers", "--resolution", "--budget", "--level", "--arch",
    )  # fmt: skip
    commands = (
        "search", "train", "score", "select", "explain", "export", "cell", "find", "predict", "kernel", "data",
        "reproduce",
    )  # fmt: skip
    values = (
        "-1",
        "0",
        "nan",
        "1e400",
        "9" * 5000,
        "x",
        "",
        "nowhere",
        "../..",
        "/",
        "mlp",
        "a b; c",
        "\x01",
        "[" * 9999,
    )
    for index in range(number):
        words = [chance.choice(commands)]
        for _ in range(chance.randrange(1, 4)):
            words += [chance.choice(options), chance.choice(values)]
        if chance.random() < 0.3:
            words.insert(1, chance.choice(values))
        yield f"{' '.join(words)[:80]!r} {index}", partial(_worded, words)


def _worded(words: list[str]) -> None:
    small = {"search": ["--preset", "tiny"], "train": ["--preset", "tiny"], "find": ["--trainings", "1"]}
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        command([*words[:1], *small.get(words[0], []), *words[1:]])
