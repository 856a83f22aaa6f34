"""The data of a search: which rows train, and which are held out."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nasight.compute import to_device
from nasight.data import Batches, Dataset, Loader, Transform, prepare, split_indices
from nasight.errors import RequestError
from nasight.reproducible import generator_for
from nasight.searching._settings import SearchSettings

STREAMS = ("weights", "architecture")
"""What the shared weights learn from, and what the architecture learns from."""
EVALUATION_BATCH = 256
CANDIDATE_BATCH = 512


class Streams:
    """A share of the training data, cut into search and validation rows."""

    def __init__(
        self,
        settings: SearchSettings,
        dataset: Dataset,
        *,
        halves: bool,
        transform: Transform | None = None,
        device: torch.device | None = None,
    ) -> None:
        s, y = settings, dataset.strata
        total = round(s.share * len(y)) if s.share is not None else min(s.examples or len(y), len(y))
        measured = round(s.validation * total)
        parts = _cut(total - measured, s.arch_share) if halves else [total - measured]
        asked = [*parts, measured] if s.validation else parts
        if min(asked) < max(2, dataset.fewest):
            needs = "one of each class" if dataset.task.kind == "classes" else "two rows"
            raise RequestError(
                f"{total} training rows are too few for {dataset.outputs_text}: the split into "
                f"{' + '.join(map(str, asked))} rows needs {needs} in every part"
            )
        search = split_indices(y, asked, generator_for(s.seed, "split"))
        # Nothing held out, as in papers: figures are of the rows that the architecture learns from, or of a part.
        validation = search.pop() if s.validation else search[-1] if halves else _part(search[0], y, s.seed)
        prepared = prepare(dataset, torch.cat(search))
        streams = {"weights": search[0], "architecture": search[-1]}
        self.loaders: dict[str, Loader] = {
            stream: prepared.loader(
                batch_size=s.batch_size,
                seed=s.seed,
                stream=stream,
                rows=rows,
                augment=s.augment,
                transform=transform,
            )
            for stream, rows in streams.items()
        }
        self.learned_y = dataset.train_y[search[0]]
        if device is not None:
            for loader in self.loaders.values():
                loader.to(device)
        # Batch norm sees the batch: the validation rows are shuffled once, so that no batch is of one class.
        shuffled = validation[torch.randperm(len(validation), generator=generator_for(s.seed, "validation"))]
        parts_of_validation = math.ceil(len(shuffled) / EVALUATION_BATCH)
        size = math.ceil(len(shuffled) / parts_of_validation)
        self.validation_y = dataset.train_y[shuffled]
        held_out = dataset.train_x, dataset.train_y, prepared.mean, prepared.std
        self.validation = Batches(*held_out, size, shuffled)
        same = next(iter(Batches(*held_out, CANDIDATE_BATCH, shuffled)))
        self.candidate_batches = CandidateBatches(to_device(same, device) if device is not None else same)
        if s.candidate_rows is not None:
            own = prepared.loader(
                batch_size=s.candidate_rows, seed=s.seed, stream="candidates", rows=validation, augment=False
            )
            own = own if device is None else own.to(device)
            self.candidate_batches = OwnBatches(own, s.candidates)


class CandidateBatches:
    """The rows that judge the candidates of an epoch: the same for all of them."""

    def __init__(self, same: tuple[Tensor, Tensor]) -> None:
        self._same = same

    def __call__(self, epoch: int, number: int) -> tuple[Tensor, Tensor]:
        """The batch for the candidate of this number, counted from 0."""
        return self._same


class OwnBatches(CandidateBatches):
    """A batch for each candidate, in another order every time that the rows are gone through."""

    def __init__(self, loader: Loader, candidates: int) -> None:
        self._loader, self._turns = loader, max(1, math.ceil(candidates / loader.steps))

    def __call__(self, epoch: int, number: int) -> tuple[Tensor, Tensor]:
        turn, step = divmod(number, self._loader.steps)
        return self._loader.batch(epoch * self._turns + turn, step)


def _cut(rows: int, share: float) -> list[int]:
    """How many rows the shared weights and the architecture get; a half row goes to the shared weights."""
    architecture = math.ceil(share * rows - 0.5)
    return [rows - architecture, architecture]


def _part(rows: Tensor, labels: Tensor, seed: int) -> Tensor:
    """A fifth of the rows, every class in proportion."""
    (chosen,) = split_indices(labels[rows], [max(len(rows) // 5, 1)], generator_for(seed, "monitored"))
    return rows[chosen]
