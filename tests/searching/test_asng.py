from collections.abc import Callable

import torch

from nasight.searching import METHODS, Run
from nasight.searching._engine import Engine

RANKING = METHODS["asng"].objectives[0]


def test_credit_is_by_rank_alone_and_equals_share() -> None:
    def credit(*losses: float) -> list[float]:
        return RANKING.credit(None, torch.tensor(losses), torch.zeros(len(losses))).tolist()  # type: ignore[arg-type]

    assert credit(0.1, 0.2) == [1, -1]
    assert credit(50.0, 0.2) == [-1, 1]
    assert credit(0.3, 0.3) == [0, 0]
    assert credit(5, 1, 4, 2, 3, 0) == [-1, 1, -1, 0, 0, 1]


def test_it_learns_the_cell_that_is_rewarded_and_ends_at_its_mode(engine: Callable[..., Engine]) -> None:
    """Loss: the share of operations that are not 3x3 convolutions."""
    made = engine("asng")
    scores = lambda answers, _: ((answers != 2).float().mean(1), torch.zeros(len(answers)))  # noqa: E731
    for step in range(300):
        at = made.step(0, step, learns=True)
        at.scores = scores  # type: ignore[method-assign]
        made.objective.architecture_step(at)
    assert made.space.format(made.derive(0, candidates=0)).count("nor_conv_3x3") == 6
    # No probability falls under 1 / (6 * 3), so the best cannot exceed 1 - 3 / 18.
    assert float(made.weights()["operations"][:, 2].min()) > 0.6
    assert float(made.weights()["operations"].max()) <= 1 - 3 / 18 + 1e-5


def test_the_weights_of_a_run_are_the_probabilities_and_their_mode_is_the_result(tiny: Callable[..., Run]) -> None:
    run = tiny(method="asng")
    assert run.space.derive(run.weights) == run.architecture
    assert not torch.equal(run.weights["operations"], torch.full((6, 4), 0.25))
