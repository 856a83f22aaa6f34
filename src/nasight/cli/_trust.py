"""`nasight trust`: how well a search ranks, and the theorems on arg max on a network whose answer is known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from nasight.cli._explain_options import Epochs, HeldOut, Level, Preset, RunData, RunSpace, Seeds
from nasight.cli._shared import DataFolder, Device, Json, choice, counters, examples, option
from nasight.cli._shared import table as lines_of
from nasight.options import LENGTH, MACHINE, WHAT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nasight.studies import RankedSample
    from nasight.trust import Check

app = typer.Typer(help="When may the arg max of a search be believed?")

EXAMPLES, WIDTH, INPUTS = 2_000, 16, 8
# Activations and their weights; y is the mixture itself, so every answer is known.
CASES = (
    (("relu", "tanh"), (0.6, 0.4)),
    (("relu", "tanh", "sigmoid"), (0.5, 0.3, 0.2)),
    (("relu", "tanh", "sigmoid"), (0.36, 0.33, 0.31)),
)


@app.callback(invoke_without_command=True)
def _trust(context: typer.Context) -> None:
    """When may the arg max of a search be believed?"""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog=examples("nasight trust demo --seed 1"))
def demo(
    seed: Annotated[int, typer.Option(help="The two-layer network and its inputs follow from it.")] = 0,
    as_json: Json = False,
) -> None:
    """The two- and three-activation theorems on a two-layer network whose answer is known."""
    import numpy as np

    from nasight.errors import RequestError
    from nasight.trust import check

    if seed < 0:
        raise RequestError(f"--seed must be at least 0, got {seed}")
    shown = []
    for activations, weights in CASES:
        outputs = _network(activations, seed)
        found = check(outputs, weights, np.asarray(weights) @ outputs)
        shown.append((_title(found), activations, found))
    if as_json:
        cases = [{"case": title, "activations": list(names), **found.to_dict()} for title, names, found in shown]
        typer.echo(json.dumps({"seed": seed, "cases": cases}, allow_nan=False))
    else:
        typer.echo("\n\n".join(_text(*each) for each in shown))


@app.command(
    epilog=examples("nasight trust ranking runs/a", "nasight trust ranking runs/a --sample 200 --table nasbench201")
)
def ranking(
    run: Annotated[str, typer.Argument(help="A finished search.")],
    table: Annotated[
        str | None,
        option("Look accuracies up (nasbench201, or a path) instead of training.", metavar="TABLE", group=WHAT),
    ] = None,
    metric: Annotated[str, choice("Scores without training, joined by commas; or none.", group=WHAT)] = "naswot",
    data: RunData = None,
    space: RunSpace = None,
    level: Level = 0.95,
    sample: Annotated[int, choice("This many different architectures.", metavar="N", group=LENGTH)] = 20,
    examples: HeldOut = None,
    preset: Preset = "tiny",
    epochs: Epochs = None,
    seeds: Seeds = 1,
    seed: Annotated[int, choice("The sample follows from it.", metavar="N", group=MACHINE)] = 0,
    device: Device = "auto",
    data_folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """How well architecture weights, shared weights and train-free scores rank a sample of architectures."""
    from nasight.studies import rank

    with counters() as begin:
        found = rank(
            run,
            sample=sample,
            table=table,
            metrics=[] if metric == "none" else [name.strip() for name in metric.split(",")],
            level=level,
            examples=examples,
            seed=seed,
            preset=preset,
            epochs=epochs,
            seeds=seeds,
            data=data,
            data_folder=data_folder,
            space=space,
            progress=begin,
            device=device,
        )
    typer.echo(json.dumps(found.to_dict(), allow_nan=False) if as_json else _ranks(found))


def _ranks(found: RankedSample) -> str:
    from nasight.data import Units

    rows, units = [("predictor", "Kendall", "Spearman", "its first is behind by", "leads in", "")], Units(found.metric)
    for name, predictor in found.ranking.predictors.items():
        a = predictor.agreement
        kendall, spearman = _interval(a.kendall, a.kendall_interval), _interval(a.spearman, a.spearman_interval)
        lead = f"{100 * found.ranking.leads[name]:.0f} %"
        rows.append((name, kendall, spearman, units.difference(predictor.regret), lead, found.says(name)))
    return "\n".join(
        [
            f"{found.run}: {len(found.architectures)} architectures, against {found.truth}",
            f"intervals at {100 * found.level:g} % over resamples of the architectures; "
            "`leads in`: the share of them in which this predictor has the highest Kendall",
            "",
            *lines_of(rows, indent="  "),
        ]
    )


def _interval(value: float | None, interval: tuple[float, float] | None) -> str:
    return "-" if value is None or interval is None else f"{value:+.2f} ({interval[0]:+.2f} to {interval[1]:+.2f})"


def _network(activations: tuple[str, ...], seed: int) -> NDArray[np.float64]:
    """f_s(x) = v s(W x) for each activation s with the same W and v, (activations, examples)."""
    import numpy as np
    import torch

    from nasight.spaces.mlp import Mlp

    rng = np.random.default_rng(seed)
    x = torch.tensor(rng.normal(size=(EXAMPLES, INPUTS)))
    w = torch.tensor(rng.normal(size=(INPUTS, WIDTH)) / INPUTS**0.5)
    v = torch.tensor(rng.normal(size=WIDTH) / WIDTH**0.5)
    space = Mlp(layers=2)
    outputs: NDArray[np.float64] = np.stack([(space.form.activation(name)(x @ w) @ v).numpy() for name in activations])
    return outputs


def _title(found: Check) -> str:
    pairs = found.losses[:, None] < found.losses[None, :]
    if len(found.losses) == 2:
        return "Two activations: no condition is needed (Theorem 1)"
    held, right = bool(found.concludes[pairs].all()), found.chosen == found.best
    says = "the condition holds for every pair" if held else "the condition fails"
    return f"Three activations: {says}{'' if right else ', and the arg max is wrong'} (Theorem 4)"


def _text(title: str, activations: tuple[str, ...], found: Check) -> str:
    lines = [title, "", "  activation  weight  L(f_i, y)   L(f_i, mixture of the others)"]
    for name, weight, loss, mixture in zip(activations, found.weights, found.losses, found.mixture_losses, strict=True):
        lines.append(f"  {name:<10}  {weight:.2f}    {loss:.6f}    {mixture:.6f}")
    lines += ["", *(f"  {name.replace('_', ' '):<14} {_holds(a.holds)}: {a.says}" for name, a in found.assumptions)]
    chosen, best = activations[found.chosen], activations[found.best]
    h = len(activations)
    for i, j in ((i, j) for i in range(h) for j in range(h) if found.losses[i] < found.losses[j]):
        pair = f"L({activations[i]}) < L({activations[j]})"
        proved = f"{found.theorem} proves that {activations[i]} has the larger weight"
        words = f"the condition holds, so {proved}" if h > 2 else proved
        lines.append(f"  {pair}: " + (words if found.concludes[i, j] else "the condition fails, nothing is proved"))
    right = "right" if chosen == best else "WRONG"
    lines.append(f"  The arg max takes {chosen}; the best under the shared weights is {best}: {right}.")
    return "\n".join(lines)


def _holds(value: bool) -> str:
    return "holds" if value else "fails"
