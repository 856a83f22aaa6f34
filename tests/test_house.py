"""The rules of docs/architecture.md hold, and the script that checks them sees a breach of each."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import nasight

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = spec_from_file_location("house", ROOT / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["house"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_imports_go_one_way_and_no_package_reaches_into_another(house: ModuleType) -> None:
    assert house.breaches() == []


def test_every_package_has_a_storey(house: ModuleType) -> None:
    there = {house.package_of(path) for path in house.SOURCE.rglob("*.py")}
    assert there <= set(house.LEVEL)


@pytest.mark.slow
def test_the_script_prints_the_three_zeros() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "house.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 cycles, 0 private imports across packages, 0 space names outside spaces/" in done.stdout


@pytest.mark.slow
def test_the_picture_of_the_house_is_the_one_its_script_draws(house: ModuleType) -> None:
    assert house.PICTURE.read_text() == house.drawing(), "run: python tools/house.py --draw"


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("spaces/_x.py", "from nasight.searching import Run", "upwards"),
        ("trust/_x.py", "from nasight.searching import Run", "pillar to pillar"),
        ("cli/_x.py", "from nasight.spaces._base import Space", "private"),
        ("data/_x.py", "def f():\n    from nasight.runs import RunFolder", "a circle"),
        ("cli/_x.py", "def f(space):\n    return space.name == 'darts'", "name of a space"),
        ("cli/_x.py", "SIZES = {'mlp': 3}", "name of a space"),
        ("attic/_x.py", "from nasight.errors import RunError", "without a storey"),
    ],
)
def test_a_breach_is_seen(house: ModuleType, tmp_path: Path, file: str, line: str, says: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "_y.py").write_text("from nasight.data import load\n")
    place = tmp_path / file
    place.parent.mkdir(exist_ok=True)
    place.write_text(line + "\n")
    assert any(breach.startswith(says) or says in breach for breach in house.breaches(tmp_path))


def test_importing_the_library_loads_no_torch() -> None:
    script = "import sys, nasight; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_package_needs_no_import_of_its_own() -> None:
    script = (
        "import sys, nasight; print('torch' in sys.modules, nasight.data.load('digits').name, 'data' in dir(nasight))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "digits", "True"]
    packages = {path.parent.name for path in (ROOT / "src" / "nasight").glob("*/__init__.py")} - {"cli", "report"}
    assert packages == set(nasight._PACKAGES)
