"""Settings that a function takes by name: described once, shown by editors, by `inspect.signature` and by --help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Setting:
    """What a setting means, and the group of settings it belongs to; it annotates an entry of a `TypedDict`."""

    help: str
    group: str
    metavar: str | None = None


@cache
def settings_of(options: type) -> dict[str, tuple[Any, Setting]]:
    """Name -> (type, what it means) of every setting of a `TypedDict` whose entries are `Annotated` by a `Setting`.

    They come group by group.
    """
    found: dict[str, tuple[Any, Setting]] = {}
    for name, hint in get_type_hints(options, include_extras=True).items():
        kind, *notes = get_args(hint)
        found[name] = (kind, next(note for note in notes if isinstance(note, Setting)))
    return dict(sorted(found.items(), key=lambda entry: GROUPS.index(entry[1][1].group)))


def takes(options: type) -> Callable[[Function], Function]:
    """Let the signature of a function list every setting of `options` in place of its `**settings`."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        listed = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=f"{_text(kind)} | None")
            for name, (kind, _) in settings_of(options).items()
        ]
        function.__signature__ = signature.replace(parameters=[*named, *listed])  # type: ignore[attr-defined]
        return function

    return decorate


def _text(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")


WHAT, LENGTH, SIZE, LEARNING = "What", "How long", "How large", "How it learns"
LIMITS, MACHINE, OUTPUT = "Limits", "Machine", "Output"
GROUPS = (WHAT, LENGTH, SIZE, LEARNING, LIMITS, MACHINE, OUTPUT)
"""Groups of settings, in the order in which a help text shows them."""
AUGMENT = "Random changes of images: none, or some of shift,flip,cutout,crop,jitter"
DEVICE = "auto, cpu, cuda, cuda:N or mps (default: auto, the best there is)."
SEED = "Everything random follows from it."


class CommonOptions(TypedDict, total=False):
    """Settings that a search and a training take alike."""

    label: Annotated[str, Setting("The column of a table to predict (default: label, else the last column).", WHAT)]
    task: Annotated[str, Setting("classes, labels or numbers (default: what the labels look like).", WHAT)]
    examples: Annotated[int | str, Setting("At most this many training examples; all: all there are.", LENGTH, "N|all")]
    share: Annotated[float, Setting("A share of the training examples instead.", LENGTH, "0..1")]
    batch_size: Annotated[int, Setting("Examples per step.", LEARNING, "N")]
    lr_min: Annotated[float, Setting("Learning rate where the cosine ends.", LEARNING)]
    lr_warmup: Annotated[int, Setting("Epochs in which the learning rate rises first.", LEARNING, "N")]
    nesterov: Annotated[bool, Setting("Nesterov's form of the momentum.", LEARNING)]
    augment: Annotated[
        bool | str | Callable[[Any], Any],
        Setting(f"{AUGMENT} (default: what a named data set declares, for others none).", LEARNING, "WORDS"),
    ]
    class_weights: Annotated[
        str, Setting("balanced: every class counts alike in the loss, however many rows it has.", LEARNING, "balanced")
    ]
    metric: Annotated[
        str | Callable[[Any, Any], Any],
        Setting(
            "The score that decides: accuracy, balanced-accuracy, F1, exact-match, R2; in Python also "
            "(predictions, y) -> score.",
            LEARNING,
        ),
    ]
    loss: Annotated[Callable[[Any, Any], Any], Setting("Python only: (outputs, y) -> the mean loss.", LEARNING)]
    optimizer: Annotated[Callable[[Any], Any], Setting("Python only: parameters -> a torch optimizer.", LEARNING)]
    precision: Annotated[
        str,
        Setting(
            "32, bf16 or 16: the number format of matrix products. Architecture weights and batch statistics stay in "
            "32 bits.",
            MACHINE,
            "BITS",
        ),
    ]


class SearchOptions(CommonOptions, total=False):
    """Every setting that `nasight.search` takes by name; one that is not given, or None, follows from the preset."""

    none: Annotated[
        bool,
        Setting("Whether `none` is an operation (nasbench201: not by default, but under paper as published).", WHAT),
    ]
    space_options: Annotated[dict[str, Any], Setting("Options of the space, such as layers=3 for mlp.", WHAT)]
    validation: Annotated[float, Setting("The share of them held out to measure with; 0: none.", LENGTH, "0..1")]
    arch_share: Annotated[
        float, Setting("The share of the others that the architecture learns from, if bilevel.", LENGTH, "0..1")
    ]
    epochs: Annotated[int, Setting("Epochs of the search.", LENGTH, "N")]
    schedule_epochs: Annotated[int, Setting("Epochs over which the cosine of the learning rate is laid.", LENGTH, "N")]
    warmup: Annotated[
        int,
        Setting(
            "Epochs before the first architecture step (default: as published, where a preset follows a publication; "
            "else the method's own share, for other GAEA rows half, for all others 0).",
            LENGTH,
            "N",
        ),
    ]
    size: Annotated[dict[str, int], Setting("Sizes of the supernet, such as channels=8.", SIZE)]
    partial: Annotated[
        int, Setting("One part in K of the channels goes through the operations (pc-darts: 4; imagenet: 2).", SIZE, "K")
    ]
    resolution: Annotated[
        int, Setting("Shrink images to this many pixels per side (photos, preset imagenet: 224).", SIZE, "N")
    ]
    lr: Annotated[float, Setting("Learning rate of the shared weights at the start.", LEARNING)]
    momentum: Annotated[float, Setting("Momentum of the shared weights.", LEARNING, "0..1")]
    weight_decay: Annotated[float, Setting("Weight decay of the shared weights.", LEARNING)]
    clip: Annotated[float, Setting("Largest gradient norm of the shared weights.", LEARNING)]
    arch_lr: Annotated[
        float,
        Setting(
            "Learning rate of the architecture (default: as published, where a preset follows a publication; else "
            "scaled by 1/sqrt(steps), and for GAEA rows by the size of the gradient too).",
            LEARNING,
        ),
    ]
    arch_clip: Annotated[
        float,
        Setting(
            "Largest gradient norm of the architecture (default: paper and imagenet as published, else any).", LEARNING
        ),
    ]
    weights_first: Annotated[
        bool,
        Setting(
            "Whether a step moves the shared weights before the architecture (default: paper and imagenet as "
            "published, else the architecture first, but for asng).",
            LEARNING,
        ),
    ]
    candidates: Annotated[
        int,
        Setting("Architectures that compete at the end (rs-ws, ...), or are scored (eigen, knas, ...).", LEARNING, "N"),
    ]
    candidate_rows: Annotated[
        int,
        Setting(
            "Each of these (rs-ws, ...) is judged on N rows of its own (default: paper as published, else all on the "
            "same).",
            LEARNING,
            "N",
        ),
    ]
    top: Annotated[int, Setting("The best K of these are trained and compared (eigen, ...).", LEARNING, "K")]
    max_params: Annotated[int | str, Setting("At most this many parameters in the final network.", LIMITS, "300k")]
    max_latency: Annotated[
        float | str, Setting("At most MS milliseconds per example, on one thread of this machine.", LIMITS, "MS")
    ]
    params_size: Annotated[dict[str, int], Setting("The sizes at which limits are measured.", LIMITS)]
    seed: Annotated[int, Setting(SEED, MACHINE, "N")]
    slices: Annotated[
        int,
        Setting(
            "Split every batch into N parts; batch norm sees one part at a time (default: one per rank).", MACHINE, "N"
        ),
    ]
    path: Annotated[
        str, Setting("fast, plain or compiled: ways to the same supernet; compiling takes minutes at first.", MACHINE)
    ]
    threads: Annotated[
        int,
        Setting(
            "Threads of this process; 1 is often faster for small networks, or beside other programs.", MACHINE, "N"
        ),
    ]
    device: Annotated[str, Setting(DEVICE, MACHINE, "NAME")]
    checkpoint_seconds: Annotated[float, Setting("A checkpoint inside long epochs, this often.", MACHINE, "S")]


class TrainOptions(CommonOptions, total=False):
    """Every setting that `nasight.train` takes by name; one that is not given follows from the preset."""

    epochs: Annotated[int, Setting("Epochs of each training.", LENGTH, "N")]
    validation: Annotated[
        float | str, Setting("What judges: test, or a share of the training examples.", LENGTH, "test|0..1")
    ]
    size: Annotated[dict[str, int], Setting("Sizes of the network, such as channels=8.", SIZE)]
    lr: Annotated[float, Setting("Learning rate at the start; it falls epoch by epoch (see --schedule).", LEARNING)]
    schedule: Annotated[str, Setting("How the learning rate falls: cosine, linear or exponential.", LEARNING)]
    label_smoothing: Annotated[float, Setting("The part of a target that all classes share.", LEARNING, "0..1")]
    momentum: Annotated[float, Setting("Momentum.", LEARNING, "0..1")]
    weight_decay: Annotated[float, Setting("Weight decay.", LEARNING)]
    clip: Annotated[float | None, Setting("Largest gradient norm.", LEARNING)]
    cutout: Annotated[int, Setting("Side of the hole cut out of images.", LEARNING, "PIXELS")]
    auxiliary: Annotated[bool, Setting("A second head that helps training (darts).", LEARNING)]
    drop_path: Annotated[float, Setting("Probability of dropping a path at the end (darts).", LEARNING)]
