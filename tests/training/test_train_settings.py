import pytest

from nasight import spaces
from nasight.errors import RequestError
from nasight.training import settings_for


def test_the_paper_preset_of_darts_is_the_evaluation_of_darts() -> None:
    s = settings_for("darts", "paper")
    assert (s.epochs, s.batch_size, s.lr, s.lr_min, s.momentum, s.weight_decay) == (600, 96, 0.025, 0.0, 0.9, 3e-4)
    assert (s.clip, s.cutout, s.auxiliary, s.drop_path) == (5.0, 16, True, 0.3)
    assert s.size == {"channels": 36, "cells": 20}


def test_the_paper_preset_of_nasbench201_is_how_the_benchmark_trains() -> None:
    s = settings_for("nasbench201", "paper")
    assert (s.epochs, s.batch_size, s.lr, s.nesterov, s.weight_decay, s.clip) == (200, 256, 0.1, True, 5e-4, None)
    assert s.size == {"channels": 16, "cells": 5}


@pytest.mark.parametrize("space", spaces.names())
@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_every_space_has_the_presets_that_fit_a_laptop(space: str, preset: str) -> None:
    settings = settings_for(space, preset)
    assert set(settings.size) == set(spaces.load(space).sizes)


def test_a_changed_size_keeps_the_other_sizes_of_the_preset() -> None:
    assert settings_for("nasbench201", "tiny", size={"cells": 3}).size == {"channels": 8, "cells": 3}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"epoch": 3}, "no training setting 'epoch'.*did you mean 'epochs'"),
        ({"epochs": 0}, "training setting 'epochs' should be greater than or equal to 1, got 0"),
        ({"lr": float("nan")}, "'lr' should be .*, got nan"),
        ({"lr": 0.1, "lr_min": 0.2}, "lr_min is 0.2 but must not be above lr, which is 0.1"),
        ({"nesterov": True, "momentum": 0.0}, "nesterov needs a momentum above 0"),
        ({"cutout": 4, "augment": False}, "cutout 4 is augmentation"),
        ({"validation": "half"}, "'validation': it must be 'test' or a share between 0 and 1, got 'half'"),
        ({"validation": 1.0}, "between 0 and 1"),
        ({"size": {"width": 3}}, "no size 'width'"),
        ({"auxiliary": True}, "'nasbench201' has no auxiliary head"),
    ],
)
def test_a_wrong_setting_is_named_in_one_sentence(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence) as caught:
        settings_for("nasbench201", "tiny", **change)
    assert "\n" not in str(caught.value)


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(RequestError, match="no preset 'huge', only tiny, small, paper"):
        settings_for("nasbench201", "huge")
    with pytest.raises(RequestError, match="'mlp' has no preset 'paper', only tiny, small"):
        settings_for("mlp", "paper")
