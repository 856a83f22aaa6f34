"""The scripts and the notebook in examples/ run as they stand."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_in_an_empty_folder(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(epochs=2)
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "first_search.ipynb").read_text())
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert "reference:" in capsys.readouterr().out


def test_there_are_three_scripts_and_a_notebook_and_each_says_how_it_is_run() -> None:
    assert len(SCRIPTS) == 3
    for script in SCRIPTS:
        assert f"python examples/{script.name}" in script.read_text()
    assert (EXAMPLES / "first_search.ipynb").is_file()
