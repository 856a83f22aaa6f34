"""Finds with a network of one's own to beat, or a model of one's own to search."""

import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from on_paper import ROW, leg_of
from torch import nn

import nasight
from command import run
from nasight.data import Dataset
from nasight.studies.finding import Speed
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._names import OWN, SPACE
from nasight.studies.finding._recipe import RATES
from nasight.studies.finding._stages import _own_trainings

pytestmark = pytest.mark.slow
TINY: dict[str, Any] = {"space": "nasbench201", "trainings": 26, "epochs": 1, "workers": 1}


def test_a_baseline_that_is_slower_than_the_limit_does_not_run_along_and_that_is_said(
    few_digits: Dataset, tmp_path: Path
) -> None:
    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.1 if len(x) == 1 else 0.0)
            out: torch.Tensor = self.head(x.flatten(1))
            return out

    told = list[str]()
    found = nasight.find(
        few_digits, baseline=Slow, max_latency=50.0, out=tmp_path / "a",
        progress=lambda event, values: told.append(str(values.get("text"))) if event == "note" else None, **TINY,
    )  # fmt: skip
    assert "baseline" not in [line["architecture"] for line in found.result["race"]["lines"]]
    assert any(text.startswith("baseline does not run along") for text in told)
    assert re.search("your own baseline is not what the answer compares with: .* ms, and at most 50", found.cautions[0])


def test_a_slow_baseline_that_is_over_a_limit_does_not_set_the_length_of_trainings(tmp_path: Path) -> None:
    leg = leg_of(tmp_path, 600, 8_000, Speed(ROW, 2 * ROW, 0.06, controls=21, own=20), paced=True)
    leg.context.spaces = {SPACE: None, OWN: None}
    leg.context.parameters = lambda key, architecture: 2_000_000  # type: ignore[method-assign]
    leg.settings.max_latency = None
    found = {}
    for most in (1_000_000, 3_000_000):
        leg.settings.max_params = most
        found[most] = leg.has_own, leg.controls, _own_trainings(leg, leg.speed) > 0
    assert found == {1_000_000: (False, 1, False), 3_000_000: (True, 2, True)}
    assert leg.over_limits(OWN) is None
    leg.settings.max_params = 1_999_999
    assert leg.over_limits(OWN) == "2,000,000 parameters, and at most 1,999,999 are allowed"


def test_an_own_baseline_has_the_learning_rate_that_suits_it(few_digits: Dataset, tmp_path: Path) -> None:
    class Deep(nn.Sequential):
        """Without normalization it needs a higher rate than the networks that the recipe is tuned on."""

        def __init__(self) -> None:
            hidden = [layer for _ in range(5) for layer in (nn.Linear(32, 32), nn.ReLU())]
            super().__init__(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), *hidden, nn.Linear(32, 10))

    given = {**TINY, "trainings": 34, "epochs": 6}
    found = nasight.find(few_digits, baseline=Deep, out=tmp_path / "a", **given).result
    rates = {row["recipe"]["lr"]: row["accuracy"] for row in found["own_rates"]}
    assert set(rates) == set(RATES)
    assert rates[found["baseline"]["recipe"]["lr"]] == max(rates.values())
    keys = [key for key in Journal(tmp_path / "a") if key.startswith("training baseline ") and "judged=test" in key]
    assert len(keys) == 3
    assert all(f" lr={found['baseline']['recipe']['lr']:g} " in key for key in keys)


def test_a_baseline_that_diverges_is_replaced_and_that_is_said(few_digits: Dataset, tmp_path: Path) -> None:
    class Exploding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.head(x.flatten(1)) * (math.nan if torch.is_grad_enabled() else 1.0)
            return out

    given = {**TINY, "trainings": 30}
    found = nasight.find(few_digits, baseline=Exploding, out=tmp_path / "a", **given)
    assert found.baseline["kind"] != "baseline"
    assert "your own baseline is not what the answer compares with: its training failed" in found.cautions
    assert found.result["trainings"] <= 30


