from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nasight.errors import RequestError
from nasight.spaces import Supernet, load
from nasight.spaces.fast._depthwise import average_pool, depthwise
from nasight.spaces.fast._fold import add_normalized, normalized_relu

torch.set_num_threads(1)
SPACE = load("darts")


def supernet(inputs: tuple[int, int, int] = (3, 8, 8), **settings: object) -> Supernet:
    torch.manual_seed(0)
    return SPACE.supernet(inputs, 5, channels=8, cells=3, **settings).double()


def drawn(net: Supernet, kind: str) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    if kind == "mixture":
        return {g.name: torch.rand(g.shape, generator=generator, dtype=torch.float64) for g in net.groups}
    weights = SPACE.encode(SPACE.sample(generator), edges=len(net.groups) > 2)
    return {name: w.double() for name, w in weights.items()}


def outcome(net: Supernet, x: Tensor, weights: dict[str, Tensor], skip_zeros: bool) -> dict[str, Tensor]:
    """Logits and the gradients of images, architecture weights and parameters."""
    given = {name: w.clone().requires_grad_() for name, w in weights.items()}
    x = x.clone().requires_grad_()
    net.zero_grad()
    logits = net(x, given, skip_zeros=skip_zeros)
    F.cross_entropy(logits, torch.arange(len(x)) % 5).backward()
    gradients = {name: w.grad for name, w in [("images", x), *given.items(), *net.named_parameters()]}
    return {"logits": logits.detach(), **{n: g.clone() for n, g in gradients.items() if g is not None}}


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [(3, 8, 8), (1, 7, 9)])
@pytest.mark.parametrize(("partial", "edges"), [(1, False), (1, True), (4, False), (4, True)])
@pytest.mark.parametrize(("kind", "skip_zeros"), [("mixture", False), ("one-hot", True), ("one-hot", False)])
def test_both_paths_agree_in_logits_and_all_gradients(
    inputs: tuple[int, int, int], partial: int, edges: bool, kind: str, skip_zeros: bool
) -> None:
    net = supernet(inputs, partial=partial, edges=edges)
    x = torch.randn(6, *inputs, dtype=torch.float64)
    weights = drawn(net, kind)
    net.path = "plain"
    plain = outcome(net, x, weights, skip_zeros)
    net.path = "fast"
    fast = outcome(net, x, weights, skip_zeros)
    for name, value in plain.items():
        # Not every kernel has a gradient in a one-hot network: there the fast path may have none or zeros.
        other = fast.get(name, torch.zeros_like(value))
        assert float((value - other).abs().max()) <= 1e-9 * max(1.0, float(value.abs().max())), name
    assert all(float(fast[g.name].abs().max()) > 1e-6 for g in net.groups)


