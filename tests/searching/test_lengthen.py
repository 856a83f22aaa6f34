"""A search that has ended gets more epochs, and nobody else writes it meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nasight.errors import RequestError
from nasight.searching import resume, search

HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_search_that_another_process_writes_is_not_lengthened(tmp_path: Path) -> None:
    out, small = tmp_path / "r", {"preset": "tiny", "examples": 60, "epochs": 1, "batch_size": 16, "threads": 1}
    search("mlp", "darts", "digits", out=out, size={"width": 4}, **small)  # type: ignore[arg-type]
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".lock"}
    words = [sys.executable, "-c", HOLDER, str(out / ".lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RequestError, match="another process is writing"):
            resume(out, epochs=2)
        holder.communicate("")
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".lock"} == before
    assert len(resume(out, epochs=2).history) == 2
