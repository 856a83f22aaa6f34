"""What can be wrong with a file: bytes, values, types, sizes, and things that are no files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 2**62, 10**30, 1e308, float("nan"), float("inf"), "", "x" * 2000, "a\x00b", [], {}, [[]],
    [None], {"": None}, "../../../etc/passwd", [[[[[[[[[[0]]]]]]]]]], [1] * 2000, {"a": {"b": {"c": 1}}}, "nan", "1e9",
    "|none~0|", -0.0, [1, "2", None], "\ud83d\ude00",
)  # fmt: skip


def mutate(folder: Path, chance: random.Random) -> str:
    """Do harm to one file of a folder; what was done, in words."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (".lock",))
    files = [path for path in files if path.suffix in (".json", ".jsonl", ".pt", ".safetensors")]
    # Each kind of file as often as the others, however many there are of one.
    kind = chance.choice(sorted({path.name if path.suffix != ".pt" else ".pt" for path in files}))
    path = chance.choice([p for p in files if p.name == kind or (kind == ".pt" and p.suffix == ".pt")])
    ways = [_bytes] if path.suffix == ".safetensors" else [_values, _values, _values, _bytes]
    if path.suffix == ".pt":
        ways = [_checkpoint, _checkpoint, _bytes]
    way = chance.choice(ways)
    what = way(path, chance)
    if chance.random() < 0.7:
        tie_again(path.parent)
    return f"{path.relative_to(folder)}: {what}"


def tie_again(folder: Path) -> None:
    """Make the checksums in state.json those of the harmed files, as a stranger would."""
    path = folder / "state.json"
    if not path.is_file():  # a pipe would be waited for
        return
    try:
        state = json.loads(path.read_text())
        for entry in (state, state.get("before") or {}):
            checkpoint = folder / str(entry.get("checkpoint"))
            if checkpoint.is_file():
                entry["sha256"] = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
            if entry.get("history") and (folder / "history.jsonl").is_file():
                content = (folder / "history.jsonl").read_bytes()
                rows, digest = content.count(b"\n"), hashlib.sha256(content).hexdigest()
                entry["history"] = {"rows": rows, "bytes": len(content), "sha256": digest}
        if state.get("result") and (folder / "result.json").is_file():
            state["result"] = hashlib.sha256((folder / "result.json").read_bytes()).hexdigest()
        path.write_text(json.dumps(state))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        pass


def _values(path: Path, chance: random.Random) -> str:
    """Another value, a missing one or one too many, somewhere in a JSON file or in one of its lines."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    if not lines:
        return _bytes(path, chance)
    place = chance.randrange(len(lines))
    value = json.loads(lines[place])
    what = _change(value, chance)
    lines[place] = json.dumps(value)
    path.write_text("\n".join(lines) + "\n")
    return what


def _change(value: Any, chance: random.Random) -> str:
    """Change one thing inside a value of lists and objects."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return "nothing"
        key = chance.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.75:
            value = inner
            continue
        way = chance.choice(["replace", "replace", "replace", "remove", "rename"])
        if way == "replace" or isinstance(value, list):
            junk = chance.choice(JUNK)
            value[key] = junk
            return f"{key!r:.30} becomes {junk!r:.40}"
        value.pop(key)
        if way == "rename":
            value[f"{key}_"] = inner
        return f"{way} {key!r:.30}"


def _bytes(path: Path, chance: random.Random) -> str:
    """Other bytes, or no plain file at all."""
    content = path.read_bytes()
    name, change = chance.choice(list(BYTES.items()))
    changed = change(content, chance)
    if changed is not None:
        path.write_bytes(changed)
        return name
    path.unlink()
    if name == "a folder":
        path.mkdir()
    elif name == "a pipe":
        os.mkfifo(path)
    elif name == "a dangling link":
        path.symlink_to("/nowhere/at/all")
    elif name == "an endless device":
        path.symlink_to("/dev/zero")
    elif name == "a link to itself":
        path.symlink_to(path.name)
    return name


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"x")
    for _ in range(chance.choice((1, 1, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


BYTES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "a bit flipped": _flip,
    "cut short": lambda content, chance: content[: chance.randrange(max(1, len(content)))],
    "empty": lambda content, chance: b"",
    "bytes that are no text": lambda content, chance: b"\xff\xfe\x00" + content,
    "twice": lambda content, chance: content + content,
    "lists 200,000 deep": lambda content, chance: b"[" * 200_000 + b"]" * 200_000,
    "a number of 5,000 digits": lambda content, chance: b'{"epoch": ' + b"9" * 5000 + b"}\n",
    "a list": lambda content, chance: b"[1, 2, 3]\n",
    "a text": lambda content, chance: b'"text"\n',
    "null": lambda content, chance: b"null\n",
    "zeros": lambda content, chance: bytes(len(content)),
    "a pickle": lambda content, chance: pickle.dumps({"engine": 1}),
    "removed": lambda content, chance: None,
    "a folder": lambda content, chance: None,
    "a pipe": lambda content, chance: None,
    "a dangling link": lambda content, chance: None,
    "an endless device": lambda content, chance: None,
    "a link to itself": lambda content, chance: None,
}


def _checkpoint(path: Path, chance: random.Random) -> str:
    """A checkpoint that lacks a part, or has another value in it."""
    state = torch.load(path, weights_only=True)
    value: Any = state
    while True:
        key = chance.choice(list(value) if isinstance(value, dict) else list(range(len(value))))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.7:
            value = inner
            continue
        if chance.random() < 0.35 and isinstance(value, dict):
            value.pop(key)
            what = f"lacks {key!r}"
        else:
            junk = chance.choice([*JUNK[:20], torch.zeros(3), torch.zeros(0), torch.full((2, 2), torch.nan)])
            value[key] = junk
            what = f"{key!r} becomes {junk!r:.40}"
        break
    buffer = io.BytesIO()
    torch.save(state, buffer)
    path.write_bytes(buffer.getvalue())
    return f"checkpoint {what}"


def clean(folder: Path) -> None:
    """Remove a harmed copy."""
    shutil.rmtree(folder, ignore_errors=True)
