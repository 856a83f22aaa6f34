"""The three spaces of NAS-Bench-1Shot1."""

import pytest
import torch

from nasight.errors import RequestError
from nasight.spaces.nasbench1shot1 import NasBench1Shot1

TEXT = "conv3x3-bn-relu(0)|maxpool3x3(0+1)|conv1x1-bn-relu(1+2)|maxpool3x3(0+3)|out(2+4)"


@pytest.mark.parametrize(
    ("number", "parents", "count"),
    [
        (1, {"1": 1, "2": 2, "3": 2, "4": 2, "out": 2}, 14580),
        (2, {"1": 1, "2": 1, "3": 2, "4": 2, "out": 3}, 29160),
        (3, {"1": 1, "2": 1, "3": 1, "4": 2, "5": 2, "out": 2}, 1312200),
    ],
)
def test_the_parents_of_every_place_are_the_paper_s_and_the_decisions_multiply_to_the_size(number, parents, count):
    space = NasBench1Shot1(number)
    inputs = space.inputs_of(space.sample(torch.Generator().manual_seed(number)))
    assert dict(zip(space.places, map(len, inputs), strict=True)) == parents
    assert all(max(read) < i for i, read in enumerate(inputs, 1))
    assert len(space) == count


def test_inputs_that_cannot_differ_are_no_decision():
    names = [d.name for d in NasBench1Shot1(1).decisions]
    assert "inputs 1" not in names
    assert "inputs 2" not in names
    assert next(d.options for d in NasBench1Shot1(2).decisions if d.name == "inputs 2") == ("0", "1")
    assert NasBench1Shot1(3).groups()[1].sizes == (2, 3, 4, 5, 6)


def test_the_k_heaviest_inputs_are_kept():
    space = NasBench1Shot1(2)
    operations, inputs = space.groups()
    rows = {"inputs 2": [0.4, 0.6], "inputs 3": [0.1, 0.2, 0.7], "inputs 4": [0.4, 0.1, 0.2, 0.3]}
    rows["inputs out"] = [0.2, 0.2, 0.2, 0.2, 0.2]
    flat = torch.tensor([w for name in inputs.rows for w in rows[name]])
    derived = space.derive({"operations": operations.uniform(), "inputs": flat})
    # Ties go to the earlier node.
    assert [derived[name] for name in rows] == ["1", "1+2", "0+3", "0+1+2"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("|out(2+4)", "", "has 5 parts joined by '|' .4 nodes and 'out'., this text has 4"),
        ("maxpool3x3(0+1)", "maxpool3x3[0+1]", r"part 2: expected 'operation\(inputs\)'"),
        ("maxpool3x3(0+1)", "avgpool3x3(0+1)", "part 2: unknown operation 'avgpool3x3', not one of maxpool3x3"),
        ("(1+2)", "(1+3)", r"part 3: the inputs must be 2 different nodes of 0 to 2, got '1\+3'"),
        ("(1+2)", "(1+1)", "part 3: the inputs must be 2 different"),
        ("(1+2)", "(1)", "part 3: the inputs must be 2 different"),
        ("(0)", "(1)", "part 1: the inputs must be node 0, got '1'"),
        ("out(2+4)", "maxpool3x3(2+4)", r"part 5: expected 'out\(inputs\)'"),
        ("maxpool3x3(0+3)", "out(0+3)", r"part 4: expected 'operation\(inputs\)'"),
    ],
)
def test_a_wrong_text_is_told_where_it_is_wrong(old, new, message):
    with pytest.raises(RequestError, match=message):
        NasBench1Shot1(1).parse(TEXT.replace(old, new, 1))


def test_inputs_may_be_written_in_any_order():
    space = NasBench1Shot1(1)
    assert space.parse(TEXT.replace("1+2", "2+1")) == space.parse(TEXT)


def test_there_is_no_fourth_space():
    with pytest.raises(RequestError, match="spaces 1, 2 and 3, got number=4"):
        NasBench1Shot1(4)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_parameter_of_a_network_gets_a_gradient(number):
    # So no node was built that does not lead to the output.
    space = NasBench1Shot1(number)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        network = space.network(space.sample(generator), (1, 5, 6), 3, channels=3, cells=1)
        network(torch.randn(4, 1, 5, 6)).square().sum().backward()
        assert all(p.grad is not None for p in network.parameters())


def test_images_of_one_pixel_still_pass():
    space = NasBench1Shot1(1)
    network = space.network(space.parse(TEXT), (2, 1, 1), 3, channels=2, cells=1)
    assert network(torch.randn(3, 2, 1, 1)).shape == (3, 3)
