"""A folder from a stranger: whatever lies in it, reading it runs nothing, and writes nothing outside of it.

Each attempt is a real folder with a trap, handed to a real command. A trap has worked if its canary is there
afterwards, or if a file outside the folder was changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from faults.bases import BASES, Base, words_for
from faults.mutations import tie_again
from faults.nursery import forked
from nasight.cli import main

PAYLOAD = "import pathlib\npathlib.Path({canary!r}).write_text('run')\n{rest}"
REST = "from torch import nn\ndef build(*a, **k):\n    return nn.Linear(2, 2)\nNetwork = build\n"
SHELL = "x; touch {canary}; $(touch {canary}) `touch {canary}`"
LINKS = (
    ".lock", "history.jsonl", "state.json", "result.json", "trust.json", "report.html", "search.svg", "scores.jsonl",
    "request.json", "journal.jsonl", "race.json", "summary.json",
)  # fmt: skip
FOLDERS = (
    "train",
    "resolve",
    "candidates",
    "scores",
    "deep",
    "trials",
    "tensorboard",
    "model",
    ".replaced",
    ".dropped",
)


@dataclass
class StrangerCount:
    """What came of attempts."""

    attempts: int = 0
    successes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Trap:
    """What a stranger has put into a folder."""

    name: str
    lay: Callable[[Path, Path, Path], bool]
    """(run, canary, outside) -> whether there was something to lay it in."""


class _Runs:
    """An object that runs a command when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.canary}",)


def traps() -> Iterator[Trap]:
    """All of them."""
    for place in ("settings.space", "space", "settings.baseline", "settings.data", "data.name", "settings.maps"):
        yield Trap(f"code named in run.json as {place}", _named(place))
    for part in ("loss", "metric", "optimizer", "augment"):
        yield Trap(f"a file named as the run's own {part}", _own(part, module=False))
        yield Trap(f"a module named as the run's own {part}", _own(part, module=True))
    yield Trap("code named as a metric", _metric)
    yield Trap("code named in model.json", _model_space)
    yield Trap("code in the files of a model", _model_code)
    yield Trap("a pickle in place of the checkpoint", _pickled)
    yield Trap("an object inside the checkpoint", _inside_checkpoint)
    yield Trap("a pickle as the data", _pickled_data)
    yield Trap("a module beside the run", _modules)
    for name in LINKS:
        yield Trap(f"{name} is a link to a file outside", _linked(name))
    for name in FOLDERS:
        yield Trap(f"{name}/ is a link to a folder outside", _linked_folder(name))
    yield Trap("half files that are links", _half_links)
    for key in ("method", "objective", "data", "preset", "space"):
        yield Trap(f"words for a shell in settings.{key}", _shell(key))


def _write_code(canary: Path, run: Path) -> str:
    file = run / "own.py"
    file.write_text(PAYLOAD.format(canary=str(canary), rest=REST))
    return f"{file}:build"


def _about(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "run.json").read_text()))


def _named(place: str) -> Callable[[Path, Path, Path], bool]:
    def lay(run: Path, canary: Path, outside: Path) -> bool:
        if not (run / "run.json").is_file():
            return False
        about = _about(run)
        inside: Any = about
        *way, last = place.split(".")
        for key in way:
            inside = inside.get(key, {})
        if last not in inside:
            return False
        before, inside[last] = inside[last], _write_code(canary, run)
        (run / "run.json").write_text(json.dumps(about))
        result = run / "result.json"
        if last == "space" and result.is_file():
            found = json.loads(result.read_text())
            if found.get("space") == before:
                result.write_text(json.dumps({**found, "space": inside[last]}))
                tie_again(run)
        return True

    return lay


def _own(part: str, *, module: bool) -> Callable[[Path, Path, Path], bool]:
    """A function of the author's own, by its file or by a module that lies in the current folder."""

    def lay(run: Path, canary: Path, outside: Path) -> bool:
        if not (run / "run.json").is_file():
            return False
        about, code = _about(run), _write_code(canary, run)
        about["own"] = {part: "own.build" if module else code}
        about["own_sources"] = {part: hashlib.sha256((run / "own.py").read_bytes()).hexdigest()}
        (run / "run.json").write_text(json.dumps(about))
        return True

    return lay


def _metric(run: Path, canary: Path, outside: Path) -> bool:
    path = run / "request.json"
    if not path.is_file():
        return False
    path.write_text(json.dumps({**json.loads(path.read_text()), "metrics": [_write_code(canary, run)]}))
    return True


def _model_space(run: Path, canary: Path, outside: Path) -> bool:
    path = run / "model.json"
    path = path if path.is_file() else run / "model" / "model.json"
    if not path.is_file():
        return False
    path.write_text(json.dumps({**json.loads(path.read_text()), "space": _write_code(canary, run)}))
    return True


def _model_code(run: Path, canary: Path, outside: Path) -> bool:
    places = [place for place in (run, run / "model") if (place / "model.json").is_file()]
    for place in places:
        for name in ("network.py", "predict.py", "__init__.py", "sitecustomize.py"):
            (place / name).write_text(PAYLOAD.format(canary=str(canary), rest=REST))
    return bool(places)


def _checkpoint(run: Path) -> Path | None:
    return next(iter(sorted(run.rglob("checkpoint-*.pt"))), None)


