import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nasight
from command import run

FAST = ["--preset", "tiny", "--examples", "200", "--epochs", "2", "--warmup", "0", "--threads", "1"]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of one search on a file."""
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    np.savez(folder / "data.npz", x=(rng.normal(size=(300, 6)) + y[:, None]).astype(np.float32), y=y)
    for seed in (0, 1):
        where = ["--data", str(folder / "data.npz"), "--out", str(folder / f"r{seed}"), "--seed", str(seed)]
        assert run("search", "--space", "mlp", "--width", "16", *FAST, *where) == 0
    return folder


@pytest.fixture
def runs(searched: Path, tmp_path: Path) -> Path:
    shutil.copytree(searched, tmp_path / "e")
    return tmp_path / "e"


def files(folder: Path) -> dict[str, str]:
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir() if f.is_file()}


def explained(path: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    assert run("explain", str(path), "--json", *more) == 0
    value: dict[str, object] = json.loads(capsys.readouterr().out)
    return value


def test_json_has_a_verdict_a_margin_a_confidence_and_advice_for_every_decision(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = explained(runs / "r0", capsys=capsys)
    decisions = value["decisions"]
    assert isinstance(decisions, list)
    found = nasight.Run(runs / "r0").architecture
    assert [(d["name"], d["choice"]) for d in decisions] == list(found)
    for d in decisions:
        assert d["verdict"] in ("safe", "unsafe", "unknown")
        assert 0 <= d["confidence"] <= 1
        assert d["margin"] == pytest.approx(min(a["loss"] for a in d["alternatives"]))
        assert d["advice"]
    assert value["examples"] == 40


def test_the_text_names_every_decision_and_what_to_do(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", str(runs / "r0")) == 0
    shown = capsys.readouterr().out
    for name, option in nasight.Run(runs / "r0").architecture:
        assert name in shown
        assert option in shown
    assert "What to do" in shown
    assert "at 95 % on 40 held-out examples" in shown


def test_the_second_time_needs_neither_data_nor_time_and_the_runs_own_files_stay_as_they_are(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(runs / "r0")
    first = explained(runs / "r0", capsys=capsys)
    assert {n: d for n, d in files(runs / "r0").items() if n != "trust.json"} == before
    # The search wrote an absolute path to the original data; point the run to a file that is then gone.
    shutil.move(runs / "data.npz", runs / "elsewhere.npz")
    assert explained(runs / "r0", capsys=capsys) == first
    (runs / "r0" / "trust.json").write_text("{")
    elsewhere = ["--data", str(runs / "elsewhere.npz")]
    again = explained(runs / "r0", *elsewhere, capsys=capsys)
    assert again["decisions"] == first["decisions"]


def test_several_seeds_are_compared_and_a_decision_that_flips_is_not_safe(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = explained(runs / "r0", str(runs / "r1"), "--level", "0.5", capsys=capsys)
    archs = [nasight.Run(runs / f"r{seed}").architecture for seed in (0, 1)]
    flips = {name for name, option in archs[0] if archs[1][name] != option}
    assert flips
    decisions = value["decisions"]
    assert isinstance(decisions, list)
    assert {d["name"] for d in decisions if d["agreement"]["flips"]} == flips
    assert all(d["verdict"] != "safe" for d in decisions if d["name"] in flips)
    assert value["averaged"]


def test_resolve_trains_the_candidates_and_ranks_them(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = explained(runs / "r0", "--resolve", "--epochs", "1", capsys=capsys)
    resolved, wanted = value["resolved"], value["candidates"]
    assert isinstance(resolved, list)
    assert isinstance(wanted, list)
    assert {r["architecture"] for r in resolved} == set(wanted)
    assert [r["accuracy"] for r in resolved] == sorted((r["accuracy"] for r in resolved), reverse=True)


def test_from_python_it_is_the_same(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = explained(runs / "r0", capsys=capsys)
    assert json.loads(json.dumps(nasight.explain(nasight.Run(runs / "r0")).to_dict())).items() <= value.items()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "darts"}, "method 'gaea-darts' and 'darts'"),
        ({"data": "mnist"}, "data .* and 'mnist'"),
        ({"space": "nasbench201"}, "space 'mlp' and 'nasbench201'"),
        ({"size": {"width": 3}}, "size .* and {'width': 3}"),
        ({"objective": "single"}, "objective .* and 'single'"),
        ({}, "both name .*, but its content was another"),
    ],
    ids=["method", "data", "space", "size", "objective", "content"],
)
def test_runs_of_different_searches_are_not_taken_for_seeds_of_one(
    runs: Path, change: dict[str, Any], words: str
) -> None:
    about = json.loads((runs / "r1" / "run.json").read_text())
    about["settings"] |= change
    if not change:
        about["data"]["fingerprint"] = "0" * 64
    (runs / "r1" / "run.json").write_text(json.dumps(about))
    with pytest.raises(nasight.RequestError, match=rf"r0 and .*r1 are no seeds of one search: {words}"):
        nasight.explain(runs / "r0", runs / "r1")


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda p: shutil.rmtree(p), "is not a run: it has no run.json"),
        (lambda p: (p / "result.json").unlink(), "is not finished"),
        (lambda p: (p / "result.json").write_text("{"), "is damaged"),
        (lambda p: (p / "result.json").write_text("{}"), "is damaged"),
        (lambda p: next(p.glob("checkpoint-*")).write_bytes(b"no"), "is damaged"),
        (lambda p: (p / "history.jsonl").write_text("{"), "is damaged"),
    ],
)
def test_a_missing_or_damaged_run_is_one_sentence_and_exit_2(
    runs: Path, break_it, words: str, capsys: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    break_it(runs / "r0")
    capsys.readouterr()
    assert run("explain", str(runs / "r0")) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_wrong_requests_are_one_sentence_and_exit_2(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(runs / "r0")
    for more, words in (
        (["--examples", "1"], "at least 2 examples"),
        ([path], "named twice"),
        (["--level", "2"], "level must be"),
        (["--data", "nowhere.npz"], "nowhere.npz"),
    ):
        assert run("explain", path, *more) == 2
        assert words in capsys.readouterr().err


def test_the_demo_shows_a_theorem_that_holds_and_an_arg_max_that_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("trust", "demo", "--json") == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert [c["theorem"] for c in cases] == ["Theorem 1", "Theorem 4", "Theorem 4"]
    assert [c["chosen"] == c["best"] for c in cases] == [True, True, False]
    assert run("trust", "demo") == 0
    assert "WRONG" in capsys.readouterr().out
