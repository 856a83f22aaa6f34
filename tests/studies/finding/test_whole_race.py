"""A race of whole trainings: changes of the leaders enter turn by turn, and a find of an earlier version has none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from on_paper import ROW, leg_of

from nasight.reproducible import generator_for
from nasight.spaces import Space, load
from nasight.studies.finding import Candidate, Entry, Outcome, Plan, Race, Speed
from nasight.studies.finding._capacity import room
from nasight.studies.finding._leg import Leg
from nasight.studies.finding._planning import MOST_PLACES
from nasight.studies.finding._proposals import full_waves
from nasight.studies.finding._stages import LED, TURNS, _changed, _mutate


def whole_leg(folder: Path, space: Space) -> Leg:
    """A leg in the middle of a race of whole trainings, with 100 of its 600 seconds gone."""
    leg = leg_of(folder, 600, 2_000, Speed(ROW, 2 * ROW, 0.06), paced=True)
    leg.space = leg.context.space = space
    leg.context.reference = space.reference
    leg.settings.max_latency = leg.settings.max_params = None
    leg.context.clock = cast(Any, lambda: 100.0)
    leg.mutated = 3
    leg.candidate = cast(Any, lambda key, text, by, **how: Candidate(text, by, 1, **how))
    leg.context.trainings = cast(Any, SimpleNamespace())
    return leg


def race_of(space: Space, texts: list[str]) -> Race:
    """A race on whose only rung the reference leads."""
    race = Race([20], seeds=1)
    names = [space.format(space.reference), *texts]
    race.enter(Candidate(name, "somebody", 1, control=i == 0) for i, name in enumerate(names))
    for i, name in enumerate(names):
        race.tell(Entry(name, 0, 0), Outcome(90.0 - i, seconds=10.0))
    return race


def one_change_from(space: Space, text: str, leaders: list[str]) -> bool:
    arch = space.parse(text)
    return any(arch in set(space.neighbors(space.parse(leader))) for leader in leaders)


def test_changes_of_the_reference_enter_where_it_leads_and_all_its_options_are_searched(tmp_path: Path) -> None:
    space = load("convnet")
    leg, race = whole_leg(tmp_path, space), race_of(space, [])
    _mutate(leg, race, 0)
    entered = [name for name in race.candidates if name != space.format(space.reference)]
    assert len(entered) == leg.journal["mutated 0 0"] > 0
    assert all(one_change_from(space, name, [space.format(space.reference)]) for name in entered)


def test_a_reference_with_an_option_that_is_not_searched_has_no_changes(tmp_path: Path) -> None:
    # NAS-Bench-201 is searched without "none", which two edges of its reference have.
    space = load("nasbench201", none=False)
    assert space.reference not in space
    second = space.format(next(iter(space)))
    leg, race = whole_leg(tmp_path, space), race_of(space, [second])
    _mutate(leg, race, 0)
    entered = [name for name in race.candidates if name not in (second, space.format(space.reference))]
    assert entered
    assert all(one_change_from(space, name, [second]) for name in entered)


def test_where_limits_may_be_asked_of_the_front_the_best_of_every_size_is_changed(tmp_path: Path) -> None:
    space = load("convnet")
    leg, race = whole_leg(tmp_path, space), Race([20], seeds=1)
    sizes = {"k5/w1n1/w1n1/w1n1": 60, "k3/w2n1/w1n1/w1n1": 50, "k3/w1n1/w1n1/w1n1": 40, "k3/w0.5n1/w1n1/w1n1": 45}
    names = list(sizes)
    race.enter(Candidate(name, "somebody", size) for name, size in sizes.items())
    for place, name in enumerate(names):
        race.tell(Entry(name, 0, 0), Outcome(90.0 - place, seconds=10.0))
    chance = generator_for(0, "front")
    assert [c.architecture for c in _changed(leg, race, chance)] == names[:LED]
    leg.settings.target = "paper"
    # The last is worse than a smaller one.
    first, *others = [c.architecture for c in _changed(leg, race, chance)]
    assert (first, sorted(others)) == (names[0], sorted(names[1:3]))
    assert len({_changed(leg, race, generator_for(seed, "front"))[1].architecture for seed in range(8)}) == 2
    leg.settings.max_params = 55
    assert len(_changed(leg, race, chance)) == LED


def test_where_all_trainings_failed_nothing_is_changed(tmp_path: Path) -> None:
    leg, race = whole_leg(tmp_path, load("convnet")), Race([20], seeds=1)
    race.enter([Candidate("k3/w1n1/w1n1/w1n1", "somebody", 1)])
    race.tell(Entry("k3/w1n1/w1n1/w1n1", 0, 0), None)
    leg.settings.target = "paper"
    assert _changed(leg, race, generator_for(0, "front")) == []


def test_what_entered_before_does_not_enter_again_even_if_it_failed(tmp_path: Path) -> None:
    space = load("convnet")
    leg, race = whole_leg(tmp_path, space), race_of(space, [])
    _mutate(leg, race, 0)
    first = [c.architecture for c in race.active() if not c.control]
    for name in first:
        race.tell(Entry(name, 0, 0), None)
    _mutate(leg, race, 1)
    later = [c.architecture for c in race.active() if not c.control]
    assert later
    assert not set(first) & set(later)


def test_as_many_enter_in_a_turn_as_its_part_of_the_time_has_waves_for(tmp_path: Path) -> None:
    space = load("convnet")
    leg, race = whole_leg(tmp_path, space), race_of(space, [])
    each = leg.rung_seconds(0)
    for waves, turns, number in ((7, 3, 6), (2, 3, 2), (2, 1, 4), (0, 3, 0), (-1, 3, 0), (5_000, 1, MOST_PLACES - 1)):
        leg.until = cast(Any, lambda stage, waves=waves: (waves + 0.5) * each if waves >= 0 else -5.0)
        assert room(leg, race, turns) == number
    assert TURNS > 1


@pytest.mark.parametrize(("candidates", "beside", "workers"), [(5, 1, 2), (4, 1, 8), (2, 9, 8), (1, 1, 1), (7, 3, 4)])
def test_no_worker_idles_while_proposals_are_trained(candidates: int, beside: int, workers: int) -> None:
    found = full_waves(candidates, beside, workers)
    assert found >= candidates
    assert (found + beside) % workers == 0
    assert found - candidates < workers


def test_a_plan_of_an_earlier_version_has_no_race_of_whole_trainings_though_it_has_one_rung(tmp_path: Path) -> None:
    plan = leg_of(tmp_path, 600, 2_000, Speed(ROW, 2 * ROW, 0.06), paced=True).plan
    assert plan.whole
    kept = {key: value for key, value in plan.to_dict().items() if key not in ("whole", "control_seeds")}
    assert len(kept["rungs"]) == 1
    assert not Plan.from_dict(kept).whole
