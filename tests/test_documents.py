"""The code in the documents runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL))
]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_runs_as_it_stands(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {"__name__": "block"})


def test_every_local_link_and_picture_leads_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
