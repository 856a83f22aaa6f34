"""The report as a reader meets it: opened from disk in a browser."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from chromium import Browser

import nasight
from command import run
from nasight.spaces import multiply_adds
from nasight.studies import report

DRAWN = "[...document.querySelectorAll('.chart')].every((c) => c.querySelector('.main-svg'))"
INK = "document.getElementById('chart-search')._fullLayout.font.color"
HOVERED = """(() => {
  const search = document.getElementById("chart-search");
  Plotly.Fx.hover(search, { xval: 2 }, "xy");
  return [...search.querySelectorAll(".hoverlayer text")].map((t) => t.textContent).join(" ");
})()"""
HIDDEN = "document.getElementById('chart-search')._fullData.filter((t) => t.visible === 'legendonly').length"


@pytest.mark.slow
def test_every_figure_is_drawn_and_neither_the_console_nor_the_network_hears_of_it(
    run_page: Path, evil: str, browser: Browser
) -> None:
    with browser.open(run_page) as tab:
        tab.wait(DRAWN)
        charts = tab.value("document.querySelectorAll('.chart').length")
        assert charts == 6  # weights, search, standing, two surfaces, compare
        assert tab.value("performance.getEntriesByType('resource').map((r) => r.name)") == []
        assert tab.requests == []
        assert tab.value("document.scripts.length") == 4  # the data, two of the page, Plotly
        assert evil in tab.value("document.body.innerText")
        assert tab.console == []


@pytest.mark.slow
def test_hovering_shows_all_panels(run_page: Path, browser: Browser) -> None:
    words = ("supernet, held out", "discretized, held out", "entropy, nats per decision", "drop by discretizing")
    with browser.open(run_page) as tab:
        tab.wait(DRAWN)
        for each in words:
            tab.wait(f"{HOVERED}.includes({json.dumps(each)})")
        assert tab.console == []


@pytest.mark.slow
def test_theme_and_decision_can_be_switched_and_lines_hidden(run_page: Path, browser: Browser) -> None:
    with browser.open(run_page) as tab:
        tab.wait(DRAWN)
        assert tab.value("document.documentElement.dataset.theme") == "light"
        before = tab.value(INK)
        tab.do("document.getElementById('theme').click()")
        tab.wait("document.documentElement.dataset.theme === 'dark'")
        tab.wait(f"{INK} !== {json.dumps(before)}")
        assert tab.value("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
        tab.do("const chooser = document.getElementById('decision'); chooser.value = '2->3';"
               "chooser.dispatchEvent(new Event('change'))")  # fmt: skip
        tab.wait("document.querySelector('#chart-weights .gtitle').textContent === '2->3'")
        for event in ("mousedown", "mouseup"):
            tab.do(f"document.querySelector('#chart-search .legendtoggle').dispatchEvent(new MouseEvent('{event}'))")
        tab.wait(HIDDEN)
        assert tab.value(HIDDEN) == 2  # a name stands for its line in two panels
        assert tab.console == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [500, 1600])
def test_nothing_sticks_out_of_a_narrow_or_wide_window(run_page: Path, browser: Browser, width: int) -> None:
    with browser.open(run_page, width) as tab:
        tab.wait(DRAWN)
        assert tab.value("innerWidth") == width
        assert tab.value("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_a_screen_reader_has_a_name_for_everything(run_page: Path, browser: Browser) -> None:
    with browser.open(run_page) as tab:
        tab.wait(DRAWN)
        assert tab.value("document.querySelectorAll('.chart:not([aria-label])').length") == 0
        titled = "[...document.querySelectorAll('svg[role=img]')].every((s) => s.querySelector('title'))"
        levels = tab.value("[...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
        labelled = "[...document.querySelectorAll('select')].every((s) => s.labels.length === 1)"
        buttons = "[...document.querySelectorAll('button')].every((b) => b.textContent.trim() !== '')"
        named = "(s) => document.getElementById(s.getAttribute('aria-labelledby')) !== null"
        sections = f"[...document.querySelectorAll('section')].every({named})"
        figures = "[...document.querySelectorAll('figure')].every((f) => f.querySelector('figcaption'))"
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert tab.value("document.documentElement.lang") == "en"
        for fact in (titled, labelled, buttons, sections, figures):
            assert tab.value(fact), fact


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_multiply_adds_are_shown_of_a_network_that_is_not_trained_yet(searched: Path, run_page: Path) -> None:
    found = nasight.Run(searched / "gaea-darts")
    network = found.space.network(found.architecture, (1, 8, 8), 2, channels=4, cells=1)
    assert f"{multiply_adds(network, (1, 8, 8)):,} multiply-adds per example" in run_page.read_text()


def test_text_has_a_contrast_of_at_least_four_and_a_half_in_both_themes(run_page: Path) -> None:
    style = re.search(r"<style>(.*?)</style>", run_page.read_text(), re.DOTALL)
    assert style is not None
    themes = re.findall(r":root[^{]*\{(.*?)\}", style[1], re.DOTALL)
    assert len(themes) == 2
    pairs = [(ink, paper) for ink in ("ink", "dim", "link") for paper in ("paper", "card")]
    pairs += [(verdict, f"{verdict}-bg") for verdict in ("safe", "unsafe", "unknown")]
    for theme in themes:
        colors = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", theme))
        for ink, paper in pairs:
            high, low = sorted((luminance(colors[ink]), luminance(colors[paper])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, paper)


def test_a_page_is_one_file_under_six_megabytes_that_names_no_other(run_page: Path) -> None:
    text = run_page.read_text()
    assert len(text.encode()) < 6_000_000
    assert re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(?!data:)', text) == []
    assert "@import" not in text


def test_sections_without_data_say_how_to_get_it(searched: Path, tmp_path: Path) -> None:
    found = report(searched / "darts", out=tmp_path / "alone.html")
    assert found.path is not None
    text = found.path.read_text()
    for command in ("--deep", f"nasight train {searched / 'darts'} --seeds 3", "OTHER_RUN"):
        assert command in text


def test_the_page_goes_into_the_run_and_its_place_is_said(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", str(searched / "darts")) == 0
    assert f"The page: {searched / 'darts' / 'report.html'}" in capsys.readouterr().out
    assert (searched / "darts" / "report.html").stat().st_size > 1_000_000


def test_runs_of_another_method_are_compared_and_not_counted_as_seeds(
    searched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run("explain", str(searched / "gaea-darts"), str(searched / "darts"), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["runs"] == [str(searched / "gaea-darts")]
    assert [other["method"] for other in said["others"]] == ["darts"]
    assert said["report"] is None
