"""`nasight kernel` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from nasight.cli._kernel import kernel
from nasight.errors import RequestError
from nasight.kernels import ntk

app = typer.Typer()
app.command()(kernel)


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(app, arguments)
    if result.exception:
        raise result.exception
    return result


NETWORK = ("--activations", "relu,tanh,swish", "--skips", "1,0", "--samples", "30")


def test_the_json_holds_the_spectrum_of_the_kernel_that_out_keeps(tmp_path: Path) -> None:
    out = tmp_path / "k.npz"
    shown = json.loads(invoke(*NETWORK, "--json", "--out", str(out)).stdout)
    with np.load(out) as file:
        kept = dict(file)
    np.testing.assert_allclose(np.linalg.norm(kept["x"], axis=1), 1)
    np.testing.assert_allclose(kept["kernel"], ntk(kept["x"], ["relu", "tanh", "swish"], [1, 0]))
    values = np.linalg.eigvalsh(kept["kernel"])
    assert (shown["smallest"], shown["largest"]) == pytest.approx((values[0], values[-1]))
    assert shown["condition_number"] == pytest.approx(values[-1] / values[0])
    assert shown["trace_per_example"] == pytest.approx(np.trace(kept["kernel"]) / 30)
    repaired = shown["bounds"][0]
    assert repaired["lower"] <= shown["smallest"] <= repaired["upper"]
    assert json.loads(invoke(*NETWORK, "--json").stdout) == shown


def test_a_finite_network_stands_beside_and_is_nearer_when_wider() -> None:
    errors = [
        json.loads(invoke(*NETWORK, "--width", width, "--json").stdout)["finite"]["relative_error"]
        for width in ("16", "1600")
    ]
    assert errors[1] < 0.15 < errors[0]
    assert "width 64" in invoke(*NETWORK, "--width", "64").stdout


def test_the_text_says_how_rows_were_made_and_which_assumption_fails() -> None:
    shown = invoke(*NETWORK, "--form", "printed").stdout
    assert "each divided by its norm" in shown
    assert "printed kernel" in shown
    assert "NO   N is at least d^4" in shown
    assert "promises nothing here" in shown


def test_duplicates_are_said(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    x[7] = x[3]
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(12) % 2)
    options = ("--activations", "relu,tanh", "--samples", "12", "--data", str(tmp_path / "d.npz"))
    assert "1 of them repeats another exactly: the smallest eigenvalue is 0" in invoke(*options).stdout
    shown = json.loads(invoke(*options, "--json").stdout)
    assert (shown["duplicates"], shown["condition_number"]) == (1, None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--activations", "relu,gelu"), "unknown activation 'gelu'"),
        (("--activations", "relu,relu", "--skips", "1,1"), r"2 activation\(s\) take 1 skip\(s\)"),
        (("--activations", "relu,relu", "--skips", "yes"), "like 1,0, got 'yes'"),
        (("--activations", "relu", "--samples", "5000"), "from 1 to the 1437 training examples of digits, got 5000"),
        (("--activations", "relu", "--form", "right"), "form must be one of exact, printed, got 'right'"),
        (("--activations", "relu,relu", "--skips", "0.5", "--width", "8"), "skips of 0 or 1, got 8 and 0.5"),
        (("--activations", "relu", "--out", "k.txt"), ".npz file, got 'k.txt'"),
    ],
)
def test_a_wrong_request_gets_a_sentence(options: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        invoke(*options)
