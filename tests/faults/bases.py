"""Real folders, small ones, of every kind: what mutations and strangers begin with."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from faults.jobs import _landscape, _race, _variants
from nasight.features import select
from nasight.kernels import score
from nasight.searching import Progress, search
from nasight.studies import find, reproduce, trained_model, write_model
from nasight.training import train, train_seeds

SMALL: dict[str, Any] = {"preset": "tiny", "examples": 60, "epochs": 2, "batch_size": 16, "threads": 1}
TRAIN = ("--preset", "tiny", "--epochs", "1", "--examples", "60", "--seeds", "1", "--workers", "1", "--threads", "1")
Words = tuple[str, ...]


@dataclass(frozen=True)
class Base:
    """A kind of folder: the folder itself below the place where all are made, and the commands that read it.

    In the words of a command, RUN stands for the folder and OUT for an empty one.
    """

    name: str
    commands: tuple[Words, ...] = ()
    calls: tuple[Callable[[Path], Any], ...] = ()


class Stop(Progress):
    """A search that is interrupted after its first epoch."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        raise KeyboardInterrupt


def _stop(row: Any) -> None:
    raise KeyboardInterrupt


class StopLater:
    """A find that is interrupted at its so-manieth event."""

    def __init__(self, events: int) -> None:
        self.left = events

    def __call__(self, *_: Any, **__: Any) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


BASES = (
    Base(
        "search",
        (
            ("explain", "RUN", "--json", "--examples", "8"),
            ("search", "--resume", "RUN"),
            ("train", "RUN", *TRAIN),
            ("export", "RUN", "--python", "OUT/net.py"),
            ("explain", "RUN", "SECOND", "--examples", "8"),
            ("cell", "RUN", "--out", "OUT/cell.svg"),
            ("predict", "RUN", "DATA"),
        ),
    ),
    Base("half", (("search", "--resume", "RUN"), ("explain", "RUN", "--json"))),
    Base("train/tiny/seed-0", (("export", "RUN", "--genotype"), ("predict", "RUN", "DATA"))),
    Base("cut", (("train", "--resume", "RUN"), ("train", "--resume", "RUN", "--lr", "0.01"))),
    Base("model", (("predict", "RUN", "DATA", "--json"),)),
    Base("select", (("select", "--resume", "RUN"),)),
    Base("score", (("score", "--resume", "RUN", "--workers", "1"),)),
    Base("find", (("find", "--resume", "RUN"), ("predict", "RUN", "DATA"))),
    Base("half-find", (("find", "--resume", "RUN"), ("predict", "RUN", "DATA"))),
    Base("reproduce", (("reproduce", "simplex-condition", "--seeds", "2", "--workers", "1", "--out", "RUN"),)),
    Base("race", (), (_race,)),
    Base("landscape", (), (_landscape,)),
    Base("variants", (), (_variants,)),
)


def make_bases(place: Path) -> None:
    """All of them, and some data, below this folder."""
    place.mkdir(parents=True, exist_ok=True)
    for name, seed in (("search", 0), ("second", 1)):
        search("mlp", "gaea-darts", "digits", out=place / name, size={"width": 4}, seed=seed, **SMALL)
    with contextlib.suppress(KeyboardInterrupt):
        search("mlp", "darts", "digits", out=place / "half", size={"width": 4}, progress=Stop(), **SMALL)
    with contextlib.suppress(KeyboardInterrupt):
        small = {**SMALL, "size": {"width": 4}}
        train("mlp", "relu,relu,relu/0,0", "digits", out=place / "cut", progress=_stop, **small)
    net = {"epochs": 1, "examples": 60, "batch_size": 16, "size": {"width": 4}, "threads": 1, "workers": 1}
    train_seeds("mlp", "relu,relu,relu/0,0", "digits", out=place / "train", seeds=(0,), preset="tiny", **net)
    made = next((place / "train").glob("*/seed-0"))
    (place / "train" / "tiny").mkdir(exist_ok=True)
    made.rename(place / "train" / "tiny" / "seed-0")
    write_model(place / "model", trained_model(place / "train" / "tiny" / "seed-0"))
    select("fourier", "digits", configs=4, dimension=30, examples=200, out=place / "select", threads=1)
    (place / "select" / "result.json").unlink()
    score("mlp", "params,naswot", "digits", sample=6, workers=1, out=place / "score", batch=8)
    reproduce("simplex-condition", seeds=1, workers=1, out=place / "reproduce")
    small = np.load(data_file(place))
    find(str(data_file(place)), out=place / "find", trainings=26, epochs=1, workers=1)
    assert len(small["x"])
    with contextlib.suppress(KeyboardInterrupt):
        find(str(data_file(place)), out=place / "half-find", trainings=26, epochs=1, workers=1, progress=StopLater(12))
    assert not (place / "half-find" / "result.json").exists()
    for make, name in ((_race, "race"), (_landscape, "landscape"), (_variants, "variants")):
        make(place / name)


def data_file(place: Path) -> Path:
    """A file of a few vectors with labels; it has the same content each time it is made."""
    path = place / "few.npz"
    if not path.exists():
        from faults.jobs import rows

        np.savez(path, x=rows().train_x.flatten(1).float().numpy(), y=rows().train_y.numpy())
    return path


def fresh(place: Path, base: Base, target: Path) -> Path:
    """A copy of a base to do harm to."""
    shutil.copytree(place / base.name, target, symlinks=True)
    return target


def words_for(words: Words, run: Path, place: Path, out: Path) -> list[str]:
    """The words of a command with its places filled in."""
    names = {"RUN": str(run), "SECOND": str(place / "second"), "DATA": str(data_file(place))}
    return [names.get(word, word).replace("OUT", str(out)) for word in words]


def readers(base: Base, run: Path, place: Path, out: Path) -> list[Callable[[], Any]]:
    """All ways to read this folder, as calls."""
    from faults.fuzz import command

    found: list[Callable[[], Any]] = [partial(command, words_for(words, run, place, out)) for words in base.commands]
    return found + [partial(call, run) for call in base.calls]
