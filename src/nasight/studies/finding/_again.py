"""How a find is made again, as its page says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasight.data import Units
from nasight.report.sections import ReproduceValues
from nasight.spaces import names as space_names
from nasight.spaces import search_options
from nasight.studies.finding._read import FinishedFind

ASKED = (
    "space", "method", "baseline", "target", "shares", "max_params", "max_latency", "epochs", "seed", "level",
    "workers", "device", "precision", "class_weights", "augment",
)  # fmt: skip
"""Settings that `find` takes by their names, besides the budget."""


def reproduce_values(find: FinishedFind) -> ReproduceValues:
    """How a find is made again: the call, the seed, the versions, the data."""
    about = find.answer.folder.about
    return ReproduceValues(
        command=_call(find),
        seed=find.settings["seed"],
        versions={**about["versions"], "created": about["created"]},
        data=about["data"]["name"],
        inputs=about["data"]["inputs"],
        classes=about["data"]["classes"],
        noun=Units.of(find.result).noun,
        fingerprint=about["data"]["fingerprint"],
        settings=find.settings,
    )


def _call(find: FinishedFind) -> str:
    """The Python that makes a find again; what only the user has is YOURS."""
    first = find.budgets[0] if find.budgets else {}
    given = {"budget": first.get("seconds"), "trainings": first.get("trainings")}
    given |= {key: find.settings.get(key) for key in ASKED} | {"out": str(find.path)}
    words = {key: repr(value) for key, value in given.items() if value is not None and value != {}}
    words |= {name: _own_part(value) for name, value in (find.answer.folder.about.get("own") or {}).items()}
    if find.settings["baseline"] == "given":
        words["baseline"] = "YOURS"
    words["space"] = _space_text(find.settings)
    lines = [f"nasight.find({find.settings['data']!r}, {', '.join(f'{k}={text}' for k, text in words.items())})"]
    lines += [f"nasight.resume_find({str(find.path)!r}, {_more(budget)})" for budget in find.budgets[1:]]
    return "\n".join(["import nasight", *lines])


def _own_part(name: str) -> str:
    """A loss, metric, optimizer or augmentation: a name such as "balanced accuracy", or a function of the user's."""
    return "YOURS" if "." in name else repr(name)


def _space_text(settings: Mapping[str, Any]) -> str:
    name, options = settings["space"], settings["space_options"]
    if name == "module":
        return "YOURS"
    if name not in space_names() or options == search_options(name):
        return repr(name)
    words = [repr(name), *(f"{key}={value!r}" for key, value in options.items())]
    return f"nasight.spaces.load({', '.join(words)})"


def _more(budget: Mapping[str, Any]) -> str:
    seconds, trainings = budget["seconds"], budget["trainings"]
    return f"trainings={trainings}" if seconds is None else f"budget='+{seconds:g}s'"
