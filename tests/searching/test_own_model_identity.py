"""A short search of a user's own transformer does not throw all of its blocks away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import nasight

WIDTH = 32


class Attention(nn.Module):
    """Attention between the rows of an image, added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


class Perceptron(nn.Module):
    """Two layers on each row, added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Encoder(nn.Module):
    """The 8 rows of 8 pixels of a digit as tokens."""

    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Linear(8, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(8, WIDTH))
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embedding(x.flatten(1, 2)) + self.position
        logits: Tensor = self.head(self.blocks(tokens).mean(1))
        return logits


def or_identity(block: nn.Module) -> nn.Module:
    return nasight.Choice({"block": block, "identity": nn.Identity()})


def three_choices() -> nn.Module:
    return Encoder(*(or_identity(nn.Sequential(Attention(), Perceptron())) for _ in range(3)))


def six_choices() -> nn.Module:
    return Encoder(*(or_identity(block()) for _ in range(3) for block in (Attention, Perceptron)))


class Layer(nn.Module):
    """Attention and two layers in one, half as wide."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.layers(self.norms[1](x))


class Narrow(nn.Module):
    """Four layers behind each other; without a warm-up one seed of four threw all of them away."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(8, 16)
        self.position = nn.Parameter(0.1 * torch.randn(8, 16))
        self.blocks = nn.Sequential(*(or_identity(Layer()) for _ in range(4)))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.embedding(x.squeeze(1)) + self.position).mean(1))
        return logits


@pytest.mark.slow
@pytest.mark.parametrize("build", [three_choices, six_choices, Narrow])
@pytest.mark.parametrize("seed", range(4))
def test_two_epochs_do_not_end_at_identity_alone(build: Callable[[], nn.Module], seed: int, tmp_path: Path) -> None:
    run = nasight.search(
        build, "gaea-darts", "digits", preset="tiny", epochs=2, seed=seed, threads=1, out=tmp_path / "run"
    )
    assert "block" in dict(run.architecture.choices).values()
