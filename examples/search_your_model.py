"""Search your own model: put a `Choice` wherever you are undecided, search, train what was found.

python examples/search_your_model.py
"""

from __future__ import annotations

from torch import nn

import nasight


def build() -> nn.Module:
    """A small network for 8 x 8 images with two open decisions."""
    activation = nasight.Choice({"relu": nn.ReLU(), "tanh": nn.Tanh(), "swish": nn.SiLU()}, name="activation")
    body = nasight.Choice(
        {
            "one layer": nn.Linear(64, 64),
            "two layers": nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)),
        },
        name="body",
    )
    return nn.Sequential(nn.Flatten(), body, activation, nn.Linear(64, 10))


def main(epochs: int = 5) -> None:
    """Search and train; everything goes to runs/own."""
    run = nasight.search(
        build, "gaea-darts", "digits", preset="tiny", epochs=epochs, threads=1, out="runs/own/search", overwrite=True
    )
    print("found", run.space.format(run.architecture))
    result = nasight.train(run.space, run.architecture, "digits", preset="tiny", epochs=epochs, threads=1)
    print(f"trained from scratch: {result.accuracy:.1f} % on {result.judged_by}, {result.parameters:,} parameters")


if __name__ == "__main__":
    main()
