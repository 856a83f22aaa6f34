"""Devices: which one, what the fake one refuses, and every workflow on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fakegpu
import pytest
import torch
from torch import nn

from command import run as run_command
from nasight import studies
from nasight.anatomy import hessian_spectrum, landscape
from nasight.compute import LossScale, choose_device, moved_note, to_device, to_host
from nasight.data import load, prepare
from nasight.errors import RequestError, RunError
from nasight.geometry import MirrorDescent
from nasight.kernels import SCORES, empirical_ntk, nasi_search, score, te_nas_prune
from nasight.reproducible import seeded
from nasight.searching import Progress
from nasight.spaces import load as load_space
from nasight.training import train

ARCH = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|none~2|"
SMALL = {"channels": 4, "cells": 1}


def test_a_device_that_is_not_here_is_refused_in_a_sentence() -> None:
    with pytest.raises(RequestError, match="device 'cuda' is not on this machine: torch sees the CPU alone"):
        choose_device("cuda")
    with pytest.raises(RequestError, match="one of auto, cpu, cuda, cuda:N or mps, got 'gpu'"):
        choose_device("gpu")


def test_auto_takes_the_best_there_is() -> None:
    assert choose_device("auto").type == "cpu"
    with fakegpu.present() as device:
        assert choose_device("auto") == device
        with pytest.raises(RequestError, match="there is no device 'fakegpu:3'"):
            choose_device("fakegpu:3")
    assert choose_device("auto").type == "cpu"


def test_the_fake_device_refuses_what_cuda_refuses() -> None:
    with fakegpu.present() as device:
        x, generator = torch.zeros(3, device=device), torch.Generator()
        with pytest.raises(RuntimeError, match="at least two, fakegpu:0 and cpu"):
            x + torch.ones(3)
        for draw in (
            lambda: x.uniform_(generator=generator),
            lambda: torch.rand(3, generator=generator, device=device),
        ):
            with pytest.raises(RuntimeError, match="generator"):
                draw()
        with pytest.raises(TypeError, match="to numpy"):
            x.numpy()
        assert (x + torch.ones(())).tolist() == [1, 1, 1]  # a single number of the CPU is no breach


def test_the_fake_device_counts_what_waits_and_fills_copies_only_when_it_was_waited_for() -> None:
    with fakegpu.present() as device, fakegpu.counting() as ledger:
        x = to_device(torch.arange(3.0), device)
        assert (ledger.synchronizations, ledger.to_device) == (0, 12)
        copy = x.to("cpu", non_blocking=True)
        assert bool(copy.isnan().all())
        torch.get_device_module(device).synchronize()
        assert copy.tolist() == [0, 1, 2]
        asked = (x.sum().item, x.tolist, lambda: bool((x > 0).any()), lambda: x[x > 0], x.cpu, lambda: x[[0, 1]])
        for number, ask in enumerate(asked, 2):
            ask()
            assert ledger.synchronizations == number
        assert all(place.startswith("test_device.py:") for place in ledger.waits)
        found = to_host({"a": [x, x + 1], "b": 3})
        assert (found["a"][1].tolist(), ledger.synchronizations) == ([1, 2, 3], len(asked) + 2)


def test_a_device_that_is_too_small_for_the_data_gets_the_same_batches_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared = prepare(load("digits"))
    settings: dict[str, Any] = {"batch_size": 16, "seed": 0, "stream": "train", "cutout": 2}
    near = prepared.loader(**settings)
    with fakegpu.present() as device:
        kept = prepared.loader(**settings).to(device)
        with fakegpu.counting() as ledger:
            found = [kept.batch(0, step) for step in range(3)]
        assert ledger.synchronizations == 0
        monkeypatch.setattr(fakegpu.MEMORY, "free", 1000)
        fed = prepared.loader(**settings).to(device)
        with fakegpu.counting() as more:
            again = [fed.batch(0, step) for step in range(3)]
        assert more.synchronizations == 0
        assert more.to_device > 16 * 64 * 3  # the pixels travel, not only the numbers of the rows
        for step in range(3):
            for wanted, one, two in zip(near.batch(0, step), found[step], again[step], strict=True):
                assert one.device == two.device == device
                assert torch.equal(one.cpu(), wanted)
                assert torch.equal(two.cpu(), wanted)


@pytest.mark.parametrize("channels", [1, 3])
def test_random_crops_and_colors_on_a_device_without_float64_are_those_of_the_cpu_without_a_wait(channels: int) -> None:
    pixels = torch.randint(0, 256, (24, channels, 9, 11), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    for x in (pixels, pixels / 255):
        prepared = prepare(load((x, torch.arange(24) % 2), augment="crop,shift=1,flip,jitter,cutout=2"))
        near = prepared.loader(batch_size=12, seed=0, stream="train")
        with fakegpu.present(double=False) as device:
            far = prepared.loader(batch_size=12, seed=0, stream="train").to(device)
            far.batch(0, 0)  # the first moves the mean and the deviation
            with fakegpu.counting() as ledger:
                found, _ = far.batch(0, 1)
            assert ledger.synchronizations == 0, ledger.waits
            assert torch.equal(found.cpu(), near.batch(0, 1)[0])


def test_dropout_of_a_users_module_follows_from_the_seed_on_a_device_too() -> None:
    with fakegpu.present() as device:

        def dropped(*keys: int) -> list[float]:
            with seeded(*keys, device=device):
                return nn.Dropout(0.5)(torch.ones(64, device=device)).tolist()

        assert dropped(0) == dropped(0) != dropped(1)


def test_a_step_that_is_not_finite_moves_nothing_and_is_told_when_asked_on_a_device() -> None:
    with fakegpu.present() as device:
        theta = torch.full((2, 4), 0.25).to(device).requires_grad_()
        descent = MirrorDescent([theta], lr=1.0)
        with fakegpu.counting() as ledger:
            for entry in (1.0, float("nan")):
                theta.grad = torch.zeros(2, 4, device=device)
                theta.grad[0, 0] = entry
                descent.step()
        assert ledger.synchronizations == 0
        near = torch.full((2, 4), 0.25, requires_grad=True)
        other = MirrorDescent([near], lr=1.0)
        near.grad = torch.zeros(2, 4)
        near.grad[0, 0] = 1.0
        other.step()
        torch.testing.assert_close(theta.detach().cpu(), near.detach())
        with pytest.raises(RunError, match="not finite"):
            descent.check()
        descent.check()  # told once


def test_every_score_on_a_device_is_that_of_the_cpu() -> None:
    given: dict[str, Any] = {"sample": 2, "workers": 1, "batch": 8, "size": SMALL}
    near = score("nasbench201", list(SCORES), "digits", device="cpu", **given)
    with fakegpu.present() as device:
        far = score("nasbench201", list(SCORES), "digits", device=str(device), **given)
    for name, values in near.values.items():
        assert far.values[name] == pytest.approx(values, rel=1e-4), name
    assert near.failed == far.failed


def test_a_device_without_float64_gives_the_same_kernels_scores_and_curvature() -> None:
    x, y = torch.randn(6, 1, 6, 6, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3
    with seeded(0):
        network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 3))
    kernels = [
        empirical_ntk(network, x, outputs=o, batch_norm=b) for o in ("sum", "full") for b in ("train", "coupled")
    ]
    curved = hessian_spectrum(network, x, y, generator=torch.Generator().manual_seed(0), probes=4)
    for double in (True, False):
        with fakegpu.present(double=double) as device, pytest.MonkeyPatch.context() as patch:
            if not double:
                patch.setattr("nasight.compute._device.NO_DOUBLE", ("mps", "fakegpu"))
            far = nn.Sequential(*network).to(device)
            again = [
                to_host(empirical_ntk(far, x.to(device), outputs=o, batch_norm=b))
                for o in ("sum", "full")
                for b in ("train", "coupled")
            ]
            generator = torch.Generator().manual_seed(0)
            found = hessian_spectrum(far, x.to(device), y.to(device), generator=generator, probes=4)
            far.to("cpu")
        for one, two in zip(kernels, again, strict=True):
            torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-6)
        assert (found.largest, found.trace) == pytest.approx((curved.largest, curved.trace), rel=1e-4)


def test_pruning_and_nasi_search_on_a_device_find_what_they_find_on_the_cpu() -> None:
    space, generator = load_space("mlp", layers=3), torch.Generator().manual_seed(0)
    x, y = torch.randn(6, 8, generator=generator), torch.arange(6) % 2
    thin: dict[str, Any] = {"classes": 2, "size": {"width": 6}, "number": 10, "repeats": 1}
    pruned, moved = te_nas_prune(space, x, **thin), nasi_search(space, [(x, y)], classes=2, size={"width": 6}, steps=3)
    with fakegpu.present() as device:
        far_x, far_y = x.to(device), y.to(device)
        assert te_nas_prune(space, far_x, **thin) == pruned
        assert nasi_search(space, [(far_x, far_y)], classes=2, size={"width": 6}, steps=3) == moved


def test_a_landscape_on_a_device_is_that_of_the_cpu() -> None:
    x, y = torch.randn(8, 1, 6, 6, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 3
    with seeded(0):
        network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 3))
    how: dict[str, Any] = {"points": 3, "variance": True, "batch_norm": "recomputed", "workers": 1}
    near = landscape(network, x, y, **how)
    with fakegpu.present() as device:
        far = landscape(network.to(device), x.to(device), y.to(device), **how)
    assert far.losses == pytest.approx(near.losses, rel=1e-5)
    assert far.variances == pytest.approx(near.variances, rel=1e-4)


@pytest.mark.slow
def test_a_training_on_a_device_is_that_of_the_cpu_with_one_wait_per_epoch_and_one_per_checkpoint(
    tmp_path: Path,
) -> None:
    for space, arch, more in (
        ("nasbench201", ARCH, {"cutout": 2}),
        ("darts", "DARTS_V2", {"drop_path": 0.3, "size": {"channels": 4, "cells": 3}}),
    ):
        how: dict[str, Any] = {"preset": "tiny", "epochs": 2, "examples": 96, "checkpoint_seconds": 1e9, **more}
        near = train(space, arch, "digits", device="cpu", **how)
        with fakegpu.present() as device, fakegpu.counting() as ledger:
            far = train(space, arch, "digits", device=str(device), out=tmp_path / space, **how)
        # The figures of the result are of outputs that the last epoch has read already.
        assert ledger.synchronizations == 2 + 2, ledger.kinds
        for one, two in zip(near.curve, far.curve, strict=True):
            assert (two.train_loss, two.test_loss) == pytest.approx((one.train_loss, one.test_loss), rel=1e-4)
            assert two.test_accuracy == pytest.approx(one.test_accuracy, abs=1.0)


class Notes(Progress):
    """Stops a search in its second epoch; keeps what is said."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop, self.said = stop, list[str]()

    def step(self, epoch: int, step: int) -> None:
        if self.stop is not None and (epoch, step) == (1, self.stop):
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.said.append(text)


