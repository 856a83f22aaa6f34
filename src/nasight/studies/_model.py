"""A trained network with all that it takes to use it: its classes, its normalization, the shape of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nasight.data import batches, examples, holds_rows, holds_table, is_frame, read_columns, read_image, read_rows
from nasight.errors import RequestError, RunError
from nasight.export import ExportDesign
from nasight.spaces import Space
from nasight.studies._model_card import ModelCard
from nasight.studies._model_network import design_of

BATCH, BATCH_NUMBERS = 64, 2**23
"""Examples that are computed at once, fewer where they would have more numbers than this."""

Failed = Callable[[str, str], None]
"""Gets a file that cannot be read, and a sentence that says why."""


@dataclass(frozen=True, eq=False, slots=True)
class Prediction:
    """What a model says of one example: an image file, or a row of a file."""

    file: str
    row: int | None
    """Counted from 0; None for an image file."""
    classes: tuple[str, ...]
    probabilities: NDArray[np.float32]
    """Of each class or label; for numbers the numbers themselves. (classes,)"""
    kind: str = "classes"
    """The task: "classes", "labels" or "numbers"."""

    @property
    def label(self) -> str:
        """The likeliest class; of several labels those that are likely, joined by commas; of numbers the numbers."""
        if self.kind == "numbers":
            return ", ".join(f"{value:g}" for value in self.probabilities.tolist())
        if self.kind == "labels":
            return ", ".join(name for name, share in self.named.items() if share > 0.5)
        return self.classes[int(self.probabilities.argmax())]

    @property
    def named(self) -> dict[str, float]:
        """The probability of each class or label, or each number, by name."""
        return dict(zip(self.classes, map(float, self.probabilities), strict=True))

    @property
    def probability(self) -> float:
        """Of the likeliest class."""
        return float(self.probabilities.max())

    def best(self, number: int | None = None) -> list[tuple[str, float]]:
        """The likeliest classes with their probabilities, the first one first; by default all."""
        order = np.argsort(-self.probabilities, kind="stable")[:number]
        return [(self.classes[place], float(self.probabilities[place])) for place in order]


@dataclass(frozen=True, eq=False)
class Model:
    """A trained network that takes files and raw examples; `nasight.load_model` reads one from a folder.

    Parameters
    ----------
    network : it gives logits (n, classes) for normalized examples; in evaluation mode.
    card : its classes, its inputs, how they are normalized, what it was trained on and how well.
    space : the space that its architecture is of.
    folder : where it was read from: a model folder, or a training.
    """

    network: nn.Module
    card: ModelCard
    space: Space
    folder: Path

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.card.classes

    @property
    def design(self) -> ExportDesign:
        """What network it is."""
        return design_of(self.card, self.space)

    @property
    def kind(self) -> str:
        """The task: "classes", "labels" or "numbers"."""
        return self.card.task.kind

    def predict(self, x: Any, *, batch_size: int | None = None) -> NDArray[Any]:
        """The name of the likeliest class of every example, (n,); or its numbers, (n,) or (n, k); or its labels.

        Of several labels the names of those that are likely, a tuple for each example, (n,).

        Parameters
        ----------
        x : image files, .npz files with an array x, or tables (.csv, .tsv, .jsonl, .parquet), as a path or a list of
            paths; a frame of pandas or polars with the columns of the training's table;
            or examples as the training had them, before they are normalized: images (n, c, h, w), (n, h, w) or
            (n, h, w, 3), or vectors (n, d), as an array, a tensor or lists.
        batch_size : how many are computed at once; 64 by default, fewer where they are large.
        """
        values = self.probabilities(x, batch_size=batch_size)
        if self.kind == "numbers":
            return values[:, 0] if values.shape[1] == 1 else values
        if self.kind == "labels":
            chosen = np.empty(len(values), dtype=object)
            for row, shares in enumerate(values):
                chosen[row] = tuple(name for name, share in zip(self.classes, shares, strict=True) if share > 0.5)
            return chosen
        found: NDArray[np.str_] = np.array(self.classes)[values.argmax(1)]
        return found

    def probabilities(self, x: Any, *, batch_size: int | None = None) -> NDArray[np.float32]:
        """The probability of every class or label, or every number, (n, classes).

        `x` and `batch_size` are those of `predict`.
        """
        if is_frame(x):
            return self._computed(self._of_table(x, "the frame"), self._batch(batch_size))
        files = _files(x)
        if files is not None:
            found = [each.probabilities for each in self.predictions(files, batch_size=batch_size)]
            return np.stack(found) if found else np.zeros((0, len(self.classes)), np.float32)
        return self._computed(self._fitting(x, "x"), self._batch(batch_size))

    def predictions(
        self, files: Iterable[str | Path], *, batch_size: int | None = None, failed: Failed | None = None
    ) -> Iterator[Prediction]:
        """What the model says of each file, in their order; they are read batch by batch, when they are asked for.

        Parameters
        ----------
        files : image files; .npz files with an array x and tables of numbers give a prediction for each row.
        batch_size : how many examples are read and computed at once; 64 by default, fewer where they are large.
        failed : called with a file that cannot be read and the reason; the others go on. Without it the first such
            file raises `RequestError`.
        """
        return self._predictions(self._examples(files, failed), self._batch(batch_size))

    def _predictions(self, left: Iterator[tuple[str, int | None, Tensor]], size: int) -> Iterator[Prediction]:
        while part := list(islice(left, size)):
            found = self._computed(torch.stack([x for _, _, x in part]), size)
            for (file, row, _), probabilities in zip(part, found, strict=True):
                yield Prediction(file, row, self.classes, probabilities, self.kind)

    def _examples(self, files: Iterable[str | Path], failed: Failed | None) -> Iterator[tuple[str, int | None, Tensor]]:
        """The file, the row and the numbers of each example."""
        for file in files:
            try:
                if self.card.layout is not None and holds_table(Path(file)):
                    rows = self._of_table(file, str(file))
                elif holds_rows(file):
                    rows = self._fitting(read_rows(file), str(file), whole=True)
                else:
                    pixels = torch.from_numpy(self._image(file))
                    rows = self.card.values.from_bytes(pixels)[None]
            except RequestError as error:
                if failed is None:
                    raise
                failed(str(file), str(error))
                continue
            numbered = holds_rows(file) or holds_table(Path(file))
            yield from ((str(file), row if numbered else None, x) for row, x in enumerate(rows))

    def _of_table(self, table: Any, what: str) -> Tensor:
        """The examples of a table's rows, prepared as in the training."""
        layout = self.card.layout
        if layout is None:
            raise RequestError(f"the model was not trained on a table; {what} must hold examples as its training had")
        if not isinstance(table, str | Path) or Path(table).is_file():
            return torch.from_numpy(layout.apply(read_columns(table), what))
        raise RequestError(f"there is no file {what}")

    def _image(self, file: str | Path) -> NDArray[np.uint8]:
        if len(self.card.inputs) != 3:
            raise RequestError(f"the model takes rows of {self.card.inputs[0]} numbers, and {file} is no .npz or table")
        images = self.card.images
        return read_image(file, self.card.inputs, fit=images.fit, upright=images.orientation == "upright")

    def _fitting(self, x: Any, what: str, *, whole: bool = False) -> Tensor:
        """Examples (n, *inputs) as numbers like those of the training; `whole`: fractions without digits are bytes."""
        card = self.card
        fractions = x.is_floating_point() if isinstance(x, Tensor) else np.asarray(x).dtype.kind == "f"
        found = examples(x, what)
        if found.dim() == 2 and len(card.inputs) == 3 and card.inputs[0] == 1 and found.shape[1] == prod(card.inputs):
            found = found.view(-1, *card.inputs)
        if tuple(found.shape[1:]) != card.inputs:
            raise RequestError(
                f"the model takes examples of shape {card.inputs}, those of {what} are {tuple(found.shape[1:])}"
            )
        if found.is_floating_point() and not bool(torch.isfinite(found).all()):
            row = int((~torch.isfinite(found)).flatten(1).any(1).nonzero()[0])
            raise RequestError(f"{what} has a NaN or infinite value in row {row}")
        if found.dtype == torch.uint8:
            return card.values.from_bytes(found)
        if card.values.type == "float32":
            return found
        outside = (found < 0) | (found > 255) | (found != found.round())
        if (fractions and not whole) or bool(outside.any()):
            raise RequestError(f"the model was trained on pixels 0 to 255, and {what} holds other numbers; give uint8")
        return found.to(torch.uint8)

    @torch.no_grad()
    def _computed(self, x: Tensor, size: int) -> NDArray[np.float32]:
        """Probabilities (n, classes) of examples (n, *inputs), normalized as in the training."""
        if len(x) == 0:
            return np.zeros((0, len(self.classes)), np.float32)
        mean, std = self.card.statistics
        found, none = list[Tensor](), torch.zeros(len(x), dtype=torch.int64)
        for part, _ in batches(x, none, size=size, mean=mean, std=std):
            try:
                out = self.network(part)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                first = str(error).partition("\n")[0]
                raise RunError(f"the network fails on examples of shape {self.card.inputs}: {first}") from error
            logits = out[0] if isinstance(out, tuple) else out
            if logits.shape != (len(part), len(self.classes)):
                raise RunError(
                    f"the network gives {tuple(logits.shape)} for {len(part)} examples and {len(self.classes)} classes"
                )
            found.append(self.card.task.task.predictions(logits.float()))
        probabilities: NDArray[np.float32] = torch.cat(found).numpy()
        if not np.isfinite(probabilities).all():
            raise RunError("the network gives NaN: its weights or the numbers of an example are too large")
        return probabilities

    def _batch(self, size: int | None) -> int:
        if size is None:
            return max(1, min(BATCH, BATCH_NUMBERS // prod(self.card.inputs)))
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise RequestError(f"a batch size is a whole number of at least 1, got {size!r}")
        return size


def _files(x: Any) -> list[str | Path] | None:
    """The paths that `x` is, or None where it holds examples."""
    if isinstance(x, str | Path):
        return [x]
    if isinstance(x, list | tuple) and x and all(isinstance(entry, str | Path) for entry in x):
        return list(x)
    return None
