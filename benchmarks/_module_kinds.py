"""Modules of many kinds, each with the shape of a batch: usual ones, and those that a fast way gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

N = 4
"""Examples in a batch."""


class Of(nn.Module):
    """A module whose forward pass is a function of it and the batch."""

    def __init__(self, forward: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


class Squared(nn.Linear):
    """A subclass that computes something else with the same parameters."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.square(), self.bias)


class Cube(torch.autograd.Function):
    """A function with a backward pass of its own and no rule for torch.func."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * grads[0]


def head(size: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 3))


def images(*layers: nn.Module, size: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Tanh(), head(size))


def hooked() -> nn.Module:
    layer = nn.Linear(5, 4)
    layer.register_forward_hook(lambda module, args, out: out * out)
    return nn.Sequential(layer, nn.Linear(4, 3))


def frozen() -> nn.Module:
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    net[0].requires_grad_(False)
    return net


def shared() -> nn.Module:
    net = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5))
    net[2].weight = net[0].weight
    return net


def with_statistics(net: nn.Module) -> nn.Module:
    """Running statistics that are not the first ones."""
    for part in net.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    return net


ROWS, TIME, IMAGES, TOKENS = (N, 5), (N, 6, 5), (N, 2, 7, 7), (N, 6)


def _recurrent(cell: nn.Module) -> Callable[[Any, Tensor], Tensor]:
    def forward(self: Any, x: Tensor) -> Tensor:
        h: Any = None
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.last(h[0] if isinstance(h, tuple) else h)

    return forward


def _batched(self: Any, x: Tensor) -> Tensor:
    """Attention over the rows of the batch: examples meet."""
    h = self.first(x)
    return self.last(torch.softmax(h @ h.t(), 1) @ h)


PERMUTATION = torch.tensor([2, 0, 3, 1])

KINDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), ROWS),
    "Linear without bias": (lambda: nn.Sequential(nn.Linear(5, 8, bias=False), nn.GELU(), nn.Linear(8, 3)), ROWS),
    "Linear over time": (lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)), TIME),
    "Conv2d": (lambda: images(nn.Conv2d(2, 4, 3, padding=1), size=4 * 49), IMAGES),
    "Conv2d, groups, stride, dilation": (
        lambda: images(nn.Conv2d(2, 4, 3, stride=2, dilation=2, padding=2, groups=2), size=4 * 16),
        IMAGES,
    ),
    "Conv2d, circular padding": (
        lambda: images(nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), size=4 * 49),
        IMAGES,
    ),
    "Conv2d, max pool": (lambda: images(nn.Conv2d(2, 4, 3), nn.MaxPool2d(2), size=4 * 4), IMAGES),
    "Conv2d, pixel shuffle": (lambda: images(nn.Conv2d(2, 4, 3), nn.PixelShuffle(2), size=100), IMAGES),
    "Conv2d, upsampled": (lambda: images(nn.Upsample(scale_factor=2), nn.Conv2d(2, 2, 3, stride=3), size=32), IMAGES),
    "Conv1d": (lambda: images(nn.Conv1d(6, 4, 3), size=12), TIME),
    "Conv3d": (lambda: images(nn.Conv3d(1, 2, 2), size=2 * 27), (N, 1, 4, 4, 4)),
    "ConvTranspose2d": (lambda: images(nn.ConvTranspose2d(2, 3, 3), size=3 * 81), IMAGES),
    "BatchNorm1d": (lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)), ROWS),
    "BatchNorm2d": (lambda: images(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), size=100), IMAGES),
    "BatchNorm2d alone": (lambda: images(nn.BatchNorm2d(2, affine=False), size=98), IMAGES),
    "LayerNorm": (lambda: nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 3)), ROWS),
    "GroupNorm": (lambda: images(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), size=100), IMAGES),
    "InstanceNorm2d": (lambda: images(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4, affine=True), size=100), IMAGES),
    "RMSNorm": (lambda: nn.Sequential(nn.Linear(5, 4), nn.RMSNorm(4), nn.Linear(4, 3)), ROWS),
    "PReLU": (lambda: nn.Sequential(nn.Linear(5, 4), nn.PReLU(4), nn.Linear(4, 3)), ROWS),
    "Bilinear": (lambda: Of(lambda self, x: self.both(x, x), both=nn.Bilinear(5, 5, 3)), ROWS),
    "Embedding": (lambda: nn.Sequential(nn.Embedding(9, 4), head(24)), TOKENS),
    "EmbeddingBag": (lambda: nn.Sequential(nn.EmbeddingBag(9, 4), nn.Linear(4, 3)), TOKENS),
    "RNN": (
        lambda: Of(lambda s, x: s.last(s.rnn(x)[0][:, -1]), rnn=nn.RNN(5, 4, batch_first=True), last=nn.Linear(4, 3)),
        TIME,
    ),
    "GRU": (
        lambda: Of(lambda s, x: s.last(s.rnn(x)[0][:, -1]), rnn=nn.GRU(5, 4, batch_first=True), last=nn.Linear(4, 3)),
        TIME,
    ),
    "LSTM": (
        lambda: Of(lambda s, x: s.last(s.rnn(x)[0][:, -1]), rnn=nn.LSTM(5, 4, batch_first=True), last=nn.Linear(4, 3)),
        TIME,
    ),
    "GRU, time first": (
        lambda: Of(lambda s, x: s.last(s.rnn(x.transpose(0, 1))[0][-1]), rnn=nn.GRU(5, 4), last=nn.Linear(4, 3)),
        TIME,
    ),
    "GRUCell": (lambda: Of(_recurrent(nn.Identity()), cell=nn.GRUCell(5, 4), last=nn.Linear(4, 3)), TIME),
    "LSTMCell": (lambda: Of(_recurrent(nn.Identity()), cell=nn.LSTMCell(5, 4), last=nn.Linear(4, 3)), TIME),
    "MultiheadAttention": (
        lambda: Of(
            lambda s, x: s.last(s.a(x, x, x)[0].mean(1)),
            a=nn.MultiheadAttention(6, 2, batch_first=True),
            last=nn.Linear(6, 3),
        ),
        (N, 5, 6),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), head(30)),
        (N, 5, 6),
    ),
    "tied autoencoder": (
        lambda: Of(lambda s, x: F.linear(torch.tanh(s.layer(x)), s.layer.weight.t()), layer=nn.Linear(5, 4)),
        ROWS,
    ),
    "used twice, in place": (
        lambda: Of(
            lambda s, x: s.last(torch.relu_(s.layer(torch.relu_(s.layer(x)))) + x),
            layer=nn.Linear(5, 5),
            last=nn.Linear(5, 3),
        ),
        ROWS,
    ),
    "two layers, one weight": (shared, ROWS),
    "a parameter of its own": (
        lambda: Of(
            lambda s, x: s.last(s.scale * x), scale=nn.Parameter(torch.linspace(-1, 1, 5)), last=nn.Linear(5, 3)
        ),
        ROWS,
    ),
    "weight norm": (
        lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(5, 4)), nn.Tanh(), nn.Linear(4, 3)),
        ROWS,
    ),
    "spectral norm": (
        lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(5, 4)), nn.Tanh(), nn.Linear(4, 3)),
        ROWS,
    ),
    "subclass of Linear": (lambda: nn.Sequential(Squared(5, 4), nn.Tanh(), nn.Linear(4, 3)), ROWS),
    "output changed by a hook": (hooked, ROWS),
    "frozen layer": (frozen, ROWS),
    "unused layer": (lambda: Of(lambda s, x: s.used(x), used=nn.Linear(5, 3), unused=nn.Linear(5, 3)), ROWS),
    "auxiliary output": (
        lambda: Of(lambda s, x: (s.first(x), s.second(x)), first=nn.Linear(5, 3), second=nn.Linear(5, 3)),
        ROWS,
    ),
    "checkpointed": (
        lambda: Of(
            lambda s, x: s.last(checkpoint(s.first, x, use_reentrant=False)),
            first=nn.Sequential(nn.Linear(5, 4), nn.Tanh()),
            last=nn.Linear(4, 3),
        ),
        ROWS,
    ),
    "function without a rule": (
        lambda: Of(
            lambda s, x: s.last(Cube.apply(s.scale * x)), scale=nn.Parameter(torch.ones(5)), last=nn.Linear(5, 3)
        ),
        ROWS,
    ),
    "branch on the data": (
        lambda: Of(
            lambda s, x: torch.stack([s.a(r) if r.sum() > 0 else s.b(r) for r in x]),
            a=nn.Linear(5, 3),
            b=nn.Linear(5, 3),
        ),
        ROWS,
    ),
    "Linear, time first, as many times": (
        lambda: Of(
            lambda s, x: s.last(torch.tanh(s.first(x.transpose(0, 1))).mean(0)),
            first=nn.Linear(5, 4),
            last=nn.Linear(4, 3),
        ),
        (N, N, 5),
    ),
    "permuted rows, put back": (
        lambda: Of(
            lambda s, x: s.last(torch.tanh(s.first(x[PERMUTATION]))[PERMUTATION.argsort()]),
            first=nn.Linear(5, 4),
            last=nn.Linear(4, 3),
        ),
        ROWS,
    ),
    "permuted rows": (
        lambda: Of(
            lambda s, x: s.last(torch.tanh(s.first(x))[PERMUTATION]), first=nn.Linear(5, 4), last=nn.Linear(4, 3)
        ),
        ROWS,
    ),
    "flipped images": (
        lambda: Of(lambda s, x: s.last(s.first(x).flip(0)), first=nn.Conv2d(2, 3, 3), last=head(75)),
        IMAGES,
    ),
    "batch norm as a function": (
        lambda: Of(
            lambda s, x: s.last(F.batch_norm(s.first(x), None, None, training=True)),
            first=nn.Linear(5, 4),
            last=nn.Linear(4, 3),
        ),
        ROWS,
    ),
    "attention over the batch": (lambda: Of(_batched, first=nn.Linear(5, 4), last=nn.Linear(4, 3)), ROWS),
    "a use that sums to zero": (
        lambda: Of(lambda s, x: s.layer(x) + F.linear(x - x.mean(0), s.layer.weight), layer=nn.Linear(5, 3)),
        ROWS,
    ),
}


def build(name: str, seed: int = 0) -> tuple[nn.Module, Tensor]:
    """The module of this name in float64, in evaluation, and a batch for it."""
    make, shape = KINDS[name]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = with_statistics(make().double().eval())
        x = torch.randint(9, shape) if shape == TOKENS else torch.randn(*shape, dtype=torch.float64)
    return net, x


def brute_force(net: nn.Module, x: Tensor) -> Tensor:
    """The gradient of every output by a backward pass of its own: (n, outputs, parameters)."""
    out = net(x)
    out = (out[0] if isinstance(out, tuple) else out).flatten(1)
    parameters = [p for p in net.parameters() if p.requires_grad]
    rows = []
    for value in out.flatten():
        grads = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)]
        rows.append(torch.cat([g.flatten() for g in filled]))
    return torch.stack(rows).view(*out.shape, -1)


def errors(net: nn.Module, x: Tensor) -> dict[str, float]:
    """The relative error of each public quantity against brute force."""
    from nasight.kernels import empirical_ntk, gradient_moments, ntk_diagonal

    rows = brute_force(net, x)  # (n, k, size)
    whole = rows.sum(1)
    spread = float((whole - whole.mean(0)).square().sum(1).mean())
    flat = rows.flatten(0, 1)
    pairs = {
        "kernel": (empirical_ntk(net, x, batch_norm="eval"), whole @ whole.t()),
        "kernel, by class": (
            empirical_ntk(net, x, batch_norm="eval", outputs="trace"),
            torch.einsum("ics,jcs->ij", rows, rows),
        ),
        "kernel, full": (empirical_ntk(net, x, batch_norm="eval", outputs="full"), flat @ flat.t()),
        "diagonal": (ntk_diagonal(net, x, batch_norm="eval"), whole.square().sum(1)),
        "variance": (torch.tensor(gradient_moments(net, x, batch_norm="eval").variance), torch.tensor(spread)),
    }
    return {name: float((a - b).norm() / b.norm()) for name, (a, b) in pairs.items()}
