"""The moving parts of a search: supernet, architecture parameters, optimizers, data.

All randomness is a function of (seed, purpose, epoch, step), so the state of a search is its tensors and two counters.
An objective sees a search through `EngineStep`, a selection through the four members of `SearchState`. Architectures
are judged in `_judging.py`, checkpoints are made in `_engine_state.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nasight.compute import ALONE, LossScale, Ranks, Slices, autocast, is_device, to_device, to_host
from nasight.data import Dataset, resized
from nasight.errors import RunError
from nasight.geometry import Distribution
from nasight.own import OwnParts, own_optimizer
from nasight.reproducible import generator_for, seeded
from nasight.searching._engine_step import EngineStep
from nasight.searching._questions import Policy, Questions
from nasight.searching._relaxations import StepContext
from nasight.searching._settings import SearchSettings, as_set
from nasight.searching._stages import Options, Reduced, spans, strongest
from nasight.searching._streams import STREAMS, Streams
from nasight.searching._tally import Tally, Watch
from nasight.searching.methods import Method, check_fit
from nasight.spaces import Dropout, Placed, Space, placed

PROBES = 8
"""Batches over which the size of the architecture gradient is measured."""


class Engine:
    """One search in progress."""

    def __init__(
        self,
        settings: SearchSettings,
        space: Space,
        dataset: Dataset,
        method: Method,
        own: OwnParts | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.settings, self.space, self.own = settings, space, own or OwnParts()
        self.method = as_set(method, settings)
        self.ranks, self.slices = ranks, Slices(settings.slices, ranks)
        self.objective = self.method.objective(settings.objective)
        self.relaxation = self.method.relaxation
        check_fit(self.method, space, settings.partial)
        self.dataset = resized(dataset, settings.resolution, test=False)
        self.device = torch.device(settings.device)
        self.host_theta = not is_device(self.device) or not self.relaxation.on_device
        """Whether the architecture parameters are on the CPU, where draws are made; the network is on the device."""
        streams = Streams(
            settings, self.dataset, halves=self.objective.halves, transform=self.own.augment, device=self.device
        )
        self.loaders, self.validation = streams.loaders, streams.validation
        self.validation_y = to_device(streams.validation_y, self.device)
        self.judge_task = self.task = self.dataset.task.with_own(self.own.loss, self.own.metric)
        if settings.class_weights == "balanced":
            self.task = self.task.balanced(streams.learned_y, self.dataset.n_classes)
        self.candidate_batch = streams.candidate_batches
        self.slices.check(min(loader.batch_size for loader in self.loaders.values()))
        self.steps = self.loaders["weights"].steps
        self.phase = self.objective.phase(self.steps)
        """Steps of the architecture alone after those of an epoch."""
        self.length = self.steps + self.phase
        """All steps of an epoch."""
        self.spans = spans(len(self.method.schedule.stages), settings.epochs, settings.warmup)
        self.tallies = {stream: Tally() for stream in STREAMS}
        self.watch = Watch()
        self.scale = LossScale(self.device, settings.precision)
        self.memory: dict[str, float] = {}
        """What an objective keeps from step to step."""
        self.kept: dict[str, Any] | None = None
        self.enter(0, {})

    def enter(self, stage: int, options: Options) -> None:
        """Begin a stage: a new supernet, and new architecture parameters for the options that are left."""
        s, self.stage, geometry = self.settings, stage, self.method.geometry
        keys = (stage,) if stage else ()
        self.size = dict(s.size)
        if stage:
            depth = self.method.schedule.stages[stage].depth
            self.size["cells"] = round(depth * self.space.size(**s.size)["cells"])
        with seeded(s.seed, "supernet", *keys):
            self.supernet = self.space.supernet(
                self.dataset.inputs,
                self.dataset.n_classes,
                path=s.path,
                edges=self.relaxation.edges,
                partial=s.partial or self.relaxation.partial,
                **self.size,
            )
        self.supernet.to(self.device, non_blocking=True)
        self.groups = self.supernet.groups
        self.reduced = Reduced(self.groups, options)
        questions = Questions(self.space)
        self.theta_groups = (questions.group,) if isinstance(geometry, Distribution) else self.reduced.groups
        """What the architecture parameters are about: groups of the supernet, or the questions of a distribution."""
        self.params = geometry.initial(self.theta_groups, self.generator("theta", *keys))
        if not self.host_theta:
            # Drawn on the CPU all the same.
            self.params = {
                name: nn.Parameter(p.detach().to(self.device), requires_grad=p.requires_grad)
                for name, p in self.params.items()
            }
        self.known = self.reduced.expand({group.name: torch.ones(group.shape) for group in self.reduced.groups})
        """Zero where an option is gone: what is known of weights without asking a device."""
        self._read: tuple[tuple[int, ...], dict[str, Tensor]] | None = None
        self._policy = Policy(geometry, questions, self.params) if isinstance(geometry, Distribution) else None
        self.weight_optimizer = self._optimizer()
        self.base_rates = [float(group["lr"]) for group in self.weight_optimizer.param_groups]
        self.arch_lr = 0.0
        self.arch_optimizer: torch.optim.Optimizer | None = None
        if geometry.moves:
            self.arch_lr = s.arch_lr or geometry.default_lr(self._arch_steps)
            self.arch_optimizer = geometry.optimizer(
                self.params, self.theta_groups, lr=self.arch_lr, steps=self._arch_steps
            )

    def _optimizer(self) -> torch.optim.Optimizer:
        s, parameters = self.settings, self.supernet.parameters()
        if self.own.optimizer is not None:
            return own_optimizer(self.own, parameters)
        return torch.optim.SGD(parameters, s.lr, momentum=s.momentum, nesterov=s.nesterov, weight_decay=s.weight_decay)

    @property
    def _arch_steps(self) -> int:
        """The steps for which the default rate is: those of the stage, as if the architecture moved in all of them.

        A warm-up thus does not raise the rate. In the first edition it did.
        """
        span = self.spans[self.stage]
        epochs = span.epochs if self.settings.edition > 1 else max(span.epochs - span.warmup, 1)
        return (self.phase or self.steps) * epochs

    def _measure_rate(self, epoch: int) -> None:
        """The default rate, from gradients as they are when the architecture begins to move."""
        geometry, first = self.method.geometry, self.settings.edition == 1
        span = self.spans[self.stage]
        due = epoch == span.first + (0 if first else span.warmup)
        if self.arch_optimizer is None or geometry.gradient is None or self.settings.arch_lr or not due:
            return
        self.arch_lr = geometry.default_lr(self._arch_steps, self._gradient_size(0 if first else epoch))
        if self.settings.edition > 4:
            self.arch_lr = max(self.arch_lr, geometry.least_lr(self._arch_steps))
        for group in self.arch_optimizer.param_groups:
            group["lr"] = self.arch_lr

    def _gradient_size(self, epoch: int) -> float:
        """The largest entry of an architecture gradient before a step, the mean over a few batches."""
        largest = list[list[Tensor]]()
        for step in range(PROBES):
            at = self.step(epoch, step, learns=True)
            grads = at.gradients(at.loss("architecture", learn=True, record=False), at.theta)
            rows = [row for group, grad in zip(self.theta_groups, grads, strict=True) for row in group.split(grad)]
            largest.append([(row - row.mean()).abs().max() for row in rows])
        sizes = [max(map(float, each)) for each in to_host(largest)]
        return sum(sizes) / len(sizes)

    def generator(self, *keys: str | int) -> torch.Generator:
        return generator_for(self.settings.seed, *keys)

    def step(self, epoch: int, index: int, *, learns: bool) -> EngineStep:
        """What an objective may do in this step."""
        return EngineStep(self, epoch, index, learns)

    def advance(self, epoch: int, index: int) -> None:
        """Take this step of an epoch, one of the phase if it comes after the others."""
        at = self.step(epoch, index, learns=self.learns(epoch))
        if index < self.steps:
            self.objective.step(at)
        elif at.learns:
            self.objective.phase_step(at)

    @property
    def policy(self) -> Policy:
        """The distribution that the search learns, where it learns one."""
        if self._policy is None:
            raise RunError(f"method {self.method.name!r} learns no distribution over architectures")
        return self._policy

    def learns(self, epoch: int) -> bool:
        """Whether the architecture moves in this epoch."""
        return self.arch_optimizer is not None and self.spans[self.stage].learns(epoch)

    def weights(self) -> dict[str, Tensor]:
        """The architecture weights as they stand: rows on the simplex, on the CPU."""
        if self._policy is not None:
            return self._policy.weights(self.groups, self.generator("marginals"))
        if self.host_theta:
            return self.reduced.expand(self.method.geometry.weights(self.params, self.theta_groups))
        version = tuple(parameter._version for parameter in self.params.values())
        if self._read is None or self._read[0] != version:
            with torch.no_grad():
                found = self.reduced.expand(self.method.geometry.weights(self.params, self.theta_groups))
            self._read = version, to_host(found)
        return self._read[1]

    def relaxed(self, epoch: int, *, generator: torch.Generator, learn: bool) -> Mapping[str, Tensor]:
        """The weights of one forward pass, on the device of the network."""
        geometry, context = self.method.geometry, self._context(epoch, generator, learn=learn)
        with torch.set_grad_enabled(learn):
            theta, log_theta = dict[str, Tensor](), dict[str, Tensor]()
            if self._policy is None:
                theta = self.reduced.expand(geometry.weights(self.params, self.theta_groups))
            # Logarithms are asked for only where a relaxation draws from the weights.
            if self.relaxation.sampled:
                log_theta = geometry.log_weights(self.params, self.theta_groups)
            drawn = self.relaxation.weights(theta, log_theta, context)
            drawn = drawn if learn else {name: weights.detach() for name, weights in drawn.items()}
            if not self.slices.whole:
                # A node for each slice: its gradients are added up there first, as ranks do it.
                drawn = {name: weights.view_as(weights) for name, weights in drawn.items()}
            if any(is_device(weights.device) for weights in drawn.values()):
                return Placed(drawn, self.known)
            return placed(drawn, self.device)

    def passed(self, x: Tensor, weights: Mapping[str, Tensor], **how: Any) -> Tensor:
        """The logits of a pass in the precision that was asked for; they are float32 in any."""
        with autocast(self.device, self.settings.precision):
            logits: Tensor = self.supernet(x, weights, **how)
        return logits if self.settings.precision == "32" else logits.float()

    def skip_dropout(self, epoch: int, *, generator: torch.Generator) -> Dropout | None:
        """The dropout of one training pass, where the method has one."""
        p = self.relaxation.skip_dropout(self._context(epoch, generator))
        return Dropout(p, generator) if p else None

    def _context(self, epoch: int, generator: torch.Generator, *, learn: bool = True) -> StepContext:
        span = self.spans[self.stage]
        return StepContext(
            self.space,
            self.groups,
            span.progress(epoch),
            generator,
            learn=learn,
            elapsed=span.elapsed(epoch),
            since=span.since(epoch),
            warmup=not span.learns(epoch),
            dropout=self.method.schedule.stages[self.stage].dropout,
            draw=None if self._policy is None else self._policy.draw,
        )

    @property
    def weight_lr(self) -> float:
        return float(self.weight_optimizer.param_groups[0]["lr"])

    def set_epoch(self, epoch: int) -> None:
        """The stage and the rate of this epoch (a cosine, after a rise where one was asked for), and empty tallies."""
        stage = max(i for i, span in enumerate(self.spans) if span.first <= epoch)
        if stage != self.stage:
            self.enter(stage, strongest(self.weights(), self.groups, self.method.schedule.stages[stage].operations))
        self.set_rate(epoch)
        self._measure_rate(epoch)
        self.tallies = {stream: Tally() for stream in STREAMS}

    def set_rate(self, epoch: int) -> None:
        """The learning rate of the shared weights in this epoch of the present stage."""
        s, span = self.settings, self.spans[self.stage]
        turn = math.pi * (epoch - span.first) / (s.schedule_epochs * span.epochs / s.epochs)
        rate = s.lr_min + 0.5 * (s.lr - s.lr_min) * (1 + math.cos(turn))
        if (done := epoch - span.first + 1) <= s.lr_warmup:
            rate = s.lr * done / s.lr_warmup
        for group, base in zip(self.weight_optimizer.param_groups, self.base_rates, strict=True):
            group["lr"] = rate if self.own.optimizer is None else base * rate / s.lr

    def move_architecture(self) -> None:
        """Move the architecture along the gradients that its parameters have."""
        if self.arch_optimizer is None:
            raise RunError(f"method {self.method.name!r} has no architecture parameters to move")
        if self.settings.arch_clip is not None:
            nn.utils.clip_grad_norm_(self.params.values(), self.settings.arch_clip)
        self.arch_optimizer.step()
