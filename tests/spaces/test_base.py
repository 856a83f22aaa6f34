"""What all spaces share: architectures, groups, the registry."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces import Group, load, names
from nasight.spaces.mlp import Mlp
from nasight.spaces.nasbench1shot1 import NasBench1Shot1
from nasight.spaces.nasbench201 import NasBench201

SPACES = [
    NasBench201(),
    NasBench201(none=False),
    *(NasBench1Shot1(n) for n in (1, 2, 3)),
    *(Mlp(layers=layers) for layers in (2, 3, 6)),
]
IDS = ["201", "201 without none", "1shot1-1", "1shot1-2", "1shot1-3", "mlp 2", "mlp 3", "mlp 6"]
every_space = pytest.mark.parametrize("space", SPACES, ids=IDS)


@every_space
@given(seed=st.integers(0, 2**40))
@settings(max_examples=30, deadline=None)
def test_an_architecture_survives_its_text_its_json_and_its_weights(space, seed):
    arch = space.sample(torch.Generator().manual_seed(seed))
    assert arch in space
    assert space.parse(space.format(arch)) == arch
    assert Architecture.from_json(arch.to_json()) == arch
    assert space.derive(space.encode(arch)) == arch


@every_space
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_text_is_refused_or_names_another_architecture_and_nothing_else_happens(space, data):
    text = space.format(space.sample(torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))))
    place = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    text = text[:place] + data.draw(st.text("01+|,/~()=x", max_size=2)) + text[place + cut :]
    try:
        arch = space.parse(text)
    except RequestError:
        return
    assert space.parse(space.format(arch)) == arch


@every_space
def test_the_rows_of_an_encoding_and_of_the_center_lie_on_the_simplex(space):
    encoded = space.encode(space.sample(torch.Generator().manual_seed(0)))
    assert list(encoded) == [g.name for g in space.groups()]
    for group in space.groups():
        for weights in (encoded[group.name], group.uniform()):
            assert tuple(weights.shape) == group.shape
            for row, options in zip(group.split(weights), group.options, strict=True):
                assert len(row) == len(options)
                assert row.min() >= 0
                torch.testing.assert_close(row.sum(), torch.tensor(1.0))


@pytest.mark.parametrize("space", [NasBench201(none=False), NasBench1Shot1(1), Mlp(layers=3)], ids=lambda s: s.name)
def test_a_space_has_as_many_architectures_as_it_says_and_no_two_are_equal(space):
    count, distinct = 0, set()
    for arch in space:
        count += 1
        distinct.add(arch)
    assert count == len(distinct) == len(space)


@every_space
def test_sampling_reaches_every_option_of_every_decision(space):
    generator = torch.Generator().manual_seed(0)
    seen = {pair for _ in range(400) for pair in space.sample(generator).choices}
    assert seen == {(d.name, option) for d in space.decisions for option in d.options}


@every_space
def test_an_architecture_of_another_space_is_refused(space):
    other = Architecture("another", (("a", "b"),))
    assert other not in space
    assert "not an architecture" not in space
    for use in (space.format, space.encode, space.network):
        with pytest.raises(RequestError, match="of space 'another'"):
            use(other)


def test_choices_that_are_missing_unknown_or_wrong_are_named():
    space = Mlp(layers=3)
    right = {"activation 1": "relu", "activation 2": "tanh", "skip 1": "0"}
    with pytest.raises(RequestError, match="'skip 1' has no option"):
        space.architecture({n: o for n, o in right.items() if n != "skip 1"})
    with pytest.raises(RequestError, match="no decision 'skip 2'"):
        space.architecture({**right, "skip 2": "0"})
    with pytest.raises(RequestError, match="'activation 2' is 'gelu', not one of relu"):
        space.architecture({**right, "activation 2": "gelu"})
    assert space.architecture(dict(reversed(right.items()))) == space.architecture(right)


def test_unknown_and_impossible_sizes_are_refused():
    space = NasBench201()
    with pytest.raises(RequestError, match="no size 'width'; it has cells, channels"):
        space.supernet(width=3)
    with pytest.raises(RequestError, match="'cells' must be a whole number of at least 1, got 0"):
        space.supernet(cells=0)


def test_what_a_space_cannot_do_is_refused():
    space = Mlp()
    assert not space.edge_weights
    assert not space.partial_channels
    with pytest.raises(RequestError, match="no edge weights"):
        space.supernet(edges=True)
    with pytest.raises(RequestError, match="no partial channels, so partial must be 1, got 4"):
        space.supernet(partial=4)


def test_a_group_is_flat_exactly_when_the_options_of_its_rows_differ():
    regular = Group("g", ("a", "b"), (("x", "y"),) * 2)
    ragged = Group("g", ("a", "b"), (("x",), ("x", "y", "z")))
    same_length = Group("g", ("a", "b"), (("x", "y"), ("u", "v")))
    assert [g.shape for g in (regular, ragged, same_length)] == [(2, 2), (4,), (4,)]
    assert [row.tolist() for row in ragged.split(torch.arange(4))] == [[0], [1, 2, 3]]
    assert [row.tolist() for row in regular.split(torch.arange(4).view(2, 2))] == [[0, 1], [2, 3]]


def test_an_architecture_changes_one_decision_and_leaves_the_original():
    arch = Architecture("s", (("a", "x"), ("b", "y")))
    assert arch.replace("b", "z") == Architecture("s", (("a", "x"), ("b", "z")))
    assert (arch["b"], arch.get("c", "none")) == ("y", "none")
    assert dict(arch) == {"a": "x", "b": "y"}
    with pytest.raises(KeyError):
        arch.replace("c", "z")


@pytest.mark.parametrize("text", ["", "[]", "3", '{"space": "mlp"}', '{"space": "mlp", "choices": ["a"]}', "{"])
def test_what_is_not_an_architecture_in_json_is_refused(text):
    with pytest.raises(RequestError, match="not an architecture"):
        Architecture.from_json(text)


@pytest.mark.parametrize("name", [n for n in names() if n != "darts"])
def test_a_name_loads_the_space_of_that_name(name):
    assert load(name).name == name


def test_a_misspelt_name_is_answered_with_the_near_one():
    with pytest.raises(RequestError, match=r"no space 'nasbench210', only .*did you mean 'nasbench201'"):
        load("nasbench210")


def test_the_options_of_a_space_are_passed_on_and_unknown_ones_refused():
    assert len(load("nasbench201", none=False)) == 4**6
    assert len(load("mlp", layers=2)) == 5
    with pytest.raises(RequestError, match="'mlp' does not take depth"):
        load("mlp", depth=2)