@pytest.mark.slow
def test_a_tie_in_a_pool_sends_its_gradient_to_the_same_pixel_on_both_paths() -> None:
    net = supernet((1, 8, 8))
    x = torch.zeros(4, 1, 8, 8, dtype=torch.float64)
    x[:, :, 3:6, 2:5] = torch.rand(4, 1, 1, 1, dtype=torch.float64)
    runs = []
    for net.path in ("plain", "fast"):
        runs.append(outcome(net, x, drawn(net, "mixture"), False))
    assert torch.allclose(runs[0]["images"], runs[1]["images"], rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_skipping_zeros_changes_no_logit() -> None:
    for path, edges in itertools.product(("plain", "fast"), (False, True)):
        net = supernet(path=path, edges=edges)
        x, weights = torch.randn(4, 3, 8, 8, dtype=torch.float64), drawn(net, "one-hot")
        assert torch.allclose(net(x, weights, skip_zeros=True), net(x, weights, skip_zeros=False), atol=1e-12)


def test_a_weight_of_zero_has_a_gradient_unless_zeros_are_skipped() -> None:
    net = supernet()
    x, weights = torch.randn(4, 3, 8, 8, dtype=torch.float64), drawn(net, "one-hot")
    unused = weights["normal"][:, 1:] == 0
    kept = outcome(net, x, weights, False)["normal"][:, 1:][unused]
    skipped = outcome(net, x, weights, True)["normal"][:, 1:][unused]
    assert bool((kept != 0).any())
    assert bool((skipped == 0).all())


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_the_supernet_at_an_encoded_architecture_is_a_network_of_its_operations(path: str) -> None:
    """All skips and no strides: each node of a normal cell is the sum of two earlier ones."""
    net = supernet(path=path)
    choices = {d.name: "none" for d in SPACE.decisions}
    for kind, target in itertools.product(("normal", "reduce"), range(2, 6)):
        choices |= {f"{kind} 0->{target}": "skip_connect", f"{kind} 1->{target}": "skip_connect"}
    weights = {n: w.double() for n, w in SPACE.encode(SPACE.architecture(choices)).items()}
    seen: list[Tensor] = []
    net.cells[1].inputs[1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    net(x, weights)
    stem = net.stem(x)
    node = net.cells[0].inputs[0](stem) + net.cells[0].inputs[1](stem)
    assert torch.allclose(seen[0], torch.cat([node] * 4, 1), atol=1e-12)


def test_none_has_no_effect_but_its_share() -> None:
    without = load("darts", none=False)
    torch.manual_seed(0)
    smaller = without.supernet((3, 8, 8), 5, channels=8, cells=3).double()
    net = supernet()
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    weights = drawn(net, "mixture")
    assert torch.equal(net(x, weights), smaller(x, {n: w[:, 1:] for n, w in weights.items()}))


def test_channels_that_cannot_be_cut_are_refused() -> None:
    with pytest.raises(RequestError, match="8 channels cannot be cut into 3"):
        supernet(partial=3)


@pytest.mark.parametrize(
    ("side", "stride", "dilation"), [(3, 1, 1), (5, 1, 1), (3, 1, 2), (5, 1, 2), (3, 2, 1), (5, 2, 2)]
)
@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (2, 3, 7, 5), (2, 3, 2, 1), (2, 3, 4, 3), (2, 3, 1, 1)])
def test_depthwise_convolution_has_the_gradients_of_the_library(
    side: int, stride: int, dilation: int, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64).requires_grad_()
    kernel = torch.randn(3, 1, side, side, dtype=torch.float64).requires_grad_()
    ours = depthwise(x, kernel, stride, dilation)
    theirs = F.conv2d(x, kernel, None, stride, dilation * (side // 2), dilation, 3)
    assert torch.allclose(ours, theirs)
    probe = torch.randn_like(theirs)
    for a, b in zip(
        torch.autograd.grad(ours, (x, kernel), probe), torch.autograd.grad(theirs, (x, kernel), probe), strict=True
    ):
        assert torch.allclose(a, b)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (2, 3, 7, 5), (2, 3, 1, 2)])
def test_average_pool_does_not_count_the_padding(stride: int, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    assert torch.allclose(average_pool(x, stride), F.avg_pool2d(x, 3, stride, 1, count_include_pad=False))


def test_folded_norms_have_the_gradients_of_finite_differences() -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(9, 3, dtype=torch.float64).requires_grad_() for _ in range(2)]
    kernel = torch.randn(2, 4, 3, dtype=torch.float64).requires_grad_()
    weight = torch.rand(2, dtype=torch.float64).requires_grad_()
    start = torch.randn(9, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s, w, k, *x: add_normalized(s * 1, w, k, x), (start, weight, kernel, *inputs)
    )
    assert torch.autograd.gradcheck(normalized_relu, (inputs[0], kernel[0]))


def test_a_second_derivative_of_the_fast_path_is_refused() -> None:
    net = supernet()
    weights = {n: w.requires_grad_() for n, w in drawn(net, "mixture").items()}
    loss = net(torch.randn(4, 3, 8, 8, dtype=torch.float64), weights).square().sum()
    (first,) = torch.autograd.grad(loss, weights["normal"], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_partial_channels_give_the_operations_a_quarter_of_the_kernels() -> None:
    whole, part = supernet(), supernet(partial=4)
    assert part.cells[0].pointwise["sep_conv_3x3"].numel() * 16 == whole.cells[0].pointwise["sep_conv_3x3"].numel()
