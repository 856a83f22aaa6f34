"""Every example in a docstring runs and gives what it says."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest
import torch

SOURCE = Path(__file__).parent.parent / "src" / "nasight"


def modules() -> list[str]:
    """The modules that have examples."""
    paths = (path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text())
    names = (path.relative_to(SOURCE.parent).with_suffix("").parts for path in paths)
    return [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_give_what_they_say(name: str, tmp_path: Path) -> None:
    module = import_module(name)
    found = doctest.DocTestFinder(exclude_empty=True).find(
        module, globs={**vars(module), "tmp": tmp_path, "torch": torch}
    )
    runner, said = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), list[str]()
    for each in found:
        runner.run(each, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert runner.tries > 0
