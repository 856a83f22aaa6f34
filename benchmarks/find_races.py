"""Which race finds the network that is best after the time of the answer? Races on paper, on a pool of known worth.

    python benchmarks/find_races.py --data-folder DATA

At equal time a slow network has few epochs, on a short rung very few. A pool of plain networks (the reference, its
neighbors, and networks drawn at random among those that there is time for) is trained for a ninth, a third and all of
the time that the answer of a find has, the last with two seeds. Each training is judged by a quarter of the training
rows; 5,000 further rows of the training part, which no find would have, say what a network is worth after the long
training with the second seed. No test part is read. Races are then drawn again and again from the pool and run on
paper, all at the same cost. What was trained is kept in find_races_rows.json.gz beside the result, so an interrupted
benchmark resumes.
"""

from __future__ import annotations

from functools import partial
from itertools import islice, zip_longest

import torch

from _shared import Flags, KeptRows, kept
from find_judge import with_further_rows
from nasight.data import Dataset
from nasight.reproducible import generator_for
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies.finding import PaceProbe, Recipe, Request, Trainings, paced_epochs, shared
from nasight.training import Trainer, parts

JUDGED = 0.25
PARTS = (1 / 9, 1 / 3, 1.0)
"""Of the time of the answer that each rung has."""
LEAST = 8
"""Epochs of the answer for which a network of the pool must have time, as in a find."""
Item = tuple[str, str, int, int, str]
"""Data, network, epochs, seed, random changes of images."""


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
    torch.set_num_threads(1)
    job = Trainings({"space": load_space("convnet")}, folders[item[0]]).job(request_of(item))
    trainer = Trainer(job)
    while not trainer.done:
        trainer.set_rates()
        while trainer.step < trainer.loader.steps:
            trainer.take_step()
        trainer.next_epoch()
    _, held_out, _ = parts(job.data, job.settings)
    found = {}
    for by, judging in (("judged", held_out), ("others", None)):
        trainer.held_out = judging
        found[by] = 100.0 * float(trainer.right().float().mean())
    return found


def main() -> None:
    flags = Flags(__doc__, "find_races", data="CIFAR-10 and Fashion-MNIST")
    flags.add_argument("--data", default="cifar-10:20,fashion-mnist:36", help="names with the epochs of the reference")
    flags.add_argument("--changes", default="none")
    flags.add_argument("--networks", type=int, default=48, help="of the pool (default 48)")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(data="fashion-mnist:6", networks=4, workers=1)
    space = load_space("convnet")
    for name, longest in (each.split(":") for each in given.data.split(",")):
        data = with_further_rows(name, given.data_folder)
        networks = pool(space, data, given.networks, int(longest))
        place = given.out.with_name("find_races_rows.json.gz")
        with shared(data) as folder:
            rows = KeptRows(place)
            work = Trainings({"space": space}, folder)
            probe = PaceProbe(work, request_of((name, networks[0], 6, 0, "none")), 0.4)
            for text in networks:
                if (key := f"pace {name} {text}") not in rows.rows:
                    rows.put(key, probe(request_of((name, text, 6, 0, "none"))))
            paces = {text: rows.rows[f"pace {name} {text}"] for text in networks}
            items: list[Item] = [
                (name, text, paced_epochs(part * int(longest), paces[text]), seed, given.changes)
                for part, seed in [*((part, 0) for part in PARTS), (1.0, 1)]
                for text in networks
            ]
            kept(place, list(dict.fromkeys(items)), partial(trained, folders={name: folder}), workers=given.workers)


if __name__ == "__main__":
    main()