def _figures(run: Any) -> list[tuple[Any, ...]]:
    return [(row["train_loss"], row["valid_loss"], row["architecture"], str(row["weights"])) for row in run.history]


@pytest.mark.slow
def test_a_search_on_a_device_resumes_exactly_and_on_another_kind_of_device_says_so(tmp_path: Path) -> None:
    how: dict[str, Any] = {"preset": "tiny", "epochs": 2, "examples": 120, "size": SMALL, "checkpoint_seconds": 0}
    how["batch_size"] = 16
    near = studies.search("nasbench201", "gdas", "digits", out=tmp_path / "near", device="cpu", **how)
    with fakegpu.present() as device:
        whole = studies.search("nasbench201", "gdas", "digits", out=tmp_path / "whole", device=str(device), **how)
        for name in ("far", "moved"):
            out = tmp_path / name
            with pytest.raises(KeyboardInterrupt):
                studies.search("nasbench201", "gdas", "digits", out=out, device=str(device), progress=Notes(1), **how)
        again = studies.resume(tmp_path / "far", progress=(silent := Notes()))
        assert (_figures(again), silent.said) == (_figures(whole), [])
        assert all(map(torch.equal, again.supernet().state_dict().values(), whole.supernet().state_dict().values()))
    moved = studies.resume(tmp_path / "moved", progress=(notes := Notes()))
    assert notes.said == [moved_note("fakegpu:0", "cpu")]
    assert "started on fakegpu, resumed on cpu" in notes.said[0]
    for run in (moved, whole):
        assert [row[2] for row in _figures(run)] == [row[2] for row in _figures(near)]
        for row, wanted in zip(_figures(run), _figures(near), strict=True):
            assert row[:2] == pytest.approx(wanted[:2], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "each"), [("gaea-darts", 2), ("rs-ws", 2), ("snas", 1), ("setn", 3)])
