"""`nasight data` as a user types it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nasight.cli._data import app
from nasight.data._sources import SOURCES
from nasight.errors import RequestError


def test_the_list_says_what_is_here_and_how_to_get_the_rest(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--folder", str(tmp_path)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "digits: here, in scikit-learn"
    assert lines[3] == f"cifar-10: not here (170 MB); get it with: nasight data get cifar-10 --folder {tmp_path}"


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--json", "--folder", str(tmp_path)])
    rows = {row["name"]: row for row in json.loads(result.stdout)["datasets"]}
    assert rows["digits"]["here"]
    assert not rows["mnist"]["here"]


def test_a_wrong_name_reaches_the_top_as_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["get", "cifar10", "--folder", str(tmp_path)])
    assert isinstance(result.exception, RequestError)
    assert "did you mean 'cifar-10'" in str(result.exception)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with four files under the names of MNIST, and their checksums in its row."""
    files = {name: name.encode() for name in SOURCES["mnist"].downloads or {}}
    (tmp_path / "served").mkdir()
    for name, data in files.items():
        (tmp_path / "served" / name).write_bytes(data)
    sums = {name: hashlib.md5(data).hexdigest() for name, data in files.items()}
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], downloads=sums))
    monkeypatch.setenv("no_proxy", "*")

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path / "served"))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_get_names_each_file_on_standard_error_and_the_place_on_standard_output(mirror: str, tmp_path: Path) -> None:
    request = ["get", "mnist", "--folder", str(tmp_path / "data"), "--mirror", mirror]
    result = CliRunner().invoke(app, request)
    assert result.stdout == f"mnist is in {tmp_path / 'data' / 'mnist'}\n"
    assert [line.split()[1] for line in result.stderr.splitlines()] == list(SOURCES["mnist"].downloads or {})
    again = CliRunner().invoke(app, [*request, "--json"])
    assert json.loads(again.stdout) == {"name": "mnist", "where": str(tmp_path / "data" / "mnist")}
    assert again.stderr == ""


@pytest.mark.parametrize("command", [[], ["get"]])
def test_help_shows_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "nasight data get cifar-10" in result.stdout
