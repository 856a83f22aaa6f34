"""`explain`: a search run, or several with different seeds, read from their folders and judged decision by decision."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import torch

from nasight import trust
from nasight.arguments import typed
from nasight.compute import choose_device, to_device
from nasight.data import Units
from nasight.errors import RequestError, RunError
from nasight.runs import TrustFile, read_object, write_json
from nasight.searching import METHODS, Mixture, Run
from nasight.spaces import Space
from nasight.studies._command import command_of

CACHE = "trust.json"
FORMAT = 1
Counter = Callable[[int, int], None]
SHARED = (
    "safe means best under the shared weights, which is another claim than best after training alone: "
    "--resolve retrains the candidates, `nasight trust ranking` says how well the search ranks"
)


@dataclass(frozen=True)
class Explanation:
    """Verdicts on the decisions of a run (or of several), what to do about each, and what to do about the whole."""

    runs: tuple[str, ...]
    about: Mapping[str, Any]
    decisions: tuple[Mapping[str, Any], ...]
    advice: tuple[trust.Advice, ...]
    candidates: tuple[str, ...]
    collapse: Mapping[str, Any] | None
    averaged: str | None
    notes: tuple[str, ...]
    level: float

    @property
    def counts(self) -> dict[str, int]:
        """How many decisions are safe, unsafe, unknown."""
        return {v: sum(d["verdict"] == v for d in self.decisions) for v in ("safe", "unsafe", "unknown")}

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": list(self.runs),
            **self.about,
            "level": self.level,
            "counts": self.counts,
            "decisions": [dict(d) for d in self.decisions],
            "advice": [a.to_dict() for a in self.advice],
            "candidates": list(self.candidates),
            "averaged": self.averaged,
            "collapse": self.collapse,
            "notes": list(self.notes),
        }


@typed
def explain(
    run: str | Path | Run,
    *others: str | Path | Run,
    level: float = 0.95,
    least: float = 0.0,
    examples: int | None = None,
    data: Any = None,
    data_folder: str | Path | None = None,
    space: Space | str | None = None,
    progress: Counter | None = None,
    device: str = "auto",
) -> Explanation:
    """Whether the arg max of a search can be trusted, decision by decision.

    Parameters
    ----------
    run, others : finished searches; several must differ by their seed, and are compared with one another.
    level : of each verdict.
    least : a margin (nats) below this is not called safe.
    examples : at most this many held-out examples; all by default.
    data : where the data of the run is now, if not where it was.
    data_folder : the folder of the data sets that have names.
    space : the space of the runs, where it is code of your own: "FILE.py:NAME".
    progress : called with how many options are measured, and how many there are.
    device : where the supernet is measured: "auto", "cpu", "cuda", "cuda:N" or "mps".

    What is measured is kept in the run folder (trust.json), so that the second time takes no time.
    """
    runs = [each if isinstance(each, Run) else Run(each, space=space) for each in (run, *others)]
    if examples is not None and examples < 2:
        raise RequestError(f"there must be at least 2 examples to measure with, got {examples}")
    _check_same(runs)
    chosen = choose_device(device)
    read = [_Read(each, level, least, examples, data, data_folder, progress, chosen) for each in runs]
    return _one(read[0], level) if len(read) == 1 else _several(read, level)


class _Read:
    """One run, measured and judged."""

    def __init__(
        self,
        run: Run,
        level: float,
        least: float,
        examples: int | None,
        data: Any,
        data_folder: str | Path | None,
        progress: Counter | None,
        device: torch.device,
    ) -> None:
        self.run, self.path = run, str(run.path)
        self.unkept: str | None = None
        """Why what was measured is not in the run folder, where it is not."""
        if run.train_free:
            raise RequestError(
                f"the search in {run.path} was made without training ({run.settings.method}): it has no architecture "
                "weights to judge; retrain what it found with `nasight train`"
            )
        try:
            self.arch, self.weights, self.history = run.architecture, run.weights, run.history
            self.result, self.settings = run.result, run.settings
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, RequestError):
                raise
            raise RequestError(f"the search in {run.path} is damaged: {error!r}") from error
        if self.result.get("unusable"):
            raise RequestError(
                f"the search in {run.path} ended at {self.result['architecture']}, which is no network: "
                f"{self.result['unusable']}; search without `none`, or longer"
            )
        method = run.method
        self.sampled = not isinstance(method.relaxation, Mixture)
        twin = f"gaea-{method.name}"
        self.twin = twin if twin in METHODS and method.geometry.moves else None
        self.evidence = _evidence(self, examples, data, data_folder, progress, device)
        self.trends = _trends(self.history, run.space)
        units = Units.of(self.result)
        self.verdicts = [trust.judge(each, level=level, least=least, units=units) for each in self.evidence]
        self.drift = _drift(self.history, run)

    @property
    def notes(self) -> list[str]:
        notes = [SHARED]
        if not self.settings.validation:
            notes.append(
                "the search held no examples out: what is measured here is of examples that it learned from, "
                "so confidences are too high"
            )
        method = self.run.method
        if self.sampled:
            notes.append(
                "the search draws architectures from its weights: what is judged is one architecture, the mode"
            )
        if self.run.space.derive(self.weights) != self.arch:
            notes.append(f"{method.name} does not take the arg max of its weights; what it took is judged")
        if method.candidates:
            notes.append(
                "candidates were compared on held-out examples that also count here: confidences are somewhat high"
            )
        if self.unkept is not None:
            notes.append(self.unkept)
        return notes


def _evidence(
    read: _Read,
    examples: int | None,
    data: Any,
    data_folder: str | Path | None,
    progress: Counter | None,
    device: torch.device,
) -> list[trust.Evidence]:
    run = read.run
    dataset = None if data is None else run.load_data(data, data_folder=data_folder, may_differ=True)
    asked = {
        "format": FORMAT,
        "run": _digest(run),
        "examples": examples,
        "data": None if dataset is None else dataset.fingerprint,
    }
    kept = _cached(run.path / CACHE, asked)
    if kept is not None:
        return kept
    if dataset is None:
        dataset = run.load_data(data_folder=data_folder, may_differ=True)
    found = trust.measure(
        run.supernet().to(device, non_blocking=True),
        run.space,
        read.arch,
        read.weights,
        to_device(trust.first_examples(run.held_out(dataset), examples), device),
        sampled=read.sampled,
        seed=read.settings.seed,
        progress=progress,
        task=dataset.task,
    )
    if _digest(run) != asked["run"]:
        raise RequestError(f"{run.path} was changed by another process while it was read; explain it again")
    # A run on a read-only disk can be explained; it only takes as long again the next time.
    try:
        write_json(run.path / CACHE, {"asked": asked, "evidence": [each.to_dict() for each in found]})
    except (RunError, RequestError) as error:
        read.unkept = f"what was measured could not be kept, so the next time takes as long: {error}"
    return found


def _digest(run: Run) -> str:
    """Of the files that the evidence follows from."""
    digest = hashlib.sha256()
    for name in ("run.json", "result.json", "state.json"):
        path = run.path / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def _cached(path: Path, asked: Mapping[str, Any]) -> list[trust.Evidence] | None:
    """What was measured before, if it was the same; a damaged file is measured again."""
    if not path.exists():
        return None
    try:
        value = read_object(path, TrustFile)
        return [trust.Evidence.from_dict(each) for each in value["evidence"]] if value["asked"] == asked else None
    except (RequestError, KeyError, TypeError):
        return None


def _trends(history: Sequence[Mapping[str, Any]], space: Any) -> dict[str, trust.EntropyTrend]:
    sizes = {row: size for g in space.groups() if g.exclusive for row, size in zip(g.rows, g.sizes, strict=True)}
    names = history[-1]["entropies"] if history else ()
    return {n: trust.EntropyTrend.of([row["entropies"][n] for row in history], sizes[n]) for n in names if n in sizes}


def _drift(history: Sequence[Mapping[str, Any]], run: Run) -> trust.Collapse | None:
    weights = [{name: torch.tensor(value) for name, value in row["weights"].items()} for row in history]
    return trust.collapse(weights, run.space)


def _check_same(runs: Sequence[Run]) -> None:
    if len({each.path.resolve() for each in runs}) < len(runs):
        raise RequestError("the same run is named twice; name runs with different seeds")
    first = runs[0]
    for each in runs[1:]:
        for what in ("space", "space_options", "size", "data", "method", "objective"):
            mine, its = getattr(first.settings, what), getattr(each.settings, what)
            if mine != its:
                raise RequestError(
                    f"{first.path} and {each.path} are no seeds of one search: {what} {mine!r} and {its!r}"
                )
        if first.data.fingerprint != each.data.fingerprint:
            raise RequestError(
                f"{first.path} and {each.path} are no seeds of one search: both name {first.settings.data!r}, but its "
                f"content was another ({first.data.fingerprint[:12]} and {each.data.fingerprint[:12]})"
            )


def _about(read: _Read) -> dict[str, Any]:
    keys = ("space", "method", "objective", "data", "seed", "epochs", "architecture", "accuracy")
    about = {key: read.result[key] for key in keys} | Units.of(read.result).kept()
    return {**about, "examples": read.evidence[0].examples if read.evidence else 0}


def _entry(read: _Read, verdict: trust.Verdict, evidence: trust.Evidence) -> dict[str, Any]:
    trend = read.trends.get(verdict.name)
    return {
        **verdict.to_dict(),
        "advice": trust.decision_advice(verdict, trend, twin=read.twin),
        "entropy": None if trend is None else trend.entropy,
        "examples": evidence.examples,
        "local_examples": evidence.local_examples,
        "alternatives": evidence.to_dict()["alternatives"],
    }


def _one(read: _Read, level: float) -> Explanation:
    return Explanation(
        (read.path,),
        _about(read),
        tuple(_entry(read, v, e) for v, e in zip(read.verdicts, read.evidence, strict=True)),
        tuple(
            trust.run_advice(
                read.verdicts,
                read.trends,
                run=quote(read.path),
                again=partial(command_of, read.run, out=f"{read.path}-again"),
                epochs=read.settings.epochs,
                twin=read.twin,
                drift=read.drift,
            )
        ),
        tuple(trust.candidates(read.run.space, read.arch, read.evidence, read.verdicts)),
        None if read.drift is None else read.drift.to_dict(),
        None,
        tuple(read.notes),
        level,
    )


def _several(reads: Sequence[_Read], level: float) -> Explanation:
    first, space = reads[0], reads[0].run.space
    agreements = trust.agreement([{v.name: v.choice for v in read.verdicts} for read in reads])
    entries, verdicts = [], []
    for agreement in agreements:
        of = [(read, v) for read in reads for v in read.verdicts if v.name == agreement.name]
        verdict = _together([v for _, v in of], agreement)
        verdicts.append(verdict)
        entries.append(
            {
                **verdict.to_dict(),
                "advice": trust.decision_advice(verdict, twin=first.twin, agreement=agreement),
                "agreement": agreement.to_dict(),
                "by_run": {read.path: [v.choice, v.verdict, v.margin] for read, v in of},
            }
        )
    averaged = None
    if len({tuple(sorted(r.weights)) for r in reads}) == 1:
        mean = trust.average([{n: w.numpy() for n, w in read.weights.items()} for read in reads])
        averaged = space.format(space.derive({name: torch.as_tensor(value) for name, value in mean.items()}))
    found = dict.fromkeys([*([averaged] if averaged else []), *(space.format(r.arch) for r in reads)])
    flips = [a.name for a, v in zip(agreements, verdicts, strict=True) if a.flips and not v.within_noise]
    about = {**_about(first), "seed": [r.result["seed"] for r in reads], "architecture": averaged}
    about["accuracy"] = [r.result["accuracy"] for r in reads]
    advice = trust.run_advice(
        verdicts,
        first.trends,
        run=" ".join(quote(r.path) for r in reads),
        again=partial(command_of, first.run, out=f"{first.path}-again"),
        epochs=first.settings.epochs,
        twin=first.twin,
        flips=flips,
        averaged=averaged,
    )
    notes = tuple(dict.fromkeys(note for read in reads for note in read.notes))
    paths = tuple(r.path for r in reads)
    drifts = {r.path: r.drift.to_dict() for r in reads if r.drift is not None}
    return Explanation(
        paths, about, tuple(entries), tuple(advice), tuple(found)[:3], drifts or None, averaged, notes, level
    )


def _together(verdicts: Sequence[trust.Verdict], agreement: trust.Agreement) -> trust.Verdict:
    """One verdict for all runs: the worst of theirs, and never safe where the choice flips with the seed.

    The confidence is then the share of runs that chose otherwise.
    """
    noise = all(v.within_noise for v in verdicts)
    order = {"unsafe": 0, "unknown": 1, "safe": 2}
    worst = min(verdicts, key=lambda v: (order[v.verdict], v.margin))
    verdict = worst.verdict
    confidence = min(v.confidence for v in verdicts if v.verdict == verdict)
    if agreement.flips:
        verdict, confidence = "unknown" if noise else "unsafe", 1 - agreement.share
    counts = ", ".join(f"{option} {count}" for option, count in agreement.counts.items())
    return replace(
        worst,
        choice=agreement.choice,
        verdict=verdict,
        margin=min(v.margin for v in verdicts),
        confidence=confidence,
        within_noise=noise,
        evidence=f"chosen by the runs: {counts}; in the weakest of them {worst.evidence}",
    )