def test_an_epoch_of_a_search_waits_once_for_its_figures_and_checkpoint_and_once_for_weights_or_candidates(
    tmp_path: Path, method: str, each: int
) -> None:
    how: dict[str, Any] = {"preset": "tiny", "examples": 120, "size": {"width": 8}, "arch_lr": 0.1, "batch_size": 16}
    how["checkpoint_seconds"] = 1e9
    found = []
    with fakegpu.present() as device:
        for epochs in (1, 2):
            with fakegpu.counting() as ledger:
                out = tmp_path / f"{epochs}"
                studies.search("mlp", method, "digits", epochs=epochs, out=out, device=str(device), **how)
            found.append(ledger.synchronizations - _in_steps(ledger))
    assert found[1] - found[0] == each


def _in_steps(ledger: fakegpu.Ledger) -> int:
    """Waits at the lines at which a step takes its gradient."""
    return sum(number for place, number in ledger.waits.items() if place.startswith("searching/_engine_step.py"))


@pytest.mark.slow
def test_explain_rank_and_cells_on_a_device_say_what_they_say_on_the_cpu(tmp_path: Path) -> None:
    how: dict[str, Any] = {"preset": "tiny", "epochs": 1, "examples": 120, "size": {"width": 8}, "arch_lr": 0.1}
    run = studies.search("mlp", "gaea-darts", "digits", out=tmp_path / "run", device="cpu", **how)
    near = studies.explain(run, device="cpu", examples=40).to_dict()
    (run.path / "trust.json").unlink()
    sampled: dict[str, Any] = {"sample": 4, "epochs": 1, "metrics": ("naswot", "knas"), "examples": 60}
    ranked = studies.rank(run, device="cpu", **sampled)
    shutil.rmtree(run.path / "resolve")
    design, protocol = studies_design(), studies.Protocol(epochs=1, channels=4, cells=1, examples=64, test_examples=32)
    cells = studies.compare_cells([design], "digits", protocol=protocol, seeds=(0,), workers=1, device="cpu")
    with fakegpu.present() as device:
        far = studies.explain(run, device=str(device), examples=40).to_dict()
        for one, two in zip(near["decisions"], far["decisions"], strict=True):
            assert (two["choice"], two["verdict"]) == (one["choice"], one["verdict"])
            assert two["margin"] == pytest.approx(one["margin"], abs=1e-5)
        again = studies.rank(run, device=str(device), **sampled)
        assert (again.architectures, again.accuracies) == (ranked.architectures, ranked.accuracies)
        for name, values in ranked.predictions.items():
            assert again.predictions[name] == pytest.approx(values, rel=1e-4), name
        told = studies.compare_cells([design], "digits", protocol=protocol, seeds=(0,), device=str(device))
        assert told.trainings[0].loss == pytest.approx(cells.trainings[0].loss, rel=1e-4)