def _pickled(run: Path, canary: Path, outside: Path) -> bool:
    path = _checkpoint(run)
    if path is not None:
        path.write_bytes(pickle.dumps(_Runs(canary)))
        tie_again(path.parent)
    return path is not None


def _inside_checkpoint(run: Path, canary: Path, outside: Path) -> bool:
    path = _checkpoint(run)
    if path is not None:
        state = torch.load(path, weights_only=True)
        buffer = io.BytesIO()
        torch.save({**state, "more": _Runs(canary)}, buffer)
        path.write_bytes(buffer.getvalue())
        tie_again(path.parent)
    return path is not None


def _pickled_data(run: Path, canary: Path, outside: Path) -> bool:
    if not (run / "run.json").is_file():
        return False
    about = _about(run)
    if "data" not in about.get("settings", {}):
        return False
    file = run / "data.npz"
    np.savez(file, x=np.array([_Runs(canary)], dtype=object), y=np.zeros(1, int))
    about["settings"]["data"] = str(file)
    (run / "run.json").write_text(json.dumps(about))
    return True


def _modules(run: Path, canary: Path, outside: Path) -> bool:
    """Names of modules that are imported late, in the folder, which may be the current one."""
    for name in ("torch.py", "tensorboard.py", "sklearn.py", "conftest.py", "usercustomize.py", "onnx.py"):
        (run / name).write_text(PAYLOAD.format(canary=str(canary), rest=REST))
    return True


def _linked(name: str) -> Callable[[Path, Path, Path], bool]:
    def lay(run: Path, canary: Path, outside: Path) -> bool:
        target = outside / "precious.txt"
        content = (run / name).read_bytes() if (run / name).is_file() else b""
        if content:
            # A copy of the real file, so that reading succeeds and the command comes as far as writing.
            target.write_bytes(content)
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(target)
        return True

    return lay


def _linked_folder(name: str) -> Callable[[Path, Path, Path], bool]:
    def lay(run: Path, canary: Path, outside: Path) -> bool:
        if (run / name).is_dir():
            shutil.rmtree(run / name)
        (run / name).symlink_to(outside, target_is_directory=True)
        return True

    return lay


def _half_links(run: Path, canary: Path, outside: Path) -> bool:
    """The names of half-written files are known but for the number of the process."""
    for name in ("run.json", "trust.json", "report.html", "search.svg", "result.json", "state.json"):
        for number in range(os.getpid(), os.getpid() + 40):
            (run / f".{name}.{number}.new").symlink_to(outside / "precious.txt")
    return True


def _shell(key: str) -> Callable[[Path, Path, Path], bool]:
    def lay(run: Path, canary: Path, outside: Path) -> bool:
        if not (run / "run.json").is_file() or key not in _about(run).get("settings", {}):
            return False
        about = _about(run)
        about["settings"][key] = SHELL.format(canary=canary)
        (run / "run.json").write_text(json.dumps(about))
        return True

    return lay


COMMANDS = (("search", "--space", "mlp", "--preset", "tiny", "--epochs", "1", "--out", "RUN", "--overwrite"),)


def attempts(place: Path, every: int = 1) -> StrangerCount:
    """Every trap in every kind of folder where it fits, read by the commands that read such a folder.

    With `every` = N one attempt in N is made.
    """
    found, number = StrangerCount(), 0
    for trap in traps():
        for base in BASES:
            for words in (*base.commands, *(COMMANDS if base.name == "search" else ())):
                number += 1
                if number % every == 0:
                    _attempt(place, trap, base, words, found)
    return found


def _attempt(place: Path, trap: Trap, base: Base, words: tuple[str, ...], found: StrangerCount) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, out, outside = (Path(folder) / name for name in ("a run", "out", "outside"))
        canary = Path(folder) / "canary"
        shutil.copytree(place / base.name, run)
        out.mkdir()
        outside.mkdir()
        (outside / "precious.txt").write_text("precious")
        if not trap.lay(run, canary, outside):
            return
        before = _listed(outside)
        ending = forked(lambda: _command(words_for(words, run, place, out), run), limit=60)
        found.attempts += 1
        what = f"{trap.name}; nasight {' '.join(words)} on {base.name}"
        if canary.exists():
            found.successes.append(f"{what}: it was run")
        if _listed(outside) != before:
            found.successes.append(f"{what}: a file outside was changed")
        if ending.value is None:
            found.successes.append(f"{what}: no sentence, {str(ending.error)[-300:]}")
        elif _runs_in_a_shell(ending.value[1], canary):
            found.successes.append(f"{what}: a printed command would run it")


def _command(words: list[str], run: Path) -> tuple[int, str]:
    """A command in this process, in the stranger's folder; its exit code and all that it printed."""
    said = io.StringIO()
    os.chdir(run)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(words)
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    raise AssertionError("a command ends by SystemExit")


def _listed(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _runs_in_a_shell(said: str, canary: Path) -> bool:
    """Whether a printed command, pasted into a shell, would touch the canary: its words are read as a shell does."""
    for line in said.splitlines():
        start = line.find("nasight ")
        if str(canary) not in line or start < 0 or line.startswith("nasight: "):
            continue
        try:
            words = shlex.split(line[start:])
        except ValueError:
            return True
        if "touch" in words or "$(touch" in " ".join(words[:1]):
            return True
    return False
