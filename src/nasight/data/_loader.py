"""Normalized batches; any of a training can be fetched alone, from (seed, stream, epoch, step)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nasight.compute import to_device
from nasight.data._augment import Augment, changed, cut
from nasight.data._dataset import Dataset
from nasight.data._feed import Feed
from nasight.data._maps import chunks, take
from nasight.errors import RequestError
from nasight.reproducible import generator_for, seeded

Transform = Callable[[Tensor], Tensor]
COUNTED_BYTES = 4 << 20
"""Pixels that are counted at once."""


class Loader:
    """Batches of a training: `batch(epoch, step)` gives the same tensors whenever and wherever it is called.

    The order of an epoch comes from (seed, stream, epoch), the noise of augmentation from (seed, stream, epoch, step).

    Parameters
    ----------
    x, y : images (n, c, h, w) or vectors (n, d), and their labels (n,).
    batch_size : examples per step; with fewer rows, the only batch holds them all.
    mean, std : of each channel or column, of uint8 pixels after division by 255; see `prepare`.
    seed : everything random follows from it and from `stream`.
    stream : what the batches are for, such as "train"; streams are independent of each other.
    augment : random changes of the images; None for none.
    drop_last : whether a short last batch is left out.
    transform : a function of one's own that changes a batch before it is normalized, in place of `augment`.
    rows : the numbers of the rows to use; all by default. They are read when a batch needs them.

    >>> x, y = torch.zeros(10, 2), torch.arange(10) % 2
    >>> loader = Loader(x, y, batch_size=4, mean=torch.zeros(2), std=torch.ones(2), seed=0, stream="train")
    >>> loader.steps, loader.batch(0, 1)[1].shape
    (2, torch.Size([4]))
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        *,
        batch_size: int,
        mean: Tensor,
        std: Tensor,
        seed: int,
        stream: str,
        augment: Augment | None = None,
        drop_last: bool = True,
        transform: Transform | None = None,
        rows: Tensor | None = None,
    ) -> None:
        _check(x, y, batch_size, augment, rows)
        self._x, self._rows = x, rows
        self.y = y if rows is None else y[rows]
        self.batch_size, count = min(batch_size, len(self.y)), len(self.y)
        self.seed, self.stream, self.augment = seed, stream, augment if transform is None else None
        self.transform = transform
        self.steps = count // self.batch_size if drop_last else -(-count // self.batch_size)
        self._normalize = _Normalize(x, mean, std)
        self._feed = self._feed_to(torch.device("cpu"))
        self._order: tuple[int, Tensor] | None = None

    @property
    def x(self) -> Tensor:
        """All examples that batches are made of, before they are normalized: a copy of the rows in use."""
        return self._x if self._rows is None else take(self._x, self._rows)

    def batch(self, epoch: int, step: int, part: slice | None = None) -> tuple[Tensor, Tensor]:
        """The examples, contiguous float32, and the labels of one step of an epoch; both count from 0.

        With `part` only these rows of the batch are read, with the changes that they have in the whole batch.
        """
        if epoch < 0 or not 0 <= step < self.steps:
            raise RequestError(f"there is no step {step} in epoch {epoch}: steps are 0 to {self.steps - 1}")
        if self._order is None or self._order[0] != epoch:
            generator = generator_for(self.seed, self.stream, epoch)
            self._order = epoch, torch.randperm(len(self.y), generator=generator)
        rows = self._order[1][step * self.batch_size : (step + 1) * self.batch_size]
        noise = generator_for(self.seed, self.stream, epoch, step)
        ahead = self._order[1][(step + 1) * self.batch_size : (step + 2) * self.batch_size]
        within = None if part is None else (len(rows), part)
        if part is not None:
            rows, ahead = rows[part], ahead[part]
        x, y = self._feed(rows, ahead)
        x = self._own(x, epoch, step, *([] if part is None else [part.start]))
        return _examples(x, self._normalize, self.augment, noise, within), y

    def to(self, device: torch.device) -> Loader:
        """Give batches on this device from now on; the rows are kept there if they fit, else read ahead."""
        self._feed = self._feed_to(device)
        return self

    def _feed_to(self, device: torch.device) -> Feed:
        one = self._x[0].numel() * self._x.element_size() + self.y[:1].numel() * self.y.element_size()
        return Feed(self._take, len(self.y), one, device)

    def _take(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return take(self._x, rows if self._rows is None else self._rows[rows]), self.y[rows]

    def _own(self, x: Tensor, epoch: int, step: int, *part: int) -> Tensor:
        """The batch as a function of the caller's own changes it; torch's random numbers follow from the seed there."""
        if self.transform is None:
            return x
        with seeded(self.seed, self.stream, epoch, step, *part):
            found = self.transform(x)
        if not isinstance(found, Tensor) or found.shape != x.shape:
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise RequestError(f"augment must give a batch of shape {tuple(x.shape)} as it got, got {got}")
        return found.to(x.dtype)

    def epoch(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All batches of an epoch."""
        return (self.batch(epoch, step) for step in range(self.steps))


def batches(
    x: Tensor,
    y: Tensor,
    *,
    size: int,
    mean: Tensor,
    std: Tensor,
    generator: torch.Generator | None = None,
    augment: Augment | None = None,
    drop_last: bool = False,
    rows: Tensor | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """One pass over the rows in normalized batches.

    Parameters
    ----------
    x, y : images (n, c, h, w) or vectors (n, d), and their labels (n,).
    size : examples per batch.
    mean, std : of each channel or column, of uint8 pixels after division by 255; see `prepare`.
    generator : shuffles the rows and draws the augmentation; without one the rows come in their order.
    augment : random changes of the images; None for none.
    drop_last : whether a short last batch is left out.
    rows : the numbers of the rows to use; all by default. They are read when a batch needs them.

    >>> x, y = torch.ones(5, 2), torch.zeros(5, dtype=torch.int64)
    >>> [len(labels) for _, labels in batches(x, y, size=2, mean=torch.zeros(2), std=torch.ones(2))]
    [2, 2, 1]
    """
    _check(x, y, size, augment, rows)
    if augment is not None and generator is None:
        raise RequestError("augmentation is random and needs a generator")
    count = len(y) if rows is None else len(rows)
    normalize, size = _Normalize(x, mean, std), min(size, count)
    order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
    order = order if rows is None else rows[order]
    parts = [part for part in torch.split(order, size) if len(part) == size or not drop_last]
    return ((_examples(take(x, part), normalize, augment, generator), y[part]) for part in parts)


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows in batches that are made anew in every pass, so that none of them is kept.

    Parameters
    ----------
    x, y, mean, std : as in `batches`.
    size : examples per batch.
    rows : the numbers of the rows, in the order in which they come.

    >>> found = Batches(torch.ones(5, 2), torch.arange(5), torch.zeros(2), torch.ones(2), 2, torch.tensor([4, 0, 1]))
    >>> [labels.tolist() for _, labels in found], len(found)
    ([[4, 0], [1]], 2)
    """

    x: Tensor
    y: Tensor
    mean: Tensor
    std: Tensor
    size: int
    rows: Tensor

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return batches(self.x, self.y, size=self.size, mean=self.mean, std=self.std, rows=self.rows)

    def __len__(self) -> int:
        return -(-len(self.rows) // self.size)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set with the mean and the deviation that normalize its rows, batch by batch."""

    dataset: Dataset
    mean: Tensor
    std: Tensor

    def loader(
        self,
        *,
        batch_size: int,
        seed: int,
        stream: str,
        rows: Tensor | None = None,
        augment: bool = True,
        cutout: int = 0,
        drop_last: bool = True,
        transform: Transform | None = None,
    ) -> Loader:
        """Training batches, augmented as the data set declares.

        Parameters
        ----------
        batch_size, seed, stream, drop_last : as in `Loader`.
        rows : the numbers of the training rows to use; all by default.
        augment : whether images are augmented.
        cutout : the side, in pixels, of a square hole; 0 for none.
        transform : as in `Loader`.
        """
        declared = self.dataset.augmentation if augment else None
        if augment and cutout:
            declared = replace(declared or Augment(crop=0, flip=False), cutout=cutout)
        return Loader(
            self.dataset.train_x,
            self.dataset.train_y,
            batch_size=batch_size,
            mean=self.mean,
            std=self.std,
            seed=seed,
            stream=stream,
            augment=declared,
            drop_last=drop_last,
            transform=transform,
            rows=rows,
        )

    def batches(self, part: str = "test", *, size: int, rows: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """All rows of a part in order, nothing random: for evaluation.

        Parameters
        ----------
        part : "train" or "test".
        size : examples per batch.
        rows : the numbers of the rows to use; all by default.
        """
        if part not in ("train", "test"):
            raise RequestError(f"a data set has the parts 'train' and 'test', got {part!r}")
        data = self.dataset
        x, y = (data.train_x, data.train_y) if part == "train" else (data.test_x, data.test_y)
        if x is None or y is None:
            raise RequestError(f"data set {data.name!r} has no test part")
        return batches(x, y, size=size, mean=self.mean, std=self.std, rows=rows)


def prepare(dataset: Dataset, rows: Tensor | None = None) -> Prepared:
    """The data set with the mean and the deviation of its training rows.

    Parameters
    ----------
    dataset : the data set.
    rows : the numbers of the training rows that a search may see; all by default.

    >>> from nasight.data import load
    >>> prepared = prepare(load("digits"))
    >>> prepared.mean.shape, next(prepared.batches(size=100))[0].shape
    (torch.Size([1]), torch.Size([100, 1, 8, 8]))
    """
    mean, std = _statistics(dataset.train_x, rows)
    if dataset.table is not None:
        # Categories and flags stay 0 and 1: in units of their deviation a rare one would be a large number.
        numbers = torch.tensor(dataset.table.numbers)
        mean, std = mean.where(numbers, 0.0), std.where(numbers, 1.0)
    return Prepared(dataset, mean, std)


def _statistics(x: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each channel (or feature), float64 within; a constant one gets a deviation of 1."""
    if x.dtype == torch.uint8:
        # A histogram is exact, and needs no float copy of the images.
        counts = torch.zeros(x.shape[1], 256, dtype=torch.int64)
        # To count, torch makes eight bytes of each: small pieces keep that small.
        for piece in chunks(x, rows, most=max(1, COUNTED_BYTES // x[0].numel())):
            counts += torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in piece.unbind(1)])
        shares = counts.double() / counts.sum(1, keepdim=True)  # (c, 256)
        values = torch.arange(256, dtype=torch.float64) / 255
        mean = shares @ values
        std = (shares * (values - mean[:, None]).square()).sum(1).sqrt()
    else:
        over = (0, 2, 3) if x.dim() == 4 else (0,)
        channels = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
        total = len(x if rows is None else rows) * x[0, 0].numel()
        sums = [piece.double().sum(over) for piece in chunks(x, rows, most=8192)]
        mean = torch.stack(sums).sum(0) / total
        centered = [(p.double() - mean.view(channels)).square().sum(over) for p in chunks(x, rows, most=8192)]
        std = (torch.stack(centered).sum(0) / total).sqrt()
    return mean.float(), std.where(std > 1e-7 * (1 + mean.abs()), 1.0).float()


class _Normalize:
    """x -> (x - mean) / std in one subtraction and one multiplication, the division by 255 included."""

    def __init__(self, x: Tensor, mean: Tensor, std: Tensor) -> None:
        if mean.shape != (x.shape[1],) or std.shape != (x.shape[1],):
            raise RequestError(
                f"mean and std must have shape ({x.shape[1]},), got {tuple(mean.shape)} and {tuple(std.shape)}"
            )
        shape = (1, -1, *[1] * (x.dim() - 2))
        unit = 255.0 if x.dtype == torch.uint8 else 1.0
        self.center = (mean.double() * unit).float().view(shape)
        self.scale = (1 / (std.double() * unit)).float().view(shape)

    def __call__(self, x: Tensor) -> Tensor:
        if self.center.device != x.device:
            self.center, self.scale = to_device((self.center, self.scale), x.device)
        return (x - self.center).mul_(self.scale).contiguous()


def _examples(
    x: Tensor,
    normalize: _Normalize,
    augment: Augment | None,
    noise: torch.Generator | None,
    within: tuple[int, slice] | None = None,
) -> Tensor:
    """Colors change and shifts fill with black before normalization, holes have the mean, after it (as in DARTS)."""
    if augment is None or noise is None:
        return normalize(x)
    return cut(normalize(changed(x, noise, augment, within)), noise, augment, within)


def _check(x: Tensor, y: Tensor, size: int, augment: Augment | None, rows: Tensor | None) -> None:
    if len(x) != len(y):
        raise RequestError(f"{len(x)} examples do not fit {len(y)} labels")
    if len(y if rows is None else rows) == 0:
        raise RequestError("batches need at least 1 row, got 0")
    if size < 1:
        raise RequestError(f"a batch needs at least 1 row, got a batch size of {size}")
    if augment is not None and x.dim() != 4:
        raise RequestError(f"augmentation needs images (n, c, h, w), got shape {tuple(x.shape)}")
