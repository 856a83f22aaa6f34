"""Speed of kernels, infinite-width and empirical, one after the other.

    python benchmarks/kernels.py

runs `kernels_infinite.py` and `kernels_empirical.py` with the flags that it is given. Each prints its table and writes
a result: --out NAME.json.gz stands for NAME_infinite.json.gz and NAME_empirical.json.gz.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from _shared import Flags


def main() -> None:
    flags = Flags(__doc__, "kernels", seeds=5, chance="repeats of every timing")
    given = flags.read(seeds=1)
    stem, ending = given.out.name.split(".", 1)
    for name in ("infinite", "empirical"):
        out = given.out.with_name(f"{stem}_{name}.{ending}")
        command = [sys.executable, Path(__file__).with_name(f"kernels_{name}.py"), "--out", out]
        command += ["--seeds", str(given.seeds), *(["--quick"] if given.quick else [])]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
