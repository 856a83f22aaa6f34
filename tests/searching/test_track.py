"""Event files are read back with TensorBoard's own reader."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasight.cli import main
from nasight.cli._progress import Bar, compact
from nasight.errors import RequestError, RunError
from nasight.searching import Progress, Run, resume, search
from nasight.searching import _track as track_module
from nasight.searching._settings import resolve
from nasight.searching.methods import method_row
from nasight.spaces import load
from nasight.spaces.darts import POPULAR

SMALL: dict[str, Any] = {
    "data": "digits",
    "preset": "tiny",
    "examples": 64,
    "size": {"channels": 4, "cells": 1},
    "epochs": 3,
    "batch_size": 16,
    "threads": 1,
}


@pytest.fixture
def without_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track_module, "find_spec", lambda name: None)


def read(run: Path) -> Any:
    pytest.importorskip("tensorboard", reason="the extra `track` is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    return found


def series(found: Any, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in found.Scalars(tag)]


def assert_tells_the_history(run: Run) -> None:
    found, history = read(run.path), run.history
    pairs = {
        "accuracy/train": "train_accuracy",
        "accuracy/valid": "valid_accuracy",
        "accuracy/discrete": "discrete_accuracy",
        "loss/train": "train_loss",
        "loss/valid": "valid_loss",
        "loss/discrete": "discrete_loss",
        "entropy": "entropy",
        "drop": "drop",
        "rate/weights": "lr",
    }
    for tag, key in pairs.items():
        told = [(row["epoch"] + 1, row[key]) for row in history]
        assert series(found, tag) == [(step, pytest.approx(value, rel=1e-6)) for step, value in told], tag
    for group in run.space.groups():
        for i, (name, options) in enumerate(zip(group.rows, group.options, strict=True)):
            for j, option in enumerate(options):
                told = [row["weights"][group.name][i][j] for row in history]
                values = [value for _, value in series(found, f"weights/{group.name}/{name}/{option}")]
                assert values == pytest.approx(told, rel=1e-6)
    texts = [event.tensor_proto.string_val[0].decode() for event in found.Tensors("architecture/text_summary")]
    assert texts == [f"`{row['architecture']}`" for row in history]


class StopAt(Progress):
    """Interrupts at a step, or as an epoch's row is told (the row is in the history, but not yet in the events)."""

    def __init__(self, *, step: tuple[int, int] | None = None, epoch: int | None = None) -> None:
        self.at_step, self.at_epoch = step, epoch

    def step(self, epoch: int, step: int) -> None:
        if (epoch, step) == self.at_step:
            raise KeyboardInterrupt

    def epoch(self, row: Any) -> None:
        if row["epoch"] == self.at_epoch:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("stop", [{"step": (1, 1)}, {"epoch": 1}], ids=["mid-epoch", "before the event is written"])
def test_the_events_of_a_resumed_search_have_every_epoch_once(tmp_path: Path, stop: dict[str, Any]) -> None:
    pytest.importorskip("tensorboard", reason="the extra `track` is not installed")
    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "r", progress=StopAt(**stop), track="tensorboard", **SMALL)
    assert series(read(tmp_path / "r"), "entropy")[0][0] == 1
    run = resume(tmp_path / "r", track="tensorboard")
    assert len(list((tmp_path / "r" / "tensorboard").iterdir())) == 1
    assert_tells_the_history(run)


@pytest.mark.slow
def test_a_search_tracked_only_from_its_resumption_shows_its_first_epochs_too(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra `track` is not installed")
    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "r", progress=StopAt(step=(2, 0)), **SMALL)
    assert not (tmp_path / "r" / "tensorboard").exists()
    assert_tells_the_history(resume(tmp_path / "r", track="tensorboard"))


