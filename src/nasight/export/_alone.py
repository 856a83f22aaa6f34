"""Predictions for new files by the network in this folder. It needs torch, numpy, pillow and safetensors, not nasight.

    python predict.py new/*.jpg     prints file, class and probability
    python predict.py new.csv       the same for rows of a table (.csv, .tsv, .jsonl, perhaps .gz; .parquet needs
                                    pyarrow) or of an .npz file with an array x; numbers where the network gives some

    Files that cannot be read are named and left out; the exit code is then 2.

    import predict                  # from your own program
    model = predict.load()
    model.probabilities(["new/a.jpg", "new/b.jpg"])    # (2, classes)
    model.probabilities("new.csv")                     # (rows, classes); or numbers

It runs the network's code that lies beside it, so use a folder that you trust.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

BATCH = 64
TURNS = dict(enumerate(map(Image.Transpose, (0, 3, 1, 5, 4, 6, 2)), 2))
"""How a photo is turned, by the note of the camera."""
MISSING = {"", "?", "na", "n/a", "nan", "nat", "none", "null", "<na>"}
"""Cells of a text file that mean that there is no value, in any case."""
LARGEST = 1e100


class Model:
    """A trained network, and what model.json says of it."""

    def __init__(self, network: nn.Module, about: dict[str, Any]) -> None:
        self.network, self.about = network, about
        self.classes: list[str] = about["classes"]

    @torch.no_grad()
    def probabilities(self, x: Any) -> NDArray[np.float32]:
        """(n, classes) for a list of image files, a file of rows, or examples (n, ...) as the training had them."""
        if isinstance(x, str | Path):
            x = self.rows(x) if holds_rows(x) else [x]
        files = isinstance(x, Sequence) and all(isinstance(entry, str | Path) for entry in x)
        parts = [x[at : at + BATCH] for at in range(0, len(x), BATCH)]
        found = [self._part(self.images(part) if files else torch.as_tensor(part)) for part in parts]
        return np.concatenate(found) if found else np.zeros((0, len(self.classes)), np.float32)

    def images(self, files: Sequence[str | Path]) -> Tensor:
        """The pixels of image files, (n, c, h, w)."""
        inputs, values = self.about["inputs"], self.about["values"]
        if len(inputs) != 3:
            raise ValueError(f"the network takes rows of {inputs[0]} numbers, and {files[0]} is no .npz or table")
        if values["low"] < 0 or values["high"] > 255:
            raise ValueError(f"the network takes numbers from {values['low']} to {values['high']}, which are no pixels")
        how = self.about.get("images", {})
        return torch.from_numpy(np.stack([read_image(file, inputs, how) for file in files]))

    def rows(self, file: str | Path) -> NDArray[Any]:
        """The examples in a table or an .npz file; columns of a table become what they became in the training."""
        if str(file).lower().endswith(".npz"):
            found: NDArray[Any] = np.load(file)["x"]
            return found
        table, layout = read_table(Path(file)), self.about.get("table")
        if layout is None:
            return np.array(list(table.values()), np.float32).T
        absent = next((column["name"] for column in layout if column["name"] not in table), None)
        if absent is not None:
            raise ValueError(f"{file} lacks the column {absent!r}, which the model was trained with")
        return np.concatenate([column_numbers(table[column["name"]], column) for column in layout], 1)

    def _part(self, x: Tensor) -> NDArray[np.float32]:
        logits = self.network(self.prepare(x))
        logits = logits[0] if isinstance(logits, tuple) else logits
        found: NDArray[np.float32] = self._values(logits).numpy()
        return found

    def _values(self, outputs: Tensor) -> Tensor:
        """Probabilities of classes or of labels, or numbers in the units of the training's."""
        task = self.about.get("task", {"kind": "classes"})
        if task["kind"] == "numbers":
            return outputs * torch.tensor(task["scale"]) + torch.tensor(task["center"])
        return torch.sigmoid(outputs) if task["kind"] == "labels" else torch.softmax(outputs, 1)

    def prepare(self, x: Tensor) -> Tensor:
        """Examples in the shape of the training's, normalized as there."""
        inputs, values = tuple(self.about["inputs"]), self.about["values"]
        if tuple(x.shape[1:]) != inputs and len(inputs) == 3 and inputs[0] == 1:
            x = x.reshape(len(x), *inputs)
        elif tuple(x.shape[1:]) != inputs and tuple(x.shape[1:]) == (*inputs[1:], inputs[0]):
            x = x.permute(0, 3, 1, 2)
        if tuple(x.shape[1:]) != inputs:
            raise ValueError(f"the network takes examples of shape {inputs}, got {tuple(x.shape[1:])}")
        bytes_ = x.dtype == torch.uint8 and len(inputs) == 3 and (values["type"] == "uint8" or values["high"] <= 1)
        shape = (1, -1) + (1,) * (x.dim() - 2)
        mean, std = (torch.tensor(self.about[name]).view(shape) for name in ("mean", "std"))
        return (x.float() / (255 if bytes_ else 1) - mean) / std


