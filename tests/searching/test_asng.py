from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nasight.searching import METHODS, Run
from nasight.searching._engine import Engine
from nasight.searching._judging import derive

RANKING = METHODS["asng"].objectives[0]


def test_credit_is_by_rank_alone_and_equals_share() -> None:
    def credit(*losses: float) -> list[float]:
        return RANKING.credit(None, torch.tensor(losses), torch.zeros(len(losses))).tolist()  # type: ignore[arg-type]

    assert credit(0.1, 0.2) == [1, -1]
    assert credit(50.0, 0.2) == [-1, 1]
    assert credit(0.3, 0.3) == [0, 0]
    assert credit(5, 1, 4, 2, 3, 0) == [-1, 1, -1, 0, 0, 1]


def test_the_shared_weights_follow_the_mean_gradient_of_two_cells_drawn_before_the_distribution_moves(
    engine: Callable[..., Engine],
) -> None:
    made = engine("asng", clip=1e9)
    generators = [made.generator("relaxation", "weights", 0, 0, *again) for again in ((), (1,))]
    cells = [made.policy.draw(generator) for generator in generators]
    assert cells[0] != cells[1]
    x, y = made.loaders["weights"].batch(0, 0)
    parameters = list(made.supernet.parameters())
    each = [
        torch.autograd.grad(
            cross_entropy(made.supernet(x, made.space.encode(cell)), y), parameters, materialize_grads=True
        )
        for cell in cells
    ]
    made.objective.step(made.step(0, 0, learns=True))
    for parameter, one, other in zip(parameters, *each, strict=True):
        found = torch.zeros_like(one) if parameter.grad is None else parameter.grad
        assert torch.allclose(found, (one + other) / 2, atol=1e-6)
    # Both count in the figures of the epoch.
    assert made.tallies["weights"].count == 2 * len(y)


def test_the_shared_weights_move_first_and_two_fresh_cells_are_ranked_with_the_moved_ones(
    engine: Callable[..., Engine],
) -> None:
    made = engine("asng")
    start, at, seen = shared(made), made.step(0, 0, learns=True), list[tuple[Tensor, Tensor]]()
    scores = at.scores
    at.scores = lambda answers, stream: seen.append((answers, shared(made))) or scores(answers, stream)  # type: ignore
    made.objective.step(at)
    ((answers, then),) = seen
    assert len(answers) == 2
    assert not torch.equal(then, start)
    assert torch.equal(then, shared(made))


def shared(made: Engine) -> Tensor:
    """All shared weights."""
    return torch.cat([p.detach().flatten() for p in made.supernet.parameters()])


def test_it_learns_the_cell_that_is_rewarded_and_ends_at_its_mode(engine: Callable[..., Engine]) -> None:
    """Loss: the share of operations that are not 3x3 convolutions."""
    made = engine("asng")
    scores = lambda answers, _: ((answers != 2).float().mean(1), torch.zeros(len(answers)))  # noqa: E731
    for step in range(300):
        at = made.step(0, step, learns=True)
        at.scores = scores  # type: ignore[method-assign]
        made.objective.architecture_step(at)
    assert made.space.format(derive(made, 0, candidates=0)).count("nor_conv_3x3") == 6
    # No probability falls under 1 / (6 * 3), so the best cannot exceed 1 - 3 / 18.
    assert float(made.weights()["operations"][:, 2].min()) > 0.6
    assert float(made.weights()["operations"].max()) <= 1 - 3 / 18 + 1e-5


def test_the_weights_of_a_run_are_the_probabilities_and_their_mode_is_the_result(tiny: Callable[..., Run]) -> None:
    run = tiny(method="asng")
    assert run.space.derive(run.weights) == run.architecture
    assert not torch.equal(run.weights["operations"], torch.full((6, 4), 0.25))
