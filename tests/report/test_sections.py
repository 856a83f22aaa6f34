"""Sections of a page: the built-in ones with little or nothing to show, and those that come from outside."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from chromium import Browser

from nasight.anatomy import Landscape, read_cells, space_of
from nasight.errors import RequestError
from nasight.report import SECTIONS, Section, page, register
from nasight.report.sections import (
    AnatomyValues,
    AnswerValues,
    ComparedRun,
    CompareValues,
    JudgedDecision,
    KernelsValues,
    LandscapeValues,
    MethodSummary,
    PlacedCell,
    ReproduceValues,
    RetrainedAccuracy,
    ScoredMetric,
    SearchValues,
    TrustValues,
)
from nasight.searching import Run
from nasight.spaces import Group
from nasight.studies import Subject, explain, report, run_page
from nasight.trust import Advice

BUILT_IN = ("answer", "trust", "search", "anatomy", "kernels", "compare", "reproduce")
EPOCH = {
    "epoch": 0, "entropy": 1.1, "drop": None, "weights": {"g": [[0.2, 0.8]]}, "valid_accuracy": 50.0, "valid_loss": 1.0,
    "discrete_accuracy": None, "discrete_loss": None, "train_accuracy": 60.0, "train_loss": 0.9,
}  # fmt: skip
GROUP = Group("g", ("edge",), (("a", "b"),))
CELL = read_cells("DARTS_V2")
NORMAL = PlacedCell("normal", CELL["normal"], space_of(CELL["normal"]))
BOWL = Landscape(np.linspace(-1, 1, 3), np.full((3, 3), 2.0), None, {"examples": 5})
ANSWER = AnswerValues(
    heading="m (erm) on s, d", state="unknown", verdict="Not settled.", architecture="a=b", design=None, retrained=None,
    shared=None, supernet=None, parameters=None, multiply_adds=None,
    seconds=0.4, advice=(), train_command="nasight train RUN",
)  # fmt: skip
LEAST: dict[str, Any] = {
    "answer": ANSWER,
    "trust": TrustValues([], (), (), (), 0, 95.0, False),
    "search": SearchValues([EPOCH]),
    "anatomy": AnatomyValues((), (), None, "nasight train RUN", "nasight explain RUN --deep"),
    "kernels": KernelsValues((ScoredMetric("naswot", "high", 3.0, ()),)),
    "compare": CompareValues((MethodSummary("m", [None], (), [None], [1.0], ()),), ()),
    "reproduce": ReproduceValues("nasight search", 0, {}, "digits", (), (), "0", {}),
}
MOST: dict[str, Any] = {
    "answer": AnswerValues(
        heading="m (erm) on s, d", state="safe", verdict="All safe.", architecture="a=b", design=CELL,
        retrained=RetrainedAccuracy(91.234, 0.5, 3, "the test part"), shared=88.0, supernet=80.0, parameters=1_234_567,
        multiply_adds=57_000_000,
        seconds=12.0, advice=(Advice("search longer", "it still falls", "nasight search"),), train_command="t",
    ),
    "trust": TrustValues(
        [EPOCH, EPOCH], (GROUP,), (JudgedDecision("edge", "b", "unsafe", -0.5, 0.9999, "take a", "measured"),),
        ("a note",), 1_000, 95.0, True,
    ),
    "search": SearchValues([EPOCH, {**EPOCH, "epoch": 1, "drop": 2.5}]),
    "anatomy": AnatomyValues((NORMAL,), (NORMAL,), LandscapeValues(BOWL, "d", "test", 2.0, 3.0), "t", "e"),
    "kernels": KernelsValues((ScoredMetric("eigen", "low", 3.0, (1.0, 5.0, 7.0, 9.0)),)),
    "compare": CompareValues(
        (MethodSummary("m", [90.0, 92.0], [95.0], [1.0, None], [1.0, 2.0], [{"safe": 1, "unsafe": 2, "unknown": 3}]),),
        (ComparedRun("m, seed 0", "runs", [EPOCH], "a=b", CELL), ComparedRun("m, seed 1", "r", [EPOCH], "a=c", None)),
    ),
    "reproduce": ReproduceValues(
        "c", 7, {"torch": "2"}, "d", (3, 8, 8), tuple("abcdefghijklmnopqrstuv"), "f", {"lr": 0.1},
    ),
}  # fmt: skip


def body(name: str, values: Any) -> str:
    """What a page of one section shows, without its scripts and with single spaces."""
    text = page([(SECTIONS[name], values)], title="t", subject="runs/mine")
    main = re.search(r"<main>(.*)</main>", text, re.DOTALL)
    assert main is not None
    return " ".join(main[1].split())


def test_the_built_in_sections_are_in_the_order_of_a_reader() -> None:
    assert tuple(SECTIONS) == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_section_without_values_says_so(name: str) -> None:
    shown = body(name, None)
    assert re.search(rf'<section id="{name}" aria-labelledby="{name}-h"> <h1 id="{name}-h">\w', shown)
    assert '<p class="empty">' in shown
    if name in ("kernels", "compare", "answer", "trust"):
        assert "<code>nasight explain runs/mine" in shown


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_section_can_be_written_with_the_least_and_with_all_that_there_may_be(name: str) -> None:
    for values in (LEAST[name], MOST[name]):
        section = SECTIONS[name]
        shown = body(name, values)
        assert '<p class="empty">' not in shown or name == "anatomy"
        charts = {} if section.charts is None else section.charts(values)
        for figure in charts.values():
            go.Figure(figure)
        named = set(re.findall(r'data-chart="([^"]*)"', shown))
        assert named == (set() if name == "trust" else set(charts))


def test_figures_are_written_for_readers() -> None:
    answer = body("answer", MOST["answer"])
    for words in (
        "91.23 ± 0.50 %",
        "3 seeds, on the test part",
        "1,234,567",
        "12 s",
        "The normal cell that was found.",
    ):
        assert words in answer
    assert "above 99.9 %" in body("trust", MOST["trust"])
    assert "the arg max was no network and the entropy was 1.100 nats per decision" in body("search", LEAST["search"])
    assert "discretizing cost 2.50 points" in body("search", MOST["search"])
    assert "75 % of 4" in body("kernels", MOST["kernels"])
    compare = body("compare", MOST["compare"])
    assert "91.00 ± 1.41" in compare
    assert "1 safe, 2 unsafe, 3 unknown</td>" in compare
    assert "22 classes: a, b, c" in body("reproduce", MOST["reproduce"])


def test_markup_in_values_stays_text_and_ends_no_script() -> None:
    evil = "</script><b>&"
    section = Section(
        "s", "S<i>", "<p>{{ values.text }}</p>", charts=lambda values: {"c": {"data": [], "name": values["text"]}},
        script="const end = '</SCRIPT>';",
    )  # fmt: skip
    text = page([(section, {"text": evil})], title=evil, subject=evil)
    assert "<p>&lt;/script&gt;&lt;b&gt;&amp;</p>" in text
    assert "<b>" not in text.split("<script>")[0]
    assert text.lower().count("</script>") == 4
    data = re.search(r'id="charts">(.*?)</script>', text)
    assert data is not None
    assert json.loads(data[1])["s"]["c"]["name"] == evil


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Section("Hello", "h", ""), "small letters, digits and hyphens"),
        (lambda: Section("theme", "h", ""), "not charts or theme; got 'theme'"),
        (lambda: page([], title="t"), "at least one section"),
        (lambda: page([(Section("a", "A", ""), None)] * 2, title="t"), "there are two sections 'a'"),
        (lambda: page([(SECTIONS["answer"], {})], title="t"), "section 'answer' shows AnswerValues, got dict"),
        (lambda: page([(Section("a", "A", "{{ chart('x', 'y') }}"), {})], title="t"), "has no chart 'x', only none"),
        (lambda: register(Section("answer", "Mine", "")), "there is a report section 'answer' already"),
        (lambda: SECTIONS.add("b", Section("a", "A", "")), "'b' calls itself 'a'"),
        (lambda: SECTIONS.add("b", "text"), "must be a nasight.report.Section, got str"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(make: Any, words: str) -> None:
    with pytest.raises(RequestError, match=re.escape(words)):
        make()


@dataclass(frozen=True)
class Greeting:
    """What the section from outside shows."""

    name: str
    """Whom it greets."""


def wave(values: Greeting) -> dict[str, Any]:
    return {"wave": go.Figure(go.Scatter(x=np.arange(3), y=np.arange(3) ** 2, name=values.name))}


OUTSIDE = Section(
    name="hello",
    title="Greeting",
    heading="Hello {{ values.name if values else 'nobody' }}",
    values=Greeting,
    template='<p class="mine">From {{ subject }}</p><figure>{{ chart("wave", "A wave") }}'
    "<figcaption>A wave.</figcaption></figure>",
    script="section.querySelector('.mine').dataset.seen = Object.keys(charts).join();",
    charts=wave,
    gather=lambda subject: Greeting(f"<{subject.run.path.name}>"),
)


@pytest.fixture
def outside() -> Iterator[Section]:
    register(OUTSIDE)
    yield OUTSIDE
    SECTIONS.remove(OUTSIDE.name)


@pytest.mark.slow
def test_a_section_from_outside_is_listed_and_shown_with_its_chart_and_its_script(
    outside: Section, searched: Path, tmp_path: Path, browser: Browser
) -> None:
    found = report(searched / "darts", out=tmp_path / "more.html")
    assert found.path is not None
    with browser.open(found.path) as tab:
        links = tab.value("[...document.querySelectorAll('nav a')].map((a) => [a.getAttribute('href'), a.textContent])")
        assert links[-1] == ["#hello", "Greeting"]
        assert len(links) == len(BUILT_IN) + 1
        assert tab.value("document.querySelector('main > section:last-of-type h2').textContent") == "Hello <darts>"
        tab.wait("document.querySelector('#hello [data-chart=wave] .main-svg')")
        assert tab.wait("document.querySelector('#hello .mine').dataset.seen") == "wave"
        assert tab.console == []


@pytest.mark.slow
def test_a_script_that_fails_is_reported_and_stops_no_other_section(tmp_path: Path, browser: Browser) -> None:
    broken = Section("broken", "Broken", "<p>Here</p>", script="nowhere.at.all();")
    file = tmp_path / "broken.html"
    file.write_text(page([(broken, {}), (OUTSIDE, Greeting("you"))], title="t"))
    with browser.open(file) as tab:
        tab.wait("document.querySelector('#hello .main-svg')")
        assert tab.wait("document.querySelector('#hello .mine').dataset.seen") == "wave"
        assert len(tab.console) == 1
        assert "the script of section broken failed" in tab.console[0]


def test_a_section_from_outside_that_fails_is_one_sentence(searched: Path, tmp_path: Path) -> None:
    register(Section("bad", "Bad", "", gather=lambda subject: subject.nothing))
    try:
        with pytest.raises(RequestError, match=r"the report section 'bad' cannot be made \(AttributeError"):
            report(searched / "darts", out=tmp_path / "bad.html")
    finally:
        SECTIONS.remove("bad")


LANDSCAPE = {
    "grid": [-1.0, 0.0, 1.0], "losses": [[2.0, 1.0, 2.0]] * 3, "variances": None, "settings": {"examples": 8},
    "data": "d", "part": "test", "hessian": None,
}  # fmt: skip
SCORES = {"directions": {"naswot": "high"}, "scores": [{"architecture": "FOUND", "naswot": 3.0}]}
SUMMARY = {"architecture": "FOUND", "mean": 77.125, "spread": None, "seeds": [0], "judged_by": "test", "parameters": 5}


@pytest.mark.parametrize(
    ("file", "whole", "shown", "changes"),
    [
        (
            "deep/landscape/result.json", LANDSCAPE, 'data-chart="surface-loss"',
            ({"losses": [[None] * 3] * 3}, {"losses": [[1.0]]}, {"losses": None}, {"grid": "no"}, {"settings": {}},
             {"hessian": 3}),
        ),
        (
            "deep/scores/result.json", SCORES, 'data-chart="score-naswot"',
            ({"directions": 3}, {"scores": [3]}, {"scores": [{"architecture": "FOUND", "naswot": None}]},
             {"scores": [{"architecture": "FOUND", "naswot": float("nan")}]}),
        ),
        ("train/t/summary.json", SUMMARY, "77.12 %", ({"seeds": 3}, {"mean": None}, {"architecture": None})),
    ],
)  # fmt: skip
def test_a_damaged_file_beside_a_run_is_as_good_as_none(
    file: str, whole: dict[str, Any], shown: str, changes: tuple[dict[str, Any], ...], searched: Path, tmp_path: Path
) -> None:
    shutil.copytree(searched / "darts", tmp_path / "run")
    run = Run(tmp_path / "run")
    explanation, place = explain(run), run.path / file
    place.parent.mkdir(parents=True)
    (place.parent / "seed-0").mkdir()
    (place.parent / "seed-0" / "result.json").write_text("{}")
    for change, there in (({}, True), *((change, False) for change in changes)):
        text = json.dumps(whole | change).replace("FOUND", run.result["architecture"])
        place.write_text(text)
        assert (shown in run_page(Subject(run, explanation))) == there, change
