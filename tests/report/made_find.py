"""A find that nobody ran: its folder, written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from nasight.runs import RunFolder, write_json
from nasight.spaces import Space, load
from nasight.studies.finding import Answer
from nasight.studies.finding._journal import Journal

NAMES = {True: "Better by", False: "Not better: take", None: "Not better: take"}
APART = {True: (1.5, 0.5, 2.5), False: (-1.5, -2.5, -0.5), None: (-0.25, -1.25, 0.75)}
SIZES = {"nasbench201": {"channels": 8, "cells": 1}, "darts": {"channels": 8, "cells": 2}, "mlp": {"width": 32}}
OUTCOMES: tuple[tuple[str, list[float | None], tuple[int, str] | None], ...] = (
    ("search 1", [97.0, 98.5, 98.75], None),
    ("likeliest", [96.5, 98.0, 98.25], None),
    ("score and size", [97.0, 97.5, None], (1, "time")),
    ("mutation", [96.0, 97.0, None], (1, "behind")),
    ("chance", [81.0, None, None], (0, "behind")),
    ("likeliest of 25%", [96.25, None, None], (0, "time")),
    ("open decision", [None, None, None], (0, "failed")),
)
"""Proposer, accuracy by rung, and where and why it left; the first one wins."""
RUNGS, EPOCHS, SEEDS = [3, 9, 27], 27, 3


def texts(space: Space, number: int) -> list[str]:
    """Different architectures of a space, not its reference among them."""
    generator, found = torch.Generator().manual_seed(0), dict[str, None]()
    while len(found) < number:
        arch = space.sample(generator)
        if space.usable(arch) is None and arch != space.reference:
            found[space.format(arch)] = None
    return list(found)


def line(architecture: str, by: str, accuracies: list[float | None], **more: Any) -> dict[str, Any]:
    return {"architecture": architecture, "proposed_by": by, "also": [], "control": False, "parameters": 1_000,
            "accuracies": accuracies, "left": None, **more}  # fmt: skip


def made_find(
    path: Path,
    *,
    better: bool | None = True,
    space: str = "nasbench201",
    names: list[str] | None = None,
    **changes: Any,
) -> Answer:
    """A finished find; `names` are its architectures, the reference first, where the space cannot be loaded.

    `changes` are of the result.
    """
    known = [] if names is not None else [load(space)]
    names = names or [known[0].format(known[0].reference), *texts(known[0], len(OUTCOMES))]
    reference, rest = names[0], names[1:]
    lines = [
        line(reference, "reference", [95.5, 97.25, 98.0], control=True, parameters=43_010, also=["score"]),
        line("plain", "plain", [96.0, 97.0, 97.5], control=True, parameters=94_186),
    ]
    for i, (text, (by, accuracies, left)) in enumerate(zip(rest, OUTCOMES, strict=True)):
        out = None if left is None else {"rung": left[0], "reason": left[1]}
        lines.append(line(text, by, accuracies, left=out, parameters=20_000 + 5_000 * i))
    mean, low, high = APART[better]
    winner, base = [98.0 + mean + d for d in (-0.2, 0.0, 0.2)], [97.8, 98.0, 98.2]
    front = [
        {"architecture": row["architecture"], "parameters": row["parameters"], "latency": 1.5 + i, "accuracy": 95.0 + i,
         "epochs": 27 if row["accuracies"][2] else 3, "proposed_by": row["proposed_by"], "best": i < 2}
        for i, row in enumerate(lines)
        if row["architecture"] != "plain" and row["accuracies"][0] is not None
    ]  # fmt: skip
    recipe = {"lr": 0.05, "weight_decay": 3e-4, "augmentation": "shift"}
    result = {
        "run": str(path), "space": space, "data": "digits", "seed": 0, "architecture": rest[0], "parameters": 20_000,
        "accuracy": 98.0 + mean, "accuracies": winner,
        "baseline": {"architecture": reference, "parameters": 43_010, "accuracy": 98.0, "accuracies": base,
                     "kind": "reference"},
        "difference": mean, "interval": [low, high], "level": 0.95, "better": better,
        "take": rest[0] if better else reference, "trained": "trainings/0-space-1", "taken_from": "space",
        "proposed_by": "search 1",
        "also_proposed_by": ["chance"], "trainings": 41, "seconds": 300.0, "budget": 240.0, "epochs": EPOCHS,
        "examples": 1_000, "rows": 1_437, "recipe": recipe,
        "recipes": [{**recipe, "augmentation": "none", "accuracy": 97.0}, {**recipe, "accuracy": 98.5},
                    {**recipe, "lr": 0.15, "accuracy": None}],
        "race": {"rungs": RUNGS, "lines": lines, "agreements": [{"rung": 0, "candidates": 6, "tau": 0.5, "p": 0.25}],
                 "seed_deviation": 0.3},
        "front": front, "target": {"preset": None, "epochs": EPOCHS, "size": SIZES.get(space, {}), "reached": True},
        "searches": ["searches/0-0"], "legs": 1,
        "sentence": f"{NAMES[better]} the reference.", **changes,
    }  # fmt: skip
    settings = {
        "space": space, "space_options": {}, "data": "digits", "method": "gaea-darts", "seed": 0,
        "size": SIZES.get(space, {}), "search_size": {}, "target": None, "baseline": None, "max_params": 100_000,
        "max_latency": None, "level": 0.95, "workers": 2, "batch_size": 32, "trainings": None, "epochs": None,
    }  # fmt: skip
    data = {"name": "digits", "fingerprint": "f", "inputs": [1, 8, 8], "classes": list("0123456789")}
    folder = RunFolder.create(path, kind="find", about={"settings": settings, "data": data})
    folder.write_result(result)
    _write_journal(path)
    search = {"method": "gaea-darts", "epochs": 14, "seconds": 51.0, "architecture": rest[0], "accuracy": 94.5}
    (path / "searches" / "0-0").mkdir(parents=True)
    write_json(path / "searches" / "0-0" / "result.json", {**search, "unusable": None})
    return Answer(path)


def _write_journal(path: Path) -> None:
    """What a find keeps: budget, plan, and after every training the clock."""
    journal = Journal(path)
    stages = {"recipe": 30.0, "propose": 50.0, "race": 90.0, "answer": 60.0}
    plan = {"examples": 1_000, "epochs": 30, "rungs": RUNGS, "places": [8, 4, 2], "searches": 1, "search_epochs": 14,
            "scored": 2, "recipe_epochs": 9, "seconds": stages}  # fmt: skip
    journal.put("budget 0", {"seconds": 240.0, "trainings": None, "more": False})
    journal.put("began 0", 2.0)
    journal.put("plan 0", plan)

    def trained(name: str, judged: str, rows: int, clock: float) -> None:
        outcome = {"accuracy": 90.0, "seconds": 1.0, "right": {"count": rows, "bits": ""}}
        journal.put(f"training {name} judged={judged} size= batch=32", outcome)
        journal.put("clock", clock)

    for i, clock in enumerate((12.0, 22.0, 42.0)):  # 40 s
        trained(f"recipe {i}", "0.25", 250, clock)
    journal.put("clock", 112.0)  # 70 s
    journal.put("scores 0", {"a": 1.0, "b": 2.0})
    trained("raced", "0.25", 250, 240.0)  # 128 s
    journal.put("epochs 0", EPOCHS)
    trained("final", "test", 360, 300.0)  # 60 s
