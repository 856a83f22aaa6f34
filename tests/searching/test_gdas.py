"""GDAS's three estimators against numbers that follow from the formulas in docs/faithful.md, section C."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from nasight.data import load as load_data
from nasight.searching import METHODS, _relaxations, resolve
from nasight.searching._engine import Engine
from nasight.searching._relaxations import GumbelConstants, HardGumbel, StepContext, StraightThrough
from nasight.searching._stages import Span
from nasight.spaces import CONSTANTS, Group, load

NOISE = torch.tensor([0.3, 0.5, -0.2], dtype=torch.float64)
ALPHA, THETA = (0.2, -0.1, 0.4), (0.5, 0.2, 0.3)
OUTPUTS = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [3.0, -2.0]], dtype=torch.float64)
READOUT = torch.tensor([0.5, -1.0], dtype=torch.float64)
GROUP = Group("operations", ("edge",), (("a", "b", "c"),))


def gradient(relaxation: HardGumbel, values: tuple[float, ...], log: bool, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """d loss / d parameters on one edge of three operations; the loss is (y - 1)^2 / 2 of a linear readout."""
    monkeypatch.setattr(_relaxations, "gumbel", lambda like, generator: NOISE)
    given = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    log_theta = (given.log() if log else given.log_softmax(-1))[None]
    context = StepContext(SimpleNamespace(constants=True), (GROUP,), 0.0, torch.Generator())  # type: ignore[arg-type]
    weights = relaxation.weights({"operations": log_theta.exp()}, {"operations": log_theta}, context)
    row = weights["operations"][0]
    drawn = row.detach() != 0
    kept = drawn if relaxation.skip_zeros else torch.ones_like(drawn)
    feature = sum((h * o for h, o, k in zip(row, OUTPUTS, kept.tolist(), strict=True) if k), torch.zeros(2)) + (
        weights[CONSTANTS][0] if CONSTANTS in weights else 0.0
    )
    loss = 0.5 * (feature @ READOUT - 1.0) ** 2
    assert loss.item() == pytest.approx(3.125)
    return torch.autograd.grad(loss, given)[0]


@pytest.mark.parametrize(
    ("relaxation", "values", "log", "expected"),
    [
        (GumbelConstants(hottest=2.0), ALPHA, False, (0.286445, -0.150378, -0.136068)),
        (StraightThrough(hottest=2.0), ALPHA, False, (0.755527, 0.507253, -1.262779)),
        (HardGumbel(hottest=2.0), ALPHA, False, (0.429668, -0.225567, -0.204101)),
        (GumbelConstants(hottest=2.0), THETA, True, (0.614229, -0.824219, -0.474236)),
        (StraightThrough(hottest=2.0), THETA, True, (1.587551, 1.825361, -3.862825)),
    ],
)
def test_gradients_are_those_of_the_formulas(
    relaxation: HardGumbel,
    values: tuple[float, ...],
    log: bool,
    expected: tuple[float, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gradient(relaxation, values, log, monkeypatch).tolist() == pytest.approx(expected, abs=1e-6)


def test_the_rows_bear_the_estimators_their_names_say() -> None:
    kinds = {name: type(METHODS[name].relaxation) for name in METHODS if "gdas" in name}
    assert kinds == {
        f"{prefix}gdas{suffix}": kind
        for suffix, kind in (("", GumbelConstants), ("-drawn", HardGumbel), ("-straight", StraightThrough))
        for prefix in ("", "gaea-")
    }


def passes(path: str, weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Loss and its gradient in the constants, under the same shared weights on either path."""
    torch.manual_seed(0)
    supernet = load("nasbench201", none=False).supernet((3, 8, 8), 5, path=path, channels=4, cells=2).double()
    weights = {name: value.double() for name, value in weights.items()}
    constants = weights[CONSTANTS].clone().requires_grad_()
    x = torch.randn(6, 3, 8, 8).double()
    logits = supernet(x, {**weights, CONSTANTS: constants}, skip_zeros=True)
    loss = torch.nn.functional.cross_entropy(logits, torch.arange(6) % 5)
    return loss.detach(), torch.autograd.grad(loss, constants)[0]


