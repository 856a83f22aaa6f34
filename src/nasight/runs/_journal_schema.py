"""What the journal of a find holds: a value by its key, whose first word says of which kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from nasight.runs._schemas import BudgetPart, Count, File, Seconds, Size

Few = Annotated[int, Field(ge=0, le=10_000)]
"""Work that is done so often: a harmed file must not ask for it without end."""


class SpeedPart(File):
    train: Seconds
    search: Seconds
    score: Seconds
    controls: Seconds = 2.0
    reference: Annotated[float, Field(gt=0)] = 1.0
    slower: Annotated[float, Field(ge=1)] = 1.0
    own: Seconds = 0.0
    boosting: Seconds = 0.0


class PlanPart(File):
    examples: Size
    epochs: Size
    rungs: Annotated[list[Size], Field(min_length=1, max_length=64)]
    places: Annotated[list[Few], Field(min_length=1, max_length=64)]
    searches: Few
    search_epochs: Count
    scored: Count
    recipe_epochs: Count
    seconds: dict[str, float] = Field(default_factory=dict)
    rung_rows: Annotated[list[Size], Field(max_length=64)] = Field(default_factory=list)
    size: dict[str, Size] = Field(default_factory=dict)
    search_rows: Size | None = None
    recipe_at: Count | None = None
    recipe_rows: Size | None = None
    recipe_whole: bool = False
    control_seeds: Few | None = None
    whole: bool = False
    judge_share: Annotated[float, Field(gt=0, lt=1)] = 0.25


class SizePart(File):
    size: dict[str, Size]
    epochs: Size | None


class RowsPart(File):
    """Which rows a training got right, a bit each, or scores of four bytes."""

    count: Count
    bits: str | None = None
    floats: str | None = None


class OutcomePart(File):
    accuracy: float
    seconds: Seconds
    right: RowsPart | None


Pace = Annotated[float, Field(ge=0.01, le=100_000)]
"""How many times as long as one of the reference an epoch of a network takes."""

KINDS: Mapping[str, TypeAdapter[Any]] = {
    "budget": TypeAdapter(BudgetPart),
    "speed": TypeAdapter(SpeedPart),
    "plan": TypeAdapter(PlanPart),
    "training": TypeAdapter(OutcomePart | None),
    "scores": TypeAdapter(dict[str, float]),
    "proposals": TypeAdapter(list[Annotated[list[str], Field(min_length=2)]]),
    "search": TypeAdapter(Count | Annotated[list[Size], Field(min_length=2, max_length=2)]),
    "size": TypeAdapter(SizePart),
    "epochs": TypeAdapter(Count),
    "seeds": TypeAdapter(Annotated[int, Field(ge=2, le=100)]),
    "failed": TypeAdapter(str),
    "forgotten": TypeAdapter(str),
    "places": TypeAdapter(Count),
    "mutated": TypeAdapter(Count),
    "spare": TypeAdapter(Count),
    "began": TypeAdapter(Seconds),
    "clock": TypeAdapter(Seconds),
    "planned": TypeAdapter(float),
    "latency": TypeAdapter(Seconds),
    "pace": TypeAdapter(Pace),
    "answer": TypeAdapter(Pace),
    "length": TypeAdapter(Annotated[float, Field(gt=0, le=1_000_000)]),
    "timing": TypeAdapter(Seconds),
}


class JournalLine(File):
    """A line of the journal of a find."""

    key: str
    value: Any

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        kind = KINDS.get(self.key.partition(" ")[0])
        try:
            if kind is not None:
                kind.validate_python(self.value, strict=True)
        except ValidationError:
            raise ValueError(f"it has a value of {self.key!r:.40} that cannot be one: {self.value!r:.60}") from None
        return self
