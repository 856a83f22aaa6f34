"""The network that a card describes, built by nasight's own code once its weights are known to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from nasight.errors import RequestError, RunError
from nasight.export import ExportDesign, fitted
from nasight.reproducible import seeded
from nasight.runs import is_code
from nasight.spaces import BASELINES, FixedSpace, Space
from nasight.spaces import load as load_space
from nasight.spaces import names as space_names
from nasight.studies._model_card import ModelCard

MOST_PARAMETERS = 10**9
OWN = "baseline"
"""What the space of a network without choices is called."""

SpaceGiven = Space | nn.Module | Callable[[], nn.Module] | str
"""What `nasight.spaces.load` takes."""


def space_of(card: ModelCard, given: SpaceGiven | None, folder: Path) -> Space:
    """The space of a card; code is only run where the caller, not the folder, names it."""
    if given is not None:
        # A network of one's own that won as the baseline of a find has no choices.
        own = card.space == OWN and isinstance(given, str) and is_code(given)
        return FixedSpace.from_file(str(given)) if own else load_space(given)
    if ":" in card.space or card.space not in (*space_names(), *BASELINES):
        raise RequestError(
            f"the network in {folder} is code of its author ({card.space!r}), which a folder alone does not make run; "
            "if you trust it, name it: --space FILE.py:NAME"
        )
    return load_space(card.space, **card.space_options)


def design_of(card: ModelCard, space: Space) -> ExportDesign:
    """What network a card describes, its numbers checked."""
    return ExportDesign(space, space.parse(card.architecture), card.inputs, len(card.classes), space.size(**card.size))


def bare_network(card: ModelCard, space: Space, what: str) -> nn.Module:
    """The network without memory for its weights, where its space can build that; too large a one is refused."""
    design = design_of(card, space)
    try:
        if not space.builds_without_memory:
            return design.network()
        with torch.device("meta"):
            network = design.network()
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        first = str(error).partition("\n")[0]
        raise RequestError(f"{what} describes a network that cannot be built: {first}") from error
    number = sum(value.numel() for value in network.state_dict().values())
    if number > MOST_PARAMETERS:
        raise RequestError(f"{what} describes a network of {number:,} numbers; at most {MOST_PARAMETERS:,} are loaded")
    return network


def network_of(card: ModelCard, space: Space, state: Mapping[str, Tensor], what: str) -> nn.Module:
    """nasight's own network with these weights, in evaluation mode; memory is taken once all shapes fit."""
    check_fit(state, bare_network(card, space, what), what)
    with seeded(0, "model"):
        network = design_of(card, space).network()
    network.load_state_dict(_named(state, network))
    return network.eval()


def check_fit(state: Mapping[str, Tensor], network: nn.Module, what: str) -> None:
    try:
        _named({name: value.to("meta") for name, value in state.items()}, network)
    except RunError as error:
        raise RequestError(f"{what}: {error}") from error


def _named(state: Mapping[str, Tensor], network: nn.Module) -> Mapping[str, Tensor]:
    """The state under the names of the network; what training adds is left out."""
    wanted = network.state_dict()
    same = list(state) == list(wanted) and all(state[name].shape == wanted[name].shape for name in wanted)
    return state if same else fitted(state, network)