def test_constants_are_added_to_what_an_edge_gives_and_both_paths_agree() -> None:
    space = load("nasbench201", none=False)
    chosen = space.encode(space.sample(torch.Generator().manual_seed(3)))
    at = {**chosen, CONSTANTS: torch.tensor([0.2, -0.1, 0.3, 0.0, 0.1, -0.3])}
    (loss, grad), (by_hand, other) = passes("fast", at), passes("plain", at)
    torch.testing.assert_close(loss, by_hand)
    torch.testing.assert_close(grad, other)
    assert float(grad.abs().min()) > 0
    # A central difference: the gradient is that of numbers which are really added.
    step = 1e-6
    for edge, one in enumerate(torch.eye(6).double()):
        up, down = (passes("plain", {**at, CONSTANTS: at[CONSTANTS] + sign * step * one})[0] for sign in (1, -1))
        assert float(up - down) / (2 * step) == pytest.approx(float(grad[edge]), rel=1e-4)


def supernet_gradient(kind: type[HardGumbel], seed: int) -> Tensor:
    """The gradient of the architecture at uniform weights, in a NAS-Bench-201 supernet that has learned nothing."""
    space = load("nasbench201", none=False)
    torch.manual_seed(seed)
    supernet = space.supernet((3, 8, 8), 10, channels=8, cells=1).double()
    x, y = torch.randn(64, 3, 8, 8).double(), torch.arange(64) % 10
    (group,) = space.groups()
    alpha = torch.zeros(group.shape, dtype=torch.float64, requires_grad=True)
    logs = alpha.log_softmax(-1)
    context = StepContext(space, (group,), 0.0, torch.Generator().manual_seed(seed))
    weights = kind().weights({group.name: logs.exp()}, {group.name: logs}, context)
    loss = torch.nn.functional.cross_entropy(supernet(x, weights, skip_zeros=bool(kind.skip_zeros)), y)
    return torch.autograd.grad(loss, alpha)[0].flatten()


def test_in_a_supernet_the_released_estimator_points_elsewhere_than_the_straight_through_one() -> None:
    pairs = [(supernet_gradient(GumbelConstants, s), supernet_gradient(StraightThrough, s)) for s in range(8)]
    cosines = torch.stack([torch.cosine_similarity(a, b, dim=0) for a, b in pairs])
    # The same draws, weights and rows: with one estimator for both, all would be 1. Seen: -0.04 to 0.55, mean 0.24.
    assert -0.3 < float(cosines.min()) < 0.3
    assert 0.3 < float(cosines.max()) < 0.8
    assert float(cosines.mean()) == pytest.approx(0.24, abs=0.1)


def test_where_a_space_takes_no_constants_the_released_estimator_is_that_of_what_was_drawn() -> None:
    space = load("darts")
    theta = {group.name: group.uniform() for group in space.groups()}
    logs = {name: rows.log() for name, rows in theta.items()}
    drawn = [
        kind().weights(theta, logs, StepContext(space, space.groups(), 0.0, torch.Generator().manual_seed(1)))
        for kind in (GumbelConstants, HardGumbel)
    ]
    assert drawn[0].keys() == drawn[1].keys()
    for name, rows in drawn[0].items():
        assert torch.equal(rows, drawn[1][name])


def test_the_temperature_of_gaea_s_gdas_is_held_in_warm_up_and_ends_at_3_42() -> None:
    span, space = Span(0, 150, 50), load("nasbench201")
    relaxation = METHODS["gaea-gdas"].relaxation
    assert isinstance(relaxation, HardGumbel)

    def at(epoch: int) -> float:
        since = span.since(epoch)
        return relaxation.temperature(StepContext(space, space.groups(), 0.0, torch.Generator(), since=since))

    # liamcli/gaea_release@1604615, architect_egdas.py: 10 - 9.9 max(epoch - 50, 0) / (epochs - 1).
    for epoch in range(150):
        assert at(epoch) == pytest.approx(10 - 9.9 * max(epoch - 50, 0) / 149)
    assert at(149) == pytest.approx(3.4221, abs=1e-4)
    # GDAS itself has no warm-up and falls to 0.1.
    assert Span(0, 250, 0).since(249) == 1.0


