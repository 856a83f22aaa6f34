"""One image file of any size and kind as the pixels of an example."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

FITS = ("crop", "inner", "pad", "stretch")
INNER = 224 / 256
"""The part of the shorter side that "inner" keeps, as tests on ImageNet do."""
GRAY = {"1", "L", "LA", "I"}
ORIENTATION = 0x0112
"""The number of the EXIF note that says how a camera was held."""


class Probe(NamedTuple):
    """What the head of an image file says: its size as it is looked at, and whether it is gray."""

    width: int
    height: int
    gray: bool


def check_fit(fit: str) -> str:
    """The name of a way to bring an image to a size, if it is one."""
    if fit not in FITS:
        raise RequestError(f"fit must be one of {', '.join(FITS)}, got {fit!r}")
    return fit


def learned_fit(fit: str) -> str:
    """How photos that are learned from are brought to size; only those that judge show their inner part."""
    return "crop" if fit == "inner" else fit


def probe(path: Path) -> Probe:
    """The size and kind of an image, without decoding it; ValueError with the reason if it cannot be read."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            width, height = image.size
            gray = image.mode in GRAY or image.mode.startswith("I;16")
            turned = _orientation(image) in (5, 6, 7, 8)
    except Exception as error:
        raise ValueError(reason(error)) from error
    return Probe(height, width, gray) if turned else Probe(width, height, gray)


def decode(
    path: str | Path, channels: int, size: tuple[int, int] | None, *, fit: str = "stretch", upright: bool = True
) -> NDArray[np.uint8]:
    """The pixels (channels, height, width) of an image file; ValueError with the reason if it cannot be read.

    Transparency is dropped, 16 bits become 8, and of several frames the first counts.

    Parameters
    ----------
    path : the file.
    channels : 1 for gray, 3 for red, green and blue.
    size : (height, width) to bring it to; None leaves it.
    fit : "crop" keeps the middle, "inner" 7/8 of that (224 of 256 pixels), "pad" keeps all and fills up with black,
        "stretch" changes the proportions.
    upright : turn the image as the camera's note says.
    """
    from PIL import Image

    try:
        with Image.open(path) as opened:
            if upright and size is not None and tuple(opened.size) not in (size, size[::-1]):
                # A JPEG can be decoded at a half, a quarter or an eighth of its size, which is several times as fast.
                opened.draft(None, (2 * max(size), 2 * max(size)))
            picture = _eight_bits(opened)
            if upright:
                picture = _turned(picture, _orientation(opened))
            picture = picture.convert("L" if channels == 1 else "RGB")
        if size is not None:
            picture = fitted(picture, size[1], size[0], fit)
        pixels = np.array(picture).reshape(picture.size[1], picture.size[0], channels)
    except Exception as error:  # Pillow raises nearly anything for a damaged file
        raise ValueError(reason(error)) from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def read_image(
    path: str | Path, inputs: tuple[int, ...], *, fit: str = "stretch", upright: bool = False
) -> NDArray[np.uint8]:
    """The pixels (c, h, w) of an image file of any size and kind, brought to the shape `inputs`.

    One channel is gray, three are red, green and blue. Transparency is dropped, 16 bits become 8, of several frames
    the first counts.

    Parameters
    ----------
    path : the file.
    inputs : (1, h, w) or (3, h, w).
    fit : "crop" keeps the middle, "inner" 7/8 of that (224 of 256 pixels), "pad" keeps all and fills up with black,
        "stretch" changes the proportions.
    upright : turn the image as a camera's note on it says.

    >>> from PIL import Image
    >>> Image.new("RGBA", (40, 30), "red").save(tmp / "red.png")
    >>> read_image(tmp / "red.png", (3, 8, 8))[:, 0, 0]
    array([255,   0,   0], dtype=uint8)
    """
    if len(inputs) != 3 or inputs[0] not in (1, 3):
        raise RequestError(f"an image has 1 or 3 channels, so {path} cannot become an example of shape {inputs}")
    if not Path(path).is_file():
        raise RequestError(f"there is no file {path}")
    try:
        with warnings.catch_warnings(action="ignore"):
            return decode(path, inputs[0], (inputs[1], inputs[2]), fit=check_fit(fit), upright=upright)
    except ValueError as error:
        raise RequestError(f"{path} cannot be read as an image ({error})") from error


def fitted(picture: Any, width: int, height: int, fit: str) -> Any:
    """The picture at this size (bilinear)."""
    from PIL import Image

    if picture.size == (width, height) and fit != "inner":
        return picture
    across, down = picture.size
    if fit in ("crop", "inner"):
        scale = min(across / width, down / height) * (INNER if fit == "inner" else 1)
        # Rounding must not lead over the edge.
        left, top = max(0.0, (across - scale * width) / 2), max(0.0, (down - scale * height) / 2)
        box = (left, top, min(float(across), left + scale * width), min(float(down), top + scale * height))
        return picture.resize((width, height), Image.Resampling.BILINEAR, box=box)
    if fit == "pad":
        scale = max(across / width, down / height)
        inner = max(1, round(across / scale)), max(1, round(down / scale))
        whole = Image.new(picture.mode, (width, height))
        small = picture.resize(inner, Image.Resampling.BILINEAR)
        whole.paste(small, ((width - inner[0]) // 2, (height - inner[1]) // 2))
        return whole
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def reason(error: BaseException) -> str:
    """The first line of what went wrong, without the path, which the caller names."""
    text = str(error).partition("\n")[0]
    return "it is no image that Pillow knows" if text.startswith("cannot identify") else text or type(error).__name__


def _orientation(image: Any) -> int:
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # a damaged note is no note
        return 1


def _turned(picture: Any, orientation: int) -> Any:
    from PIL import Image

    ways = Image.Transpose
    turns = {
        2: ways.FLIP_LEFT_RIGHT,
        3: ways.ROTATE_180,
        4: ways.FLIP_TOP_BOTTOM,
        5: ways.TRANSPOSE,
        6: ways.ROTATE_270,
        7: ways.TRANSVERSE,
        8: ways.ROTATE_90,
    }
    return picture.transpose(turns[orientation]) if orientation in turns else picture


def _eight_bits(image: Any) -> Any:
    """The image in a mode that becomes gray or RGB without loss of meaning."""
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
