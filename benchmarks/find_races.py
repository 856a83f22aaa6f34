"""Short trainings at equal time: what they say about networks and about random changes of images.

    python benchmarks/find_races.py --data-folder DATA

With a budget of time a find trains all networks for the same time, so a slow network has few epochs, and in a short
training very few. Pools of plain networks (the reference, its neighbors, and networks drawn at random among those that
there is time for) are trained for a ninth, a third and all of the time that the answer of a find has, the last with two
seeds. A quarter of the training rows judges; 5,000 further rows of the training part, which no find would have, say
what a network is worth after the whole training with the second seed. No test part is read. Races are then drawn again
and again from a pool and run on paper, all at the cost of about seven whole trainings. Intervals are over pools drawn
from the pool.

The reference alone is trained with each kind of random changes too, for as many epochs.

What was trained is kept in find_races_rows.json.gz beside the result, so an interrupted benchmark resumes. Paces are
measured: nothing else may run on the machine until the first training ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from _shared import Flags, KeptRows, kept, save
from find_judge import accuracies, with_further_rows
from nasight.data import Dataset
from nasight.reproducible import generator_for
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies.finding import PaceProbe, Recipe, Request, Trainings, paced_epochs, shared

JUDGED = 0.25
PARTS = (1 / 9, 1 / 3, 1.0)
"""Of the time of the answer that the trainings have."""
LEAST = 8
"""Epochs of the answer for which a network of a pool must have time, as in finds when it was drawn."""
CHANGES = ("none", "shift", "shift and flip")
RACES: dict[str, tuple[tuple[int, int], ...]] = {
    "17 for a ninth of the time, 7 for a third, 3 whole": ((0, 17), (1, 7), (2, 3)),
    "9 for a third, 4 whole": ((1, 9), (2, 4)),
    "7 whole": ((2, 7),),
}
"""The lengths of a race with the places of each."""
DRAWN, REDRAWN, POOLS = 2_000, 200, 300
Item = tuple[str, str, int, int, str]
"""Data, network, epochs, seed, random changes of images."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Setting:
    """A pool: its data, the epochs of the reference in the time of the answer, the random changes, the networks."""

    data: str
    epochs: int
    changes: str
    networks: int
    meant: str


SETTINGS = (
    Setting("cifar-10", 20, "none", 48, "finds of three minutes"),
    Setting("cifar-10", 60, "shift and flip", 32, "finds of about ten minutes"),
)
LONGEST = 63
"""Epochs of the longest training of the reference with each kind of random changes."""


def pool(space: Space, data: Dataset, number: int, epochs: int) -> list[str]:
    """In turns, the reference and its neighbors, and others drawn at random within the limit of cost."""
    products = space.multiply_adds(data.inputs, data.n_classes)
    most = max(3.0, epochs / LEAST) * (products(space.reference) or 0)
    generator = generator_for(0, "pool of plain networks")
    drawn = (space.sample(generator) for _ in range(100 * number))
    near = [arch for arch in [space.reference, *space.neighbors(space.reference)] if (products(arch) or 0) <= most]
    far = (arch for arch in drawn if (products(arch) or 0) <= most and arch not in near)
    found = dict.fromkeys(arch for pair in zip_longest(near, far) for arch in pair if arch is not None)
    return [space.format(arch) for arch in islice(found, number)]


def request_of(item: Item) -> Request:
    """The training that an item means."""
    _, text, epochs, seed, changes = item
    return Request(
        text, "space", epochs, seed, Recipe(augmentation=changes), validation=JUDGED,
        size=(("channels", 32),), batch_size=64,
    )  # fmt: skip


def trained(item: Item, folders: dict[str, str]) -> dict[str, float]:
    """What a network has after a schedule, by the rows that judge and by further ones."""
    return accuracies(Trainings({"space": load_space("convnet")}, folders[item[0]]).job(request_of(item)))


@dataclass(frozen=True)
class Pool:
    """Accuracies (networks, lengths) on the rows that judge, and what each network is worth."""

    accuracies: Array
    worth: Array
    near: Array
    """Whether a network is a neighbor of the reference."""

    def winner(self, raced: Array, rungs: Sequence[tuple[int, int]]) -> int:
        left = raced
        for length, places in rungs:
            left = left[:places]
            left = left[np.argsort(-self.accuracies[left, length], kind="stable")]
        return int(left[0])

    def race(self, among: Array, rungs: Sequence[tuple[int, int]], races: int, seed: int, *, near_first: bool) -> float:
        """The mean worth of those who win races of networks drawn from these, those near the reference first or not."""
        rng = np.random.default_rng(seed)
        ends = []
        for _ in range(races):
            drawn = rng.permutation(among)
            if near_first:
                drawn = drawn[np.argsort(~self.near[drawn], kind="stable")]
            ends.append(self.worth[self.winner(drawn, rungs)])
        return float(np.mean(ends))


