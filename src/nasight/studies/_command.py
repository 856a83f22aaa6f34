"""The command line that makes a search again, or one like it."""

from __future__ import annotations

from shlex import quote
from typing import Any

from nasight.errors import RequestError
from nasight.searching import Run, method_row, resolve

FLAGS = (
    "epochs", "schedule_epochs", "warmup", "lr_warmup", "batch_size", "lr", "lr_min", "weight_decay", "clip", "arch_lr",
    "arch_clip", "weights_first", "examples", "share", "validation", "arch_share", "partial", "resolution", "augment",
    "candidates", "candidate_rows", "max_params", "max_latency", "path",
)  # fmt: skip


def command_of(run: Run, *, method: str | None = None, epochs: int | None = None, out: str = "RUN") -> str:
    """`nasight search` with the settings in which the run differs from its preset, and with these changes.

    A rate for the architecture and the order of steps are not taken over to another method: a rate means nothing in
    another geometry, and each method was published with its order.
    """
    s = run.settings
    given = s.model_dump() | ({} if method is None else {"method": method, "arch_lr": None, "weights_first": None})
    if epochs is not None:
        given |= {"epochs": epochs} | ({"schedule_epochs": epochs} if s.schedule_epochs == s.epochs else {})
    words = ["nasight search", f"--space {quote(s.space)}", f"--method {quote(given['method'])}"]
    words += [f"--objective {quote(s.objective)}", f"--data {quote(s.data)}", f"--preset {quote(s.preset)}"]
    usual: dict[str, Any] = {}
    try:
        base: dict[str, Any] = {"data": s.data, "objective": s.objective, "preset": s.preset}
        row = method_row(given["method"])
        # Warm-up and cosine follow from the epochs that the command names, which may not be the preset's.
        usual = resolve(row, run.space, **base, epochs=given["epochs"]).model_dump()
        usual["epochs"] = given["epochs"] if epochs is not None else resolve(row, run.space, **base).epochs
    except RequestError:
        pass  # a preset or a file that is no more: every setting is named
    if epochs is not None:
        words.append(f"--epochs {epochs}")
    words += [_flag(name, given[name]) for name in FLAGS if given[name] is not None and given[name] != usual.get(name)]
    words += [_flag(name, value) for name, value in s.size.items() if value != usual.get("size", {}).get(name)]
    words += [_flag(name, value) for name, value in s.space_options.items()]
    return " ".join([*words, f"--seed {s.seed}", f"--threads {s.threads}", f"--out {quote(out)}"])


def _flag(name: str, value: Any) -> str:
    word = name.replace("_", "-")
    if isinstance(value, bool):
        return quote(f"--{word}" if value else f"--no-{word}")
    return f"{quote(f'--{word}')} {quote(str(value))}"
