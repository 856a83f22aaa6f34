"""What the package of drawings and pages may know of the others."""

import ast
from collections.abc import Iterator
from pathlib import Path

import nasight.report

FOLDER = Path(nasight.report.__file__).parent


def imported() -> Iterator[tuple[str, str]]:
    """(file, what it imports), names that are taken out of a module with their module."""
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path.name, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path.name} imports relatively"
                yield from ((path.name, f"{node.module}.{alias.name}") for alias in node.names)


def test_the_report_neither_searches_nor_reads_runs_nor_studies_them() -> None:
    closed = ("nasight.studies", "nasight.searching", "nasight.runs", "nasight.cli")
    assert [found for found in imported() if found[1].startswith(closed)] == []


def test_the_report_knows_no_private_module_of_another_package() -> None:
    others = [(file, name) for file, name in imported() if name.startswith("nasight.") and ".report." not in name]
    assert len(others) > 10
    assert [(file, name) for file, name in others if any(part.startswith("_") for part in name.split("."))] == []


def test_every_public_name_is_there() -> None:
    assert sorted(nasight.report.__all__, key=str.lower) == sorted(set(nasight.report.__all__), key=str.lower)
    assert all(hasattr(nasight.report, name) for name in nasight.report.__all__)
    # One name, one thing: the folder of the frame's files does not hide the function.
    assert callable(nasight.report.page)
