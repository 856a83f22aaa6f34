"""`nasight search --list`: the method table, and the protocols under which methods were published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from nasight.cli._shared import table

if TYPE_CHECKING:
    from nasight.searching import Method


def print_methods(preset: str, *, as_json: bool) -> None:
    """The parts of every method; with a preset that follows publications, what these publish of each."""
    from dataclasses import asdict

    from nasight.searching import FAMILIES, METHODS, PROTOCOLS, published_objective

    if preset in PROTOCOLS:
        _print_published(preset, as_json=as_json)
        return
    rows = [
        {
            "method": m.name,
            "relaxation": type(m.relaxation).__name__,
            "geometry": _geometry(m.geometry),
            "objectives": [o.name for o in m.objectives],
            "default": {family: m.objective(published_objective(m.name, family, "small")).name for family in FAMILIES},
            "schedule": asdict(m.schedule),
            "paper": m.paper,
        }
        for m in METHODS.values()
    ]
    if as_json:
        typer.echo(json.dumps({"methods": rows}))
        return
    cells = [
        (str(r["method"]), str(r["relaxation"]), str(r["geometry"]), ", ".join(r["objectives"]), str(r["paper"]))
        for r in rows
    ]
    typer.echo("\n".join(table([("method", "relaxation", "geometry", "objectives", "paper"), *cells])))
    typer.echo("\nThe first objective is the default, except on these spaces, where publications have another one:")
    typer.echo("\n".join(_other_defaults(rows)))


def _other_defaults(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the default objective is not the first: a line for each such objective and space."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for family, name in row["default"].items():
            if name != row["objectives"][0]:
                found.setdefault((name, family), []).append(row["method"])
    return [f"  {name} on {family}: {', '.join(methods)}" for (name, family), methods in sorted(found.items())]


def _print_published(preset: str, *, as_json: bool) -> None:
    """The protocol under which each method was published, with its source; why others have none."""
    from nasight.searching import FAMILIES, METHODS, PROTOCOLS, UNPUBLISHED, SearchSettings

    rows = [
        {
            "method": method,
            "space": family,
            **dict(p.settings),
            "source": p.source,
            "notes": list(p.notes),
            "row": _row(METHODS[method], p.settings["size"]["cells"]),
        }
        for (method, family), p in PROTOCOLS[preset].items()
    ]
    reasons = UNPUBLISHED if preset == "paper" else {}
    if as_json:
        typer.echo(json.dumps({"published": rows, "unpublished": dict(reasons)}))
        return
    for row in rows:
        apart = ("method", "space", "source", "notes", "size", "row")
        values = {key: value for key, value in row.items() if key not in apart}
        sizes = ", ".join(f"{value} {key}" for key, value in row["size"].items())
        values |= values.pop("space_options", {})
        settings = ", ".join(f"{key} {value}" for key, value in values.items())
        of_row = ", ".join(
            f"{key} {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for key, value in row["row"].items()
        )
        lines = [f"{row['method']} on {row['space']}: {sizes}; {settings}", f"  row of the method: {of_row}"]
        lines += [f"  source: {row['source']}", *(f"  note: {note}" for note in row["notes"])]
        typer.echo("\n".join(lines))
    usual = {name: SearchSettings.model_fields[name].default for name in ("momentum", "clip", "arch_share")}
    adam: Any = METHODS["darts"].geometry
    typer.echo(
        f"\nWhere a line does not say otherwise: momentum {usual['momentum']:g}, a gradient of the shared weights of "
        f"norm at most {usual['clip']:g}; if bilevel, {usual['arch_share']:g} of the rows for the architecture. Adam "
        f"of softmax rows: betas {' and '.join(f'{b:g}' for b in adam.betas)}, weight decay {adam.weight_decay:g}."
    )
    if reasons:
        typer.echo("\nWithout a published protocol, so with the usual settings of the method:")
    for method, why in reasons.items():
        spaces = ", ".join(family for family in FAMILIES if (method, family) not in PROTOCOLS[preset])
        typer.echo(f"  {method} on {spaces}: {why}")


def _row(method: Method, cells: int) -> dict[str, Any]:
    """What a protocol takes from the method table: the relaxation, the geometry, and stages where there are several."""
    found: dict[str, Any] = {
        "relaxation": type(method.relaxation).__name__,
        "geometry": _geometry(method.geometry),
    }
    stages = method.schedule.stages
    if len(stages) > 1:
        found["stages of cells"] = [round(stage.depth * cells) for stage in stages]
        found["dropout behind skips"] = [stage.dropout for stage in stages]
    return found


def _geometry(geometry: Any) -> str:
    kind = type(geometry).__name__
    detail = getattr(geometry, "potential", getattr(geometry, "rule", None))
    pull = getattr(geometry, "pull", 0.0)
    words = [str(detail)] * bool(detail) + [f"pull {pull:g}"] * bool(pull)
    return f"{kind} ({', '.join(words)})" if words else kind
