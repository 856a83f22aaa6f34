"""A user's own `nn.Module` as a search space: wherever it holds a `Choice`, there is a decision."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Decision, Group, Space, Weights

if TYPE_CHECKING:
    from nasight.supernet import Supernet


@dataclass(frozen=True, slots=True)
class Handed:
    """What a supernet hands a `Choice` for one call."""

    label: str
    weights: Tensor
    skip_zeros: bool


# Weights travel beside the call, not inside the modules: nothing is left behind when a pass ends or fails.
_HANDED: ContextVar[Mapping[Choice, Handed] | None] = ContextVar("handed", default=None)


@contextmanager
def handing(weights: Mapping[Choice, Handed]) -> Iterator[None]:
    """Inside, every `Choice` named here mixes its options with these weights."""
    token = _HANDED.set({**(_HANDED.get() or {}), **weights})
    try:
        yield
    finally:
        _HANDED.reset(token)


class Choice(nn.Module):
    """One of several modules, to be placed in any `nn.Module`: a decision of `ModuleSpace`.

    Inside a supernet it returns the mixture of its options with the architecture weights, elsewhere their mean.
    The options take the same arguments and return tensors of one shape; they may hold choices themselves. `name` is
    the name of the decision, by default the choice's path in the model.

    >>> act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    >>> act(torch.tensor([-1.0, 1.0]))
    tensor([-0.3808,  0.8808])
    """

    def __init__(self, options: Mapping[str, nn.Module], name: str | None = None) -> None:
        super().__init__()
        if not isinstance(options, Mapping):
            raise RequestError(f"a Choice needs a mapping from names to modules, got {type(options).__name__}")
        if not options:
            raise RequestError("a Choice needs at least one option, got an empty mapping")
        for option, module in options.items():
            _check_text(option, "the option")
            if not isinstance(module, nn.Module):
                raise RequestError(f"option {option!r} of a Choice must be an nn.Module, got {type(module).__name__}")
        if name is not None:
            _check_text(name, "the choice")
        self.name = name
        self.names = tuple(options)
        # A list, since torch's ModuleDict refuses names such as "half" or "a.b".
        self.options = nn.ModuleList(options.values())

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        handed = (_HANDED.get() or {}).get(self) or self._uniform()
        kept = list(range(len(self.names)))
        if handed.skip_zeros:
            # A row of zeros still has to give zeros of the right shape.
            kept = [i for i, weight in enumerate(handed.weights.tolist()) if weight != 0] or [0]
        total = handed.weights[kept[0]] * (first := self._output(kept[0], handed.label, args, kwargs))
        for i in kept[1:]:
            out = self._output(i, handed.label, args, kwargs)
            if out.shape != first.shape:
                raise RequestError(
                    f"choice {handed.label!r}: option {self.names[kept[0]]!r} returns shape {tuple(first.shape)}, "
                    f"but option {self.names[i]!r} returns {tuple(out.shape)}"
                )
            total = total + handed.weights[i] * out
        return total

    def _output(self, i: int, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        out = self.options[i](*args, **kwargs)
        if not isinstance(out, Tensor):
            raise RequestError(
                f"choice {label!r}: option {self.names[i]!r} must return a tensor, got {type(out).__name__}"
            )
        return out

    def _uniform(self) -> Handed:
        size = len(self.names)
        # As single numbers the weights take the precision of what they multiply.
        weights = torch.full((size,), 1 / size, dtype=torch.float64)
        return Handed(self.name or f"of {', '.join(self.names)}", weights, skip_zeros=False)

    def extra_repr(self) -> str:
        return ", ".join(self.names)


Factory = Callable[[], nn.Module]


class ModuleSpace(Space):
    """All ways to decide the choices of a model, given as a module or as a function that makes one.

    A function is called for every supernet and network, whose parameters are then new each time. Of a module, a
    supernet trains a copy that starts from the module's own parameters, and a network is a copy after
    `reset_parameters()` of every part that has it (a bare `nn.Parameter` keeps its value). The model's input and
    output shapes are its own: `inputs`, `classes` and sizes are accepted and ignored, and batch norms stay as they
    are, in the supernet too.

    A choice used in several places decides once. One inside an option of another decides always and matters only
    when that option is taken.

    >>> space = ModuleSpace(lambda: nn.Sequential(nn.Linear(4, 8), Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})))
    >>> space.decisions
    (Decision(name='1', options=('relu', 'tanh')),)
    >>> space.network(space.parse("1=tanh"))[1]
    Tanh()
    """

    def __init__(self, model: nn.Module | Factory, name: str = "module") -> None:
        if not isinstance(model, nn.Module):
            _check_factory(model)
        self.name = name
        self.model = model
        self.decisions = tuple(Decision(label, choice.names) for label, choice in choices_of(self._fresh()).items())

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """One group, "choices", with a row for each decision."""
        return (Group("choices", tuple(d.name for d in self.decisions), tuple(d.options for d in self.decisions)),)

    def derive(self, weights: Weights) -> Architecture:
        """Arg max of every row."""
        rows = self.groups()[0].split(weights["choices"])
        return self.architecture(
            {d.name: d.options[int(row.argmax())] for d, row in zip(self.decisions, rows, strict=True)}
        )

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        self.checked(arch)
        rows = [torch.tensor([float(option == arch[d.name]) for option in d.options]) for d in self.decisions]
        return {"choices": torch.cat(rows).reshape(self.groups(edges=edges)[0].shape)}

    def parse(self, text: str) -> Architecture:
        """From "name=option, name=option", in any order."""
        choices = dict[str, str]()
        for i, entry in enumerate(text.split(","), 1):
            name, equals, option = (part.strip() for part in entry.partition("="))
            if not equals:
                raise RequestError(f"part {i}: expected 'name=option', got {entry.strip()!r}")
            if name in choices:
                raise RequestError(f"part {i}: choice {name!r} is decided twice")
            choices[name] = option
        return self.architecture(choices)

    def format(self, arch: Architecture) -> str:
        return ", ".join(f"{name}={option}" for name, option in self.checked(arch))

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """The model with every choice replaced by the module chosen, and with new parameters."""
        self.checked(arch)
        model = self._fresh()
        if isinstance(self.model, nn.Module):
            model.apply(_reset)
        chosen = {choice: choice.options[choice.names.index(arch[n])] for n, choice in self._choices(model).items()}

        def resolved(module: nn.Module) -> nn.Module:
            while isinstance(module, Choice):
                module = chosen[module]
            return module

        model = resolved(model)
        for parent in list(model.modules()):
            # Not named_children(), which lists a module that has two names once.
            for key, child in parent._modules.items():
                if child is not None:
                    parent.add_module(key, resolved(child))
        return model

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        from nasight.supernet._module import ModuleSupernet

        model = self._fresh()
        return ModuleSupernet(self.groups(), model, self._choices(model), path=how["path"])

    def _fresh(self) -> nn.Module:
        if isinstance(self.model, nn.Module):
            return deepcopy(self.model)
        model = self.model()
        if not isinstance(model, nn.Module):
            raise RequestError(f"{_called(self.model)} must return an nn.Module, it returned {type(model).__name__}")
        return model

    def _choices(self, model: nn.Module) -> dict[str, Choice]:
        choices = choices_of(model)
        if tuple(Decision(label, choice.names) for label, choice in choices.items()) != self.decisions:
            raise RequestError(f"{_called(self.model)} must return the same choices every time it is called")
        return choices


def choices_of(model: nn.Module) -> dict[str, Choice]:
    """The choices of a model by the names of their decisions; none at all, or two of one name, are refused."""
    found = dict[str, Choice]()
    for path, choice in _walk(model, (), set()):
        label = choice.name or ".".join(path) or "choice"
        if label in found:
            raise RequestError(f"two choices of the model are named {label!r}; give each Choice its own name")
        _check_text(label, "the choice")
        found[label] = choice
    if not found:
        raise RequestError(f"the model ({type(model).__name__}) has no Choice in it, so there is nothing to decide")
    return found


def _walk(module: nn.Module, path: tuple[str, ...], seen: set[nn.Module]) -> Iterator[tuple[tuple[str, ...], Choice]]:
    """Every choice once, with its path, in which an option appears under its own name."""
    if module in seen:
        return
    seen.add(module)
    children: Iterator[tuple[str, nn.Module]] = module.named_children()
    if isinstance(module, Choice):
        yield path, module
        children = zip(module.names, module.options, strict=True)
    for name, child in children:
        yield from _walk(child, (*path, name), seen)


def from_file(text: str, name: str = "module") -> ModuleSpace:
    """The space of a model in a Python file, "path.py:attribute"; the attribute is a module or makes one.

    The file is run, as `python path.py` would.
    """
    place, colon, attribute = text.rpartition(":")
    if not colon or not place.endswith(".py") or not attribute:
        raise RequestError(f"expected 'path.py:attribute', where the attribute makes a model, got {text!r}")
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise RequestError(f"there is no file {place!r}")
    values = vars(_run(path, place))
    if attribute not in values:
        near = sorted(n for n, v in values.items() if not n.startswith("_") and callable(v))
        raise RequestError(
            f"{place!r} defines no {attribute!r}, only {', '.join(near) or 'nothing that makes a model'}"
        )
    return ModuleSpace(values[attribute], name)


def _run(path: Path, place: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"nasight_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered, so that classes defined in the file can be found again by copies and dataclasses.
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise RequestError(f"{place!r} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _check_factory(factory: Any) -> None:
    if not callable(factory):
        raise RequestError(f"a model must be an nn.Module or a function that makes one, got {type(factory).__name__}")
    try:
        inspect.signature(factory).bind()
    except ValueError:
        return  # Some callables of C do not tell their arguments.
    except TypeError as error:
        raise RequestError(f"{_called(factory)} must make a model without arguments: {error}") from error


def _called(factory: Any) -> str:
    return f"{getattr(factory, '__name__', type(factory).__name__)}()"


def _check_text(name: object, what: str) -> None:
    """Names must survive "name=option, name=option"."""
    if not isinstance(name, str) or not name or name != name.strip() or any(c in name for c in "=,\n"):
        raise RequestError(f"{what} {name!r} needs a name without '=', ',' and outer spaces")


def _reset(module: nn.Module) -> None:
    # Attention resets itself under the second name.
    reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
    if callable(reset):
        reset()
