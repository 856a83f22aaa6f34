"""The tables of docs/faithful.md are what `tools/faithful_page.py` writes from the protocols."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from nasight.searching import FAMILIES, METHODS, PROTOCOLS, UNPUBLISHED

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = spec_from_file_location("faithful_page", ROOT / "tools" / "faithful_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_page_are_those_of_the_code(tool: ModuleType) -> None:
    text = tool.PAGE.read_text()
    assert tool.page(text) == text, "run: python tools/faithful_page.py"


def test_every_method_is_there_and_no_reason_is_given_in_vain(tool: ModuleType) -> None:
    shown = tool.tables()
    assert all(f"| {name} |" in shown for name in METHODS)
    published = {pair for rows in PROTOCOLS.values() for pair in rows}
    for name in UNPUBLISHED:
        assert any((name, family) not in published for family in FAMILIES), name


@pytest.mark.parametrize(
    ("method", "space", "words"),
    [
        ("darts", "NAS-Bench-201", ["50 epochs, warm-up 0", "bilevel, weights first", "lr 0.0003", "no none"]),
        ("gaea-darts", "NAS-Bench-201", ["25 epochs of a cosine over 50", "erm, architecture first; all rows |"]),
        ("gaea-darts", "NAS-Bench-201", ["batch 64", "| lr 0.1 |", "channels 16, cells 5, no none"]),
        ("gdas", "NAS-Bench-201", ["250 epochs, warm-up 0", "bilevel, weights first", "Nesterov", "cells 5, none"]),
        ("gaea-gdas", "NAS-Bench-201", ["150 epochs, warm-up 50", "| lr 0.1 |", "cells 5, none"]),
        ("rs-ws", "NAS-Bench-201", ["250 epochs", "0.5 of them to judge", "100 candidates on 512 rows", ", none"]),
        ("setn", "NAS-Bench-201", ["250 epochs", "no clip", "100 candidates on 512 rows", ", none"]),
        ("enas", "NAS-Bench-201", ["cosine over 10", "batch 128", "100 candidates on 128 rows", ", none"]),
        ("p-darts", "DARTS", ["3 stages of 25 epochs, warm-up 10", "lr 0.0006, clip 5", "cells 5, 11, 17"]),
        ("gaea-pc-darts", "DARTS", ["warm-up 10", "bilevel, architecture first", "0.5 of them", "| lr 0.1 |", "K 4"]),
        ("darts", "NAS-Bench-1Shot1", ["25 epochs, warm-up 0", "batch 96, lr 0.025 to 0.001"]),
        ("darts-2nd", "NAS-Bench-1Shot1", ["25 epochs, warm-up 0", "batch 96, lr 0.025 to 0.001", "lr 0.0003"]),
        ("gdas", "NAS-Bench-1Shot1", ["100 epochs, warm-up 0", "batch 96, lr 0.025 to 0.001"]),
        ("pc-darts", "NAS-Bench-1Shot1", ["100 epochs, warm-up 0", "batch 96, lr 0.025 to 0.001"]),
    ],
)
def test_a_row_says_what_was_published(tool: ModuleType, method: str, space: str, words: list[str]) -> None:
    (line,) = [line for line in tool.tables().splitlines() if line.startswith(f"| {method} | {space} |")]
    assert [word for word in words if word not in line] == []
