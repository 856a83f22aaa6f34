"""Trainings under one protocol: their curves, what is summed up from them, and that none is repeated."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import pytest
import torch

from nasight.anatomy import read_cells, variants
from nasight.data import Dataset, Task, prepare
from nasight.errors import RequestError
from nasight.reproducible import seeded
from nasight.spaces import load
from nasight.studies import Protocol, _convergence, compare_cells
from nasight.training import Job, Point, TrainingCurve, train_curve

TINY = Protocol(epochs=2, batch_size=16, channels=2, cells=1)
CELL_201 = "|nor_conv_1x1~0|+|none~0|skip_connect~1|+|skip_connect~0|none~1|nor_conv_1x1~2|"


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Two classes of 4x4 images, told apart by their brightness."""
    g = torch.Generator().manual_seed(0)
    y = torch.arange(64) % 2
    x = torch.randn(64, 1, 4, 4, generator=g) + 2.0 * y[:, None, None, None]
    return Dataset("bright", x[:48], y[:48], x[48:], y[48:], ("dark", "bright"), "a test")


def job(data: Dataset, protocol: Protocol, *, lr: float, seed: int = 0) -> Job:
    space = load("nasbench201")
    return protocol.job(space, space.parse(CELL_201), data, lr=lr, seed=seed)


def curve(*losses: float) -> TrainingCurve:
    points = tuple(Point(10 * i, loss, 0.0) for i, loss in enumerate(losses))
    return TrainingCurve("a", 0.1, 0, 10 * (len(losses) - 1), points, False, 0.0)


def plain(training: TrainingCurve) -> TrainingCurve:
    return dataclasses.replace(training, seconds=0.0)


def test_steps_to_a_loss_are_counted_along_the_line_between_two_points() -> None:
    assert curve(2.0, 1.0, 0.5).steps_to(1.5) == 5
    assert curve(2.0, 3.0, 1.0).steps_to(2.0) == 0
    assert curve(2.0, 3.0, 1.0).steps_to(1.5) == pytest.approx(17.5)
    assert curve(2.0, 1.0).steps_to(0.9) is None


def test_the_area_is_the_mean_loss_and_a_bad_point_counts_as_the_first() -> None:
    assert curve(2.0, 1.0, 0.0).area() == 1.0
    assert curve(2.0, 1000.0, 2.0).area() == 2.0
    broken = dataclasses.replace(curve(2.0, 1.0), steps=100)
    assert broken.area() is None


