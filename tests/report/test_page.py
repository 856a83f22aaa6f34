"""The report as a reader meets it: opened from disk in a browser."""

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from command import run
from nasight.report.page import report
from nasight.runs import write_json

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at the page with")
EVIL = "<script>alert(1)"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on images whose classes have unpleasant names, the first with a landscape and scores."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.integers(0, 120, (120, 8, 8, 1), dtype=np.uint8) + (y * 100).astype(np.uint8)[:, None, None, None]
    for i, image in enumerate(x[..., 0]):
        place = folder / "images" / (EVIL, "a & b")[y[i]] / f"{i}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    tiny = ["--channels", "4", "--cells", "1", "--epochs", "2", "--batch-size", "32", "--threads", "1"]
    for method in ("gaea-darts", "darts"):
        place = ["--data", str(folder / "images"), "--out", str(folder / method), "--method", method]
        assert run("search", "--space", "nasbench201", "--objective", "erm", *tiny, *place) == 0
    deep = folder / "gaea-darts" / "deep"
    grid = np.linspace(-1, 1, 5)
    bowl = (0.1 + grid[:, None] ** 2 + grid**2).tolist()
    bowl[0][0] = None  # what overflowed
    about = {"settings": {"examples": 64}, "hessian": {"largest": 3.0, "trace": 9.0}, "data": EVIL, "part": "test"}
    (deep / "landscape").mkdir(parents=True)
    write_json(deep / "landscape" / "result.json", {"grid": grid.tolist(), "losses": bowl, "variances": bowl, **about})
    return folder


@pytest.fixture(scope="module")
def page(searched: Path) -> Path:
    found = report(searched / "gaea-darts", searched / "darts", out=searched / "report.html")
    assert found.path is not None
    return found.path


PROBE = """
<script>
window.addEventListener("load", async () => {
  const said = {};
  const settle = () => new Promise((done) => setTimeout(done, 300));
  await settle();
  PROBE
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(said);
  document.body.append(out);
});
</script>
"""


