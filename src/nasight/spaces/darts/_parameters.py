"""Parameters of DARTS networks: a sum over the operations of both cells."""

from __future__ import annotations

from nasight.architecture import Architecture
from nasight.spaces._parameters import Parameters


class DartsParameters(Parameters):
    """What the operations of both cells add to a network of pools, each measured once."""

    def __call__(self, arch: Architecture) -> int:
        (pooled,) = self.space.lightest()
        if "" not in self._known:
            self._known[""] = self.built(pooled)
        total = self._known[""]
        for name, option in arch.choices:
            kind, edge = name.split()
            # A skip of stride 2 is a convolution, so whether an edge starts at an input matters.
            place = f"{kind} 0->2" if edge[0] in "01" else f"{kind} 2->3"
            if option == "none":
                continue
            if (place, option) not in self._known:
                with_one = {**dict(pooled.choices), place: option}
                if edge[0] not in "01":
                    with_one[f"{kind} 0->3"] = "none"
                self._known[place, option] = self.built(self.space.architecture(with_one)) - self._known[""]
            total += self._known[place, option]
        return total
