"""`nasight cell --adapted`: published cells beside their widest forms, and random connections, trained alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasight.cli._shared import count_text, counting, resumable, table
from nasight.errors import RequestError

if TYPE_CHECKING:
    from nasight.studies import Protocol

TABLE_1 = "NASNet,AmoebaNet,ENAS,DARTS_V2,SNAS"
"""The cells of the paper's Table 1."""
ADAPTED = (
    "cell", "lr", "error, %", "adapted", "difference", "95 % interval", "parameters", "adapted", "multiply-adds",
    "adapted", "diverged",
)  # fmt: skip
ACCURACIES = ("cell", "lr", "index", "width", "depth", "accuracy, %", "difference", "95 % interval")


def default_folder(data: str) -> str:
    """Where trainings on this data go."""
    from nasight.studies import folder_name

    return f"runs/adapted-{folder_name(data)}"


def adapted_cells(
    names: str,
    data: Any,
    protocol: Protocol,
    lrs: Sequence[float],
    *,
    random: int,
    seeds: int,
    variant_seed: int,
    out: str,
    data_folder: str | None,
    workers: int | None,
    cluster: str | None,
    device: str,
) -> dict[str, Any]:
    """What `--adapted` prints with --json: both tables, every training, and where the picture is."""
    from nasight.anatomy import read_cells
    from nasight.compute import cluster as cluster_at
    from nasight.report import accuracies_svg
    from nasight.runs import write_atomic
    from nasight.studies import compare_adapted

    folder = out
    with (
        cluster_at(cluster) as executor,
        counting("trained", "trainings finished", transient=True) as progress,
        resumable(folder),
    ):
        found = compare_adapted(
            [read_cells(text) for text in _names(names)],
            data,
            random=random,
            protocol=protocol,
            lrs=lrs,
            seeds=range(seeds),
            variant_seed=variant_seed,
            out=folder,
            data_folder=data_folder,
            executor=executor,
            workers=workers,
            device=device,
            progress=progress,
        )
    values = {**found.to_dict(), "run": folder, "accuracies_svg": None}
    if random:
        picture = Path(folder) / "accuracies.svg"
        write_atomic(picture, accuracies_svg(values["accuracies"]).encode())
        values["accuracies_svg"] = str(picture)
    return values


def first_of(names: str) -> str:
    """The first of the cells that `--adapted` names: its space has the size of the networks."""
    return _names(names)[0]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in (TABLE_1 if text == "all" else text).split(",")]
    if not all(names):
        raise RequestError(f"--adapted takes cells joined by commas, or all, got {text!r}")
    return names


def adapted_text(found: Mapping[str, Any]) -> str:
    """The same for a reader."""
    lines = table([ADAPTED, *(_adapted_line(row, len(found["seeds"])) for row in found["adapted"])])
    if found["accuracies"]:
        rows = [ACCURACIES, *(_accuracy_line(row) for row in found["accuracies"])]
        lines += ["", *table(rows), "", f"picture  {found['accuracies_svg']}"]
    return "\n".join([*lines, "", f"seeds    {len(found['seeds'])}", f"run      {found['run']}"])


def _adapted_line(row: Mapping[str, Any], seeds: int) -> tuple[str, ...]:
    return (
        row["name"],
        f"{row['lr']:g}",
        f"{row['error']:.2f}",
        f"{row['adapted_error']:.2f}",
        *_difference(row["difference"], row["adapted_error"] - row["error"]),
        f"{row['parameters']:,}",
        f"{row['adapted_parameters']:,}",
        *(
            "-" if count is None else count_text(count)
            for count in (row["multiply_adds"], row["adapted_multiply_adds"])
        ),
        f"{row['diverged']} of {2 * seeds}",
    )


def _accuracy_line(row: Mapping[str, Any]) -> tuple[str, ...]:
    difference = ("", "") if row["index"] == 0 else _difference(row["difference"], None)
    cell = (row["name"], f"{row['lr']:g}", str(row["index"]), f"{row['width']:g}c", str(row["depth"]))
    return (*cell, f"{row['accuracy']:.2f}", *difference)


def _difference(difference: Mapping[str, float] | None, alone: float | None) -> tuple[str, str]:
    if difference is None:
        return ("-" if alone is None else f"{alone:+.2f}", "needs 2 seeds")
    return f"{difference['mean']:+.2f}", f"{difference['low']:+.2f} to {difference['high']:+.2f}"
