"""What all stages of a find share: its folder, data, limits, processes and the outcomes that were seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from typing import Any

from nasight.architecture import Architecture
from nasight.compute import process_pool
from nasight.data import Dataset, SentData
from nasight.errors import RequestError
from nasight.own import OwnParts
from nasight.reproducible import generator_for
from nasight.runs import RunFolder
from nasight.searching import Latency
from nasight.spaces import FixedSpace, ModuleSpace, PlainSpace, Space
from nasight.spaces import load as load_space
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._names import OWN, PLAIN, SPACE
from nasight.studies.finding._near import closest
from nasight.studies.finding._proposers import PATIENCE, at_random
from nasight.studies.finding._race import Outcome
from nasight.studies.finding._settings import FindSettings, leg_seed
from nasight.studies.finding._work import BOOSTING, Request, Trainings, read_architecture, shared
from nasight.studies.finding._workers import Clock, Searches, Workers

NEAREST = 2_000
"""So many architectures are looked at to find what stands for a reference that is over a limit."""
Event = Callable[[str, Mapping[str, Any]], None]
"""Told of what happens: "note", "plan", "stage", "proposer", "training", "rung", "leaders", "answer", with values."""


class Context:
    """One find in progress, as its stages see it."""

    def __init__(
        self,
        folder: RunFolder,
        journal: Journal,
        settings: FindSettings,
        space: Space,
        data: Dataset,
        baseline: FixedSpace | None,
        executor: Executor | None,
        progress: Event | None,
        own: OwnParts | None = None,
        sent: SentData | None = None,
        began: float | None = None,
    ) -> None:
        self.own, self.sent = own or OwnParts(), sent
        """`sent` is for an executor on other machines: where they find the data."""
        self.task = data.task.with_own(self.own.loss, self.own.metric)
        self.folder, self.journal, self.settings, self.space, self.data = folder, journal, settings, space, data
        self.executor, self.tell = executor, progress or silent
        self.clock = Clock(journal, began)
        whole = space
        if space.reference not in space and settings.space != "module":
            # The reference has an option that is not searched; the space with its own options has it.
            whole = load_space(settings.space)
        self.spaces: dict[str, Any] = {SPACE: _sendable(settings.space, whole)}
        if not space.plain_reference:
            self.spaces[PLAIN] = PlainSpace()
        self.searched = _sendable(settings.space, space)
        if data.table is not None:
            # What people take for tables. It is no network: the space stands for its training settings alone.
            self.spaces[BOOSTING] = PlainSpace()
        if baseline is not None:
            self.spaces[OWN] = baseline
        self._references: dict[tuple[Any, ...], Architecture] = {}
        self.take_size(settings.size)
        self.seen: list[tuple[Request, Outcome]] = []
        """Trainings of this process and those that the journal has of before."""

    def take_size(self, size: Mapping[str, int], most_products: float | None = None) -> None:
        """Train networks of this size from now on, and count parameters and milliseconds at it, or at the target's.

        With `most_products`, networks of more multiply-adds at this size are no candidates: there is no time for them.
        """
        self.size, self.most_products = dict(size), most_products
        inputs, classes = self.data.inputs, self.data.n_classes
        self.counts = self.space.parameters(inputs, classes, **self.limit_size)
        self.products = self.space.multiply_adds(inputs, classes, **self.limit_size)
        self.own_products = self.space.multiply_adds(inputs, classes, **self.size)
        self.latencies = Latency(self.space, inputs, classes, self.limit_size)
        self.allowed_known: dict[Architecture, bool] = {}

    @property
    def limit_size(self) -> dict[str, int]:
        """The size at which parameters are counted: that of the later training, or of the find's own."""
        size = None if self.settings.target is None else self.space.train_size(self.settings.target)
        return dict(size or self.size)

    def open(self, stack: ExitStack) -> None:
        """Take the folder's lock and start the processes; both end with the stack."""
        stack.enter_context(self.folder.writing())
        self.journal.read()  # what another process has written until it gave the lock away
        data = self.sent or stack.enter_context(shared(self.data))
        s = self.settings
        self.trainings = Trainings(
            self.spaces, data, device=s.device, own=self.own, class_weights=s.class_weights, precision=s.precision
        )
        self.searches = Searches(self.searched, data, self.own)
        executor = self.executor
        # A model that is no file's cannot be sent to other processes.
        here = isinstance(self.spaces[SPACE], ModuleSpace) or (OWN in self.spaces and self.settings.baseline == "given")
        here = here or not self.own.sendable
        if executor is None and self.settings.workers > 1 and not here:
            executor = stack.enter_context(process_pool(self.settings.workers))
        self.workers = Workers(executor, self.trainings, self.journal, self.clock, self._told)
        self.count = self.settings.workers if executor is not None else 1

    def _told(self, request: Request, outcome: Outcome | None) -> None:
        accuracy = None if outcome is None else outcome.accuracy
        if outcome is not None:
            self.seen.append((request, outcome))
        told = {"architecture": request.architecture, "epochs": request.epochs, "accuracy": accuracy}
        self.tell("training", {**told, "metric": self.task.units.metric})

    def parameters(self, key: str, architecture: str) -> int:
        """Of a network as the find trains it, or, in the searched space, at the size of the target."""
        if key == SPACE:
            return self.counts(self.read(architecture))
        if key == BOOSTING:
            return 0
        space = self.trainings.space(key)
        return space.parameters(self.data.inputs, self.data.n_classes)(read_architecture(space, architecture))

    def multiply_adds(self, key: str, architecture: str) -> int | None:
        """Per example, of the same network; None where it is none, or cannot be counted."""
        if key == SPACE:
            return self.products(self.read(architecture))
        if key == BOOSTING:
            return None
        space = self.trainings.space(key)
        return space.multiply_adds(self.data.inputs, self.data.n_classes)(read_architecture(space, architecture))

    def read(self, text: str) -> Architecture:
        return read_architecture(self.space, text)

    def allowed(self, arch: Architecture) -> bool:
        """Whether an architecture is within the limits, and can be trained in the time there is."""
        if arch not in self.allowed_known:
            small = self.settings.max_params is None or self.counts(arch) <= self.settings.max_params
            small = small and (self.most_products is None or (self.own_products(arch) or 0) <= self.most_products)
            fast = self.settings.max_latency is None or (small and self.latency(arch) <= self.settings.max_latency)
            self.allowed_known[arch] = small and fast
        return self.allowed_known[arch]

    @property
    def reference(self) -> Architecture:
        """The reference of the space, or, where it is over a limit, what stands for it.

        That is the closest to it within the limit; where many are too large or too slow, the largest of some that are
        drawn, or of the lightest.
        """
        at = (*sorted(self.size.items()), self.most_products)
        if at not in self._references:
            usual, counts = self.space.reference, self.counts
            near = usual if self.allowed(usual) else None
            if near is None:
                near = closest(self.space, usual, self.allowed, counts, min(NEAREST, self.patience))
            self._references[at] = near or max(self._some(), key=counts)
        return self._references[at]

    def _some(self) -> list[Architecture]:
        """Twenty architectures within the limits, drawn at random, and the lightest ones."""
        chance = generator_for(leg_seed(self.settings.seed), "reference")
        drawn = [p.architecture for p in at_random(self.space, self.allowed, 20, chance, self.tries)]
        found = drawn + [arch for arch in self.space.lightest() if self.allowed(arch)]
        if not found:
            raise RequestError(f"no architecture of this space was found within {self._limits()}")
        return found

    def _limits(self) -> str:
        """The limits in words, with what the smallest network has."""
        most, slowest = self.settings.max_params, self.settings.max_latency
        words = list[str]()
        if most is not None:
            smallest, certain = self.counts.smallest()
            about = "" if certain else " of those that were looked at"
            words.append(f"{most:,} parameters (the smallest network{about} has {smallest:,})")
        if slowest is not None:
            # Those with too many parameters are not timed.
            timed = any(key.startswith("latency ") and not key.startswith("latency of ") for key in self.journal)
            longer = " (the fastest that were timed take longer)" if timed else ""
            words.append(f"{slowest:g} ms per example{longer}")
        return " and ".join(words) or "the time there is"

    @property
    def tries(self) -> int:
        """Draws for each architecture that is wanted: few where each one is timed."""
        return 200 if self.settings.max_latency is None else 5

    @property
    def patience(self) -> int:
        return PATIENCE if self.settings.max_latency is None else 40

    def latency(self, arch: Architecture) -> float:
        """Milliseconds per example; a clock is noisy, so the first measurement is kept."""
        size = ",".join(f"{name}={value}" for name, value in self.limit_size.items())
        key = f"latency {size} {self.space.format(arch)}"
        return float(self.journal.decide(key, lambda: round(self.latencies(arch), 4)))


def _sendable(name: str, space: Space) -> Space | tuple[str, dict[str, Any]]:
    """A space as other processes can make it again."""
    return space if name == "module" else (name, space.options)


def silent(event: str, values: Mapping[str, Any]) -> None:
    """Tell nobody."""
