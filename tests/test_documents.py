"""The code in the documents runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nasight.data import FORMATS
from nasight.kernels import SCORES
from nasight.registry import Registry
from nasight.report import SECTIONS
from nasight.searching import METHODS
from nasight.spaces import SPACES
from nasight.tables import TABLES

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL))
]


REGISTRIES: tuple[Registry[Any], ...] = (SPACES, METHODS, SCORES, TABLES, FORMATS, SECTIONS)


@pytest.fixture
def as_before() -> Iterator[None]:
    """What a page registers is forgotten afterwards: other tests in this process know the built-in names alone."""
    known = [set(registry) for registry in REGISTRIES]
    yield
    for registry, names in zip(REGISTRIES, known, strict=True):
        for name in set(registry) - names:
            registry.remove(name)


@pytest.mark.slow
@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_runs_as_it_stands(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {"__name__": "block"})


def test_every_local_link_and_picture_leads_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def headings(document: Path) -> set[str]:
    """What a link can name in a page: a heading in small letters, without marks, with hyphens for spaces."""
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    shown = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in shown}


def test_every_link_to_a_heading_leads_to_one() -> None:
    for document in DOCUMENTS:
        for file, name in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", document.read_text()):
            page = document.parent / file if file else document
            if "://" not in file and page.suffix == ".md":
                assert name in headings(page), f"{document.name}: {file}#{name}"
