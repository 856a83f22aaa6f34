"""CIFAR-100 in its owner's binary version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

CIFAR_100_FILES = ("train.bin", "test.bin")
RECORD = 2 + 3 * 32 * 32
ROWS = {"train.bin": 50_000, "test.bin": 10_000}
_NAMES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CLASSES = tuple(_NAMES.split())
"""The hundred fine classes, in the order of their labels."""


def read_cifar_100(paths: list[Path]) -> tuple[NDArray[np.uint8], ...]:
    """Images, fine labels, test images and test labels: a record is a coarse label, a fine one and three planes."""
    arrays: list[NDArray[np.uint8]] = []
    for path in paths:
        rows, size = ROWS[path.name], path.stat().st_size
        if size != rows * RECORD:
            raise RequestError(f"{path} holds {size} bytes, not the {rows * RECORD} of {rows} CIFAR-100 images")
        records = np.fromfile(path, np.uint8).reshape(rows, RECORD)
        if records[:, 0].max() > 19 or records[:, 1].max() > 99:
            raise RequestError(f"{path} is damaged: coarse labels are 0 to 19 and fine ones 0 to 99")
        arrays += [records[:, 2:].reshape(-1, 3, 32, 32), records[:, 1]]
    return tuple(arrays)
