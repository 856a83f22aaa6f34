"""The training loop: every random number is a function of (seed, epoch, step), so any step can follow a restart."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.compute import (
    LossScale,
    RunningStatistics,
    Slice,
    Slices,
    autocast,
    everywhere,
    is_device,
    to_device,
    to_host,
)
from nasight.data import Dataset, Task, figures, prepare
from nasight.errors import RequestError, RunError
from nasight.own import OwnParts, own_optimizer
from nasight.reproducible import generator_for, seeded
from nasight.runs import DataRecord, load_optimizer, load_weights
from nasight.spaces import LARGE, Space, known_multiply_adds
from nasight.training._result import EpochRow, TrainingResult
from nasight.training._rows import parts
from nasight.training._settings import TrainSettings

AUXILIARY_WEIGHT = 0.4
EVALUATION_BATCH = 512


class Diverged(RunError):
    """A loss is not finite."""


@dataclass(frozen=True)
class Job:
    """One training, wholly described; `file` is the "FILE.py:NAME" of a space that came from one.

    `own` are parts of the caller's own: a loss, a metric, an optimizer, an augmentation.
    """

    space: Space
    arch: Architecture
    data: Dataset
    settings: TrainSettings
    seed: int
    file: str | None = None
    own: OwnParts = field(default_factory=OwnParts)
    device: str = "cpu"
    """Where it is trained, which is no part of what it is: a restart may be on another one."""

    @property
    def task(self) -> Task:
        """What the data ask for, with the caller's own loss and metric."""
        return self.data.task.with_own(self.own.loss, self.own.metric)

    def about(self) -> dict[str, Any]:
        """What makes two trainings the same one."""
        return {
            "space": self.file or self.space.name,
            "architecture": self.space.format(self.arch),
            "data": DataRecord.of(self.data).to_dict(),
            "settings": self.settings.kept(),
            "seed": self.seed,
            **self.own.about(),
        }


def build(job: Job, *, auxiliary: bool) -> nn.Module:
    """The network with the initial weights of the seed."""
    size = {**({"auxiliary": True} if auxiliary else {}), **job.settings.size}
    if max(job.settings.size.values(), default=0) > LARGE:
        job.space.bare_network(job.arch, job.data.inputs, job.data.n_classes, **size)
    with seeded(job.seed, "initial weights"):
        return job.space.network(job.arch, job.data.inputs, job.data.n_classes, **size)


def _optimizer(job: Job, network: nn.Module) -> torch.optim.Optimizer:
    settings = job.settings
    if job.own.optimizer is None:
        return torch.optim.SGD(
            network.parameters(),
            lr=settings.lr,
            momentum=settings.momentum,
            nesterov=settings.nesterov,
            weight_decay=settings.weight_decay,
        )
    return own_optimizer(job.own, network.parameters())


