"""Files of examples without classes: what a trained network is asked about."""

from __future__ import annotations

import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from nasight.data._images import SUFFIXES
from nasight.data._row_files import read_table, table_suffix
from nasight.errors import RequestError

BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
"""What Pillow raises for a file that is not a whole image; a broken PNG can be a SyntaxError."""


def read_image(path: str | Path, inputs: tuple[int, ...]) -> NDArray[np.uint8]:
    """The pixels (c, h, w) of an image file of any size and kind, brought to the shape `inputs`.

    The whole image is stretched or shrunk to h x w (bilinear). One channel is grey, three are red, green and blue.
    Transparency is dropped, 16 bits become 8, of several frames the first counts, and a camera's note on how to turn
    the image is not followed: an image of the right size has the pixels that a folder of images has for a training.

    Parameters
    ----------
    path : the file.
    inputs : (1, h, w) or (3, h, w).

    >>> from PIL import Image
    >>> Image.new("RGBA", (40, 30), "red").save(tmp / "red.png")
    >>> read_image(tmp / "red.png", (3, 8, 8))[:, 0, 0]
    array([255,   0,   0], dtype=uint8)
    """
    from PIL import Image

    if len(inputs) != 3 or inputs[0] not in (1, 3):
        raise RequestError(f"an image has 1 or 3 channels, so {path} cannot become an example of shape {inputs}")
    if not Path(path).is_file():
        raise RequestError(f"there is no file {path}")
    channels, height, width = inputs
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path) as opened:
            picture = _eight_bits(opened).convert("L" if channels == 1 else "RGB")
            if picture.size != (width, height):
                picture = picture.resize((width, height), Image.Resampling.BILINEAR)
            pixels = np.array(picture).reshape(height, width, channels)
    except Image.DecompressionBombError as error:
        raise RequestError(f"{path} is too large an image ({error})") from error
    except BROKEN as error:
        raise RequestError(f"{path} cannot be read as an image ({_first_line(error)})") from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _eight_bits(image: Any) -> Any:
    """The image in a mode that becomes grey or RGB without loss of meaning."""
    from PIL import Image

    if image.mode == "I" or image.mode.startswith("I;16"):
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError(f"its values go from {values.min()} to {values.max()}, not from 0 to 65535")
        return Image.fromarray(((values + 128) // 257).astype(np.uint8))
    if image.mode == "F":
        raise ValueError("its pixels are fractions, and what is white is not known")
    if image.mode in ("1", "L", "LA"):
        return image
    # A palette with transparency loses it without a warning only by way of RGBA.
    return (image.convert("RGBA") if image.mode in ("P", "PA") else image).convert("RGB")


def image_files(folder: str | Path) -> Iterator[Path]:
    """The image files in a folder and in its sub-folders, in the order of their names; hidden ones are left out."""
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names):
            if Path(name).suffix.lower() in SUFFIXES and not name.startswith("."):
                yield Path(place) / name


def holds_rows(path: str | Path) -> bool:
    """Whether a file is one that `read_rows` reads, by its name: .npz, .csv or .tsv, the last two perhaps .gz."""
    return Path(path).suffix.lower() == ".npz" or table_suffix(Path(path)) in (".csv", ".tsv")


def read_rows(path: str | Path) -> NDArray[Any]:
    """The examples of a file: the array `x` of an .npz file, or the rows of a table of numbers, (n, columns).

    Parameters
    ----------
    path : a file for which `holds_rows` is true; nothing in it is unpickled.

    >>> _ = (tmp / "new.csv").write_text("width,height\\n1,2\\n3,4\\n")
    >>> read_rows(tmp / "new.csv").shape
    (2, 2)
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        return _npz(path)
    table = read_table(path, "\t" if table_suffix(path) == ".tsv" else ",")
    columns = [table.numbers(place) for place in range(len(table.columns))]
    for name, column in zip(table.columns, columns, strict=True):
        if column is None:
            raise RequestError(f"column {name!r} of {path} holds texts, and a network takes numbers")
    return np.stack([column for column in columns if column is not None], 1)


def _npz(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as handle:
            file = np.load(handle, allow_pickle=False)
            names = list(file.files) if isinstance(file, NpzFile) else []
            found: NDArray[Any] | None = file["x"] if "x" in names else None
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, MemoryError) as error:
        raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({_first_line(error)})") from error
    if found is None:
        raise RequestError(f"{path} lacks the array 'x'; it holds {', '.join(names) or 'nothing'}")
    return found


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