def test_an_own_model_is_compared_with_its_first_options_and_an_own_baseline(
    few_digits: Dataset, tmp_path: Path
) -> None:
    def build() -> nn.Module:
        deep = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10))
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nasight.Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, name="activation"),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nasight.Choice({"one": nn.Linear(32, 10), "two": deep}, name="head"),
        )

    class Attending(nn.Module):
        """A baseline with products that are not counted."""

        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(8, 1, batch_first=True), nn.Linear(8, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = x.squeeze(1)
            out: torch.Tensor = self.head(self.attention(rows, rows, rows)[0].mean(1))
            return out

    given = {**TINY, "space": build, "trainings": 32}
    found = nasight.find(few_digits, baseline=Attending, out=tmp_path / "a", **given)
    lines = found.result["race"]["lines"]
    assert found.result["trainings"] <= given["trainings"]
    controls = [line["architecture"] for line in lines if line["control"]]
    assert controls == ["activation=relu, head=one", "plain", "baseline"]
    products = {line["architecture"]: line["multiply_adds"] for line in lines}
    assert products["activation=relu, head=one"] == 9 * 8 * 64 + 32 * 10
    assert products["baseline"] is None
    # It was named, so it is what has to be beaten, however good a plain network is.
    assert found.baseline["architecture"] == "baseline"
    plain, own = ({line["architecture"]: line["accuracies"][-1] for line in lines}[n] for n in ("plain", "baseline"))
    assert plain > own
    assert f"another control, plain, was ahead of the baseline: {plain:.2f} % against {own:.2f} %" in found.cautions[-1]


NET = """
from torch import nn


def net():
    layers = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(512, 10))
"""


def test_a_baseline_in_a_file_is_trained_by_other_processes_and_its_model_is_used(
    few_digits_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my.py").write_text(NET)
    code, out = f"{tmp_path / 'my.py'}:net", str(tmp_path / "a")
    given = ("--data", str(few_digits_file), "--trainings", "30", "--epochs", "1", "--workers", "2", "--out", out)
    assert run("find", *given, "--baseline", code) == 0
    shown = capsys.readouterr().out
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    assert result["baseline"]["architecture"] == "baseline"
    assert result["taken_from"] == "baseline"  # one epoch of a NAS-Bench-201 cell does not beat it
    # The folder alone runs none of its code; with the code named again, or from the folder's own file, it predicts.
    assert run("predict", out, str(few_digits_file)) == 2
    assert "if you trust it, name it: --space FILE.py:NAME" in capsys.readouterr().err
    assert run("predict", out, str(few_digits_file), "--space", code) == 0
    rows = capsys.readouterr().out.splitlines()
    command = re.search(r"^Use it: python (\S+) FILES$", shown, re.MULTILINE)
    assert command is not None
    alone = subprocess.run(
        [sys.executable, command[1], str(few_digits_file)], capture_output=True, text=True, check=True
    )
    assert [row.split(",")[1] for row in alone.stdout.splitlines()] == [row.split(",")[1] for row in rows]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return nn.Sequential(nn.Flatten(), nn.Linear(64, 7))", "must give 10 outputs per example, it gave (2, 7)"),
        ("return nn.Linear(3, 10)", "does not take examples of shape (1, 8, 8): RuntimeError: "),
        ("return 1 / 0", "what makes 'baseline' cannot make a model: ZeroDivisionError: division by zero"),
        ("raise SystemExit", "what makes 'baseline' cannot make a model: SystemExit"),
        ("return 'net'", "must give an nn.Module, it gave str"),
    ],
)
def test_a_baseline_that_cannot_be_trained_is_refused_before_anything_is_trained_or_written(
    few_digits_file: Path, tmp_path: Path, body: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my.py").write_text(f"from torch import nn\n\n\ndef net():\n    {body}\n")
    given = ("--data", str(few_digits_file), "--trainings", "30", "--out", str(tmp_path / "a"))
    assert run("find", *given, "--baseline", f"{tmp_path / 'my.py'}:net") == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told
    assert "Recipe" not in told
    assert not (tmp_path / "a").exists()
