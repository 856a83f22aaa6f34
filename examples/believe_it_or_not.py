"""Search twice with different seeds, and ask of each decision whether it can be believed.

python examples/believe_it_or_not.py
"""

from __future__ import annotations

import nasight


def main(epochs: int = 8) -> None:
    """Two searches on the digits, explained together; everything goes to runs/believe."""
    runs = [
        nasight.search(
            data="digits",
            preset="tiny",
            epochs=epochs,
            seed=seed,
            threads=1,
            out=f"runs/believe/{seed}",
            overwrite=True,
        )
        for seed in (0, 1)
    ]
    found = nasight.explain(*runs)
    print(f"{found.counts['safe']} of {len(found.decisions)} decisions are safe")
    for decision in found.decisions:
        print(f"  {decision['name']}: {decision['choice']} is {decision['verdict']}; {decision['advice']}")
    for advice in found.advice:
        print(f"{advice.action}: {advice.why}")


if __name__ == "__main__":
    main()