def look(page: Path, probe: str, tmp_path: Path, width: int = 1200, dark: bool = False) -> tuple[dict[str, Any], str]:
    """What a script finds in the opened page, and what the browser's console says."""
    copy = tmp_path / "looked.html"
    copy.write_text(page.read_text().replace("</body>\n</html>", PROBE.replace("PROBE", probe) + "</body></html>"))
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-unsafe-swiftshader",
        "--hide-scrollbars",
    ]
    command += ["--enable-logging=stderr", "--virtual-time-budget=9000", f"--window-size={width},900", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", *(["--force-dark-mode"] if dark else []), copy.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    found = re.search(r'<pre id="probe">(.*?)</pre>', seen.stdout, re.DOTALL)
    assert found is not None, seen.stderr[-2000:]
    text = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    # How fast software draws is the driver's business, not the page's.
    lines = [line for line in seen.stderr.splitlines() if "CONSOLE" in line and "GL Driver Message" not in line]
    return json.loads(text), "\n".join(lines)


@browser
def test_every_figure_is_drawn_and_neither_the_console_nor_the_network_hears_of_it(page: Path, tmp_path: Path) -> None:
    probe = """
      const charts = [...document.querySelectorAll(".chart")];
      said.charts = charts.length;
      said.empty = charts.filter((c) => !c.querySelector(".main-svg")).map((c) => c.id || c.dataset.chart);
      said.requests = performance.getEntriesByType("resource").map((r) => r.name);
      said.scripts = document.scripts.length;
      said.text = document.body.innerText;
    """
    said, console = look(page, probe, tmp_path)
    assert said["charts"] == 6  # weights, search, standing, two surfaces, compare
    assert said["empty"] == []
    assert said["requests"] == []
    assert said["scripts"] == 5  # the data, two of the page, Plotly, the one that looks
    assert EVIL in said["text"]
    assert console == ""


@browser
def test_hovering_shows_all_panels_and_theme_and_decision_can_be_switched(page: Path, tmp_path: Path) -> None:
    probe = """
      const search = document.getElementById("chart-search");
      Plotly.Fx.hover(search, { xval: 2 }, "xy");
      await settle();
      said.hover = [...search.querySelectorAll(".hoverlayer text")].map((t) => t.textContent).join(" ");
      const ink = () => search._fullLayout.font.color;
      const button = document.getElementById("theme");
      said.before = [document.documentElement.dataset.theme, ink()];
      button.click();
      await settle();
      said.after = [document.documentElement.dataset.theme, ink(), button.getAttribute("aria-pressed")];
      const chooser = document.getElementById("decision");
      chooser.value = "2->3";
      chooser.dispatchEvent(new Event("change"));
      await settle();
      said.title = document.querySelector("#chart-weights .gtitle").textContent;
      said.traces = search.data.length;
      search.querySelector(".legendtoggle").dispatchEvent(new MouseEvent("mousedown"));
      search.querySelector(".legendtoggle").dispatchEvent(new MouseEvent("mouseup"));
      await settle();
      await settle();
      said.hidden = search._fullData.filter((t) => t.visible === "legendonly").length;
    """
    said, console = look(page, probe, tmp_path)
    for words in ("supernet, held out", "discretised, held out", "entropy, nats a decision", "drop by discretising"):
        assert words in said["hover"]
    assert said["before"][0] == "light"
    assert said["after"][0] == "dark"
    assert said["after"][2] == "true"
    assert said["before"][1] != said["after"][1]
    assert said["title"] == "2->3"
    assert said["hidden"] == 2  # a name stands for its line in two panels
    assert console == ""


@browser
@pytest.mark.parametrize("width", [500, 1600])
def test_nothing_sticks_out_of_a_narrow_or_wide_window(page: Path, tmp_path: Path, width: int) -> None:
    said, _ = look(page, "said.wide = document.documentElement.scrollWidth; said.window = innerWidth;", tmp_path, width)
    assert said["wide"] <= said["window"]


@browser
def test_a_screen_reader_has_a_name_for_everything(page: Path, tmp_path: Path) -> None:
    probe = """
      said.nameless = [...document.querySelectorAll(".chart:not([aria-label])")].length
        + [...document.querySelectorAll("svg[role=img]")].filter((s) => !s.querySelector("title")).length;
      said.levels = [...document.querySelectorAll("h1, h2, h3")].map((h) => Number(h.tagName[1]));
      said.labelled = [...document.querySelectorAll("select")].every((s) => s.labels.length === 1);
      said.buttons = [...document.querySelectorAll("button")].every((b) => b.textContent.trim() !== "");
      said.language = document.documentElement.lang;
      const named = (s) => document.getElementById(s.getAttribute("aria-labelledby")) !== null;
      said.sections = [...document.querySelectorAll("section")].every(named);
      said.figures = [...document.querySelectorAll("figure")].every((f) => f.querySelector("figcaption"));
    """
    said, _ = look(page, probe, tmp_path)
    assert said.pop("nameless") == 0
    levels = said.pop("levels")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert said.pop("language") == "en"
    assert all(said.values()), said


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_text_has_a_contrast_of_at_least_four_and_a_half_in_both_themes(page: Path) -> None:
    style = re.search(r"<style>(.*?)</style>", page.read_text(), re.DOTALL)
    assert style is not None
    themes = re.findall(r":root[^{]*\{(.*?)\}", style[1], re.DOTALL)
    assert len(themes) == 2
    pairs = [(ink, paper) for ink in ("ink", "dim", "link") for paper in ("paper", "card")]
    pairs += [(verdict, f"{verdict}-bg") for verdict in ("safe", "unsafe", "unknown")]
    for theme in themes:
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", theme))
        for ink, paper in pairs:
            high, low = sorted((luminance(colours[ink]), luminance(colours[paper])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, paper)


def test_a_page_is_one_file_under_six_megabytes_that_names_no_other(page: Path) -> None:
    text = page.read_text()
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
