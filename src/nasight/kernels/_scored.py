"""Scores as values, and the folder that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from nasight.errors import RequestError
from nasight.kernels._score_table import Score
from nasight.runs import (
    RunFolder,
    ScoreLine,
    ScoreRequest,
    append,
    checked_object,
    is_code,
    named_again,
    read_lines,
    read_object,
    write_json,
)


class Line(TypedDict):
    """What was found of one form."""

    form: str
    architecture: str
    scores: dict[str, float]
    seconds: dict[str, float]
    failed: dict[str, str]
    versions: NotRequired[dict[str, int]]
    """Of scores whose definition has changed."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a list of architectures, as `score` gives them."""

    settings: dict[str, Any]
    architectures: list[str]
    values: dict[str, list[float]]
    """Metric -> one number per architecture; what failed has the worst one of its row."""
    directions: dict[str, str]
    """Metric -> whether "high" or "low" is better."""
    seconds: dict[str, float]
    """Metric -> mean seconds per form, building the network included."""
    forms: int
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    """Architecture -> metric -> why it has no score of its own."""

    def order(self, metric: str) -> list[int]:
        """The places of the architectures by this metric, the best first."""
        if metric not in self.values:
            raise RequestError(f"{metric!r} was not scored, only {', '.join(self.values)}")
        sign = -1 if self.directions[metric] == "high" else 1
        return sorted(range(len(self.architectures)), key=lambda i: (sign * self.values[metric][i], i))

    def top(self, metric: str, number: int) -> list[tuple[str, float]]:
        """At most `number` architectures and their scores by this metric, the best first."""
        return [(self.architectures[i], self.values[metric][i]) for i in self.order(metric)[:number]]

    def goodness(self, metric: str) -> list[float]:
        """The scores with the sign for which more is better."""
        return [v if self.directions[metric] == "high" else -v for v in self.values[metric]]

    def correlations(self, kind: str = "spearman") -> dict[str, dict[str, float | None]]:
        """Rank correlation between metrics, each turned so that more is better; None where one is constant.

        `kind` is "spearman" or "kendall" (tau-b).
        """
        return {
            a: {b: rank_correlation(self.goodness(a), self.goodness(b), kind) for b in self.values} for a in self.values
        }

    def to_dict(self) -> dict[str, Any]:
        """What `nasight score --json` prints."""
        rows = [
            {"architecture": text, **{metric: self.values[metric][i] for metric in self.values}}
            for i, text in enumerate(self.architectures)
        ]
        return {
            "scores": rows,
            "directions": self.directions,
            "seconds": self.seconds,
            "forms": self.forms,
            "failed": self.failed,
            "correlations": self.correlations(),
            "settings": self.settings,
        }


def rank_correlation(a: Sequence[float], b: Sequence[float], kind: str = "spearman") -> float | None:
    """Spearman's or Kendall's (tau-b); None where one side is constant."""
    from scipy.stats import kendalltau, spearmanr

    if kind not in ("spearman", "kendall"):
        raise RequestError(f"a rank correlation is 'spearman' or 'kendall', got {kind!r}")
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float((spearmanr if kind == "spearman" else kendalltau)(a, b).statistic)


def assemble(settings: dict[str, Any], rows: Sequence[Score], texts: list[str], lines: list[Line]) -> Scores:
    """The scores of the architectures, from the lines of their forms; rank sums are made here."""
    values, seconds, failed = dict[str, list[float]](), dict[str, float](), dict[str, dict[str, str]]()
    own = {line["form"]: line for line in lines}
    for row in rows:
        parts = row.ranks or (row.name,)
        values[row.name] = _rank_sum(row, lines) if row.ranks else [line["scores"][row.name] for line in lines]
        seconds[row.name] = sum(line["seconds"][part] for line in own.values() for part in parts) / len(own)
        for text, line in zip(texts, lines, strict=True):
            reasons = [line["failed"][part] for part in parts if part in line["failed"]]
            if reasons:
                failed.setdefault(text, {})[row.name] = reasons[0]
    directions = {row.name: row.direction for row in rows}
    return Scores(settings, texts, values, directions, seconds, len(own), failed)


def _rank_sum(row: Score, lines: list[Line]) -> list[float]:
    """The sum of the ranks by each part, 1 the best, over these architectures; ties share their mean rank."""
    from scipy.stats import rankdata

    from nasight.kernels._score_table import score_row

    total = [0.0] * len(lines)
    for part in row.ranks:
        sign = -1 if score_row(part).direction == "high" else 1
        for i, rank in enumerate(rankdata([sign * line["scores"][part] for line in lines])):
            total[i] += float(rank)
    return total


class ScoreFolder:
    """The lines of a run of scores, in memory and, where there is a folder, on disk."""

    def __init__(self, run: RunFolder | None) -> None:
        self.run = run
        self.lines: dict[str, Line] = {}
        if run is not None:
            self._read(run.path / "scores.jsonl")

    @classmethod
    @contextmanager
    def at(cls, path: str | Path | None, settings: dict[str, Any], request: dict[str, Any]) -> Iterator[ScoreFolder]:
        """The folder of these settings, new or with what an earlier call left; one of other settings is refused."""
        if path is None:
            yield cls(None)
            return
        code = [settings["space"], *request["metrics"]]
        run = RunFolder.create_or_open(path, kind="score", holds="scores", settings=settings, code=code)
        with run.writing():
            write_json(run.path / "request.json", request)
            yield cls(run)

    @staticmethod
    def read(
        path: str | Path, space: str | None = None, metrics: Sequence[str] = ()
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings and the last request of a folder, with the code that the caller names again."""
        run = RunFolder.open(path, kind="score")
        about, request = run.about, dict(read_object(run.path / "request.json", ScoreRequest))
        own = {name.rpartition(":")[2]: name for name in metrics if is_code(name)}
        request["metrics"] = [
            named_again(path, about, name, own.get(name.rpartition(":")[2]), flag="--metric")
            for name in request["metrics"]
        ]
        settings = dict(about["settings"])
        return {**settings, "space": named_again(path, about, settings["space"], space)}, request

    def add(self, new: Sequence[Line]) -> list[Line]:
        """Keep lines, join them with what was known of their forms, and give the joined ones."""
        if self.run is not None:
            self._append("".join(json.dumps(line) + "\n" for line in new))
        return [self._join(line) for line in new]

    def finish(self, result: Scores) -> None:
        if self.run is not None:
            self.run.write_result(result.to_dict())

    def _append(self, text: str) -> None:
        assert self.run is not None
        append(self.run.path / "scores.jsonl", text.encode())

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        # A line that a kill cut off is left out, and scored again.
        read_lines(path, lambda value, what: self._join(_current(checked_object(value, ScoreLine, what))))

    def _join(self, line: Line) -> Line:
        known = self.lines.setdefault(line["form"], line)
        if known is not line:
            known["scores"].update(line["scores"])
            known["seconds"].update(line["seconds"])
            known["failed"].update(line["failed"])
        return known


def _current(value: dict[str, Any]) -> Line:
    """The line without the scores of another version of their definition."""
    from nasight.kernels._score_table import SCORES

    line = _line(value)
    versions = value.get("versions") or {}
    for name in list(line["scores"]):
        if name in SCORES and SCORES[name].version != versions.get(name, 1):
            for found in (line["scores"], line["seconds"], line["failed"]):
                found.pop(name, None)
    return line


def _line(value: dict[str, Any]) -> Line:
    return Line(
        form=value["form"],
        architecture=value["architecture"],
        scores=value["scores"],
        seconds=value["seconds"],
        failed=value["failed"],
    )
