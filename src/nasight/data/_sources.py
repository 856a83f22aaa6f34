"""The data sets we know by name: one row each, with the files as their owners publish them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from nasight.data._augment import Augment
from nasight.data._cifar100 import CIFAR_100_FILES
from nasight.data._cifar100 import CLASSES as CIFAR_100_CLASSES
from nasight.data._imagenet16 import CLASSES as IMAGENET16_CLASSES
from nasight.data._imagenet16 import IMAGENET16_FILES
from nasight.errors import RequestError

DIGITS = tuple("0123456789")
IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR_FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")


@dataclass(frozen=True, slots=True)
class DataSource:
    """A data set by name: its files (`folder`/`files`), and where to get them.

    `downloads` maps the names under `address` to the MD5 sums published for them, `size` bytes in all. Without
    downloads the owner asks for an account at `address`.
    """

    name: str
    classes: tuple[str, ...]
    augmentation: Augment
    folder: str = ""
    files: tuple[str, ...] = ()
    address: str = ""
    downloads: Mapping[str, str] | None = None
    size: int = 0
    elsewhere: tuple[Path, ...] = ()

    def places(self, root: Path) -> tuple[Path, ...]:
        """Where the files can be, the data folder first."""
        return (root / self.folder, *self.elsewhere)

    def paths(self, place: Path) -> dict[str, Path | None]:
        """For each file the path it has in this place, compressed or not, or None."""
        found: dict[str, Path | None] = {}
        for file in self.files:
            candidates = (place / f"{file}.gz", place / file)
            found[file] = next((path for path in candidates if path.is_file()), None)
        return found


SOURCES = {
    source.name: source
    for source in (
        DataSource("digits", DIGITS, Augment(crop=1, flip=False)),
        DataSource(
            "fashion-mnist",
            ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
            Augment(crop=3, flip=True),
            folder="fashion-mnist",
            files=IDX_FILES,
            address="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            downloads={
                "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
                "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
                "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
            },
            size=30_878_645,
            elsewhere=(Path("/usr/share/datasets/fashion-mnist"),),  # Debian's dataset-fashion-mnist
        ),
        DataSource(
            "mnist",
            DIGITS,
            Augment(crop=3, flip=False),
            folder="mnist",
            files=IDX_FILES,
            address="https://ossci-datasets.s3.amazonaws.com/mnist/",
            downloads={
                "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
                "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
                "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
            },
            size=11_594_722,
        ),
        DataSource(
            "cifar-10",
            ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
            Augment(crop=4, flip=True),
            folder="cifar-10-batches-bin",
            files=CIFAR_FILES,
            address="https://www.cs.toronto.edu/~kriz/",
            downloads={"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"},
            size=170_052_171,
        ),
        DataSource(
            "cifar-100",
            CIFAR_100_CLASSES,
            Augment(crop=4, flip=True),
            folder="cifar-100-binary",
            files=CIFAR_100_FILES,
            address="https://www.cs.toronto.edu/~kriz/",
            downloads={"cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8"},
            size=168_513_733,
        ),
        DataSource(
            "imagenet16-120",
            tuple(str(number) for number in range(1, IMAGENET16_CLASSES + 1)),
            Augment(crop=2, flip=True),
            folder="ImageNet16",
            files=IMAGENET16_FILES,
            address="https://image-net.org/download-images",
        ),
    )
}


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder of the data sets: the one given, else $NASIGHT_DATA, else this user's cache.

    >>> data_folder("my/data").name
    'data'
    """
    if folder is not None:
        return Path(folder).expanduser()
    if os.environ.get("NASIGHT_DATA"):
        return Path(os.environ["NASIGHT_DATA"]).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("nasight")) / "data"


def unknown_name(name: str, registered: tuple[str, ...] = ()) -> RequestError:
    """The error that says which names are known, and which was likely meant."""
    known = [*SOURCES, *registered]
    close = get_close_matches(name.lower().replace("_", "-"), known, n=1)
    meant = f"did you mean {close[0]!r}? Known" if close else "known"
    return RequestError(f"there is no data set {name!r}; {meant} names are {', '.join(known)}")
