"""`nasight kernel`: the neural tangent kernel of a described network, its smallest eigenvalue and bounds on it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._shared import DataFolder, Device, Json, examples
from nasight.errors import RequestError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nasight.kernels import KernelBound

    Array = NDArray[np.float64]

EXAMPLES = examples(
    "nasight kernel --activations relu,tanh,swish --skips 1,0 --data digits --samples 200",
    "nasight kernel --activations relu,relu --skips 1 --samples 50 --width 1024 --json",
)
NUMBERS = (
    ("smallest eigenvalue", "smallest"),
    ("largest eigenvalue", "largest"),
    ("trace / N", "trace_per_example"),
    ("condition number", "condition_number"),
)


def kernel(
    activations: Annotated[
        str, typer.Option(help="L-1 of relu, leaky_relu, sigmoid (minus 1/2), tanh, swish, joined by commas.")
    ],
    skips: Annotated[
        str | None, typer.Option(help="L-2 numbers from 0 (no skip, the default) to 1, joined by commas.", metavar="S")
    ] = None,
    data: Annotated[str, typer.Option(help="A data set by name, an .npz file or an image folder.")] = "digits",
    samples: Annotated[int, typer.Option(help="Examples, drawn from the training part.", metavar="N")] = 200,
    form: Annotated[str, typer.Option(help="exact, or Lemma 1 as printed in the paper.")] = "exact",
    slope: Annotated[float, typer.Option(help="Slope of leaky_relu below zero.")] = 0.01,
    accuracy: Annotated[float, typer.Option(help="Of the Gaussian expectations without closed form.")] = 1e-8,
    width: Annotated[
        int | None, typer.Option(help="Beside it, the empirical kernel of one network of this width.", metavar="M")
    ] = None,
    seed: Annotated[int, typer.Option(help="The examples and the finite network follow from it.")] = 0,
    device: Device = "auto",
    out: Annotated[str | None, typer.Option(help="Keep kernel, rows and labels in this .npz file.")] = None,
    folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """The infinite-width kernel of a network with mixed activations and skips: spectrum and bounds."""
    import numpy as np

    from nasight.kernels import checked_layers, ntk, schur_bound, theorem_1, theorem_1_printed, theorem_2, theorem_3

    names, alphas = checked_layers(*_network(activations, skips))
    if width is not None and (width < 1 or any(alpha not in (0, 1) for alpha in alphas)):
        raise RequestError(
            f"--width takes a positive number and skips of 0 or 1, got {width} and {skips or 'no skips'}"
        )
    if out is not None and not out.endswith(".npz"):
        raise RequestError(f"--out names an .npz file, got {out!r}")
    rows, signs = _rows(data, samples, seed, folder)
    matrix, layers = ntk(rows, names, alphas, form=form, slope=slope, accuracy=accuracy, layers=True)
    bounds = [
        theorem_1(rows, names, alphas, form=form, slope=slope),
        schur_bound(layers, alphas, form=form),
        theorem_1_printed(rows, names, alphas, slope=slope),
        theorem_2(rows, names, alphas, slope=slope),
        theorem_3(rows, matrix, signs, names, width=width, slope=slope),
    ]
    result: dict[str, Any] = {
        "activations": list(names),
        "skips": list(alphas),
        "form": form,
        "data": data,
        "samples": len(rows),
        "dimensions": rows.shape[1],
        "duplicates": len(rows) - len(np.unique(rows, axis=0)),
        "seed": seed,
        **_spectrum(matrix),
        "bounds": [bound.to_dict() for bound in bounds],
        "finite": None,
    }
    if width is not None:
        finite = _finite(rows, names, alphas, width, seed, slope, device)
        error = float(np.linalg.norm(finite - matrix) / np.linalg.norm(matrix))
        result["finite"] = {"width": width, **_spectrum(finite), "relative_error": error}
    if out is not None:
        _save(out, kernel=matrix, x=rows, y=signs)
    typer.echo(json.dumps(_finite_numbers(result), allow_nan=False) if as_json else _describe(result, bounds, out))


def _network(activations: str, skips: str | None) -> tuple[list[str], list[float] | None]:
    names = [name.strip() for name in activations.split(",")]
    if skips is None or not skips.strip():
        return names, None
    try:
        return names, [float(part) for part in skips.split(",")]
    except ValueError:
        raise RequestError(f"skips are numbers from 0 to 1 joined by commas, like 1,0, got {skips!r}") from None


def _rows(data: str, samples: int, seed: int, folder: str | None) -> tuple[Array, Array]:
    """Random training examples as flat rows of norm 1, and -1 for the first half of the classes, +1 for the others."""
    import numpy as np
    import torch

    from nasight.data import load
    from nasight.reproducible import generator_for

    dataset = load(data, folder=folder).with_classes("the kernel with two classes")
    total = len(dataset.train_y)
    if not 1 <= samples <= total:
        raise RequestError(f"samples must be a number from 1 to the {total} training examples of {data}, got {samples}")
    chosen = torch.randperm(total, generator=generator_for("kernel", seed))[:samples]
    rows = dataset.train_x[chosen].flatten(1).double().numpy()
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not norms.all():
        raise RequestError(f"an example of {data} is all zero and cannot be given norm 1; choose another --seed")
    signs = np.where(dataset.train_y[chosen].numpy() < dataset.n_classes / 2, -1.0, 1.0)
    return rows / norms, signs


def _finite(
    rows: Array, names: tuple[str, ...], alphas: tuple[float, ...], width: int, seed: int, slope: float, device: str
) -> Array:
    """The empirical kernel of one network of this width with standard normal matrices.

    It is computed in float64, so on the CPU where a device has none (MPS).
    """
    import numpy as np
    import torch

    from nasight.compute import choose_device, has_double, to_device, to_host
    from nasight.kernels import empirical_ntk
    from nasight.reproducible import seeded
    from nasight.spaces.mlp import Mlp

    space = Mlp(len(names) + 1, slope=slope, parametrization="ntk")
    skips = ",".join(f"{alpha:.0f}" for alpha in alphas)
    arch = space.parse(",".join(names) + (f"/{skips}" if skips else ""))
    with seeded("kernel", "network", seed):
        network = space.network(arch, (rows.shape[1],), 1, width=width).double()
    chosen = choose_device(device)
    chosen = chosen if has_double(chosen) else torch.device("cpu")
    found = empirical_ntk(network.to(chosen), to_device(torch.from_numpy(rows), chosen))
    return np.asarray(to_host(found).numpy(), dtype=np.float64)


def _spectrum(matrix: Array) -> dict[str, float]:
    import numpy as np

    values = np.linalg.eigvalsh(matrix)
    low, high = float(values[0]), float(values[-1])
    # Below rounding an eigenvalue is zero.
    low = low if abs(low) > len(matrix) * np.finfo(float).eps * high else 0.0
    return {
        "smallest": low,
        "largest": high,
        "trace_per_example": float(np.trace(matrix)) / len(matrix),
        "condition_number": high / low if low > 0 else float("inf"),
    }


def _finite_numbers(value: Any) -> Any:
    """JSON has no infinity: null."""
    if isinstance(value, dict):
        return {key: _finite_numbers(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite_numbers(entry) for entry in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def _save(out: str, **arrays: np.ndarray[Any, Any]) -> None:
    import numpy as np

    from nasight.runs import write_atomic

    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomic(Path(out), buffer.getvalue())


def _describe(result: dict[str, Any], bounds: list[KernelBound], out: str | None) -> str:
    skips = ",".join(f"{alpha:g}" for alpha in result["skips"]) or "none"
    lines = [
        f"{','.join(result['activations'])}, skips {skips}, {result['form']} kernel",
        f"{result['samples']} examples of {result['data']}, flattened ({result['dimensions']} numbers), each divided "
        "by its norm",
    ]
    if result["duplicates"]:
        many = result["duplicates"]
        lines.append(f"{many} of them repeat{'s' if many == 1 else ''} another exactly: the smallest eigenvalue is 0")
    finite = result["finite"]
    lines += ["", f"  {'':<20}{'infinite':>14}" + (f"{'width ' + str(finite['width']):>14}" if finite else "")]
    for label, key in NUMBERS:
        lines.append(f"  {label:<20}{result[key]:>14.6g}" + (f"{finite[key]:>14.6g}" if finite else ""))
    if finite:
        lines.append(f"  relative error of the finite kernel (Frobenius): {finite['relative_error']:.3g}")
    for bound in bounds:
        lines += ["", *_bound_lines(bound)]
    return "\n".join([*lines, *(["", f"kernel  {out}"] if out else [])])


def _bound_lines(bound: KernelBound) -> list[str]:
    ends = [
        f"{label} {value:.6g}"
        for label, value in (("at least", bound.lower), ("at most", bound.upper))
        if value is not None
    ]
    verdict = "" if bound.holds else " (promises nothing here: an assumption fails)"
    lines = [f"{bound.name}: {', '.join(ends)}{verdict}"]
    lines += [f"  {name} = {value:.6g}" for name, value in bound.values.items()]
    for text, holds, measured in bound.assumptions:
        lines.append(f"  {'yes' if holds else 'NO '}  {text}: {measured:.4g}")
    return lines