def raced(known: Pool, reference: int) -> list[str]:
    """A line for each race: what it ends with, and how that differs from the first."""
    others = np.delete(np.arange(len(known.worth)), reference)
    rng = np.random.default_rng(0)
    pools = [np.unique(rng.choice(others, len(others))) for _ in range(POOLS)]
    cells: dict[str, list[str]] = {name: [] for name in RACES}
    for near_first in (True, False):
        means, drawn = dict[str, float](), dict[str, Array]()
        for name, rungs in RACES.items():
            means[name] = known.race(others, rungs, DRAWN, 0, near_first=near_first)
            drawn[name] = np.array(
                [known.race(some, rungs, REDRAWN, seed, near_first=near_first) for seed, some in enumerate(pools, 1)]
            )
            first = next(iter(RACES))
            low, high = np.quantile(drawn[name] - drawn[first], [0.025, 0.975])
            apart = "" if name == first else f"{means[name] - means[first]:+.2f} ({low:+.2f} to {high:+.2f})"
            cells[name] += [f"{means[name]:.2f}", apart]
    worth = known.worth
    return [
        "| race | neighbors of the reference first: winners are worth, % | less the first (95 %) |"
        " drawn at random: winners are worth, % | less the first (95 %) |",
        "|---|---|---|---|---|",
        *(f"| {name} | {' | '.join(values)} |" for name, values in cells.items()),
        f"| no race: the reference | {worth[reference]:.2f} | | {worth[reference]:.2f} | |",
        f"| no race: one at random | {worth[others].mean():.2f} | | {worth[others].mean():.2f} | |",
        f"| the best | {worth.max():.2f} | | {worth.max():.2f} | |",
    ]


def measured(setting: Setting, place: Any, given: Any) -> tuple[list[str], dict[str, Any]]:
    """The trainings of a pool, and what they say."""
    space, data = load_space("convnet"), with_further_rows(setting.data, given.data_folder)
    name, networks = setting.data, pool(space, data, setting.networks, setting.epochs)
    rows = KeptRows(place)
    with shared(data) as folder:
        probe = PaceProbe(Trainings({"space": space}, folder), request_of((name, networks[0], 6, 0, "none")), 0.4)
        for text in networks:
            if (key := f"pace {name} {text}") not in rows.rows:
                rows.put(key, probe(request_of((name, text, 6, 0, "none"))))
        paces = [float(rows.rows[f"pace {name} {text}"]) for text in networks]
        schedules = [*((part, 0) for part in PARTS), (1.0, 1)]
        items: list[Item] = [
            (name, text, paced_epochs(part * setting.epochs, pace), seed, setting.changes)
            for part, seed in schedules
            for text, pace in zip(networks, paces, strict=True)
        ]
        work = partial(trained, folders={name: folder})
        # Very slow networks have as many epochs in a ninth of the time as in a third.
        kept(place, list(dict.fromkeys(items)), work, workers=given.workers)
        found = kept(place, items, work, workers=given.workers)
    table = np.array([[one["judged"], one["others"]] for one in found]).reshape(len(schedules), len(networks), 2)
    near = np.array([space.parse(text) in set(space.neighbors(space.reference)) for text in networks])
    known = Pool(table[:3, :, 0].T, table[3, :, 1], near)
    taus = [kendalltau(known.accuracies[:, k], known.worth).statistic for k in range(3)]
    lines = [
        f"### {name}, {setting.epochs} epochs of the reference, random changes: {setting.changes}; {setting.meant}",
        "",
        f"{len(networks)} networks, {min(paces):.2f} to {max(paces):.2f} times as slow as the reference.",
        "",
        "| trained for | a ninth of the time | a third | all of it |",
        "|---|---|---|---|",
        "| Kendall's tau with what they are worth | " + " | ".join(f"{tau:+.2f}" for tau in taus) + " |",
        "",
        *raced(known, networks.index(space.format(space.reference))),
        "",
    ]
    return lines, {
        "networks": networks,
        "paces": paces,
        "judged": table[..., 0].tolist(),
        "others": table[..., 1].tolist(),
    }


def changes(place: Any, given: Any, longest: int) -> tuple[list[str], dict[str, Any]]:
    """The reference with each kind of random changes, after several numbers of epochs."""
    space, data = load_space("convnet"), with_further_rows("cifar-10", given.data_folder)
    lengths = [max(1, round(part * longest)) for part in PARTS]
    text = space.format(space.reference)
    items: list[Item] = [("cifar-10", text, length, 0, name) for name in CHANGES for length in lengths]
    items += [("cifar-10", text, longest, 1, name) for name in CHANGES]
    with shared(data) as folder:
        found = kept(place, items, partial(trained, folders={"cifar-10": folder}), workers=given.workers)
    by = {item: one["judged"] for item, one in zip(items, found, strict=True)}
    lines = [
        "### The reference on cifar-10 with random changes of images: accuracy on the rows that judge, %",
        "",
        "| random changes | " + " | ".join(f"{length} epochs" for length in lengths) + f" | {longest}, another seed |",
        "|---|---|---|---|---|",
    ]
    for name in CHANGES:
        values = [by["cifar-10", text, length, 0, name] for length in lengths]
        values.append(by["cifar-10", text, longest, 1, name])
        lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    return [*lines, ""], {"items": [[*item, value] for item, value in by.items()]}


def main() -> None:
    flags = Flags(__doc__, "find_races", data="CIFAR-10")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(workers=1)
    settings = (Setting("cifar-10", 2, "none", 4, "nobody"),) if given.quick else SETTINGS
    place, lines, results = given.out.with_name("find_races_rows.json.gz"), list[str](), dict[str, Any]()
    for setting in settings:
        told, results[f"{setting.data} {setting.epochs}"] = measured(setting, place, given)
        lines += told
    told, results["changes"] = changes(place, given, 3 if given.quick else LONGEST)
    text = "\n".join([*lines, *told])
    print(text)
    save(given, results, table=text)


if __name__ == "__main__":
    main()
