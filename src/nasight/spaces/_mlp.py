"""Fully connected networks whose activations and skip connections are searched (EigenNAS, eq. 1)."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Decision, Group, Space, Weights

if TYPE_CHECKING:
    from nasight.supernet import Supernet

ACTIVATIONS = ("relu", "leaky_relu", "sigmoid", "tanh", "swish")
SKIPS = ("0", "1")
PARAMETRISATIONS = ("standard", "ntk")


class Mlp(Space):
    """Networks of `layers` weight matrices: an activation after each but the last, a skip over each inner one.

    With `parametrisation="ntk"`, as in EigenNAS (eq. 1 with the factor that its kernel implies), for width m:

        h_0 = x,  h_l = sqrt(2/m) s_l(W_l h_{l-1}) + alpha_{l-1} h_{l-1},  f = W_L h_{L-1},  W ~ N(0, 1)

    where alpha_0 = 0. `parametrisation="standard"` is the same function of g_l = sqrt(m/2) h_l, with the factors
    moved into the matrices, V_1 = W_1 and V_l = sqrt(2/m) W_l after it:

        g_0 = x,  g_l = s_l(V_l g_{l-1}) + alpha_{l-1} g_{l-1},  f = V_L g_{L-1},  V_1 ~ N(0, 1), V_l ~ N(0, 2/m)

    Given such matrices the outputs are equal, so at initialisation their laws are; the gradients with respect to
    the matrices differ by those factors, which is why ordinary learning rates suit the standard form.

    The paper's examples have norm 1. `scale_inputs` divides x (d numbers) by sqrt(d), in the standard form by
    V_1 ~ N(0, 1/d), so that inputs with entries of order 1 do not saturate the first layer. Left at None, the
    standard form does so and the ntk form is the formula as it stands.

    `layers=2` is one activation between two matrices, without skips. The sigmoid is 1/(1 + exp(-z)) - 1/2.

    >>> space = Mlp(layers=4)
    >>> a = space.parse("relu,tanh,swish/1,0")
    >>> a["activation 2"], a["skip 1"], len(space)
    ('tanh', '1', 500)
    """

    name = "mlp"
    sizes: ClassVar[dict[str, int]] = {"width": 256}

    def __init__(
        self,
        layers: int = 4,
        *,
        slope: float = 0.01,
        parametrisation: str = "standard",
        scale_inputs: bool | None = None,
    ) -> None:
        if not isinstance(layers, int) or layers < 2:
            raise RequestError(f"layers must be a whole number of at least 2, got {layers!r}")
        if parametrisation not in PARAMETRISATIONS:
            raise RequestError(f"parametrisation must be one of {', '.join(PARAMETRISATIONS)}, got {parametrisation!r}")
        self.layers = layers
        self.slope = slope
        self.parametrisation = parametrisation
        self.scale_inputs = parametrisation == "standard" if scale_inputs is None else scale_inputs
        self.activations = tuple(f"activation {i}" for i in range(1, layers))
        self.skips = tuple(f"skip {i}" for i in range(1, layers - 1))
        self.decisions = (
            *(Decision(name, ACTIVATIONS) for name in self.activations),
            *(Decision(name, SKIPS) for name in self.skips),
        )

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """ "activations" (layers - 1, 5) and, from three layers on, "skips" (layers - 2, 2)."""
        groups = [Group("activations", self.activations, (ACTIVATIONS,) * len(self.activations))]
        if self.skips:
            groups.append(Group("skips", self.skips, (SKIPS,) * len(self.skips)))
        return tuple(groups)

    def derive(self, weights: Weights) -> Architecture:
        """Arg max of every row."""
        choices = dict[str, str]()
        for group in self.groups():
            best = weights[group.name].argmax(1).tolist()
            choices.update((row, group.options[0][i]) for row, i in zip(group.rows, best, strict=True))
        return self.architecture(choices)

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        self.checked(arch)
        weights = dict[str, Tensor]()
        for group in self.groups(edges=edges):
            index = torch.tensor([group.options[0].index(arch[row]) for row in group.rows])
            weights[group.name] = nn.functional.one_hot(index, group.sizes[0]).float()
        return weights

    def parse(self, text: str) -> Architecture:
        """From the activations, '/', and the skips: "relu,tanh,swish/1,0"; without skips just "relu"."""
        parts = text.strip().split("/")
        if len(parts) != (2 if self.skips else 1):
            raise RequestError(f"expected a text like {self._example()!r} for {self.layers} layers, got {text[:120]!r}")
        choices = dict[str, str]()
        for part, names, options in zip(parts, (self.activations, self.skips), (ACTIVATIONS, SKIPS), strict=False):
            entries = [entry.strip() for entry in part.split(",")]
            if len(entries) != len(names):
                raise RequestError(
                    f"a network of {self.layers} layers has {len(names)} {names[0].split()[0]}(s), "
                    f"this text has {len(entries)}: {part!r}"
                )
            for name, entry in zip(names, entries, strict=True):
                if entry not in options:
                    raise RequestError(f"{name}: unknown option {entry!r}, not one of {', '.join(options)}")
                choices[name] = entry
        return self.architecture(choices)

    def _example(self) -> str:
        return "/".join(
            ",".join(options[:1] * len(names))
            for names, options in ((self.activations, ACTIVATIONS), (self.skips, SKIPS))
            if names
        )

    def format(self, arch: Architecture) -> str:
        self.checked(arch)
        return "/".join(",".join(arch[name] for name in names) for names in (self.activations, self.skips) if names)

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """A network of `width` units a layer; inputs of any shape are flattened."""
        self.checked(arch)
        return _Network(self, arch, prod(inputs), classes, **self.size(**size))

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        from nasight.supernet._mlp import MlpSupernet

        return MlpSupernet(self, prod(inputs), classes, path=how["path"], **size)

    def matrices(self, inputs: int, classes: int, width: int) -> nn.ModuleList:
        """The L linear maps, initialised for the parametrisation."""
        ends = [inputs, *[width] * (self.layers - 1), classes]
        maps = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(ends))
        for i, parameter in enumerate(maps.parameters()):
            deviation = 1.0
            if self.parametrisation == "standard":
                deviation = (2 / width) ** 0.5 if i else inputs**-0.5 if self.scale_inputs else 1.0
            nn.init.normal_(parameter, std=deviation)
        return maps

    def factors(self, inputs: int, width: int) -> tuple[float, float]:
        """What x and every activation are multiplied with in the pass."""
        if self.parametrisation == "standard":
            return 1.0, 1.0
        return inputs**-0.5 if self.scale_inputs else 1.0, (2 / width) ** 0.5

    def activation(self, name: str) -> nn.Module:
        """The activation of this name."""
        kinds: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "sigmoid": CentredSigmoid, "tanh": nn.Tanh}
        if name == "leaky_relu":
            return nn.LeakyReLU(self.slope)
        return kinds.get(name, nn.SiLU)()


class CentredSigmoid(nn.Module):
    """The sigmoid minus 1/2, so that it is zero at zero."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) - 0.5


class _Network(nn.Module):
    def __init__(self, space: Mlp, arch: Architecture, inputs: int, classes: int, width: int) -> None:
        super().__init__()
        self.matrices = space.matrices(inputs, classes, width)
        self.activations = nn.ModuleList(space.activation(arch[name]) for name in space.activations)
        # No skip over the first layer: it changes the width.
        self.skips = (False, *(arch[name] == "1" for name in space.skips))
        self.input_factor, self.factor = space.factors(inputs, width)

    def forward(self, x: Tensor) -> Tensor:
        h = x.flatten(1) * self.input_factor
        for linear, activation, skip in zip(self.matrices, self.activations, self.skips, strict=False):
            out = self.factor * activation(linear(h))
            h = out + h if skip else out
        logits: Tensor = self.matrices[-1](h)
        return logits
