"""A user's own module as a space."""

import copy

import pytest
import torch
from torch import nn

from nasight.errors import RequestError
from nasight.spaces.module import Choice, ModuleSpace, from_file


class Net(nn.Module):
    """A choice used twice, a named one, and one inside an option of another."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.again = self.act
        inner = Choice({"half": nn.Linear(8, 8), "same": nn.Identity()})
        deep = nn.Sequential(nn.Linear(8, 8), inner)
        self.body = Choice({"deep": deep, "a.b": nn.Linear(8, 8), "skip": nn.Identity()})
        self.norm = Choice({"batch": nn.BatchNorm1d(8), "none": nn.Identity()}, name="norm")
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.again(self.norm(self.body(self.act(self.first(x))))))


SPACE = ModuleSpace(Net)


def test_decisions_are_named_by_path_and_a_choice_used_twice_decides_once():
    assert [(d.name, d.options) for d in SPACE.decisions] == [
        ("act", ("relu", "tanh")),
        ("body", ("deep", "a.b", "skip")),
        ("body.deep.1", ("half", "same")),
        ("norm", ("batch", "none")),
    ]
    assert len(SPACE) == 24


def test_every_architecture_survives_its_text_and_its_weights():
    for arch in SPACE:
        assert SPACE.parse(SPACE.format(arch)) == arch
        assert SPACE.derive(SPACE.encode(arch)) == arch


def test_the_text_may_be_in_any_order():
    assert SPACE.format(SPACE.parse(" norm=none,body.deep.1 = half, act=tanh, body=a.b")) == (
        "act=tanh, body=a.b, body.deep.1=half, norm=none"
    )


def test_choices_of_one_kind_make_a_matrix_of_weights_and_different_ones_a_flat_tensor():
    def same():
        return nn.Sequential(*(Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}) for _ in range(3)))

    assert ModuleSpace(same).groups()[0].shape == (3, 2)
    assert SPACE.groups()[0].shape == (9,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("act=relu, body", "part 2: expected 'name=option', got 'body'"),
        ("act=relu, act=tanh", "part 2: choice 'act' is decided twice"),
        ("act=relu, body=skip, norm=none", "'body.deep.1' has no option"),
        ("act=gelu, body=skip, body.deep.1=half, norm=none", "'act' is 'gelu', not one of relu, tanh"),
        ("act=relu, tail=skip", "no decision 'tail'"),
    ],
)
def test_a_wrong_text_is_told_where_it_is_wrong(text, message):
    with pytest.raises(RequestError, match=message):
        SPACE.parse(text)


def test_a_network_is_the_model_with_the_chosen_modules_in_place():
    net = SPACE.network(SPACE.parse("act=tanh, body=deep, body.deep.1=same, norm=none"))
    assert not any(isinstance(m, Choice) for m in net.modules())
    assert isinstance(net.act, nn.Tanh)
    assert net.act is net.again
    assert isinstance(net.body[1], nn.Identity)
    x = torch.randn(4, 6)
    wanted = net.last(torch.tanh(net.body[0](torch.tanh(net.first(x)))))
    torch.testing.assert_close(net(x), wanted)
    # The module's own parts only: 6*8+8, 8*8+8, 8*3+3.
    assert sum(p.numel() for p in net.parameters()) == 56 + 72 + 27


def test_a_choice_may_be_an_option_of_a_choice_and_the_whole_model():
    space = ModuleSpace(lambda: Choice({"in": Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}), "out": nn.Sigmoid()}))
    assert [d.name for d in space.decisions] == ["choice", "in"]
    assert isinstance(space.network(space.parse("choice=in, in=tanh")), nn.Tanh)
    assert isinstance(space.network(space.parse("choice=out, in=tanh")), nn.Sigmoid)


def test_networks_of_one_given_module_start_anew_and_leave_it_alone():
    model = nn.Sequential(nn.Linear(3, 3), Choice({"norm": nn.BatchNorm1d(3), "none": nn.Identity()}))
    before = copy.deepcopy(model.state_dict())
    space = ModuleSpace(model)
    one, two = (space.network(space.parse("1=norm")) for _ in range(2))
    assert not torch.equal(one[0].weight, two[0].weight)
    assert not torch.equal(one[0].weight, model[0].weight)
    one(torch.randn(5, 3)).sum().backward()
    assert isinstance(model[1], Choice)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert model[0].weight.grad is None


def test_attention_starts_anew_too():
    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2)
            self.act = Choice({"relu": nn.ReLU()})

    model = Attending()
    network = ModuleSpace(model).network(ModuleSpace(model).parse("act=relu"))
    assert not torch.equal(network.attention.in_proj_weight, model.attention.in_proj_weight)


def test_a_choice_outside_a_supernet_is_the_mean_of_its_options():
    choice = Choice({"a": nn.ReLU(), "b": nn.Tanh(), "c": nn.Identity()})
    x = torch.randn(7, dtype=torch.float64)
    torch.testing.assert_close(choice(x), (x.relu() + x.tanh() + x) / 3, rtol=1e-14, atol=1e-14)


def twice_named():
    return nn.Sequential(Choice({"a": nn.ReLU()}, name="act"), Choice({"a": nn.ReLU()}, name="act"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ModuleSpace(nn.Linear(2, 2)), r"the model \(Linear\) has no Choice"),
        (lambda: ModuleSpace(twice_named), "two choices of the model are named 'act'"),
        (lambda: ModuleSpace(3), "an nn.Module or a function that makes one, got int"),
        (lambda: ModuleSpace(dict), r"dict\(\) must return an nn.Module, it returned dict"),
        (lambda: ModuleSpace(nn.Linear), r"Linear\(\) must make a model without arguments: missing .*in_features"),
        (lambda: Choice({}), "at least one option"),
        (lambda: Choice([nn.ReLU()]), "a mapping from names to modules, got list"),
        (lambda: Choice({"relu": torch.relu}), "option 'relu' of a Choice must be an nn.Module, got builtin"),
        (lambda: Choice({"a=b": nn.ReLU()}), "the option 'a=b' needs a name without '='"),
        (lambda: Choice({"": nn.ReLU()}), "the option '' needs a name"),
        (lambda: Choice({"a": nn.ReLU()}, name="a, b"), "the choice 'a, b' needs a name without"),
    ],
)
def test_what_is_no_space_is_refused(make, message):
    with pytest.raises(RequestError, match=message):
        make()


def test_a_function_that_changes_its_choices_is_refused():
    sizes = iter([1, 2])
    space = ModuleSpace(lambda: Choice({str(i): nn.ReLU() for i in range(next(sizes))}))
    with pytest.raises(RequestError, match="the same choices every time"):
        space.supernet()


FILE = """
from helper_beside_it import WIDTH
from torch import nn
from nasight.spaces.module import Choice

def build():
    return nn.Sequential(nn.Linear(WIDTH, 2), Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}))

model = build()
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my.py").write_text(FILE)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    (tmp_path / "helper_beside_it.py").write_text("WIDTH = 5")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("attribute", ["build", "model"])
def test_a_space_comes_from_a_user_s_file(folder, attribute):
    for text in (f"my.py:{attribute}", f"{folder}/my.py:{attribute}"):
        space = from_file(text)
        assert space.network(space.parse("1=tanh"))(torch.randn(3, 5)).shape == (3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my.py", "expected 'path.py:attribute'"),
        ("my:build", "expected 'path.py:attribute'"),
        ("my.py:", "expected 'path.py:attribute'"),
        ("yours.py:build", "there is no file 'yours.py'"),
        ("my.py:make", "'my.py' defines no 'make', only Choice, build, model"),
        ("my.py:number", "an nn.Module or a function that makes one, got int"),
        ("broken.py:build", "'broken.py' cannot be run: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ],
)
def test_a_wrong_file_is_named(folder, text, message):
    with pytest.raises(RequestError, match=message):
        from_file(text)
