"""How good an architecture is under the shared weights of a search, and which one a search derives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.compute import everywhere, to_device, to_host
from nasight.data import figures
from nasight.errors import RunError
from nasight.searching._tally import Tally

if TYPE_CHECKING:
    from nasight.searching._engine import Engine


@torch.no_grad()
def evaluate(engine: Engine, arch: Architecture | None, epoch: int, outputs: Tensor | None = None) -> Tally:
    """Validation loss and score of the relaxed supernet, or of one architecture under its shared weights.

    `outputs` (rows, classes) gets what the network gives for each row; those of other ranks stay as they are.
    """
    engine.supernet.eval()
    tally = Tally()
    fixed = None if arch is None else engine.space.encode(arch, edges=engine.relaxation.edges)
    end = 0
    for index, (x, y) in enumerate(_held_out(engine)):
        begin, end = end, end + len(y)
        if not _mine(engine, index):
            continue
        generator = engine.generator("evaluation", epoch, index)
        weights = fixed if fixed is not None else engine.relaxed(epoch, generator=generator, learn=False)
        logits = engine.passed(x, weights)
        tally.add(engine.judge_task.loss(logits, y), engine.judge_task.rows(logits, y, engine.validation_y))
        if outputs is not None:
            outputs[begin:end] = logits
    engine.supernet.train()
    return tally


def judged(engine: Engine, arch: Architecture, epoch: int) -> tuple[float, dict[str, Any]]:
    """The score of an architecture under the shared weights, and further figures of the validation rows."""
    # One piece for all rows: a small tensor of each batch would leave holes between batches of megabytes.
    outputs = torch.zeros(len(engine.validation_y), engine.dataset.n_classes, device=engine.device)
    score = evaluate(engine, arch, epoch, outputs).over(engine.ranks).means("judged")["judged_accuracy"]
    (whole,) = engine.ranks.sums([outputs])
    whole, y = to_host((whole, engine.validation_y))
    return score, figures(engine.judge_task, engine.dataset.classes, whole, y)


@torch.no_grad()
def correct(engine: Engine, arch: Architecture) -> Tensor:
    """The scores of validation examples with one architecture under the shared weights: (examples,)."""
    engine.supernet.eval()
    weights = engine.space.encode(arch, edges=engine.relaxation.edges)
    found = [
        engine.judge_task.rows(engine.passed(x, weights), y, engine.validation_y)
        if _mine(engine, index)
        else torch.zeros(len(y), device=engine.device)
        for index, (x, y) in enumerate(_held_out(engine))
    ]
    engine.supernet.train()
    (scores,) = engine.ranks.sums([torch.cat(found)])
    return to_host(scores)


@torch.no_grad()
def derive(engine: Engine, epoch: int, *, candidates: int) -> Architecture:
    """The architecture of this moment: the first of the method's selection, or the best of some candidates."""
    proposed = engine.method.selection.propose(engine, max(candidates, 1), engine.generator("candidates", epoch))
    if not engine.method.candidates:
        return next(proposed)
    engine.supernet.eval()
    archs, mine, scored = list(proposed), list[int](), list[tuple[Tensor, Tensor]]()
    for index, arch in enumerate(archs):
        if _mine(engine, index) and engine.space.usable(arch) is None:
            x, y = engine.candidate_batch(epoch, index)
            logits = engine.passed(x, engine.space.encode(arch, edges=engine.relaxation.edges))
            mine.append(index)
            scored.append((engine.judge_task.rows(logits, y).sum(), -engine.judge_task.loss(logits, y)))
    engine.supernet.train()
    values = [(int(right), float(loss), -n) for n, (right, loss) in zip(mine, to_host(scored), strict=True)]
    every = [value for found in engine.ranks.all_values(values) for value in found]
    if not every:
        raise everywhere(RunError(f"none of {candidates} candidates of {engine.space.name!r} is a network"))
    # Of equal ones the first.
    return archs[-max(every)[2]]


def _held_out(engine: Engine) -> Iterator[tuple[Tensor, Tensor]]:
    """The validation batches, on the device."""
    return (to_device((x, y), engine.device) for x, y in engine.validation)


def _mine(engine: Engine, index: int) -> bool:
    """Whether this rank takes a batch, or a candidate, that the ranks share out whole."""
    return index % engine.ranks.size == engine.ranks.rank
