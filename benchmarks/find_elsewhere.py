"""Which plain networks do well in the same time, on one data set after the other?

    python benchmarks/find_elsewhere.py --data-folder DATA

A find begins its race with networks that did well on other data. They come from here: a pool of networks of the space
convnet (the reference, its neighbors, and networks that differ from it in two or three decisions, drawn at random; the
first kernel of these is 3x3) is trained on a part of each data set with two seeds, all for the same time: a slow
network has fewer epochs. Rows of the training part that no training learned from and no find has say what a network is
worth, in points above the reference. No test part is read.

What the pool came to is written to src/nasight/spaces/convnet/elsewhere.json, which the package carries. A find on one
of these data sets does not look at what was measured on it. So the table also shows, for each data set, what the first
networks by the others are worth on it.

What was trained is kept in find_elsewhere_rows.json.gz beside the result, so an interrupted benchmark resumes. Paces
are measured: nothing else may run on the machine until the first training of a data set ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from _shared import Flags, KeptRows, kept, save, shrunk
from find_judge import accuracies
from find_races import Item, request_of
from nasight.architecture import Architecture
from nasight.data import Dataset, load
from nasight.reproducible import generator_for
from nasight.spaces import Space, in_order_of_worth
from nasight.spaces import load as load_space
from nasight.studies.finding import PaceProbe, Trainings, paced_epochs, shared

PACKAGED = Path(__file__).parents[1] / "src/nasight/spaces/convnet/elsewhere.json"
SEEDS, FURTHER = (0, 1), 8_000
NETWORKS, MOST = 64, 3.0
"""Networks of the pool; the multiply-adds that they may have, as a multiple of the reference's."""
FIRST = 5
"""Networks that the table shows: about as many as a find of three minutes trains."""


@dataclass(frozen=True)
class Setting:
    """A part of a data set: rows to learn from and to judge, pixels on a side, epochs of the reference."""

    rows: int
    side: int | None
    epochs: int


SETTINGS: dict[str, Setting] = {
    "digits": Setting(1_078, None, 40),
    "mnist": Setting(1_500, 14, 30),
    "fashion-mnist": Setting(5_000, 14, 24),
    "cifar-10": Setting(8_000, 16, 20),
}


def part_of(name: str, how: Setting, folder: str | None) -> Dataset:
    """Some rows of the training part, and as its test part others of the same."""
    whole = load(name, folder=folder)
    order = torch.randperm(len(whole.train_y), generator=generator_for(0, "benchmark rows"))

    def rows(chosen: torch.Tensor) -> Dataset:
        found = replace(whole, train_x=whole.train_x[chosen], train_y=whole.train_y[chosen])
        return found if how.side is None else shrunk(found, how.side)

    first, others = rows(order[: how.rows]), rows(order[how.rows :][:FURTHER])
    return replace(first, test_x=others.train_x, test_y=others.train_y)


def pool(space: Space, number: int) -> list[str]:
    """The reference, its neighbors, and networks with two or three changes, within the limit of cost."""
    products = space.multiply_adds((3, 16, 16), 10)
    most = MOST * (products(space.reference) or 0)
    chance = generator_for(0, "pool of networks elsewhere")
    found = dict.fromkeys([space.reference, *space.neighbors(space.reference)])
    for _ in range(100 * number):
        found[changed(space, chance)] = None
    fits = [space.format(arch) for arch in found if (products(arch) or 0) <= most]
    return fits[:number]


def changed(space: Space, chance: torch.Generator) -> Architecture:
    """The reference with two or three decisions changed, never the first."""
    choices = dict(space.reference.choices)
    number = 2 + int(torch.randint(2, (), generator=chance))
    for i in torch.randperm(len(space.decisions) - 1, generator=chance)[:number].tolist():
        decision = space.decisions[i + 1]
        others = [option for option in decision.options if option != choices[decision.name]]
        choices[decision.name] = others[int(torch.randint(len(others), (), generator=chance))]
    return space.architecture(choices)


def trained(item: Item, folders: dict[str, str]) -> float:
    """What a network is worth after a schedule."""
    return accuracies(Trainings({"space": load_space("convnet")}, folders[item[0]]).job(request_of(item)))["others"]


def measured(name: str, how: Setting, networks: list[str], place: Path, given: Any) -> dict[str, list[float]]:
    """What each network is worth on a data set, seed by seed."""
    data, space, rows = part_of(name, how, given.data_folder), load_space("convnet"), KeptRows(place)
    with shared(data) as folder:
        probe = PaceProbe(Trainings({"space": space}, folder), request_of((name, networks[0], 6, 0, "none")), 0.3)
        for text in networks:
            if (key := f"pace {name} {text}") not in rows.rows:
                rows.put(key, probe(request_of((name, text, 6, 0, "none"))))
        items: list[Item] = [
            (name, text, paced_epochs(how.epochs, float(rows.rows[f"pace {name} {text}"])), seed, "none")
            for seed in SEEDS
            for text in networks
        ]
        found = kept(place, items, partial(trained, folders={name: folder}), workers=given.workers)
    return {text: found[i :: len(networks)] for i, text in enumerate(networks)}


def gains(worth: Mapping[str, list[float]], reference: str) -> dict[str, float]:
    """Points above the reference, the mean over seeds."""
    return {text: round(fmean(values) - fmean(worth[reference]), 2) for text, values in worth.items()}


def shown(found: dict[str, dict[str, float]]) -> str:
    """For each data set, what the first networks by the others are worth on it, beside all neighbors."""
    space = load_space("convnet")
    neighbors = {space.format(arch) for arch in space.neighbors(space.reference)}
    lines = [
        f"| data | the first {FIRST} networks by the other data sets, points above the reference | their mean |"
        " mean of the reference's neighbors | best of the pool |",
        "|---|---|---|---|---|",
    ]
    for name, gain in found.items():
        first = in_order_of_worth(found, without=name)[:FIRST]
        listed = ", ".join(f"`{text}` {gain[text]:+.2f}" for text in first)
        near = fmean(gain[text] for text in neighbors & set(gain))
        mean, best = fmean(gain[text] for text in first), max(gain, key=lambda text: gain[text])
        lines.append(f"| {name} | {listed} | {mean:+.2f} | {near:+.2f} | `{best}` {gain[best]:+.2f} |")
    everywhere = ", ".join(f"`{text}`" for text in in_order_of_worth(found)[: 2 * FIRST])
    return "\n".join([*lines, "", f"By all data sets: {everywhere}.", ""])


def main() -> None:
    flags = Flags(__doc__, "find_elsewhere", data="MNIST, Fashion-MNIST and CIFAR-10")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(workers=1)
    space, settings = load_space("convnet"), SETTINGS
    networks = pool(space, 3 if given.quick else NETWORKS)
    if given.quick:
        settings = {"digits": Setting(400, None, 2)}
    place = given.out.with_name("find_elsewhere_rows.json.gz")
    worth = {name: measured(name, how, networks, place, given) for name, how in settings.items()}
    found = {name: gains(values, space.format(space.reference)) for name, values in worth.items()}
    text = shown(found)
    print(text)
    save(given, {"worth": worth, "gains": found}, table=text)
    if not given.quick:
        PACKAGED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
