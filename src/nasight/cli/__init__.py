"""The command line: `nasight search`, `nasight train`, `nasight data`."""

from nasight.cli._main import app, main

__all__ = ["app", "main"]
