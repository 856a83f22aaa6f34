"""Fully connected networks whose activations and skip connections are searched (EigenNAS, eq. 1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import prod
from typing import Any, ClassVar

from torch import nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces._groups import Decision, Group
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.mlp._network import ACTIVATIONS, Form, MlpNetwork
from nasight.spaces.mlp._source import write
from nasight.spaces.mlp._supernet import MlpSupernet

SKIPS = ("0", "1")
PARAMETRIZATIONS = ("standard", "ntk")


MOST_LAYERS = 1_000


class Mlp(Space):
    """Networks of `layers` weight matrices: an activation after each but the last, a skip over each inner one.

    With `parametrization="ntk"`, as in EigenNAS (eq. 1 with the factor that its kernel implies), for width m:

        h_0 = x,  h_l = sqrt(2/m) s_l(W_l h_{l-1}) + alpha_{l-1} h_{l-1},  f = W_L h_{L-1},  W ~ N(0, 1)

    where alpha_0 = 0. `parametrization="standard"` is the same function of g_l = sqrt(m/2) h_l, with the factors
    moved into the matrices, V_1 = W_1 and V_l = sqrt(2/m) W_l after it:

        g_0 = x,  g_l = s_l(V_l g_{l-1}) + alpha_{l-1} g_{l-1},  f = V_L g_{L-1},  V_1 ~ N(0, 1), V_l ~ N(0, 2/m)

    Given such matrices the outputs are equal, so at initialization their laws are; the gradients with respect to
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
    sizes: ClassVar[Mapping[str, int]] = {"width": 256}
    search_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "tiny": {"width": 64},
        "small": {"width": 256},
        "paper": {"width": 1024},
    }
    score_size: ClassVar[Mapping[str, int]] = {"width": 256}
    thin_size: ClassVar[Mapping[str, int]] = {"width": 8}

    def __init__(
        self,
        layers: int = 4,
        *,
        slope: float = 0.01,
        parametrization: str = "standard",
        scale_inputs: bool | None = None,
    ) -> None:
        if not isinstance(layers, int) or layers < 2:
            raise RequestError(f"layers must be a whole number of at least 2, got {layers!r}")
        if layers > MOST_LAYERS:
            raise RequestError(f"layers must be at most {MOST_LAYERS:,}, got {layers:.6g}")
        if parametrization not in PARAMETRIZATIONS:
            raise RequestError(f"parametrization must be one of {', '.join(PARAMETRIZATIONS)}, got {parametrization!r}")
        self.layers = layers
        self.slope = slope
        self.parametrization = parametrization
        self.scale_inputs = parametrization == "standard" if scale_inputs is None else scale_inputs
        self.form = Form(layers, slope, parametrization, self.scale_inputs)
        self.activations = tuple(f"activation {i}" for i in range(1, layers))
        self.skips = tuple(f"skip {i}" for i in range(1, layers - 1))
        self.decisions = (
            *(Decision(name, ACTIVATIONS) for name in self.activations),
            *(Decision(name, SKIPS) for name in self.skips),
        )

    @property
    def options(self) -> dict[str, Any]:
        given = {
            "layers": self.layers,
            "slope": self.slope,
            "parametrization": self.parametrization,
            "scale_inputs": self.scale_inputs,
        }
        usual = {"slope": 0.01, "parametrization": "standard", "scale_inputs": self.parametrization == "standard"}
        return {key: value for key, value in given.items() if usual.get(key) != value}

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """ "activations" (layers - 1, 5) and, from three layers on, "skips" (layers - 2, 2)."""
        groups = [Group("activations", self.activations, (ACTIVATIONS,) * len(self.activations))]
        if self.skips:
            groups.append(Group("skips", self.skips, (SKIPS,) * len(self.skips)))
        return tuple(groups)

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
        activations = [arch[name] for name in self.activations]
        skips = [arch[name] == "1" for name in self.skips]
        return MlpNetwork(self.form, activations, skips, prod(inputs), classes, **self.size(**size))

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        return MlpSupernet(self.groups(), self.form, prod(inputs), classes, path=how["path"], **size)

    def counts_alike(self, arch: Architecture) -> Hashable:
        """All architectures have the same matrices."""
        return ""

    def lightest(self) -> tuple[Architecture, ...]:
        return (self.reference,)

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        activations = [arch[name] for name in self.activations]
        skips = [arch[name] == "1" for name in self.skips]
        return write(self.form, activations, skips, prod(inputs), **self.size(**size))