def load(folder: str | Path | None = None) -> Model:
    """The model in a folder, by default in the folder of this file."""
    place = Path(__file__).parent if folder is None else Path(folder)
    about = json.loads((place / "model.json").read_text("utf-8"))
    if about["network"] == "network.pt2":
        return Model(torch.export.load(place / "network.pt2").module(), about)
    spec = importlib.util.spec_from_file_location("network", place / "network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network: nn.Module = module.Network()
    network.load_state_dict(load_file(place / "weights.safetensors"))
    return Model(network.eval(), about)


def read_image(path: str | Path, inputs: Sequence[int], how: dict[str, str]) -> NDArray[np.uint8]:
    """The pixels (c, h, w) of an image of any size: as `how` says, transparency dropped, 16 bits made 8."""
    channels, height, width = inputs
    with Image.open(path) as opened:
        upright = how.get("orientation") == "upright"
        if upright and opened.size not in ((width, height), (height, width)):
            opened.draft(None, (2 * max(height, width), 2 * max(height, width)))
        image: Image.Image = opened
        turn = TURNS.get(int(opened.getexif().get(0x0112, 1))) if upright else None
        if image.mode == "I" or image.mode.startswith("I;16"):
            image = Image.fromarray(((np.asarray(image).astype(np.int64) + 128) // 257).astype(np.uint8))
        elif image.mode not in ("1", "L", "LA"):
            image = (image.convert("RGBA") if image.mode in ("P", "PA") else image).convert("RGB")
        image = (image if turn is None else image.transpose(turn)).convert("L" if channels == 1 else "RGB")
        image = fitted(image, width, height, how.get("fit", "stretch"))
        return np.array(image).reshape(height, width, channels).transpose(2, 0, 1)


def fitted(image: Image.Image, width: int, height: int, fit: str) -> Image.Image:
    """The image at this size: its middle ("crop"), 7/8 of that ("inner"), all of it on black ("pad"), or stretched."""
    across, down = image.size[0] / width, image.size[1] / height
    if image.size == (width, height) and fit != "inner":
        return image
    if fit == "pad":
        inner = max(1, round(image.size[0] / max(across, down))), max(1, round(image.size[1] / max(across, down)))
        whole = Image.new(image.mode, (width, height))
        small = image.resize(inner, Image.Resampling.BILINEAR)
        whole.paste(small, ((width - inner[0]) // 2, (height - inner[1]) // 2))
        return whole
    box = None
    if fit in ("crop", "inner"):
        scale = min(across, down) * (7 / 8 if fit == "inner" else 1)
        wide, high = scale * width, scale * height
        left, top = max(0.0, (image.size[0] - wide) / 2), max(0.0, (image.size[1] - high) / 2)
        box = (left, top, min(float(image.size[0]), left + wide), min(float(image.size[1]), top + high))
    return image.resize((width, height), Image.Resampling.BILINEAR, box=box)


def holds_rows(path: str | Path) -> bool:
    """Whether a file has an example in each row, by its name."""
    return str(path).lower().removesuffix(".gz").endswith((".npz", ".csv", ".tsv", ".jsonl", ".parquet"))


def read_table(path: Path) -> dict[str, list[Any]]:
    """The columns of a table: numbers or texts, None where there is no value."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        from pyarrow.parquet import read_table as read_parquet

        columns = read_parquet(path, use_pandas_metadata=False).to_pydict()
        return {str(key): column_values(values) for key, values in columns.items()}
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode("utf-8-sig")
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        keys = dict.fromkeys(key for row in rows for key in row)
        return {key: column_values([row.get(key) for row in rows]) for key in keys}
    read = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if name.endswith(".tsv") else ",")
    lines = [line for line in read if line]
    return {key.strip(): column_cells([line[i] for line in lines[1:]]) for i, key in enumerate(lines[0])}


def column_cells(cells: Sequence[str]) -> list[Any]:
    """Cells of a text file: numbers where all that are there are numbers, else texts."""
    texts = [None if cell.strip().lower() in MISSING else cell.strip() for cell in cells]
    try:
        return [finite(None if text is None else float(text)) for text in texts]
    except ValueError:
        return texts


def column_values(values: Sequence[Any]) -> list[Any]:
    """Values of a file that knows kinds: numbers and times (in seconds) as numbers, all else as texts."""
    there = [value for value in values if value is not None]
    if all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in there):
        return [finite(None if v is None else float(v)) for v in values]
    if all(isinstance(v, date) for v in there):
        return [None if v is None else seconds(v) for v in values]
    if all(isinstance(v, timedelta) for v in there):
        return [None if v is None else v.total_seconds() for v in values]
    return [None if v is None or (isinstance(v, float) and not math.isfinite(v)) else str(v) for v in values]


def seconds(time: date) -> float:
    """Since the day 0001-01-01, in the clock of the table."""
    plain = time.replace(tzinfo=None) if isinstance(time, datetime) else datetime(time.year, time.month, time.day)
    return (plain - datetime.min).total_seconds()


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def column_numbers(cells: Sequence[Any], column: dict[str, Any]) -> NDArray[np.float32]:
    """(n, width): a number in standard units, or 0 and 1 for each known text; perhaps a flag for a missing value."""
    absent = np.array([[cell is None] for cell in cells], np.float32)
    if column["values"]:
        place = {value: i for i, value in enumerate(column["values"])}
        found = np.zeros((len(cells), len(place) + column["other"]), np.float32)
        for row, cell in enumerate(cells):
            whole = isinstance(cell, float) and cell.is_integer()
            at = place.get(str(int(cell) if whole else cell), len(place))
            if cell is not None and at < found.shape[1]:
                found[row, at] = 1.0
    else:
        wrong = next((cell for cell in cells if isinstance(cell, str)), None)
        if wrong is not None:
            raise ValueError(f"column {column['name']!r} held numbers in the training, and here {wrong!r}")
        numbers = np.array([column["fill"] if cell is None else cell for cell in cells], np.float64)
        standard = (np.clip(numbers, -LARGEST, LARGEST) - column["center"]) / column["scale"]
        found = np.clip(standard, -1e30, 1e30).astype(np.float32)[:, None]
    return np.concatenate([found, absent], 1) if column["flag"] else found


def main(files: Sequence[str]) -> int:
    """Print a line per image, and per row of a table or an .npz file; 0, or 2 where a file cannot be read."""
    model, out, failed = load(), csv.writer(sys.stdout, lineterminator="\n"), 0
    kind = model.about.get("task", {"kind": "classes"})["kind"]
    numbered = any(holds_rows(file) for file in files)
    names = ["class", "probability"] if kind == "classes" else ["labels"] * (kind == "labels") + model.classes
    out.writerow(["file", *(["row"] if numbered else []), *names])
    for file in files:
        try:
            found = model.probabilities(file)
        except Exception as error:  # a file may be broken in any way, and the others are none the worse
            print(f"predict.py: {file} cannot be read: {reason(error)}", file=sys.stderr)
            failed += 1
            continue
        for number, row in enumerate(found):
            place = [file, *([number if holds_rows(file) else ""] if numbered else [])]
            out.writerow([*place, *cells_of(row, kind, model.classes)])
    if failed:
        print(f"predict.py: {failed} of {len(files)} files cannot be read; the others are done", file=sys.stderr)
    return 2 if failed else 0


def reason(error: Exception) -> str:
    """What went wrong, in a line."""
    lines = str(getattr(error, "strerror", None) or error).splitlines()
    return lines[0] if lines else type(error).__name__


def cells_of(row: NDArray[np.float32], kind: str, names: Sequence[str]) -> list[str]:
    """What is printed of a row: its class and how likely that is, its labels, or its numbers."""
    if kind == "classes":
        return [names[int(row.argmax())], f"{row.max():.6f}"]
    likely = [", ".join(name for name, share in zip(names, row, strict=True) if share > 0.5)]
    return likely * (kind == "labels") + [f"{value:.6g}" for value in row]


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads the lines has enough, as `head` does; what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
