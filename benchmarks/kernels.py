"""Speed of kernels, infinite-width and empirical, one after the other.

    python benchmarks/kernels.py --out docs

runs `kernels_infinite.py` and `kernels_empirical.py`, each of which prints its table and writes
OUT/kernels_infinite.json or OUT/kernels_empirical.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    here = Path(__file__).parent
    for name, option in (("kernels_infinite", "--out"), ("kernels_empirical", "--json")):
        place = [option, str(given.out / f"{name}.json")] if given.out else []
        subprocess.run([sys.executable, here / f"{name}.py", "--repeats", str(given.repeats), *place], check=True)


if __name__ == "__main__":
    main()
