"""Write docs/api.md: every public name with the first sentence of its docstring.

python tools/api_page.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
ROOMS = (
    "nasight",
    "nasight.studies",
    "nasight.spaces",
    "nasight.geometry",
    "nasight.searching",
    "nasight.training",
    "nasight.features",
    "nasight.kernels",
    "nasight.anatomy",
    "nasight.trust",
    "nasight.trust.bounds",
    "nasight.tables",
    "nasight.data",
    "nasight.export",
    "nasight.report",
    "nasight.report.sections",
    "nasight.report.finding",
    "nasight.runs",
    "nasight.compute",
)
HEAD = """# API

Every public name with the first line of its docstring; `help(nasight.train)` has the rest. A name or a module with an
underscore in front may change without notice. This page is written by `python tools/api_page.py`.
"""
VALUES = 12
"""A constant with more entries than this is told by their number."""


def public(room: str) -> list[str]:
    """The public names of a module: its `__all__`, else what it defines without an underscore."""
    module = import_module(room)
    names = getattr(module, "__all__", None)
    if names is None:
        defined = vars(module).items()
        names = [n for n, v in defined if n[0] != "_" and callable(v) and getattr(v, "__module__", "") == room]
    return sorted((name for name in names if name != "__version__"), key=str.lower)


def line(value: Any) -> str:
    """What a name is, in a line."""
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
        first = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
        written_by_dataclass = inspect.isclass(value) and first.startswith(f"{value.__name__}(")
        return "" if written_by_dataclass else first
    if isinstance(value, Mapping):
        return _listed("A mapping with", [str(key) for key in value])
    if isinstance(value, (tuple, list, set, frozenset)):
        return _listed("Values:", [str(entry) for entry in value])
    return f"A type: `{re.sub(r'[a-z_]+[.](?=[A-Za-z_.]*[A-Z])', '', str(value))}`."


def _listed(said: str, entries: list[str]) -> str:
    if len(entries) > VALUES:
        return f"{said} {len(entries)} entries, from `{entries[0]}` to `{entries[-1]}`."
    return f"{said} {', '.join(f'`{entry}`' for entry in entries)}."


def kind(value: Any) -> str:
    if inspect.ismodule(value):
        return "function" if callable(value) else "module"
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "value"


def rows(room: str) -> list[tuple[str, str, str]]:
    """(name, kind, line) of every public name of a module."""
    module = import_module(room)
    return [(name, kind(getattr(module, name)), line(getattr(module, name))) for name in public(room)]


def page() -> str:
    parts = [HEAD]
    for room in ROOMS:
        doc = (inspect.getdoc(import_module(room)) or "").split("\n\n")[0].replace("\n", " ")
        parts.append(f"## {room}\n\n{doc}\n\n| name | | |\n|---|---|---|")
        parts[-1] += "".join(
            f"\n| `{name}` | {what} | {said.replace('|', chr(92) + '|')} |" for name, what, said in rows(room)
        )
        parts[-1] += "\n"
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
