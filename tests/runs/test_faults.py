"""What pydantic finds wrong with a value is one sentence that names the place and the value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nasight.runs import first_fault


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    epochs: int = Field(ge=1)
    sizes: dict[str, list[int]] = {}

    @model_validator(mode="after")
    def _few(self) -> Asked:
        if self.epochs > 9:
            raise ValueError(f"{self.epochs} epochs are too many")
        return self


def fault(value: Any, *how: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Asked.model_validate(value)
    return first_fault(caught.value, *how)


@pytest.mark.parametrize(
    ("value", "plain", "as_setting"),
    [
        ({}, "it lacks 'epochs'", "it lacks setting 'epochs'"),
        ({"epochs": 0}, "'epochs' should be greater than or equal to 1, got 0", "setting 'epochs' should be"),
        ({"epochs": 10}, "10 epochs are too many", "10 epochs are too many"),
        ({"epochs": 1, "sizes": {"a": [1, "x" * 99]}}, "'sizes.a.1' should be a valid integer", "setting 'sizes.a.1'"),
        ({"epochs": 1, "epoch": 2}, "it has 'epoch', which is unknown here", "there is no setting 'epoch', only"),
        ([], "it should be a valid dictionary or instance of Asked, got []", "it should be a valid dictionary"),
    ],
)
def test_the_first_fault_is_one_short_sentence(value: Any, plain: str, as_setting: str) -> None:
    assert fault(value).startswith(plain)
    assert fault(value, "setting", Asked.model_fields).startswith(as_setting)
    assert len(fault(value)) < 200


def test_an_unknown_name_is_answered_with_the_near_one() -> None:
    assert fault({"epochs": 1, "epoch": 2}, "setting", Asked.model_fields).endswith("; did you mean 'epochs'?")
