"""The state of a search: read for a checkpoint, put back from one, and the iterate that is set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from nasight.compute import is_device
from nasight.errors import RequestError
from nasight.geometry import MirrorDescent
from nasight.runs import check_weights, load_optimizer
from nasight.searching._tally import Tally, settle

if TYPE_CHECKING:
    from nasight.searching._engine import Engine


def state_of(engine: Engine, *more: Tally) -> dict[str, Any]:
    """All that a later process needs to go on; plain values and tensors on the CPU. All ranks ask together.

    Counts, those in `more` too, come from the device with the same wait; a `RunError` where a loss was not finite.
    """
    moved = [engine.arch_optimizer] if isinstance(engine.arch_optimizer, MirrorDescent) else []
    state: dict[str, Any] = {
        "stage": engine.stage,
        "options": engine.reduced.options,
        "size": engine.size,
        "memory": engine.memory,
        **({"scale": engine.scale.state()} if engine.scale.active else {}),
        "supernet": engine.supernet.state_dict(),
        "params": {name: parameter.detach() for name, parameter in engine.params.items()},
        "weight_optimizer": engine.weight_optimizer.state_dict(),
        "arch_optimizer": None if engine.arch_optimizer is None else engine.arch_optimizer.state_dict(),
        "kept": engine.kept,
    }
    near = settle([engine.watch, *moved, *engine.tallies.values(), *more], state if is_device(engine.device) else {})
    tallies = {name: tally.over(engine.ranks).values() for name, tally in engine.tallies.items()}
    return {**(near or state), "tallies": tallies}


def load_state(engine: Engine, state: Mapping[str, Any]) -> None:
    """Put a search back to where `state_of` was asked for; a state that does not fit it is refused."""
    try:
        if state.get("stage", 0) != engine.stage:
            engine.enter(state["stage"], state["options"])
        engine.memory = dict(state.get("memory", {}))
        engine.scale.restore(state.get("scale", {}))
        engine.supernet.restore(state["supernet"])
        with torch.no_grad():
            for name, parameter in engine.params.items():
                parameter.copy_(state["params"][name])
        load_optimizer(engine.weight_optimizer, state["weight_optimizer"], "the checkpoint")
        if engine.arch_optimizer is not None:
            load_optimizer(engine.arch_optimizer, state["arch_optimizer"], "the checkpoint")
            engine.arch_lr = float(engine.arch_optimizer.param_groups[0]["lr"])
        # What all ranks had seen together is kept by one of them.
        told = state["tallies"].items()
        engine.tallies = {name: Tally(*values) if engine.ranks.first else Tally() for name, values in told}
        engine.kept = state["kept"]
        if engine.kept is not None:
            check_weights(engine.supernet, engine.kept["supernet"], "the checkpoint")
            for name, parameter in engine.params.items():
                torch.empty_like(parameter).copy_(engine.kept["params"][name])
    except RequestError:
        raise
    except (KeyError, RuntimeError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise RequestError(f"the checkpoint does not fit this search: {str(error).splitlines()[0]}") from error


def keep(engine: Engine) -> None:
    """Set the present iterate aside as the one to return."""
    engine.kept = {
        "supernet": {name: value.clone() for name, value in engine.supernet.state_dict().items()},
        "params": {name: parameter.detach().clone() for name, parameter in engine.params.items()},
    }


def return_kept(engine: Engine) -> None:
    """Go back to the iterate that was set aside, if one was."""
    if engine.kept is not None:
        engine.supernet.load_state_dict(engine.kept["supernet"])
        with torch.no_grad():
            for name, parameter in engine.params.items():
                parameter.copy_(engine.kept["params"][name])
