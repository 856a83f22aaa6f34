"""What a run folder promises: nothing is lost, nothing is mixed, and nothing outside of it is touched."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from nasight.errors import RequestError, RunError
from nasight.runs import RunFolder, named_again, read_json, write_atomic


def made(path: Path, rows: int = 2, *, finished: bool = True, **how: Any) -> RunFolder:
    """A run with some rows and as many checkpoints."""
    folder = RunFolder.create(path, kind="race", about={"settings": {"rows": rows}}, **how)
    with folder.writing():
        for row in range(rows):
            folder.append_history({"row": row})
            folder.save({"row": row}, mark=f"{row:03d}")
        if finished:
            folder.write_result({"rows": rows})
    return folder


def test_the_last_two_checkpoints_are_kept_and_the_one_before_serves_where_the_last_is_damaged(tmp_path: Path) -> None:
    made(tmp_path / "r", 4, finished=False)
    assert [path.name for path in sorted((tmp_path / "r").glob("*.pt"))] == ["checkpoint-002.pt", "checkpoint-003.pt"]
    (tmp_path / "r" / "checkpoint-003.pt").write_bytes(b"no")
    folder = RunFolder(tmp_path / "r")
    assert folder.load() == {"row": 2}
    assert folder.resume_history(3) == [{"row": 0}, {"row": 1}, {"row": 2}]


def test_a_finished_run_keeps_one_checkpoint_and_never_falls_back_to_another(tmp_path: Path) -> None:
    made(tmp_path / "r", 4)
    (last,) = (tmp_path / "r").glob("*.pt")
    last.write_bytes(b"no")
    with pytest.raises(RequestError, match="is damaged"):
        RunFolder(tmp_path / "r").load()


@pytest.mark.parametrize("change", ["shorter", "other", "gone"])
def test_a_history_that_is_not_the_checkpoints_is_refused(tmp_path: Path, change: str) -> None:
    made(tmp_path / "r", 3, finished=False)
    path = tmp_path / "r" / "history.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text({"shorter": lines[0], "other": "".join(lines[::-1]), "gone": ""}[change])
    folder = RunFolder(tmp_path / "r")
    assert folder.load() is not None
    with pytest.raises(RequestError, match="does not belong to the checkpoint"):
        folder.resume_history(3)


def test_rows_that_a_kill_left_behind_the_checkpoint_are_taken_back(tmp_path: Path) -> None:
    made(tmp_path / "r", 2, finished=False)
    with (tmp_path / "r" / "history.jsonl").open("a") as file:
        file.write('{"row": 2}\n{"row"')
    folder = RunFolder(tmp_path / "r")
    folder.load()
    assert folder.resume_history(2) == [{"row": 0}, {"row": 1}]
    folder.append_history({"row": 9})
    assert folder.history[-1] == {"row": 9}


def test_a_result_of_another_run_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "r")
    (tmp_path / "r" / "result.json").write_text('{"rows": 7}')
    with pytest.raises(RequestError, match="does not belong to the checkpoint"):
        _ = RunFolder(tmp_path / "r").result


def test_overwrite_keeps_the_old_run_until_the_new_one_has_a_checkpoint(tmp_path: Path) -> None:
    made(tmp_path / "r", 2)
    (tmp_path / "r" / "notes.txt").write_text("mine")
    folder = RunFolder.create(tmp_path / "r", kind="race", about={"settings": {}}, overwrite=True)
    with folder.writing():
        assert (tmp_path / "r" / ".replaced" / "result.json").is_file()
        folder.append_history({"row": 5})
        folder.save({"row": 5}, mark="005")
        assert not (tmp_path / "r" / ".replaced").exists()
    assert (tmp_path / "r" / "notes.txt").read_text() == "mine"
    assert RunFolder(tmp_path / "r").history == [{"row": 5}]


def test_a_new_run_that_fails_before_its_first_checkpoint_gives_the_old_one_back(tmp_path: Path) -> None:
    made(tmp_path / "r", 2)
    folder = RunFolder.create(tmp_path / "r", kind="race", about={"settings": {}}, overwrite=True)

    def fail() -> None:
        with folder.writing():
            folder.append_history({"row": 5})
            raise RunError("no")

    with pytest.raises(RunError, match="no"):
        fail()
    assert RunFolder(tmp_path / "r").result == {"rows": 2}
    assert len(RunFolder(tmp_path / "r").history) == 2
    assert RunFolder(tmp_path / "r").load() == {"row": 1}


def test_a_move_that_was_killed_is_taken_back_when_the_folder_is_opened(tmp_path: Path) -> None:
    made(tmp_path / "r", 2)
    aside = tmp_path / "r" / ".replaced"
    aside.mkdir()
    for name in ("run.json", "result.json"):
        (tmp_path / "r" / name).rename(aside / name)
    assert RunFolder.open(tmp_path / "r", kind="race").result == {"rows": 2}
    assert not aside.exists()


def test_a_run_that_is_being_written_is_not_overwritten(tmp_path: Path) -> None:
    made(tmp_path / "r", 2)
    with RunFolder(tmp_path / "r").writing(), pytest.raises(RequestError, match="another process is writing"):
        RunFolder.create(tmp_path / "r", kind="race", about={"settings": {}}, overwrite=True)
    made(tmp_path / "r" / "train" / "tiny" / "seed-0")
    inner = RunFolder(tmp_path / "r" / "train" / "tiny" / "seed-0")
    with inner.writing(), pytest.raises(RequestError, match=r"another process is writing .*seed-0"):
        RunFolder.create(tmp_path / "r", kind="race", about={"settings": {}}, overwrite=True)
    assert RunFolder(tmp_path / "r").result == {"rows": 2}


@pytest.mark.parametrize("name", [".lock", "history.jsonl", "train"])
def test_nothing_is_written_through_a_link_that_leads_out(tmp_path: Path, name: str) -> None:
    made(tmp_path / "r", 1, finished=False)
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / "precious.txt"
    precious.write_text("precious")
    link = tmp_path / "r" / name
    link.unlink(missing_ok=True)
    link.symlink_to(outside if name == "train" else precious)

    def write() -> None:
        if name == "train":
            write_atomic(tmp_path / "r" / "train" / "summary.json", b"{}")
            return
        folder = RunFolder(tmp_path / "r")
        with folder.writing():
            folder.append_history({"row": 1})

    with pytest.raises(RequestError, match="link"):
        write()
    assert precious.read_text() == "precious"
    assert list(outside.iterdir()) == [precious]


def test_a_half_file_that_is_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 77)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".a.json.77.new").symlink_to(tmp_path / "precious")
    write_atomic(tmp_path / "a.json", b"{}")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "a.json").read_bytes() == b"{}"


def test_a_write_that_fails_keeps_its_reason_when_the_clean_up_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.fsync", full)
    target = tmp_path / "a.json"
    unlinks = []
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: refused() if unlinks else unlinks.append(self))
    with pytest.raises(RunError, match="No space left on device"):
        write_atomic(target, b"{}")


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a": ' + "9" * 5000 + "}", "[" * 70 + "]" * 70, "\udc80", "{"])
def test_json_that_no_one_wrote_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RequestError, match="is damaged"):
        read_json(tmp_path / "a.json")


def test_code_named_in_a_folder_is_run_only_where_it_is_named_again_and_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("def build(): ...\n")
    name = f"{file}:build"
    about = {"sources": {name: hashlib.sha256(file.read_bytes()).hexdigest()}}
    assert named_again("r", about, "mlp", None) == "mlp"
    with pytest.raises(RequestError, match=r"is not run because a folder names it; .* --space"):
        named_again("r", about, name, None)
    assert named_again("r", about, name, name) == name
    file.write_text("def build(): return 1\n")
    with pytest.raises(RequestError, match="is not the code that r was made with"):
        named_again("r", about, name, name)


def test_run_json_keeps_the_checksum_of_the_users_own_code(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("x = 1\n")
    RunFolder.create(tmp_path / "r", kind="race", about={"settings": {}}, code=[f"{file}:x", "mlp", None])
    kept = json.loads((tmp_path / "r" / "run.json").read_text())["sources"]
    assert kept == {f"{file}:x": hashlib.sha256(b"x = 1\n").hexdigest()}