class Trainer:
    """A network on its way: `state` and `restore` carry all of it over a restart."""

    def __init__(self, job: Job, slices: Slices | None = None) -> None:
        settings = job.settings
        self.job, self.settings, self.slices = job, settings, slices or Slices()
        self.ranks = self.slices.ranks
        self.device = torch.device(job.device)
        self.scale = LossScale(self.device, settings.precision)
        self.network = build(job, auxiliary=settings.auxiliary).to(self.device, non_blocking=True)
        if job.space.channels_last and not is_device(self.device):
            self.network = self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if settings.drop_path and not hasattr(self.network, "drop_path"):
            raise RequestError(f"networks of space {job.space.name!r} have no drop path; drop_path must be 0")
        if settings.cutout and len(job.data.inputs) != 3:
            raise RequestError(f"cutout {settings.cutout} needs images, not {job.data.name!r}")
        self.optimizer = _optimizer(job, self.network)
        self.base_rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        rows, self.held_out, self.judged_by = parts(job.data, settings)
        self.data = prepare(job.data, rows)
        self.loader = self.data.loader(
            batch_size=settings.batch_size,
            seed=job.seed,
            stream="train",
            rows=rows,
            augment=settings.augment,
            cutout=settings.cutout,
            transform=job.own.augment,
        ).to(self.device)
        self.slices.check(self.loader.batch_size)
        self.judge_task = self.task = job.task
        if settings.class_weights == "balanced":
            self.task = self.task.balanced(self.loader.y, job.data.n_classes)
        self.epoch, self.step, self.loss, self.seconds = 0, 0, 0.0, 0.0
        self.correct: float = 0
        """Scores of the rows of this epoch up to now, summed."""
        self.waiting = list[tuple[int, Tensor, Tensor, Tensor]]()
        """Steps whose figures are still on the device: step, total loss, loss, scores summed."""
        self.rows: list[EpochRow] = []
        self.judged: tuple[Tensor, Tensor] | None = None
        """Outputs and labels of the rows that judge, as the network is now; None: it has not met them yet."""

    @property
    def done(self) -> bool:
        return self.epoch >= self.settings.epochs

    def state(self) -> dict[str, Any]:
        """Tensors and counters; a finished training needs its optimizer no more."""
        self.settle()
        state = {
            "network": self.network.state_dict(),
            "epoch": self.epoch,
            "step": self.step,
            "loss": self.loss,
            "correct": self.correct,
            "seconds": self.seconds,
            "rows": [asdict(row) for row in self.rows],
        }
        if self.scale.active:
            state["scale"] = self.scale.state()
        state = state if self.done else {**state, "optimizer": self.optimizer.state_dict()}
        return to_host(state) if is_device(self.device) else state

    def restore(self, state: dict[str, Any]) -> None:
        load_weights(self.network, state["network"], "the checkpoint")
        self.judged = None
        # Checkpoints of version 0.1 spell it with an s.
        optimizer = state.get("optimizer", state.get("optimiser"))
        if optimizer is not None:
            load_optimizer(self.optimizer, optimizer, "the checkpoint")
        self.epoch, self.step, self.seconds = state["epoch"], state["step"], state["seconds"]
        self.loss, self.correct = state["loss"], state["correct"]
        self.scale.restore(state.get("scale", {}))
        self.rows = [EpochRow(**row) for row in state["rows"]]

    def run_epoch(self, after_step: Callable[[], None], *, judge: bool = True) -> EpochRow:
        """What is left of the current epoch, and its row; the last one is judged in any case."""
        started, before = time.perf_counter(), self.seconds
        lr = self.set_rates()
        while self.step < self.loader.steps:
            self.take_step()
            self.seconds = before + time.perf_counter() - started
            after_step()
        seen = self.loader.steps * self.loader.batch_size
        test_loss, test_accuracy = None, None
        if judge or self.epoch + 1 == self.settings.epochs:
            test_loss, test_accuracy = self.judge()
        else:
            self.settle()
        train_loss, train_accuracy = self.loss / seen, 100.0 * self.correct / seen
        self.seconds = before + time.perf_counter() - started
        row = EpochRow(
            epoch=self.epoch + 1,
            train_loss=train_loss,
            train_accuracy=train_accuracy,
            test_loss=test_loss,
            test_accuracy=test_accuracy,
            lr=lr,
            seconds=self.seconds - sum(earlier.seconds for earlier in self.rows),
        )
        self.rows.append(row)
        self.next_epoch()
        return row

    def set_rates(self) -> float:
        """The learning rate of this epoch, which is returned, and its drop path."""
        settings, share = self.settings, self.epoch / self.settings.epochs
        lr = settings.rate(self.epoch)
        for group, base in zip(self.optimizer.param_groups, self.base_rates, strict=True):
            group["lr"] = lr if self.job.own.optimizer is None else base * lr / settings.lr
        if hasattr(self.network, "drop_path"):
            network: Any = self.network
            network.drop_path = settings.drop_path * share
        return lr

    def next_epoch(self) -> None:
        self.settle()
        self.epoch, self.step, self.loss, self.correct = self.epoch + 1, 0, 0.0, 0

    def result(self, out: str | None) -> TrainingResult:
        job, last = self.job, self.rows[-1]
        assert last.test_accuracy is not None
        assert last.test_loss is not None
        # Parameter counts are given without the auxiliary head, which no trained network uses.
        counted = build(job, auxiliary=False) if self.settings.auxiliary else self.network
        return TrainingResult(
            space=job.file or job.space.name,
            architecture=job.space.format(job.arch),
            data=job.data.name,
            seed=job.seed,
            accuracy=last.test_accuracy,
            loss=last.test_loss,
            judged_by=self.judged_by,
            parameters=sum(p.numel() for p in counted.parameters()),
            multiply_adds=known_multiply_adds(counted, job.data.inputs),
            metric=self.judge_task.units.metric,
            figures=self.figures(),
            epochs=self.settings.epochs,
            seconds=self.seconds,
            curve=tuple(self.rows),
            out=out,
        )

    def take_step(self) -> None:
        """One batch: loss, gradient, step."""
        self.network.train()
        self.judged = None
        self.optimizer.zero_grad(set_to_none=True)
        running, passed = RunningStatistics(self.network, self.slices), list[tuple[Tensor, Tensor, Tensor]]()
        for part in self.slices.of(self.loader.batch_size):
            passed.append(self._pass(part))
            running.passed(part.share)
        total, loss, scores = passed[0]
        if len(passed) > 1:
            total, loss, scores = (torch.stack(each).sum(0) for each in zip(*passed, strict=True))
        if self.ranks.size > 1:
            total, loss, scores = self._add_up(running, [total, loss, scores])
        else:
            running.end(running.sums)
        self.waiting.append((self.step, total, loss, scores))
        if not is_device(self.device):
            self.settle()
        # Of all ranks together: where one of them has an overflow, none moves, and their scales stay the same.
        self.scale.restore_gradients(self.network.parameters())
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimizer.step()
        self.step += 1

    def _pass(self, part: Slice) -> tuple[Tensor, Tensor, Tensor]:
        """The gradient of a slice of the batch; its share of the total loss and of the loss, and its summed scores."""
        keys: tuple[str | int, ...] = (self.job.seed, "noise", self.epoch, self.step)
        if not self.slices.whole:
            keys = (*keys, part.number)
        x, y = self.loader.batch(self.epoch, self.step, None if self.slices.whole else part.rows)
        if hasattr(self.network, "generator"):
            network: Any = self.network
            network.generator = generator_for(*keys)
        with seeded(*keys, device=self.device), autocast(self.device, self.settings.precision):
            out = self.network(x)
        logits, auxiliary = out if isinstance(out, tuple) else (out, None)
        logits = logits.float() if self.settings.precision != "32" else logits
        smooth = self.settings.label_smoothing
        loss = self.task.loss(logits, y, smoothing=smooth)
        total = loss
        if auxiliary is not None:
            total = loss + AUXILIARY_WEIGHT * self.task.loss(auxiliary, y, smoothing=smooth)
        scores = self.judge_task.rows(logits.detach(), y).sum()
        if not self.slices.whole:
            total, loss = part.share * total, part.share * loss
        self.scale.scaled(total).backward()  # type: ignore[no-untyped-call]
        return total.detach(), loss.detach(), scores

    def _add_up(self, running: RunningStatistics, passed: Sequence[Tensor]) -> list[Tensor]:
        """Gradients, running statistics and figures of all ranks, in one message."""
        parameters = list(self.network.parameters())
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        summed = self.ranks.sums([*grads, *running.sums, *(figure.float() for figure in passed)])
        for parameter, grad in zip(parameters, summed, strict=False):
            parameter.grad = grad
        running.end(summed[len(parameters) : -len(passed)])
        return summed[-len(passed) :]

    def settle(self) -> None:
        """Read the figures of all steps since the last time, with one wait for the device; on the CPU every step does.

        A loss that is not finite is told here: before a checkpoint, and at the end of an epoch.
        """
        self._read([])

    def _read(self, more: list[Tensor]) -> list[Tensor]:
        """`more` on the CPU, and with it the figures of the steps that wait."""
        if not self.waiting:
            return to_host(more)
        steps, *columns = zip(*self.waiting, strict=True)
        self.waiting.clear()
        near, found = to_host(([torch.stack(column) for column in columns], more))
        for step, total, loss, correct in zip(steps, *(column.tolist() for column in near), strict=True):
            if not math.isfinite(total):
                self._diverged("training loss", total, step)
            self.loss += loss * self.loader.batch_size
            self.correct += correct
        return found

    @torch.no_grad()
    def judge(self, batch: int = EVALUATION_BATCH) -> tuple[float, float]:
        """Loss and score (accuracy in percent) on the rows that judge, `batch` at a time."""
        losses, outputs, labels = list[Tensor](), list[Tensor](), list[Tensor]()
        for logits, y in self._judged(batch):
            losses.append(self.judge_task.loss(logits, y, reduction="sum"))
            outputs.append(logits)
            labels.append(y)
        each, output, label = self._read([torch.stack(losses), torch.cat(outputs), torch.cat(labels)])
        loss, self.judged = sum(each.tolist()), (output, label)
        if not math.isfinite(loss):
            self._diverged("test loss", loss)
        return loss / len(label), self.judge_task.score(output, label)

    @torch.no_grad()
    def figures(self, batch: int = EVALUATION_BATCH) -> dict[str, Any]:
        """All figures of the rows that judge."""
        return figures(self.judge_task, self.job.data.classes, *self._all_judged(batch))

    @torch.no_grad()
    def right(self, batch: int = EVALUATION_BATCH) -> Tensor:
        """The scores of the rows that judge, such as whether the class is right: (rows,), always in the same order."""
        return self.judge_task.rows(*self._all_judged(batch))

    def _all_judged(self, batch: int) -> tuple[Tensor, Tensor]:
        if self.judged is not None:
            return self.judged
        outputs, labels = zip(*self._judged(batch), strict=True)
        return to_host((torch.cat(outputs), torch.cat(labels)))

    def _judged(self, batch: int) -> list[tuple[Tensor, Tensor]]:
        """Logits and labels of the rows that judge, batch by batch; ranks share the batches out and tell each other."""
        self.network.eval()
        part, found = "test" if self.held_out is None else "train", list[tuple[Tensor, Tensor]]()
        judging = self.job.data.test_y if self.held_out is None else self.held_out
        rows = 0 if judging is None else len(judging)
        kept = list[Tensor]()
        for number, near in enumerate(self.data.batches(part, size=batch, rows=self.held_out)):
            if number % self.ranks.size == self.ranks.rank:
                x, y = to_device(near, self.device)
                with autocast(self.device, self.settings.precision):
                    out = self.network(x)
                logits = out[0] if isinstance(out, tuple) else out
                logits = logits.float() if self.settings.precision != "32" else logits
                # One piece for all: small tensors that stay would lie between batches of megabytes that go, and leave
                # holes in which no further batch fits.
                kept = kept or [t.new_empty((rows, *t.shape[1:])) for t in (logits, y)]
                place = slice(number * batch, number * batch + len(y))
                kept[0][place], kept[1][place] = logits, y
                found.append((kept[0][place], kept[1][place]))
        if self.ranks.size == 1:
            return found
        turns = zip_longest(*self.ranks.all_values(to_host(found)))
        return [pair for turn in turns for pair in turn if pair is not None]

    def check_finite(self, weights: Mapping[str, Tensor]) -> None:
        """Refuse to go on with weights (on the CPU) that are not finite: such a state is never kept."""
        if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
            self._diverged("weights", math.nan)

    def _diverged(self, what: str, value: float, step: int | None = None) -> None:
        step = self.step if step is None else step
        error = Diverged(
            f"the {what} became {value} in epoch {self.epoch + 1}, step {step + 1}, with lr {self.settings.lr:g}"
        )
        raise everywhere(error)