def test_gaea_s_gdas_pulls_weights_to_uniform_ones() -> None:
    geometry = METHODS["gaea-gdas"].geometry
    theta = torch.nn.Parameter(torch.tensor([[0.5, 0.2, 0.3]], dtype=torch.float64))
    optimizer = geometry.optimizer({"operations": theta}, (GROUP,), lr=0.1)
    theta.grad = torch.tensor([[0.614229, -0.824219, -0.474236]], dtype=torch.float64)
    optimizer.step()
    # d/dx of 0.01 sum x log(3 x) is 0.01 (1 + log(3 x)); the step multiplies with exp(-0.1 gradient).
    pulled = [
        0.614229 + 0.01 * (1 + math.log(1.5)),
        -0.824219 + 0.01 * (1 + math.log(0.6)),
        -0.474236 + 0.01 * (1 + math.log(0.9)),
    ]
    moved = [x * math.exp(-0.1 * g) for x, g in zip((0.5, 0.2, 0.3), pulled, strict=True)]
    assert theta.detach()[0].tolist() == pytest.approx([x / sum(moved) for x in moved], abs=1e-9)


def one_shot(preset: str, **more: object) -> Engine:
    """GDAS on NAS-Bench-1Shot1, before its first step."""
    space, row = load("nasbench1shot1-1"), METHODS["gdas"]
    found = resolve(row, space, data="digits", preset=preset, examples=200, batch_size=32, threads=1, **more)
    return Engine(found, space, load_data("digits"), row)


def temperature(made: Engine, epoch: int) -> float:
    assert isinstance(made.relaxation, HardGumbel)
    return made.relaxation.temperature(made._context(epoch, torch.Generator()))


def test_on_nasbench1shot1_the_temperature_of_each_of_100_epochs_is_the_released_one() -> None:
    made = one_shot("paper", size={"channels": 4, "cells": 1})
    assert made.settings.epochs == 100
    # automl/nasbench-1shot1@cb0f0ec, optimizers/gdas/train_search.py: 10, and after each epoch (1 - 10) / 100 more.
    assert [temperature(made, e) for e in range(100)] == pytest.approx([10 - 0.09 * e for e in range(100)])
    assert temperature(made, 99) == pytest.approx(1.09)
    # Other presets take the temperature of the row, which is NAS-Bench-201's.
    assert temperature(one_shot("tiny", epochs=100), 99) == pytest.approx(0.1)


def test_under_the_preset_paper_weights_of_inputs_have_noise_there_and_elsewhere_none() -> None:
    theta = {"operations": torch.full((4, 3), 1 / 3), "inputs": torch.tensor([0.5, 0.3, 0.2, *[0.25] * 4, *[0.2] * 5])}
    logs = {name: rows.log() for name, rows in theta.items()}
    for preset, noisy in (("paper", True), ("tiny", False)):
        made = one_shot(preset, size={"channels": 4, "cells": 1})
        at = made._context(0, torch.Generator().manual_seed(0))
        rows = made.groups[1].split(made.relaxation.weights(theta, logs, at)["inputs"])
        assert [float(row.sum()) for row in rows] == pytest.approx([1.0] * 3)
        assert (rows[0].tolist() == pytest.approx([0.5, 0.3, 0.2])) is not noisy


def test_noisy_weights_of_edges_are_the_softmax_of_logarithms_and_noise_over_the_temperature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_relaxations, "gumbel", lambda like, generator: torch.tensor([0.3, 0.5]))
    group = Group("inputs", ("node",), (("0", "1"),), exclusive=False)
    theta = {"inputs": torch.tensor([[0.8, 0.2]])}
    at = StepContext(load("nasbench1shot1-1"), (group,), 0.0, torch.Generator())
    found = HardGumbel(hottest=2.0, noisy_edges=True).weights(theta, {"inputs": theta["inputs"].log()}, at)["inputs"]
    # 1 / (1 + exp((log 0.2 + 0.5 - log 0.8 - 0.3) / 2))
    assert found[0].tolist() == pytest.approx([0.644087, 0.355913], abs=1e-6)
