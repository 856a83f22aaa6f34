"""What a model folder says of its network, checked before anything is built from it."""

from __future__ import annotations

from math import prod
from typing import Annotated, Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from torch import Tensor

from nasight.data import TableLayout, Task
from nasight.errors import RequestError
from nasight.runs import first_fault

FORMAT = 1
MOST_CLASSES = 1_000
MOST_INPUTS = 2**22
"""Numbers in one example."""
MOST_COLUMNS, MOST_TEXTS = 10_000, 1_000
MOST_SIZE = 2**16
"""Of any size of a network, such as its channels."""
DEEPEST = 500
"""Of the sizes that say how often a part is repeated: each costs time before any weight is looked at."""
REPEATED = ("cells", "layers")

Size = Annotated[int, Field(ge=1, le=MOST_SIZE)]
Text = Annotated[str, Field(max_length=20_000)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Values(_Part):
    """The numbers that examples of the training are made of, before they are normalized."""

    type: Literal["uint8", "float32"]
    low: float
    high: float

    def from_bytes(self, pixels: Tensor) -> Tensor:
        """Pixels 0 to 255 as such numbers."""
        if self.type == "uint8":
            return pixels
        if self.low < 0 or self.high > 255:
            raise RequestError(
                f"the network was trained on numbers from {self.low:g} to {self.high:g}, which are no pixels; "
                "give such numbers in an .npz file"
            )
        return pixels.float() / 255 if self.high <= 1 else pixels.float()


class Images(_Part):
    """How an image file becomes an example; see `nasight.data.read_image`."""

    fit: Literal["stretch", "crop", "inner", "pad"] = "stretch"
    resampling: Literal["bilinear"] = "bilinear"
    orientation: Literal["as stored", "upright"] = "as stored"
    transparency: Literal["dropped"] = "dropped"


class ModelTask(_Part):
    """What the outputs of the network are; numbers are learned in units of their deviation from their mean."""

    kind: Literal["classes", "labels", "numbers"] = "classes"
    metric: Text = "accuracy"
    """What `accuracy` holds, 100 times."""
    center: tuple[float, ...] = ()
    scale: tuple[Annotated[float, Field(gt=0)], ...] = ()

    @property
    def task(self) -> Task:
        return Task(self.kind, self.center, self.scale)


class TableColumn(_Part):
    """A column of the table that a network was trained on; see `nasight.data.Column`."""

    name: Text
    center: float = 0.0
    scale: Annotated[float, Field(gt=0)] = 1.0
    fill: float = 0.0
    values: Annotated[tuple[Text, ...], Field(max_length=MOST_TEXTS)] = ()
    other: bool = False
    flag: bool = False


class ModelData(_Part):
    """The data that a network was trained on."""

    name: Text
    fingerprint: Text


class ModelCard(_Part):
    """All that model.json holds but the names and checksums of the files.

    `classes` are the names of the classes, or of the labels or numbers, as `task` says.
    `inputs` is the shape of one example: (channels, height, width), or (columns,). `mean` and `std` are of each
    channel or column, of bytes after division by 255. `accuracy` is in percent, on the rows that `judged_by` names.
    `parameters` counts the network without the auxiliary head of its training; `multiply_adds` are those of one
    example, where they are known.
    """

    format: Literal[1] = 1
    nasight: Text
    classes: Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST_CLASSES)]
    task: ModelTask = ModelTask()
    table: Annotated[tuple[TableColumn, ...], Field(max_length=MOST_COLUMNS)] | None = None
    """How the columns of a table become examples; None for data that is no table."""
    inputs: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=3)]
    values: Values
    images: Images = Images()
    mean: tuple[float, ...]
    std: tuple[Annotated[float, Field(gt=0)], ...]
    data: ModelData
    space: Text
    space_options: dict[Text, bool | int | float | Text] = Field(default_factory=dict)
    architecture: Text
    size: dict[Text, Size] = Field(default_factory=dict)
    parameters: int
    multiply_adds: int | None = None
    accuracy: float
    judged_by: Text
    epochs: int
    seed: int

    @field_validator("classes")
    @classmethod
    def _different(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise ValueError(f"two classes are called {twice!r}")
        return names

    @model_validator(mode="after")
    def _agree(self) -> ModelCard:
        if len(self.classes) < (2 if self.task.kind == "classes" else 1):
            raise ValueError(f"there must be at least 2 classes, got {len(self.classes)}")
        if self.task.kind == "numbers" and {len(self.task.center), len(self.task.scale)} != {len(self.classes)}:
            raise ValueError(f"each of {len(self.classes)} numbers needs a center and a scale")
        if self.layout is not None and self.inputs != (self.layout.width,):
            raise ValueError(f"a table of {self.layout.width} numbers a row does not give examples {self.inputs}")
        if prod(self.inputs) > MOST_INPUTS:
            raise ValueError(f"examples of shape {self.inputs} are larger than {MOST_INPUTS:,} numbers")
        if len(self.mean) != self.inputs[0] or len(self.std) != self.inputs[0]:
            raise ValueError(f"mean and std must have {self.inputs[0]} numbers, got {len(self.mean)}, {len(self.std)}")
        for name, value in {**self.size, **self.space_options}.items():
            most = DEEPEST if name in REPEATED else MOST_SIZE
            if not isinstance(value, str) and abs(value) > most:
                raise ValueError(f"{name} is {value}, and at most {most:,} can be loaded")
        return self

    @property
    def layout(self) -> TableLayout | None:
        """How rows of a table become examples."""
        return None if self.table is None else TableLayout.from_list([column.model_dump() for column in self.table])

    @property
    def statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and deviation, each (channels,)."""
        return torch.tensor(self.mean), torch.tensor(self.std)


class ModelFile(ModelCard):
    """model.json: the card, and the files beside it."""

    network: Literal["network.py", "network.pt2"] | None
    why: Text | None
    """Why there is no network.py."""
    tensors: tuple[Text, ...]
    """The names in weights.safetensors in the order of the network's own."""
    files: dict[Text, Digest]
    """The SHA-256 of each."""


def card_of(values: dict[str, Any], what: str) -> ModelCard:
    """The card of these values; `what` is said to be wrong where they are none."""
    try:
        return ModelCard.model_validate(values, strict=False)
    except ValidationError as error:
        raise RequestError(f"{what}: {card_fault(error)}") from None


def card_fault(error: ValidationError) -> str:
    """The first thing that is wrong with a card, as the end of a sentence."""
    first = error.errors(include_url=False)[0]
    if first["loc"] == ("format",) and first["type"] != "missing":
        return f"it is of format {str(first['input'])[:60]!r}, and this version of nasight reads format {FORMAT}"
    return first_fault(error)
