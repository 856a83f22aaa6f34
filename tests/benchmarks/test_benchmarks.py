"""The scripts in benchmarks/ have the same flags, and the results in benchmarks/results/ can be read."""

import gzip
import importlib
import json
import re
import runpy
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from nasight.spaces import load
from nasight.studies.finding import Outcome, Point

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if not path.name.startswith("_"))
RESULTS = sorted((ROOT / "benchmarks" / "results").iterdir())
FLAGS = ("--out", "--data-folder", "--seeds", "--quick")


def run(script: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script as `python script arguments` runs it, in this process."""
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_help_of_every_benchmark_lists_the_four_flags(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        run(script, "--help", monkeypatch=monkeypatch)
    listed = re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert set(FLAGS) <= set(listed)


@pytest.mark.parametrize("result", RESULTS, ids=lambda path: path.name)
def test_every_result_is_compressed_json_that_a_document_or_a_script_names(result: Path) -> None:
    assert json.loads(gzip.decompress(result.read_bytes()))
    name = re.compile(rf"\b{result.name.removesuffix('.json.gz')}\b")
    assert any(name.search(path.read_text()) for path in [*SCRIPTS, *(ROOT / "docs").glob("*.md")])


def test_a_quick_run_does_not_write_over_a_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ROOT / "benchmarks" / "results" / "ridge.json.gz"
    with pytest.raises(SystemExit, match="2"):
        run(ROOT / "benchmarks" / "ridge.py", "--quick", "--out", str(place), monkeypatch=monkeypatch)
    assert "--quick does not write to benchmarks/results/" in capsys.readouterr().err


def test_a_network_that_adopts_shared_weights_computes_what_the_supernet_does(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    adopt = importlib.import_module("find_start").adopt
    space, generator = load("nasbench201", none=False), torch.Generator().manual_seed(0)
    supernet = space.supernet((3, 8, 8), classes=4, channels=4, cells=2).double()
    x = torch.randn(16, 3, 8, 8, dtype=torch.float64, generator=generator)
    for _ in range(3):
        arch = space.sample(generator)
        network = space.network(arch, (3, 8, 8), 4, channels=4, cells=2).double()
        adopt(network, supernet.state_dict(), space, space.format(arch))
        weights = {name: tensor.double() for name, tensor in space.encode(arch).items()}
        with torch.no_grad():
            assert torch.allclose(network(x), supernet(x, weights), atol=1e-12)


def test_a_control_is_what_it_had_at_the_cost_of_a_row_and_the_parameter_count_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("search_nasbench201")
    steps = [[2.0, 10, "a"], [9.5, 40, "b"], [68.1, 300, "b"]]
    assert [benchmark.within(steps, seconds)[2] for seconds in (1.0, 2.0, 9.4, 9.5, 80.0)] == ["a", "a", "a", "b", "b"]
    # Of all 4,096 cells, not of those that another way had time for.
    assert benchmark.most_parameters(None, data="digits").count("nor_conv_3x3") == 6


def test_halves_of_the_rows_agree_as_often_as_an_interval_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("find_calibration")
    rng = np.random.default_rng(0)
    agree = apart = 0
    for seed in range(200):
        # Rows are hard to some degree, seeds move what is right by about a point, and the sides are a point apart.
        hard = rng.random(360)

        def outcomes(share: float, number: int, hard: np.ndarray = hard) -> list[Outcome]:
            rights = [hard + rng.normal(0, 0.03, len(hard)) < share + rng.normal(0, 0.01) for _ in range(number)]
            return [Outcome(100 * float(right.mean()), right) for right in rights]

        mine = {"winner": outcomes(0.96, 3), "baseline": outcomes(0.95, 3)}
        same = {"winner": outcomes(0.96, 20), "baseline": outcomes(0.95, 20)}
        other = {"winner": outcomes(0.85, 20), "baseline": outcomes(0.95, 20)}
        agree += benchmark.halves_agree(mine, same, seed)
        apart += not benchmark.halves_agree(mine, other, seed)
    assert agree >= 185  # 95 % of 200 are 190; more, since rows are added to both halves
    assert apart >= 150


@pytest.mark.parametrize("together", [-0.5, 0.0, 0.8])
def test_pairs_of_seeds_agree_with_further_ones_as_often_as_an_interval_says(
    monkeypatch: pytest.MonkeyPatch, together: float
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("find_calibration")
    rng, spread = np.random.default_rng(0), np.linalg.cholesky(np.array([[1.0, together], [together, 1.0]]))

    def drawn(number: int, gap: float) -> list[list[float]]:
        both = rng.normal(size=(number, 2)) @ spread.T + np.array([90.0 + gap, 90.0])
        return [side.tolist() for side in both.T]

    counts = {0.0: 0, 10.0: 0}
    for gap in counts:
        for _ in range(400):
            row = {
                "accuracies": drawn(3, 0.0),
                "further": dict(zip(("winner", "baseline"), drawn(20, gap), strict=True)),
            }
            counts[gap] += benchmark.by_seeds(row)
    assert 360 <= counts[0.0] <= 396  # 95 % of 400 are 380
    assert counts[10.0] <= 120
    alike = {"accuracies": [[91.0] * 3, [90.0] * 3], "further": {"winner": [91.0] * 4, "baseline": [90.0, 91.0] * 2}}
    assert benchmark.by_seeds(alike) is None


def test_a_front_is_looked_up_with_and_without_its_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("find_table")
    cells = [("small", 150_000, 60.0), ("reference", 559_386, 70.0), ("large", 580_000, 65.0)]
    points = [asdict(Point(name, size, None, accuracy, 6, name)) for name, size, accuracy in cells]
    result = {"front": points}
    assert benchmark.front(result, 0.6, controls=True) == "reference"
    assert benchmark.front(result, 0.6, controls=False) == "large"
    assert benchmark.front(result, 0.2, controls=True) == "small"
    assert benchmark.front(result, 0.1, controls=True) is None
    row = {"regrets": [1.0, 2.0]}
    assert "mean regret over the five limits 1.50 (" in benchmark.mean_regret("It", [row, row])
    assert "no mean regret" in benchmark.mean_regret("It", [row, {"regrets": [None, 2.0]}])


def test_the_best_ways_share_a_find_that_they_won_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("find")

    def row(**accuracies: list[float | None]) -> dict[str, object]:
        ways = {name.replace("_", " "): {"accuracies": each, "code": "a"} for name, each in accuracies.items()}
        advice = {"find: its winner": ways["winner"], "find: what it says to take": ways["winner"]}
        return {**ways, **advice, "about": {"choosing": 60.0, "code": "a"}}

    rows = [row(winner=[90.0, 92.0], largest=[92.0, 90.0]), row(winner=[95.0, 95.0], largest=[80.0, None])]
    text = benchmark.table({"digits": rows}, ["largest"])
    assert "| digits | find: its winner | 93.00 ± 2.83 |  |  | 1.5 of 2 | 60.0 |  |" in text
    assert "| digits | largest | 68.00 ± 32.53 (1 diverged) | +25.00 (" in text
    assert "states of the code" not in text


@pytest.mark.parametrize("result", RESULTS, ids=lambda path: path.name)
def test_no_result_names_a_folder_of_the_machine_it_was_made_on(result: Path) -> None:
    assert not re.search(rb'"/(?:home|root|work|tmp|var|Users)/', gzip.decompress(result.read_bytes()))
