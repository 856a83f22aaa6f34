"""The moving parts of a search: supernet, architecture parameters, optimisers, data; one step at a time.

All randomness is a function of (seed, purpose, epoch, step), so the state of a search is its tensors and two counters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.data import Dataset, Loader, batches, generator_for, prepare, split_indices
from nasight.errors import RequestError, RunError
from nasight.reproducible import seeded
from nasight.search._relaxations import Moment
from nasight.search._settings import SearchSettings
from nasight.search.methods import method as method_row
from nasight.spaces import Space

EVALUATION_BATCH = 256
CANDIDATE_BATCH = 512
PROBES = 8
"""Batches over which the size of the architecture gradient is measured."""


class Tally:
    """Loss and accuracy, summed over examples."""

    def __init__(self, loss: float = 0.0, right: int = 0, count: int = 0) -> None:
        self.loss, self.right, self.count = loss, right, count

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        self.loss += float(loss) * len(labels)
        self.right += int((logits.argmax(1) == labels).sum())
        self.count += len(labels)

    def means(self, prefix: str) -> dict[str, float]:
        return {f"{prefix}_loss": self.loss / self.count, f"{prefix}_accuracy": 100.0 * self.right / self.count}


class Engine:
    """One search in progress."""

    def __init__(self, settings: SearchSettings, space: Space, dataset: Dataset) -> None:
        self.settings, self.space = settings, space
        self.method = method_row(settings.method)
        self.objective = self.method.objective(settings.objective)
        self.relaxation = self.method.relaxation
        _check_fit(self.method.name, self.relaxation.edges, self.relaxation.partial, space)
        dataset = _resized(dataset, settings.resolution)
        self.dataset = dataset
        self._split(dataset)
        with seeded(settings.seed, "supernet"):
            self.supernet = space.supernet(
                dataset.inputs,
                dataset.n_classes,
                path=settings.path,
                edges=self.relaxation.edges,
                partial=self.relaxation.partial,
                **settings.size,
            )
        self.forward = torch.compile(self.supernet) if settings.compile else self.supernet
        self.groups = self.supernet.groups
        geometry = self.method.geometry
        self.params = geometry.initial(self.groups, self.generator("theta"))
        self.steps = self.loaders["weights"].steps
        self.weight_optimizer = torch.optim.SGD(
            self.supernet.parameters(), settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
        self.arch_lr = 0.0
        self.arch_optimizer: torch.optim.Optimizer | None = None
        if geometry.moves:
            steps = self.steps * (settings.epochs - settings.warmup)
            self.arch_lr = settings.arch_lr or geometry.default_lr(steps, self._gradient_size())
            self.arch_optimizer = geometry.optimizer(self.params, self.groups, lr=self.arch_lr)
        self.tallies = {"weights": Tally(), "architecture": Tally()}
        self.kept: dict[str, Any] | None = None

    def _split(self, dataset: Dataset) -> None:
        """The rows of this search: a share of the training data, cut into search and validation rows."""
        s, y = self.settings, dataset.train_y
        total = round(s.share * len(y)) if s.share is not None else min(s.examples or len(y), len(y))
        held_out = round(s.validation * total)
        parts = [(total - held_out + 1) // 2, (total - held_out) // 2] if self.objective.halves else [total - held_out]
        if min([*parts, held_out]) < max(2, dataset.n_classes):
            raise RequestError(
                f"{total} training rows are too few for {dataset.n_classes} classes: the split into "
                f"{' + '.join(map(str, [*parts, held_out]))} rows needs one of each class in every part"
            )
        *search, validation = split_indices(y, [*parts, held_out], self.generator("split"))
        prepared = prepare(dataset, torch.cat(search))
        streams = {"weights": search[0], "architecture": search[-1]}
        self.loaders: dict[str, Loader] = {
            stream: prepared.loader(batch_size=s.batch_size, seed=s.seed, stream=stream, rows=rows, augment=s.augment)
            for stream, rows in streams.items()
        }
        # Batch norm sees the batch: the validation rows are shuffled once, so that no batch is of one class.
        shuffled = validation[torch.randperm(len(validation), generator=self.generator("validation"))]
        parts_of_validation = math.ceil(len(shuffled) / EVALUATION_BATCH)
        x, y = dataset.train_x[shuffled], dataset.train_y[shuffled]
        size = math.ceil(len(shuffled) / parts_of_validation)
        self.validation = list(batches(x, y, size=size, mean=prepared.mean, std=prepared.std))
        self.candidate_batch = next(batches(x, y, size=CANDIDATE_BATCH, mean=prepared.mean, std=prepared.std))

    def _gradient_size(self) -> float | None:
        """The largest entry of an architecture gradient before the first step, the mean over a few batches."""
        if self.method.geometry.gradient is None:
            return None
        sizes = []
        for step in range(PROBES):
            loss = self.loss("architecture", 0, step, learn_architecture=True, record=False)
            grads = torch.autograd.grad(loss, self.theta())
            rows = [row for group, grad in zip(self.groups, grads, strict=True) for row in group.split(grad)]
            sizes.append(max(float((row - row.mean()).abs().max()) for row in rows))
        return sum(sizes) / len(sizes)

    # What objectives use

    def generator(self, *keys: str | int) -> torch.Generator:
        return generator_for(self.settings.seed, *keys)

    def theta(self) -> list[Tensor]:
        return list(self.params.values())

    def shared(self) -> list[nn.Parameter]:
        return list(self.supernet.parameters())

    def weights(self) -> dict[str, Tensor]:
        """The architecture weights as they stand: rows on the simplex."""
        return self.method.geometry.weights(self.params, self.groups)

    def relaxed(self, epoch: int, *, generator: torch.Generator, learn: bool) -> dict[str, Tensor]:
        """The weights of one forward pass."""
        geometry, first = self.method.geometry, self.settings.warmup
        with torch.set_grad_enabled(learn):
            progress = max(epoch - first, 0) / max(self.settings.epochs - 1 - first, 1)
            moment = Moment(self.space, self.groups, progress, generator)
            theta = geometry.weights(self.params, self.groups)
            # Logarithms are asked for only where a relaxation draws from the weights.
            log_theta = geometry.log_weights(self.params, self.groups) if self.relaxation.sampled else {}
            drawn = self.relaxation.weights(theta, log_theta, moment)
        return drawn if learn else {name: weights.detach() for name, weights in drawn.items()}

    def loss(self, stream: str, epoch: int, step: int, *, learn_architecture: bool, record: bool = True) -> Tensor:
        """The loss of one batch of a stream."""
        loader = self.loaders[stream]
        x, y = loader.batch(epoch, step % loader.steps)
        generator = self.generator("relaxation", stream, epoch, step)
        weights = self.relaxed(epoch, generator=generator, learn=learn_architecture)
        logits = self.forward(x, weights, skip_zeros=self.relaxation.skip_zeros if learn_architecture else None)
        loss = F.cross_entropy(logits, y)
        if not torch.isfinite(loss):
            raise RunError(f"the loss became {float(loss)} at step {step} of epoch {epoch}; a lower --lr may help")
        if record:
            self.tallies[stream].add(loss.detach(), logits.detach(), y)
        return loss

    def zero_grad(self) -> None:
        for parameter in (*self.shared(), *self.theta()):
            parameter.grad = None

    @property
    def weight_lr(self) -> float:
        return float(self.weight_optimizer.param_groups[0]["lr"])

    def set_epoch(self, epoch: int) -> None:
        """The cosine rate of this epoch, and empty tallies."""
        s = self.settings
        rate = s.lr_min + 0.5 * (s.lr - s.lr_min) * (1 + math.cos(math.pi * epoch / s.schedule_epochs))
        self.weight_optimizer.param_groups[0]["lr"] = rate
        self.tallies = {"weights": Tally(), "architecture": Tally()}

    def move_weights(self) -> None:
        nn.utils.clip_grad_norm_(self.supernet.parameters(), self.settings.clip)
        self.weight_optimizer.step()

    def set_architecture_grad(self, grads: Sequence[Tensor]) -> None:
        for parameter, grad in zip(self.theta(), grads, strict=True):
            parameter.grad = grad

    def move_architecture(self) -> None:
        if self.arch_optimizer is None:
            raise RunError(f"method {self.method.name!r} has no architecture parameters to move")
        self.arch_optimizer.step()

    def descended(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """The shared weights after the step that the optimiser would take (momentum and decay included)."""
        s, moved = self.settings, []
        for parameter, grad in zip(self.shared(), grads, strict=True):
            buffer = self.weight_optimizer.state.get(parameter, {}).get("momentum_buffer")
            push = grad + s.weight_decay * parameter.detach()
            if buffer is not None:
                push = push + s.momentum * buffer
            moved.append(parameter.detach() - self.weight_lr * push)
        return moved

    # What the loop uses

    @torch.no_grad()
    def evaluate(self, arch: Architecture | None, epoch: int) -> Tally:
        """Validation loss and accuracy of the relaxed supernet, or of one architecture under its shared weights."""
        self.supernet.eval()
        tally = Tally()
        fixed = None if arch is None else self.space.encode(arch, edges=self.relaxation.edges)
        for index, (x, y) in enumerate(self.validation):
            generator = self.generator("evaluation", epoch, index)
            weights = fixed if fixed is not None else self.relaxed(epoch, generator=generator, learn=False)
            logits = self.forward(x, weights)
            tally.add(F.cross_entropy(logits, y), logits, y)
        self.supernet.train()
        return tally

    @torch.no_grad()
    def derive(self, epoch: int, *, candidates: int) -> Architecture:
        """The architecture of this moment: theta discretised, or the best of some random candidates."""
        if not self.method.candidates:
            return self.space.derive(self.weights())
        generator, (x, y) = self.generator("candidates", epoch), self.candidate_batch
        self.supernet.eval()
        scored = []
        for index in range(max(candidates, 1)):
            arch = self.space.sample(generator)
            if self.space.usable(arch) is None:
                logits = self.forward(x, self.space.encode(arch, edges=self.relaxation.edges))
                right = int((logits.argmax(1) == y).sum())
                scored.append((right, -float(F.cross_entropy(logits, y)), -index, arch))
        self.supernet.train()
        if not scored:
            raise RunError(f"none of {candidates} random architectures of {self.space.name!r} is a network")
        return max(scored, key=lambda entry: entry[:3])[3]

    def state(self) -> dict[str, Any]:
        """All that a later process needs to go on; plain values and tensors."""
        return {
            "supernet": self.supernet.state_dict(),
            "params": {name: parameter.detach() for name, parameter in self.params.items()},
            "weight_optimizer": self.weight_optimizer.state_dict(),
            "arch_optimizer": None if self.arch_optimizer is None else self.arch_optimizer.state_dict(),
            "tallies": {name: [t.loss, t.right, t.count] for name, t in self.tallies.items()},
            "kept": self.kept,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        try:
            self.supernet.load_state_dict(state["supernet"])
            with torch.no_grad():
                for name, parameter in self.params.items():
                    parameter.copy_(state["params"][name])
            self.weight_optimizer.load_state_dict(state["weight_optimizer"])
            if self.arch_optimizer is not None:
                self.arch_optimizer.load_state_dict(state["arch_optimizer"])
            self.tallies = {name: Tally(*values) for name, values in state["tallies"].items()}
            self.kept = state["kept"]
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            raise RequestError(f"the checkpoint does not fit this search: {str(error).splitlines()[0]}") from error

    def keep(self) -> None:
        """Set the present iterate aside as the one to return."""
        self.kept = {
            "supernet": {name: value.clone() for name, value in self.supernet.state_dict().items()},
            "params": {name: parameter.detach().clone() for name, parameter in self.params.items()},
        }

    def return_kept(self) -> None:
        """Go back to the iterate that was set aside, if one was."""
        if self.kept is not None:
            self.supernet.load_state_dict(self.kept["supernet"])
            with torch.no_grad():
                for name, parameter in self.params.items():
                    parameter.copy_(self.kept["params"][name])


def _check_fit(method: str, edges: bool, partial: int, space: Space) -> None:
    if edges and not space.edge_weights:
        raise RequestError(f"method {method!r} weighs the edges of a cell, and space {space.name!r} has none to weigh")
    if partial > 1 and not space.partial_channels:
        raise RequestError(f"method {method!r} needs partial channels, which space {space.name!r} does not have")


def _resized(dataset: Dataset, resolution: int | None) -> Dataset:
    """The data set with images of `resolution` pixels a side (area averages), for cheaper searches."""
    if resolution is None or len(dataset.inputs) != 3 or dataset.inputs[1:] == (resolution, resolution):
        return dataset
    from dataclasses import replace

    from nasight.data import Augment

    def shrink(x: Tensor) -> Tensor:
        parts = [F.adaptive_avg_pool2d(part.float(), resolution) for part in torch.split(x, 4096)]
        small = torch.cat(parts)
        return small.round().to(torch.uint8) if x.dtype == torch.uint8 else small

    old = dataset.augmentation
    # A shift keeps its proportion to the image.
    new = None if old is None else Augment(round(old.crop * resolution / min(dataset.inputs[1:])), old.flip, old.cutout)
    return replace(dataset, train_x=shrink(dataset.train_x), test_x=None, test_y=None, augmentation=new)
