"""The landscape: equal to losses of moved copies, the same after an interruption, the model untouched."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.anatomy._landscape import filter_normalized_directions, landscape
from nasight.anatomy._landscape_job import landscape_run
from nasight.anatomy._variance import gradient_variance
from nasight.data import load, prepare
from nasight.errors import RequestError


def small(width: int = 4) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * width, 10),
        )
        with torch.no_grad():
            network[0].weight[1] = 0  # type: ignore[index,operator]
        network.train()(digits()[0] * 3)
    return network


def digits(n: int = 40) -> tuple[Tensor, Tensor]:
    return next(prepare(load("digits")).batches("train", size=n))


def moved(network: nn.Module, directions: tuple[dict[str, Tensor], ...], steps: tuple[float, float]) -> nn.Module:
    other = copy.deepcopy(network).eval()
    with torch.no_grad():
        for name, p in other.named_parameters():
            for direction, step in zip(directions, steps, strict=True):
                p += step * direction.get(name, torch.zeros_like(p))
    return other


def loss_of(network: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float(F.cross_entropy(network(x), y))


def test_every_filter_of_a_direction_is_as_long_as_the_trained_one_and_vectors_stay() -> None:
    network = small()
    for direction in filter_normalized_directions(network, torch.Generator().manual_seed(0)):
        assert set(direction) == {"0.weight", "6.weight"}
        for name, values in direction.items():
            torch.testing.assert_close(values.flatten(1).norm(dim=1), network.state_dict()[name].flatten(1).norm(dim=1))
        assert not direction["0.weight"][1].any()
    full, _ = filter_normalized_directions(network, torch.Generator().manual_seed(0), vectors=True)
    assert set(full) == {name for name, _ in network.named_parameters()}
    torch.testing.assert_close(full["6.bias"].abs(), network.state_dict()["6.bias"].abs())


def test_losses_and_variances_are_those_of_moved_copies_of_the_network() -> None:
    network, (x, y) = small(), digits()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    directions = filter_normalized_directions(network, torch.Generator().manual_seed(1))
    found = landscape(
        network, x, y, extent=0.8, points=5, directions=directions, variance=True, batch=16, chunk=16, workers=1
    )
    assert found.variances is not None
    assert found.grid.tolist() == [-0.8, -0.4, 0.0, 0.4, 0.8]
    for i, j in ((0, 0), (1, 3), (2, 2), (4, 1)):
        other = moved(network, directions, (found.grid[j], found.grid[i]))
        assert found.losses[i, j] == pytest.approx(loss_of(other, x, y), rel=1e-6)
        assert found.variances[i, j] == pytest.approx(gradient_variance(other, x, y), rel=1e-5)
    assert found.center == pytest.approx(loss_of(copy.deepcopy(network).eval(), x, y), rel=1e-6)
    assert network.training
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())


def test_recomputed_statistics_are_those_of_the_examples_at_each_point() -> None:
    network, (x, y) = small(), digits()
    directions = filter_normalized_directions(network, torch.Generator().manual_seed(1))
    kept, found = (
        landscape(network, x, y, points=3, directions=directions, batch_norm=how, workers=1)
        for how in ("kept", "recomputed")
    )
    other = moved(network, directions, (1.0, -1.0))
    norm = other[1]  # type: ignore[index]
    assert isinstance(norm, nn.BatchNorm2d)
    with torch.no_grad():
        seen = other[0](x)  # type: ignore[index,operator]
        norm.running_mean, norm.running_var = seen.mean((0, 2, 3)), seen.var((0, 2, 3))
    assert found.losses[0, 2] == pytest.approx(loss_of(other, x, y), rel=1e-5)
    assert abs(kept.losses[0, 2] - found.losses[0, 2]) > 0.01
    assert (kept.settings["batch_norm"], found.settings["batch_norm"]) == ("kept", "recomputed")


class Stop(Exception):
    pass


def test_an_interrupted_landscape_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    network, (x, y) = small(), digits()

    def stop(done: int, of: int) -> None:
        if done == 2:
            raise Stop

    whole = landscape(network, x, y, points=5, variance=True, workers=1)
    with pytest.raises(Stop):
        landscape(network, x, y, points=5, variance=True, folder=tmp_path / "a", workers=1, progress=stop)
    assert len((tmp_path / "a" / "history.jsonl").read_text().splitlines()) == 2
    calls: list[int] = []
    resumed = landscape(
        network, x, y, points=5, variance=True, folder=tmp_path / "a", workers=1, progress=lambda d, _: calls.append(d)
    )
    assert calls == [2, 3, 4, 5]
    assert resumed.losses.tobytes() == whole.losses.tobytes()
    assert resumed.variances is not None
    assert whole.variances is not None
    assert resumed.variances.tobytes() == whole.variances.tobytes()


@pytest.mark.slow
def test_processes_give_the_same_bits_as_one(tmp_path: Path) -> None:
    network, (x, y) = small(), digits()
    one, two = (landscape(network, x, y, points=3, workers=workers) for workers in (1, 2))
    assert one.losses.tobytes() == two.losses.tobytes()


def test_a_folder_of_another_network_is_refused(tmp_path: Path) -> None:
    x, y = digits()
    landscape(small(), x, y, points=3, folder=tmp_path / "a", workers=1)
    with pytest.raises(RequestError, match="holds a landscape with network"):
        landscape(small(5), x, y, points=3, folder=tmp_path / "a", workers=1)


def test_a_damaged_row_is_refused(tmp_path: Path) -> None:
    x, y = digits()
    landscape(small(), x, y, points=3, folder=tmp_path / "a", workers=1)
    (tmp_path / "a" / "history.jsonl").write_text('{"row": 0, "losses": [1.0], "variances": []}\n')
    with pytest.raises(RequestError, match=r"history.jsonl is damaged: a line is not a row of 3 points"):
        landscape(small(), x, y, points=3, folder=tmp_path / "a", workers=1)


def test_losses_that_overflow_are_infinite_and_survive_the_folder(tmp_path: Path) -> None:
    network = nn.Linear(2, 2, bias=False)
    nn.init.constant_(network.weight, 3e38)
    x, y = torch.ones(3, 2), torch.tensor([0, 1, 0])
    first, again = (landscape(network, x, y, points=3, folder=tmp_path / "a", workers=1) for _ in range(2))
    assert math.isinf(first.center)
    assert np.array_equal(first.losses, again.losses)
    assert json.loads(json.dumps(first.to_dict(), allow_nan=False))["losses"][1][1] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"points": 4}, "an odd number of points a side, at least 3, got 4"),
        ({"extent": -1.0}, "must be a number above 0, got -1.0"),
        ({"extent": math.nan}, "must be a number above 0, got nan"),
        ({"batch_norm": "train"}, "kept or recomputed, got 'train'"),
        ({"directions": ({"no": torch.ones(1)}, {})}, "a direction has 'no' of shape"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], message: str) -> None:
    x, y = digits()
    with pytest.raises(RequestError, match=message):
        landscape(small(), x, y, workers=1, **given)  # type: ignore[arg-type]


def test_a_run_keeps_every_figure_and_reads_them_again(tmp_path: Path) -> None:
    network = small()
    first = landscape_run(network, "digits", out=tmp_path / "a", examples=50, points=3, workers=1, probes=4)
    again = landscape_run(network, "digits", out=tmp_path / "a", examples=50, points=3, workers=1, probes=4)
    assert first.hessian is not None
    assert first.hessian.largest > 0
    assert first.to_dict() == again.to_dict() == json.loads((tmp_path / "a" / "result.json").read_text())
    assert first.summary()["top_eigenvalue"] == first.hessian.largest
    with pytest.raises(RequestError, match="test or train, got 'valid'"):
        landscape_run(network, "digits", out=tmp_path / "b", part="valid")
