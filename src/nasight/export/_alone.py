"""Classes of new images by the network in this folder. It needs torch, numpy, pillow and safetensors, not nasight.

    python predict.py new/*.jpg     prints file, class and probability; .npz files with an array x are read too

    import predict                  # from your own program
    model = predict.load()
    model.probabilities(["new/a.jpg", "new/b.jpg"])    # (2, classes)

It runs the network's code that lies beside it, so use a folder that you trust.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from collections.abc import Sequence
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


class Model:
    """A trained network, and what model.json says of it."""

    def __init__(self, network: nn.Module, about: dict[str, Any]) -> None:
        self.network, self.about = network, about
        self.classes: list[str] = about["classes"]

    @torch.no_grad()
    def probabilities(self, x: Any) -> NDArray[np.float32]:
        """(n, classes) for a list of image files, or for examples (n, ...) as the training had them."""
        files = isinstance(x, Sequence) and all(isinstance(entry, str | Path) for entry in x)
        parts = [x[at : at + BATCH] for at in range(0, len(x), BATCH)]
        found = [self._part(self.images(part) if files else torch.as_tensor(part)) for part in parts]
        return np.concatenate(found) if found else np.zeros((0, len(self.classes)), np.float32)

    def images(self, files: Sequence[str | Path]) -> Tensor:
        """The pixels of image files, (n, c, h, w)."""
        values = self.about["values"]
        if values["low"] < 0 or values["high"] > 255:
            raise ValueError(f"the network takes numbers from {values['low']} to {values['high']}, which are no pixels")
        how = self.about.get("images", {})
        return torch.from_numpy(np.stack([read_image(file, self.about["inputs"], how) for file in files]))

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
    """The image at this size: its middle ("crop"), all of it on black ("pad"), or stretched."""
    across, down = image.size[0] / width, image.size[1] / height
    if image.size == (width, height):
        return image
    if fit == "pad":
        inner = max(1, round(image.size[0] / max(across, down))), max(1, round(image.size[1] / max(across, down)))
        whole = Image.new(image.mode, (width, height))
        small = image.resize(inner, Image.Resampling.BILINEAR)
        whole.paste(small, ((width - inner[0]) // 2, (height - inner[1]) // 2))
        return whole
    box = None
    if fit == "crop":
        wide, high = min(across, down) * width, min(across, down) * height
        left, top = max(0.0, (image.size[0] - wide) / 2), max(0.0, (image.size[1] - high) / 2)
        box = (left, top, min(float(image.size[0]), left + wide), min(float(image.size[1]), top + high))
    return image.resize((width, height), Image.Resampling.BILINEAR, box=box)


def main(files: Sequence[str]) -> None:
    """Print a line per image, and per row of an .npz file."""
    model, out = load(), csv.writer(sys.stdout, lineterminator="\n")
    several = model.about.get("task", {"kind": "classes"})["kind"] != "classes"
    out.writerow(["file", *(model.classes if several else ["class", "probability"])])
    for file in files:
        rows = model.probabilities(np.load(file)["x"] if file.endswith(".npz") else [file])
        for row in rows:
            best = [model.classes[int(row.argmax())], f"{row.max():.6f}"]
            out.writerow([file, *([f"{value:.6g}" for value in row] if several else best)])


if __name__ == "__main__":
    main(sys.argv[1:])
