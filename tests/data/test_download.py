"""Downloads against a server of our own: whole, broken off, continued, wrong."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nasight.data import get
from nasight.data._sources import CIFAR_FILES, SOURCES
from nasight.errors import RequestError, RunError

CONTENT = {name: name.encode() * 40_000 for name in SOURCES["mnist"].downloads or {}}


@dataclass
class Server:
    """What to serve and how; and what was asked for."""

    files: dict[str, bytes]
    ranges: bool = True
    length: bool = True
    break_after: int | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server(dict(CONTENT))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, asked = self.path.rsplit("/", 1)[1], self.headers.get("Range")
            state.asked.append((name, asked))
            if name not in state.files:
                self.send_error(404)
                return
            body, start = state.files[name], 0
            if asked and state.ranges:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(body):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            if state.length:
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            self.wfile.write(body[start : state.break_after])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{httpd.server_port}/files"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("no_proxy", "*")
    publish(monkeypatch, "mnist", CONTENT)
    yield state
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def publish(monkeypatch: pytest.MonkeyPatch, name: str, content: dict[str, bytes]) -> None:
    """Gives the row of a name the checksums of our files."""
    sums = {file: hashlib.md5(data).hexdigest() for file, data in content.items()}
    monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], downloads=sums))


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("length", [True, False])
def test_all_files_arrive_with_the_servers_bytes_and_nothing_else(server: Server, tmp_path: Path, length: bool) -> None:
    server.length = length
    seen: dict[str, tuple[int, int | None]] = {}
    place = get(
        "mnist", tmp_path, mirror=server.address, progress=lambda f, done, total: seen.update({f: (done, total)})
    )
    assert place == tmp_path / "mnist"
    assert listing(tmp_path) == CONTENT
    assert seen == {name: (len(data), len(data) if length else None) for name, data in CONTENT.items()}


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_keeps_its_part_and_continues(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.ranges, server.break_after = ranges, 300_000
    first = next(iter(CONTENT))
    with pytest.raises(RunError, match=f"broke off after 300000 of {len(CONTENT[first])} bytes; 300000 bytes are kept"):
        get("mnist", tmp_path, mirror=server.address)
    assert listing(tmp_path) == {f"{first}.part": CONTENT[first][:300_000]}
    server.break_after = None
    get("mnist", tmp_path, mirror=server.address)
    assert server.asked[1] == (first, "bytes=300000-")
    assert listing(tmp_path) == CONTENT


def test_a_part_that_was_complete_is_used(server: Server, tmp_path: Path) -> None:
    first = next(iter(CONTENT))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / f"{first}.part").write_bytes(CONTENT[first])
    get("mnist", tmp_path, mirror=server.address)
    assert listing(tmp_path) == CONTENT


def test_a_wrong_checksum_removes_the_part_and_leaves_what_was_there(server: Server, tmp_path: Path) -> None:
    names = list(CONTENT)
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / names[1]).write_bytes(b"older")
    server.files[names[1]] = b"changed"
    with pytest.raises(RunError, match=f"{names[1]} sent does not have the published checksum"):
        get("mnist", tmp_path, mirror=server.address)
    assert listing(tmp_path) == {names[0]: CONTENT[names[0]], names[1]: b"older"}
    server.files[names[1]] = CONTENT[names[1]]
    get("mnist", tmp_path, mirror=server.address)
    assert listing(tmp_path) == CONTENT
    assert [name for name, _ in server.asked].count(names[0]) == 1


def test_a_server_that_does_not_answer_is_one_sentence(server: Server, tmp_path: Path) -> None:
    server.files.clear()
    with pytest.raises(RunError, match=r"answered 404 Not Found; nothing was changed"):
        get("mnist", tmp_path, mirror=server.address)
    with pytest.raises(RunError, match=r"cannot be reached \(.*refused.*\); nothing was changed"):
        get("mnist", tmp_path, mirror="http://127.0.0.1:9")
    assert listing(tmp_path) == {}


def archive(members: dict[str, bytes], link: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if name == link:
                info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def test_of_an_archive_only_the_expected_members_come_out(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {file: file.encode() * 1000 for file in CIFAR_FILES}
    members = {f"cifar-10-batches-bin/{file}": data for file, data in wanted.items()}
    extra = {"../escaped": b"x", "cifar-10-batches-bin/virus.sh": b"x", str(tmp_path / "absolute"): b"x"}
    server.files = {"cifar-10-binary.tar.gz": archive({**extra, **members})}
    publish(monkeypatch, "cifar-10", server.files)
    folder = tmp_path / "data"
    assert get("cifar-10", folder, mirror=server.address) == folder / "cifar-10-batches-bin"
    assert listing(tmp_path) == wanted


@pytest.mark.parametrize("link", [None, "cifar-10-batches-bin/test_batch.bin"])
def test_an_archive_without_a_member_changes_no_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str | None
) -> None:
    members = {f"cifar-10-batches-bin/{file}": b"new" for file in CIFAR_FILES[: 6 if link else 5]}
    server.files = {"cifar-10-binary.tar.gz": archive(members, link)}
    publish(monkeypatch, "cifar-10", server.files)
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin" / "data_batch_1.bin").write_bytes(b"old")
    with pytest.raises(RunError, match=r"test_batch.bin"):
        get("cifar-10", tmp_path, mirror=server.address)
    assert listing(tmp_path / "cifar-10-batches-bin") == {"data_batch_1.bin": b"old"}


def test_a_request_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="comes with scikit-learn"):
        get("digits", tmp_path)
    with pytest.raises(RequestError, match="did you mean 'mnist'"):
        get("mnst", tmp_path)
    with pytest.raises(RequestError, match="http or https address, got 'file:///etc'"):
        get("mnist", tmp_path, mirror="file:///etc")
