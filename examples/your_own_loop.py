"""The parts in a loop of your own: a supernet whose architecture weights are in your hands.

python examples/your_own_loop.py
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

import nasight
from nasight.data import load as load_data
from nasight.data import prepare
from nasight.spaces import load as load_space


def main(epochs: int = 3) -> None:
    """Shared weights by SGD, architecture weights by exponentiated gradient, both on the same batches."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these networks are too small for more
    space, data = load_space("nasbench201", none=False), load_data("digits")
    supernet = space.supernet(data.inputs, data.n_classes, channels=4, cells=1)
    theta = {group.name: group.uniform().requires_grad_() for group in space.groups()}
    weights = torch.optim.SGD(supernet.parameters(), lr=0.05, momentum=0.9)
    architecture = nasight.ExponentiatedGradient(list(theta.values()), lr=0.1)
    loader = prepare(data).loader(batch_size=64, seed=0, stream="train")
    for epoch in range(epochs):
        for step in range(loader.steps):
            x, y = loader.batch(epoch, step)
            loss = F.cross_entropy(supernet(x, theta), y)
            weights.zero_grad()
            architecture.zero_grad()
            loss.backward()
            weights.step()
            architecture.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {space.format(space.derive(theta))}")


if __name__ == "__main__":
    main()