@pytest.mark.slow
def test_a_curve_starts_at_the_initial_weights_and_has_the_points_asked_for(data: Dataset) -> None:
    protocol = dataclasses.replace(TINY, evaluations=3)
    design = read_cells(CELL_201)
    found, network = train_curve(job(data, protocol, lr=0.05), evaluations=3)
    assert [p.step for p in found.curve] == [0, 1, 2, 3, 4, 5, 6]
    with seeded(0, "initial weights"):
        untrained = load("nasbench201").network(design.architecture(), (1, 4, 4), 2, channels=2, cells=1).eval()
    x, y = next(prepare(data).batches("test", size=16))
    loss = torch.nn.functional.cross_entropy(untrained(x), y).item()
    assert found.curve[0].loss == pytest.approx(loss)
    assert torch.nn.functional.cross_entropy(network.eval()(x), y).item() == pytest.approx(found.loss)
    assert TrainingCurve.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_the_curve_is_that_of_a_loop_written_by_hand(data: Dataset) -> None:
    protocol = dataclasses.replace(TINY, weight_decay=1e-3)
    found, network = train_curve(job(data, protocol, lr=0.1))
    with seeded(0, "initial weights"):
        mine = load("nasbench201").network(read_cells(CELL_201).architecture(), (1, 4, 4), 2, channels=2, cells=1)
    mine = mine.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    loader = prepare(data).loader(batch_size=16, seed=0, stream="train", augment=False)
    optimizer = torch.optim.SGD(mine.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    for epoch, rate in enumerate((0.1, 0.05)):
        optimizer.param_groups[0]["lr"] = rate
        for step in range(loader.steps):
            x, y = loader.batch(epoch, step)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(mine(x), y).backward()
            optimizer.step()
    for key, value in mine.state_dict().items():
        assert torch.equal(network.state_dict()[key], value), key
    assert [p.step for p in found.curve] == [0, 3, 6]


def test_a_training_whose_loss_explodes_is_kept_as_diverged(data: Dataset) -> None:
    found, _ = train_curve(job(data, TINY, lr=1e30))
    assert found.diverged
    json.dumps(found.to_dict(), allow_nan=False)


def test_darts_cells_and_their_variants_train_under_one_protocol(data: Dataset) -> None:
    design = read_cells("DARTS_V2")
    protocol = dataclasses.replace(TINY, epochs=1, cells=2)
    found = compare_cells([design, *variants(design, 1)], data, protocol=protocol, seeds=(0,), workers=1)
    rows = found.rows()
    assert [row.name for row in rows] == ["DARTS_V2", "DARTS_V2 connections 1"]
    assert all(row.steps_to_loss is not None and row.area is not None for row in rows)
    assert rows[0].parameters == design.parameters(channels=2, cells=2)
    assert rows[0].multiply_adds == design.multiply_adds(channels=2, cells=2) > rows[0].parameters


def test_rates_and_seeds_have_rows_with_their_spread(data: Dataset, tmp_path: Path) -> None:
    design = read_cells(CELL_201)
    found = compare_cells([design], data, protocol=TINY, lrs=(0.01, 0.1), seeds=(0, 1), out=tmp_path / "r", workers=1)
    rows = found.rows()
    assert [row.lr for row in rows] == [0.01, 0.1]
    assert rows[0].accuracy_spread is not None
    assert found.of(0, 0.1) == [t for t in found.trainings if t.lr == 0.1]
    stored = json.loads((tmp_path / "r" / "result.json").read_text())
    assert len(stored["trainings"]) == 4


def test_a_comparison_that_is_stopped_goes_on_and_gives_the_same(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = read_cells(CELL_201)
    whole = compare_cells([design], data, protocol=TINY, seeds=(0, 1, 2), workers=1)
    trained = list[int]()

    def counted(job: Job, *, evaluations: int) -> object:
        if len(trained) == 2 and job.seed == 2:
            trained.append(-1)
            raise KeyboardInterrupt
        trained.append(job.seed)
        return train_curve(job, evaluations=evaluations)

    monkeypatch.setattr(_convergence, "train_curve", counted)
    with pytest.raises(KeyboardInterrupt):
        compare_cells([design], data, protocol=TINY, seeds=(0, 1, 2), out=tmp_path / "r", workers=1)
    resumed = compare_cells([design], data, protocol=TINY, seeds=(0, 1, 2), out=tmp_path / "r", workers=1)
    assert trained == [0, 1, -1, 2]
    assert list(map(plain, resumed.trainings)) == list(map(plain, whole.trainings))
    again = compare_cells([design], data, protocol=TINY, seeds=(0, 1, 2), out=tmp_path / "r", workers=1)
    assert trained == [0, 1, -1, 2]
    assert again.trainings == resumed.trainings


def test_work_that_was_sent_to_another_process_gives_the_same_curve(data: Dataset) -> None:
    text = load("nasbench201").format(read_cells(CELL_201).architecture())
    work = _convergence._Work("nasbench201", data, TINY)
    sent = pickle.loads(pickle.dumps(work))
    assert plain(sent((text, 0.05, 1))) == plain(work((text, 0.05, 1)))


def test_a_folder_of_another_protocol_and_wrong_requests_are_refused(data: Dataset, tmp_path: Path) -> None:
    design = read_cells(CELL_201)
    compare_cells([design], data, protocol=TINY, seeds=(0,), out=tmp_path / "r", workers=1)
    with pytest.raises(RequestError, match="a comparison with epochs 2, not 3"):
        compare_cells([design], data, protocol=dataclasses.replace(TINY, epochs=3), seeds=(0,), out=tmp_path / "r")
    with pytest.raises(RequestError, match="different numbers above 0, got"):
        compare_cells([design], data, lrs=(0.0,))
    with pytest.raises(RequestError, match="epochs must be at least 1, got 0"):
        Protocol(epochs=0)


def test_cells_are_compared_on_classes_only(data: Dataset) -> None:
    numbers = dataclasses.replace(
        data,
        train_y=data.train_y.float()[:, None],
        test_y=None if data.test_y is None else data.test_y.float()[:, None],
        classes=("brightness",),
        task=Task("numbers"),
    )
    with pytest.raises(RequestError, match="by their accuracy on classes, and bright has numbers"):
        compare_cells([read_cells(CELL_201)], numbers, protocol=TINY, seeds=(0,), workers=1)