@pytest.mark.slow
def test_a_find_on_a_device_that_goes_on_on_the_cpu_says_so_and_finds_what_one_on_the_cpu_does(tmp_path: Path) -> None:
    how: dict[str, Any] = {"trainings": 21, "epochs": 1, "space": "mlp", "workers": 1}
    digits = load("digits")
    rows = (digits.train_x[:300].numpy(), digits.train_y[:300].numpy())
    answer = studies.find(rows, out=tmp_path / "near", device="cpu", **how)

    def leave(event: str, values: Mapping[str, Any]) -> None:
        if values.get("stage") == "answer":
            raise KeyboardInterrupt

    stopped = pytest.raises(KeyboardInterrupt, match="stopped; resume with: nasight find --resume")
    with fakegpu.present() as device, stopped:
        studies.find(rows, out=tmp_path / "far", device=str(device), progress=leave, **how)
    told = list[str]()
    listen = lambda event, values: told.append(values.get("text", ""))  # noqa: E731
    found = studies.resume_find(tmp_path / "far", data=rows, device="cpu", progress=listen)
    assert told[0] == moved_note("fakegpu:0", "cpu")
    for key in ("architecture", "better", "recipe"):
        assert found.result[key] == answer.result[key]


def test_the_kernel_of_a_finite_network_is_the_same_on_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["kernel", "--activations", "relu,tanh", "--samples", "12", "--width", "16", "--json"]
    with fakegpu.present() as device:
        assert [run_command(*given, "--device", name) for name in ("cpu", str(device))] == [0, 0]
    near, far = (json.loads(line)["finite"] for line in capsys.readouterr().out.splitlines())
    assert far == pytest.approx(near, rel=1e-9)


