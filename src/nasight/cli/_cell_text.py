"""What `nasight cell` prints of a cell and of its variants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nasight.cli._shared import count_text, multiplies_line, size_text, table

if TYPE_CHECKING:
    from nasight.anatomy import Design
    from nasight.spaces import Space


def design_object(design: Design) -> dict[str, Any]:
    from nasight.anatomy import space_of
    from nasight.spaces import load

    of = load(design.space)
    found: dict[str, Any] = {"name": design.name, "space": design.space}
    for kind, graph in design.cells:
        space = space_of(graph)
        found[kind] = {
            "width": graph.width,
            "depth": graph.depth,
            **graph.to_dict(),
            "standing": None if space is None else space.standing(graph).to_dict(),
        }
    whole = design.main != "normal" or len(design.cells) == 2
    found["idle_operations"] = design.idle
    found["architecture"] = of.format(design.architecture()) if whole else None
    found["parameters"] = design.parameters() if whole else None
    found["multiply_adds"] = design.multiply_adds() if whole else None
    found["transferred"] = _transferred(design, of) if whole else None
    size = of.train_size("paper") or of.size()
    found["network"] = {**size, "stages": of.stages, "inputs": [3, 32, 32], "classes": 10}
    return found


def _transferred(design: Design, space: Space) -> dict[str, Any] | None:
    """The network that a published cell was trained with on larger data; None where it was not."""
    form = space.transferred.get(design.name)
    if form is None:
        return None
    arch, size = design.architecture(), dict(form.size)
    return {
        "data": form.data,
        "parameters": space.parameters(form.inputs, form.classes, **size).built(arch),
        "multiply_adds": space.multiply_adds(form.inputs, form.classes, **size).built(arch),
        "network": {**size, "inputs": list(form.inputs), "classes": form.classes},
    }


def design_text(found: dict[str, Any]) -> str:
    lines = [f"{found['name']} ({found['space']})", ""]
    spaces = dict[str, dict[str, Any]]()
    for kind in ("normal", "reduce", "cell"):
        if kind not in found:
            continue
        part = found[kind]
        line = f"  {kind:<12} width {part['width']:g}c, depth {part['depth']}"
        if part["standing"] is not None:
            standing = part["standing"]
            spaces[standing["space"]] = standing
            line += (
                f"; of its space {standing['width_percentile']:.1f} % are at most as wide, "
                f"{standing['depth_percentile']:.1f} % at most as deep, "
                f"{standing['as_wide_and_shallow']:.1f} % at least as wide and at most as deep"
            )
        lines.append(line)
    lines += [
        f"  space        {standing['space']}: {standing['cells']:,}, the widest {standing['largest_width']:g}c, "
        f"the shallowest {standing['smallest_depth']}"
        for standing in spaces.values()
    ]
    if found["idle_operations"]:
        lines.append(
            f"  idle         operations on no path to the output, which are not drawn: {found['idle_operations']}"
        )
    if found["parameters"] is not None:
        size = found["network"]
        lines.append(
            f"  parameters   {found['parameters']:,} with {_network_text(size)}"
            + (" per stage" if size["stages"] > 1 else "")
        )
        lines += multiplies_line(found["multiply_adds"], "image of 32 x 32")
        if (other := found["transferred"]) is not None:
            shape = " x ".join(map(str, other["network"]["inputs"][1:]))
            lines.append(f"  {other['data']:<12} {size_text(other)} with {_network_text(other['network'])}, {shape}")
        lines.append(f"  architecture {found['architecture']}")
    if found["svg"] is not None:
        lines.append(f"  drawing      {found['svg']}")
    return "\n".join(lines)


def _network_text(size: dict[str, Any]) -> str:
    return " and ".join(f"{value} {name}" for name, value in size.items() if name in ("channels", "cells", "width"))


def comparison_table(found: dict[str, Any]) -> str:
    rows = [
        (
            "cell",
            "lr",
            "width",
            "depth",
            "parameters",
            "multiply-adds",
            "steps to loss",
            "mean loss",
            "accuracy",
            "diverged",
        )
    ]
    for row in found["cells"]:
        spread = "" if row["accuracy_spread"] is None else f" ± {row['accuracy_spread']:.2f}"
        rows.append(
            (
                row["name"],
                f"{row['lr']:g}",
                f"{row['width']:g}c",
                str(row["depth"]),
                f"{row['parameters']:,}",
                count_text(row["multiply_adds"]),
                "-" if row["steps_to_loss"] is None else f"{row['steps_to_loss']:.0f}",
                "-" if row["area"] is None else f"{row['area']:.3f}",
                f"{row['accuracy']:.2f}{spread} %",
                f"{row['diverged']} of {len(found['seeds'])}",
            )
        )
    losses = ", ".join(f"{loss:.3f} at lr {lr}" for lr, loss in found["target_loss"].items())
    return "\n".join(
        [*table(rows), "", f"steps to a test loss of {losses}", f"curves  {found['curves']}", f"run     {found['run']}"]
    )
