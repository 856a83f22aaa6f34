"""One step of a search as an objective sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from nasight.compute import to_host
from nasight.data import Loader
from nasight.errors import RequestError, RunError
from nasight.searching._per_example import example_gradients
from nasight.searching._questions import Policy
from nasight.searching._settings import HALF
from nasight.searching._streams import STREAMS
from nasight.spaces import Dropout

if TYPE_CHECKING:
    from nasight.searching._engine import Engine


class EngineStep:
    """One step of a search; see `Step`, which it is."""

    def __init__(self, engine: Engine, epoch: int, index: int, learns: bool) -> None:
        self._engine, self.epoch, self.index, self.learns = engine, epoch, index, learns

    @property
    def memory(self) -> dict[str, float]:
        return self._engine.memory

    @property
    def theta(self) -> list[Tensor]:
        return list(self._engine.params.values())

    @property
    def shared(self) -> list[nn.Parameter]:
        return list(self._engine.supernet.parameters())

    @property
    def weight_lr(self) -> float:
        return self._engine.weight_lr

    @property
    def policy(self) -> Policy:
        return self._engine.policy

    def generator(self, purpose: str) -> torch.Generator:
        return self._engine.generator(purpose, self.epoch, self.index)

    def loss(self, stream: str, *, learn: bool, record: bool = True) -> Tensor:
        engine, (x, y) = self._engine, self._batch(stream)
        weights = engine.relaxed(self.epoch, generator=self._chance(stream), learn=learn)
        skip_zeros = engine.relaxation.skip_zeros if learn else None
        logits = engine.passed(x, weights, skip_zeros=skip_zeros, **self._dropout(stream))
        loss = engine.task.loss(logits, y)
        engine.watch.see(loss, self.epoch, self.index)
        if record:
            engine.tallies[stream].add(loss.detach(), engine.judge_task.rows(logits.detach(), y))
        return loss

    def gradients(self, loss: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
        scale = self._engine.scale
        grads = torch.autograd.grad(scale.scaled(loss), tensors, allow_unused=True, materialize_grads=True)
        return scale.restored(list(grads))

    def descend(self, loss: Tensor, *, weights: bool = False, architecture: bool = False) -> None:
        if not weights:
            if architecture:
                self.move_architecture(self.gradients(loss, self.theta))
            return
        engine = self._engine
        for parameter in (*self.shared, *self.theta):
            parameter.grad = None
        engine.scale.scaled(loss).backward()  # type: ignore[no-untyped-call]
        engine.scale.restore_gradients((*self.shared, *self.theta))
        nn.utils.clip_grad_norm_(engine.supernet.parameters(), engine.settings.clip)
        engine.weight_optimizer.step()
        if architecture:
            for parameter in self.theta:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            engine.move_architecture()

    def move_architecture(self, grads: Sequence[Tensor]) -> None:
        if self._engine.host_theta:
            grads = to_host(list(grads))
        for parameter, grad in zip(self.theta, grads, strict=True):
            parameter.grad = grad
        self._engine.move_architecture()

    def weights_after(self, grads: Sequence[Tensor]) -> list[Tensor]:
        engine, s, moved = self._engine, self._engine.settings, []
        if engine.own.optimizer is not None:
            raise RequestError(
                f"objective {engine.objective.name!r} looks one step of SGD ahead, so it takes no optimizer of your own"
            )
        for parameter, grad in zip(self.shared, grads, strict=True):
            buffer = engine.weight_optimizer.state.get(parameter, {}).get("momentum_buffer")
            push = grad + s.weight_decay * parameter.detach()
            if buffer is not None:
                push = push + s.momentum * buffer
            moved.append(parameter.detach() - self.weight_lr * push)
        return moved

    def example_gradients(self, stream: str) -> list[Tensor]:
        engine, (x, y) = self._engine, self._batch(stream)
        weights = engine.relaxed(self.epoch, generator=self._chance(stream), learn=False)
        loss, logits, grads = example_gradients(
            engine.supernet, weights, x, y, engine.task, engine.settings.precision, **self._dropout(stream)
        )
        engine.tallies[stream].add(loss, engine.judge_task.rows(logits, y))
        return [grads[group.name] for group in engine.theta_groups]

    @torch.no_grad()
    def scores(self, answers: Tensor, stream: str) -> tuple[Tensor, Tensor]:
        batch = self._batch(stream)
        return self._scored(answers, stream, [batch] * len(answers))

    @torch.no_grad()
    def evaluated(self, answers: Tensor, stream: str) -> tuple[Tensor, Tensor]:
        # Batches are numbered through all epochs: they go through the rows in one order after the other.
        engine, loader, first = self._engine, self._loader(stream), self._number * len(answers)
        engine.supernet.eval()
        batches = (loader.batch(*divmod(number, loader.steps)) for number in range(first, first + len(answers)))
        found = self._scored(answers, stream, batches)
        engine.supernet.train()
        return found

    def _scored(self, answers: Tensor, stream: str, batches: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        engine, found = self._engine, list[Tensor]()
        for each, (x, y) in zip(answers, batches, strict=True):
            logits = engine.passed(x, engine.space.encode(self.policy.architecture(each)))
            loss, rows = engine.task.loss(logits, y), engine.judge_task.rows(logits, y)
            engine.tallies[stream].add(loss, rows)
            found.append(torch.stack([loss, rows.float().mean()]))
        losses, scores = to_host(torch.stack(found)).unbind(1)
        return losses, scores

    @property
    def _number(self) -> int:
        """How many steps of its kind (of the shared weights, or of the phase) there are before it, in all epochs."""
        engine = self._engine
        if self.index < engine.steps:
            return self.epoch * engine.steps + self.index
        return self.epoch * engine.phase + self.index - engine.steps

    def _loader(self, stream: str) -> Loader:
        if stream not in self._engine.loaders:
            raise RunError(f"an objective asked for the stream {stream!r}; there are {', '.join(STREAMS)}")
        return self._engine.loaders[stream]

    def _batch(self, stream: str) -> tuple[Tensor, Tensor]:
        loader = self._loader(stream)
        if self._engine.settings.arch_share != HALF:
            # Of two unequal parts the shorter one ends within an epoch, and begins again in another order.
            return loader.batch(*divmod(self._number, loader.steps))
        return loader.batch(self.epoch, self.index % loader.steps)

    def _dropout(self, stream: str) -> dict[str, Dropout]:
        """An argument of the supernet, and only where there is a dropout: not every space knows it."""
        generator = self._engine.generator("skip dropout", stream, self.epoch, self.index)
        dropout = self._engine.skip_dropout(self.epoch, generator=generator)
        return {} if dropout is None else {"skip_dropout": dropout}

    def _chance(self, stream: str) -> torch.Generator:
        return self._engine.generator("relaxation", stream, self.epoch, self.index)
