"""A user's own `nn.Module` as a search space: wherever it holds a `Choice`, there is a decision."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar

from torch import nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces._groups import Decision
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.module._choice import Choice, check_name
from nasight.spaces.module._supernet import ModuleSupernet

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

    builds_without_memory: ClassVar[bool] = False

    def __init__(self, model: nn.Module | Factory, name: str = "module") -> None:
        if not isinstance(model, nn.Module):
            _check_factory(model)
        self.name = name
        self.model = model
        self.decisions = tuple(Decision(label, choice.names) for label, choice in choices_of(self._fresh()).items())

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
        model = self._fresh()
        return ModuleSupernet(self.groups(), model, self._choices(model), path=how["path"])

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        raise RequestError(
            "a network of your own module cannot be written as source, since nasight does not have its code; "
            "take --torch-export net.pt2 instead"
        )

    def _fresh(self) -> nn.Module:
        if isinstance(self.model, nn.Module):
            return deepcopy(self.model)
        try:
            model = self.model()
        except RequestError:
            raise
        except (Exception, SystemExit) as error:
            raise RequestError(f"{_called(self.model)} cannot make a model: {type(error).__name__}: {error}") from error
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
        check_name(label, "the choice")
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


def _reset(module: nn.Module) -> None:
    # Attention resets itself under the second name.
    reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
    if callable(reset):
        reset()