def test_tracking_changes_no_number_of_the_search(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra `track` is not installed")
    settings = {**SMALL, "epochs": 1}
    plain, watched = (search(out=tmp_path / str(t), track=t, **settings) for t in (None, "tensorboard"))
    assert [row["weights"] for row in plain.history] == [row["weights"] for row in watched.history]
    assert plain.result["accuracy"] == watched.result["accuracy"]


def test_ragged_edge_weights_have_a_line_each(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra `track` is not installed")
    space = load("darts")
    groups = space.groups(edges=True)
    board = track_module.TensorBoard(tmp_path, groups)
    row = {"weights": {group.name: group.uniform().tolist() for group in groups}, "drop": None}
    told = dict(board._scalars({**row, "entropy": 0.0, "lr": 0.1, "arch_lr": 0.0}))
    weights = {tag: value for tag, value in told.items() if tag.startswith("weights/")}
    assert len(weights) == sum(sum(group.sizes) for group in groups)
    assert sum(weights.values()) == pytest.approx(sum(len(group.rows) for group in groups))


@pytest.mark.usefixtures("without_tensorboard")
def test_without_the_package_one_sentence_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["search", "--preset", "tiny", "--track", "tensorboard", "--out", str(tmp_path / "r")])
    assert ended.value.code == 2
    assert "pip install 'nasight[track]'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--track", "wandb"], "track must be tensorboard, got 'wandb'"), (["--method", "eigen"], "has no epochs")],
)
def test_what_cannot_be_tracked_is_refused_before_a_folder_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["search", "--track", "tensorboard", *arguments, "--preset", "tiny", "--out", str(tmp_path / "r")])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_events_that_cannot_be_written_end_in_a_sentence_and_leave_the_run_resumable(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra `track` is not installed")

    class Block(Progress):
        def begin(self, settings: Any, steps: int, done: int) -> None:
            (tmp_path / "r" / "tensorboard").write_text("a file where the folder should be")

    with pytest.raises(RunError, match=r"cannot write .*tensorboard: .*without --track"):
        search(out=tmp_path / "r", progress=Block(), track="tensorboard", **{**SMALL, "epochs": 1})
    assert resume(tmp_path / "r").finished


def test_a_wrong_tracker_is_refused_in_python_too(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="track must be tensorboard, got 'mlflow'"):
        search(out=tmp_path / "r", track="mlflow", **SMALL)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "|nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|avg_pool_3x3~0|nor_conv_3x3~1|none~2|",
            "conv3 · skip conv1 · avg3 conv3 none",
        ),
        ("relu,tanh,sin/none,layer 1", "relu,tanh,sin/none,layer 1"),
        ("conv3x3(0)|maxpool3x3(0+1)|out(2)", "conv3(0)|maxpool3(0+1)|out(2)"),
    ],
)
def test_a_cell_is_told_in_short_names(text: str, short: str) -> None:
    assert compact(text) == short


def test_the_edges_of_a_darts_cell_are_told_with_their_inputs() -> None:
    space = load("darts")
    text = space.format(space.parse("DARTS_V2"))
    assert "DARTS_V2" in POPULAR
    assert compact(text).startswith("normal sep3<0 sep3<1 ")
    assert compact(text).count("<") == 16
    assert len(compact(text)) < len(text) / 2


@pytest.mark.parametrize("width", [40, 120])
def test_on_a_terminal_accuracy_entropy_and_cell_stand_under_the_bar_within_its_width(
    tiny: Callable[..., Run], width: int
) -> None:
    run = tiny(epochs=1, examples=64)
    row = {**run.history[0], "epoch": 0}
    shown = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    bar = Bar(shown)
    bar.begin(resolve(method_row("gaea-darts"), run.space, data="digits", preset="tiny", epochs=2), 3, 3)
    try:
        bar.epoch(row)
        plain = Console(file=io.StringIO(), width=width)
        plain.print(bar.bars.get_renderable())
        lines = plain.file.getvalue().splitlines()  # type: ignore[attr-defined]
    finally:
        bar.close()
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    assert f"valid {row['valid_accuracy']:.1f} %" in lines[1]
    if width == 120:
        assert f"entropy {row['entropy']:.3f}" in lines[1]
        assert lines[2].split(" ", 1)[1].strip() == compact(row["architecture"])
    left = shown.file.getvalue()  # type: ignore[attr-defined]
    assert left.rstrip().replace("\n", "").endswith(row["architecture"])
    assert left.count("\x1b[?25l") == left.count("\x1b[?25h") == 1  # the cursor was hidden, and is back