@pytest.mark.slow
def test_a_search_without_training_goes_on_on_another_device_and_says_so(tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "preset": "tiny",
        "candidates": 6,
        "top": 2,
        "epochs": 1,
        "examples": 64,
        "size": {"width": 8},
    }
    near = studies.search("mlp", "naswot", "digits", out=tmp_path / "near", device="cpu", **how)

    class Leaves(Notes):
        def note(self, text: str) -> None:
            raise KeyboardInterrupt

    with fakegpu.present() as device, pytest.raises(KeyboardInterrupt):
        studies.search("mlp", "naswot", "digits", out=tmp_path / "far", device=str(device), progress=Leaves(), **how)
    again = studies.resume(tmp_path / "far", progress=(notes := Notes()))
    assert notes.said[0] == moved_note("fakegpu:0", "cpu")
    assert again.result["architecture"] == near.result["architecture"]


def studies_design() -> Any:
    from nasight.anatomy import read_cells

    return read_cells(ARCH)


def test_the_scale_of_a_loss_halves_at_a_gradient_that_overflows_and_skips_it_without_a_wait() -> None:
    with fakegpu.present() as device:
        scale = LossScale(device, "16", first=4.0, patience=2)
        one = torch.ones(3, device=device)
        with fakegpu.counting() as ledger:
            assert scale.scaled(one.sum()) is not None
            steps = [scale.restored([one * 8]), scale.restored([one * float("inf"), one]), scale.restored([one * 8])]
            steps.append(scale.restored([one * 8]))
            last = scale.restored([one * 8])
        assert ledger.synchronizations == 0
        assert steps[0][0].tolist() == [2, 2, 2]
        assert [grad.tolist() for grad in steps[1]] == [[0, 0, 0], [0, 0, 0]]  # left out
        assert steps[2][0].tolist() == [4, 4, 4]  # by 2
        assert last[0].tolist() == [2, 2, 2]  # two good steps, and it doubled
