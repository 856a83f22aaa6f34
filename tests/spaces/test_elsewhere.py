"""What did well on other data: whose word counts, in which order, and that the package carries what was measured."""

import gzip
import json
from importlib.resources import files
from pathlib import Path

import pytest

from nasight.spaces import in_order_of_worth, load
from nasight.studies.finding._proposers import ELSEWHERE, known_elsewhere

RESULT = Path(__file__).parents[2] / "benchmarks/results/find_elsewhere.json.gz"
GAINS = json.loads((files("nasight.spaces.convnet") / "elsewhere.json").read_text())
SPACE = load("convnet")
REFERENCE = SPACE.format(SPACE.reference)


def test_the_package_carries_what_was_measured() -> None:
    measured = json.loads(gzip.decompress(RESULT.read_bytes()))
    assert measured["gains"] == GAINS
    for name, worth in measured["worth"].items():
        for text, values in worth.items():
            gain = sum(values) / len(values) - sum(worth[REFERENCE]) / len(worth[REFERENCE])
            assert GAINS[name][text] == pytest.approx(gain, abs=0.0051)


def test_networks_are_of_the_space_and_all_data_sets_have_the_same() -> None:
    networks = {tuple(gains) for gains in GAINS.values()}
    assert len(networks) == 1
    (names,) = networks
    assert len(names) == 64
    assert all(SPACE.format(SPACE.parse(text)) == text for text in names)


@pytest.mark.parametrize("data", ["cifar-10", "CIFAR-10 (part)", "fashion-mnist (part)", "digits", "mnist"])
def test_what_was_measured_on_the_data_at_hand_does_not_count(data: str) -> None:
    own = data.lower().split()[0]
    others = {name: gains for name, gains in GAINS.items() if name != own}
    assert len(others) == len(GAINS) - 1
    order = in_order_of_worth(others)
    known = [SPACE.format(arch) for arch in SPACE.well_elsewhere(data)]
    assert known == order[: order.index(REFERENCE)]
    assert known != [SPACE.format(arch) for arch in SPACE.well_elsewhere("photos")]


def test_an_order_by_hand() -> None:
    # Of the three others, p beats 3 and 1.5 (it is level with q): 0.75 on average; q 2 and 1.5; r 1 and 3; s 0 and 0.
    gains = {"one": {"p": 3.0, "q": 2.0, "r": 1.0, "s": 0.0}, "two": {"p": 1.0, "q": 1.0, "r": 5.0, "s": 0.0}}
    assert in_order_of_worth(gains) == ["p", "r", "q", "s"]
    assert in_order_of_worth(gains, without="one") == ["r", "p", "q", "s"]
    assert in_order_of_worth({}, without="one") == in_order_of_worth({"one": {"p": 1.0}}, without="one") == []


def test_proposals_keep_the_limits_and_the_order() -> None:
    known = SPACE.well_elsewhere("photos")
    products = SPACE.multiply_adds((3, 16, 16), 10)
    most = 2 * (products(SPACE.reference) or 0)
    found = known_elsewhere(SPACE, "photos", lambda arch: (products(arch) or 0) <= most, 4)
    assert {proposal.by for proposal in found} == {ELSEWHERE}
    assert [p.architecture for p in found] == [arch for arch in known if (products(arch) or 0) <= most][:4]
    assert [p.architecture for p in found] != list(known[:4])
    assert known_elsewhere(load("nasbench201"), "photos", lambda arch: True, 4) == []
