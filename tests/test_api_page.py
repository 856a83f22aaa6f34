"""docs/api.md is what `tools/api_page.py` writes, and it leaves nothing out."""

import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
INNER = {"cli", "gradients"}
"""Rooms that serve the others."""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = spec_from_file_location("api_page", ROOT / "tools" / "api_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["api_page"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_public_name_is_missing_from_the_api_page() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    rooms = [folder.parent.name for folder in (ROOT / "src" / "nasight").glob("*/__init__.py")]
    for room in ("nasight", *(f"nasight.{name}" for name in rooms if name not in INNER)):
        for name in import_module(room).__all__:
            assert name == "__version__" or f"| `{name}` |" in sections[room], f"{room}.{name}"


def test_every_public_name_says_what_it_is(tool: ModuleType) -> None:
    silent = [f"{room}.{name}" for room in tool.ROOMS for name, _, line in tool.rows(room) if not line]
    assert silent == []


def test_the_api_page_is_the_one_that_its_tool_writes() -> None:
    # In a process of its own: other tests register names, and the page lists what is registered.
    code = "import sys; sys.path.insert(0, sys.argv[1]); import api_page; sys.stdout.write(api_page.page())"
    told = subprocess.run([sys.executable, "-c", code, str(ROOT / "tools")], capture_output=True, text=True, check=True)
    assert (ROOT / "docs" / "api.md").read_text() == told.stdout, "run: python tools/api_page.py"
