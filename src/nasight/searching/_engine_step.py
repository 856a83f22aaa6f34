"""One step of a search as an objective sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from nasight.compute import RunningStatistics, Slice, to_host
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
    def weights_first(self) -> bool:
        return self._engine.settings.weights_first

    @property
    def policy(self) -> Policy:
        return self._engine.policy

    def generator(self, purpose: str) -> torch.Generator:
        return self._engine.generator(purpose, self.epoch, self.index)

    def loss(self, stream: str, *, learn: bool, record: bool = True, draws: int = 1) -> Tensor:
        engine = self._engine
        losses = []
        running = RunningStatistics(engine.supernet, engine.slices)
        for part, x, y in self._slices(stream):
            each = list[Tensor]()
            for draw in range(draws):
                logits = self._logits(stream, part, x, draw, learn=learn)
                each.append(engine.task.loss(logits, y))
                if record:
                    engine.tallies[stream].add(each[-1].detach(), engine.judge_task.rows(logits.detach(), y))
            loss = each[0] if draws == 1 else torch.stack(each).mean()
            losses.append(loss if engine.slices.whole else part.share * loss)
            running.passed(part.share)
        running.end(engine.ranks.sums(running.sums))
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        if engine.ranks.size == 1:
            # Several ranks ask when they have added up their gradients: one must not leave without the others.
            engine.watch.see(loss, self.epoch, self.index)
        return loss

    def _logits(self, stream: str, part: Slice, x: Tensor, draw: int, *, learn: bool) -> Tensor:
        """What the supernet gives for a slice, with the weights of this draw."""
        engine = self._engine
        # The same draw for each slice, in a graph of its own, so that one process rounds sums as ranks do.
        weights = engine.relaxed(self.epoch, generator=self._chance(stream, draw), learn=learn)
        skip_zeros = engine.relaxation.skip_zeros if learn else None
        return engine.passed(x, weights, skip_zeros=skip_zeros, **self._dropout(stream, part.number))

    def gradients(self, loss: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
        scale = self._engine.scale
        grads = torch.autograd.grad(scale.scaled(loss), tensors, allow_unused=True, materialize_grads=True)
        return scale.restored(self._summed(loss, grads))

    def _summed(self, loss: Tensor, grads: Sequence[Tensor]) -> list[Tensor]:
        """Gradients of the whole batch; where several ranks have slices of it, one message adds them up.

        They are still scaled: where one rank has an overflow, all see it, none moves, and their scales stay the same.
        """
        ranks = self._engine.ranks
        if ranks.size == 1:
            return list(grads)
        *summed, whole = ranks.sums([*grads, loss])
        self._engine.watch.see(whole, self.epoch, self.index)
        return summed

    def descend(self, loss: Tensor, *, weights: bool = False, architecture: bool = False) -> None:
        if not weights:
            if architecture:
                self.move_architecture(self.gradients(loss, self.theta))
            return
        engine = self._engine
        for parameter in (*self.shared, *self.theta):
            parameter.grad = None
        engine.scale.scaled(loss).backward()  # type: ignore[no-untyped-call]
        moved = [p for p in (*self.shared, *(self.theta if architecture else ())) if p.grad is not None]
        for parameter, grad in zip(
            moved, self._summed(loss, [p.grad for p in moved if p.grad is not None]), strict=True
        ):
            parameter.grad = grad
        engine.scale.restore_gradients(moved)
        if engine.settings.clip is not None:
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
        engine, batch = self._engine, self._loader(stream).batch_size
        weights = engine.relaxed(self.epoch, generator=self._chance(stream), learn=False)
        found = [weights[g.name].new_zeros(batch, *weights[g.name].shape) for g in engine.theta_groups]
        for part, x, y in self._slices(stream):
            loss, logits, grads = example_gradients(
                engine.supernet,
                weights,
                x,
                y,
                engine.task,
                engine.settings.precision,
                **self._dropout(stream, part.number),
            )
            engine.tallies[stream].add(loss, engine.judge_task.rows(logits, y))
            for group, each in zip(engine.theta_groups, found, strict=True):
                each[part.rows] = grads[group.name]
        return engine.ranks.sums(found)

    @torch.no_grad()
    def scores(self, answers: Tensor, stream: str) -> tuple[Tensor, Tensor]:
        batch = self._batch(stream)
        return self._scored(answers, stream, lambda number: batch)

    @torch.no_grad()
    def evaluated(self, answers: Tensor, stream: str) -> tuple[Tensor, Tensor]:
        # Batches are numbered through all epochs: they go through the rows in one order after the other.
        engine, loader, first = self._engine, self._loader(stream), self._number * len(answers)
        engine.supernet.eval()
        found = self._scored(answers, stream, lambda number: loader.batch(*divmod(first + number, loader.steps)))
        engine.supernet.train()
        return found

    def _scored(
        self, answers: Tensor, stream: str, batch: Callable[[int], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Whole batches: the architectures are what ranks share among themselves."""
        engine, found = self._engine, list[Tensor]()
        for number, each in enumerate(answers):
            if number % engine.ranks.size != engine.ranks.rank:
                found.append(torch.zeros(2, device=engine.device))
                continue
            x, y = batch(number)
            logits = engine.passed(x, engine.space.encode(self.policy.architecture(each)))
            loss, rows = engine.task.loss(logits, y), engine.judge_task.rows(logits, y)
            engine.tallies[stream].add(loss, rows)
            found.append(torch.stack([loss, rows.float().mean()]))
        (every,) = engine.ranks.sums([torch.stack(found)])
        losses, scores = to_host(every).unbind(1)
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

    def _batch(self, stream: str, rows: slice | None = None) -> tuple[Tensor, Tensor]:
        loader, part = self._loader(stream), dict[str, Any](**({} if rows is None else {"part": rows}))
        if self._engine.settings.arch_share != HALF:
            # Of two unequal parts the shorter one ends within an epoch, and begins again in another order.
            return loader.batch(*divmod(self._number, loader.steps), **part)
        return loader.batch(self.epoch, self.index % loader.steps, **part)

    def _slices(self, stream: str) -> Iterator[tuple[Slice, Tensor, Tensor]]:
        """The slices of the batch that are this rank's."""
        for part in self._engine.slices.of(self._loader(stream).batch_size):
            yield part, *self._batch(stream, None if self._engine.slices.whole else part.rows)

    def _dropout(self, stream: str, number: int) -> dict[str, Dropout]:
        """Arguments of the supernet, and only where there is a dropout: not every space knows it."""
        engine, keys = self._engine, () if self._engine.slices.whole else (number,)
        generator = engine.generator("skip dropout", stream, self.epoch, self.index, *keys)
        dropout = engine.skip_dropout(self.epoch, generator=generator)
        found = {} if dropout is None else {"skip_dropout": dropout}
        if p := engine.settings.drop_path:
            chance = engine.generator("drop path", stream, self.epoch, self.index, *keys)
            found["drop_path"] = Dropout(p, chance)
        return found

    def _chance(self, stream: str, draw: int = 0) -> torch.Generator:
        again = (draw,) if draw else ()
        return self._engine.generator("relaxation", stream, self.epoch, self.index, *again)
