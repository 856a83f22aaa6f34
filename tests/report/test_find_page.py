"""The page of a find: its answer on one screen, and no candidate lost on the way."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest
from chromium import Browser
from made_find import RUNGS, made_find
from scipy.stats import kendalltau

import nasight
from nasight import Choice
from nasight.cli._find import summary
from nasight.errors import RequestError
from nasight.report import page
from nasight.report.finding import FIND_SECTIONS, RacedCandidate, proposer_words
from nasight.report.finding.answer import dots_svg, interval_svg
from nasight.runs import read_json, write_json
from nasight.spaces import load
from nasight.studies.finding import Answer, find_page
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._used import used_seconds

DRAWN = "[...document.querySelectorAll('.chart')].every((c) => c.querySelector('.main-svg'))"


def shown(path: Path) -> str:
    """What a page shows, without its scripts and with single spaces."""
    main = path.read_text().partition("<main>")[2].partition("</main>")[0]
    return " ".join(main.split())


def section(path: Path, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', shown(path))
    assert found is not None
    return found[0]


def words(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def charts(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_text().partition('id="charts">')[2].partition("</script>")[0])
    return values


def changed(path: Path, **values: Any) -> None:
    """Other values in the result of a find."""
    write_json(path / "result.json", read_json(path / "result.json") | values)


@pytest.mark.parametrize(
    ("better", "look", "said"),
    [
        (True, "safe", "above zero: the winner is better"),
        (False, "plain", "below zero: the baseline is better"),
        (None, "plain", "holds zero: not decided"),
    ],
)
def test_the_first_section_has_the_sentence_both_sides_the_interval_and_the_cost(
    tmp_path: Path, better: bool | None, look: str, said: str
) -> None:
    answer = made_find(tmp_path / "find", better=better)
    path = find_page(answer)
    assert path == tmp_path / "find" / "report.html"
    first = section(path, "answer")
    assert re.search(rf'<p class="verdict answer {look}">(✓ )?{answer.sentence()}</p>', first)
    winner, baseline, rest = re.split(r'<div class="side[ "]', first)[1:]
    assert ["take this" in side for side in (winner, baseline)] == [better is True, better is not True]
    mean = answer.result["difference"]
    assert f"{98 + mean:.2f} ± 0.20 %" in winner
    assert "20,000 parameters" in winner
    assert "proposed by: arg max of search 1; drawn at random" in winner
    assert "98.00 ± 0.20 %" in baseline
    assert "the space&#39;s reference" in baseline
    assert f"{mean:+.2f} points" in rest
    assert f"Interval of 95 %, on 360 test rows, {said}." in rest
    assert "5 min , 41 trainings; budget 4 min" in words(rest)
    assert f"nasight predict {tmp_path / 'find'} FILES" in first


def test_a_baseline_that_nothing_beat_stands_alone(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find", better=False)
    base = answer.baseline
    changed(answer.path, architecture=base["architecture"], accuracies=base["accuracies"], difference=0.0)
    first = section(find_page(answer.path), "answer")
    assert first.count("Winner of the race") == 0
    assert first.count("take this") == 1
    assert "Nothing that was raced beat the baseline" in first


@pytest.mark.parametrize(("winner", "budget", "says"), [(3.0, 60.0, True), (2.4, 60.0, False), (3.0, None, False)])
def test_a_winner_that_trains_longer_in_the_same_epochs_comes_with_a_caution(
    winner: float, budget: float | None, says: bool, tmp_path: Path
) -> None:
    took = {"winner": winner, "baseline": 2.0}
    answer = made_find(tmp_path / "find", budget=budget, training_seconds=took)
    text = "training of the winner took 1.5 times as long as one of the baseline"
    assert any(text in caution for caution in answer.cautions) is says
    assert (text in words(section(find_page(answer), "answer"))) is says


def test_what_makes_the_interval_too_narrow_stands_beside_it(tmp_path: Path) -> None:
    plain, warned = made_find(tmp_path / "plain"), made_find(tmp_path / "warned")
    changed(warned.path, rows_vary=False, answers=2)
    notes = ("gives one number for all rows", "has judged 2 answers of this find")
    pages = [words(section(find_page(answer.path), "answer")) for answer in (plain, warned)]
    assert [[note in page for note in notes] for page in pages] == [[False, False], [True, True]]


@pytest.mark.parametrize("better", [True, False])
def test_figures_of_one_seed_say_so_beside_the_mean_of_all(tmp_path: Path, better: bool) -> None:
    answer = made_find(tmp_path / "find", better=better)
    each = {"rows": 4, "recall": 50.0, "precision": None}
    found = {"metric": "accuracy", "score": 57.14, "accuracy": 57.14, "balanced accuracy": 50.0, "each": {"a": each}}
    seeds = [57.14, 71.43, 71.43]
    sides = {"accuracies": seeds} if better else {"baseline": {**answer.baseline, "accuracies": seeds}}
    changed(answer.path, figures=found, **sides)
    first = words(section(find_page(answer.path), "answer"))
    network = "of the network in model/, seed 1 of 3: 57.14 %"
    assert f"Test figures {network}; balanced accuracy 50.00 % a: recall 50.0 %, precision -, 4 rows" in first
    lines = [line.strip() for line in summary(Answer(answer.path)).splitlines()]
    assert lines[lines.index("model/       seed 1 of 3: 57.14 %") + 1] == "balanced accuracy 50.00 %"


def test_no_candidate_is_lost_in_the_table_or_in_the_figure(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    lines = answer.result["race"]["lines"]
    path = find_page(answer)
    race = section(path, "race")
    rows = re.findall(r"<tr[^>]*> <th scope=\"row\".*?</tr>", race)
    assert sorted(words(row.split("<td")[-1].partition(">")[2]) for row in rows) == sorted(
        line["architecture"] for line in lines
    )
    figure = charts(path)["race"]["race"]
    go.Figure(figure)
    dots = [text for trace in figure["data"] for text in trace.get("text", ()) if text]
    by_number = [re.match(r"no\. (\d+): ", text) for text in dots]
    points = [int(found[1]) for found in by_number if found is not None]
    known = sum(accuracy is not None for line in lines for accuracy in line["accuracies"])
    assert len(points) == known + 1  # the training that failed has a mark too
    assert set(points) == set(range(1, len(lines) + 1))


def test_those_that_left_say_why_and_fade(tmp_path: Path) -> None:
    figure = charts(find_page(made_find(tmp_path / "find")))["race"]["race"]
    traces = {trace["name"]: trace for trace in figure["data"] if "name" in trace}
    assert list(traces) == [
        "left: surely behind",
        "left: no time",
        "failed",
        "to the last rung",
        "control: the space's reference (baseline)",
        "control: a plain network",
        "winner",
    ]
    assert [text.count("left here: no time for it") for text in traces["left: no time"]["text"] if text] == [0, 1, 1]
    assert "its training failed" in traces["failed"]["text"][0]
    tails = [trace["opacity"] for trace in figure["data"] if "name" not in trace]
    assert tails == sorted(tails[:3], reverse=True) * 2
    legend = sorted(traces.values(), key=lambda trace: trace["legendrank"])
    assert [trace["name"] for trace in legend][::6] == ["winner", "failed"]
    assert all(trace["line"].get("dash") in ("dash", "dot") for name, trace in traces.items() if "control" in name)


def test_candidates_of_one_accuracy_are_drawn_at_different_places(tmp_path: Path) -> None:
    figure = charts(find_page(made_find(tmp_path / "find")))["race"]["race"]
    dots = [
        (x, y)
        for trace in figure["data"] if "text" in trace
        for x, y in zip(trace["x"], trace["y"], strict=True) if x is not None
    ]  # fmt: skip
    assert len(set(dots)) == len(dots)


def test_of_many_candidates_all_are_in_the_tables(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    race = answer.result["race"]
    more = [{**race["lines"][-2], "architecture": f"made up {i}"} for i in range(60)]
    changed(answer.path, race={**race, "lines": race["lines"] + more})
    shown_race = section(find_page(answer.path), "race")
    assert "<details><summary>The other 53 candidates</summary>" in shown_race
    assert all(f">made up {i}<" in shown_race for i in range(60))


def test_how_well_a_rung_predicts_the_next_is_said_for_every_pair_of_rungs(tmp_path: Path) -> None:
    said = words(section(find_page(made_find(tmp_path / "find")), "race"))
    assert "From 3 epochs to 9 epochs: 6 were trained on both, and their order has a Kendall's tau of +0.50" in said
    assert "one that left after 3 epochs might have come back" in said
    # Of the last two rungs the race keeps nothing; reference, plain and two candidates are on both.
    found = kendalltau([97.25, 97.0, 98.5, 98.0], [98.0, 97.5, 98.75, 98.25], alternative="greater")
    assert (
        f"From 9 epochs to 27 epochs: 4 were trained on both, and their order has a Kendall's tau of {found[0]:+.2f}"
        in said
    )
    assert f"p = {found[1]:.3f}" in said


def test_rungs_of_fewer_rows_say_so(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    changed(answer.path, race={**answer.result["race"], "rows": [250, 1_078, 1_078]})
    path = find_page(answer.path)
    race = words(section(path, "race"))
    assert "From 3 epochs of 250 rows to 9 epochs: 6 were trained on both" in race
    assert "Those of the first rung learned from 250." in words(section(path, "untried"))


def test_a_race_that_stopped_early_is_shown_with_the_rungs_that_were_run(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    race = answer.result["race"]
    lines = [{**line, "accuracies": [line["accuracies"][0], None, None], "left": None} for line in race["lines"]]
    # As versions before kept it: all rungs that were planned, the last two without an accuracy.
    rows = [250, 1_078, 1_078]
    changed(answer.path, race={**race, "lines": lines, "rows": rows, "agreements": []})
    path = find_page(answer.path)
    said = {name: words(section(path, name)) for name in FIND_SECTIONS}
    assert "Race of 9 networks 7 candidates" in said["race"]
    assert "6 of the candidates reached the last rung" in said["race"]
    assert "were trained on both" not in said["race"]
    assert charts(path)["race"]["race"]["layout"]["xaxis"]["ticktext"] == ["3 epochs of 250 rows"]
    assert "Each network was trained for 3 epochs." in said["front"]
    assert "The winner's longest training in the race had 3 epochs, those of the answer 27." in said["untried"]
    assert (
        "6 (planned: 8) candidates for 3 epochs of 250 rows, with 2 controls; planned and not reached: "
        "4 candidates for 9 epochs, 2 candidates for 27 epochs" in said["cost"]
    )


def test_on_the_front_estimates_are_hollow_and_latencies_are_shown(tmp_path: Path) -> None:
    path = find_page(made_find(tmp_path / "find"))
    figure = charts(path)["front"]["front"]
    go.Figure(figure)
    traces = {trace["name"]: trace for trace in figure["data"]}
    assert list(traces) == ["other candidates", "not of the space", "front"]
    assert traces["front"]["mode"] == "lines+markers"
    assert traces["front"]["marker"]["symbol"][0] == "circle"
    for text, symbol in zip(
        traces["other candidates"]["text"], traces["other candidates"]["marker"]["symbol"], strict=True
    ):
        assert ("estimated from" in text) == symbol.endswith("-open")
        assert "ms per example" in text
    assert len(re.findall(r'<tr> <th scope="row"', section(path, "front"))) == len(traces["front"]["x"])


def test_latency_has_a_front_of_its_own_and_none_where_nothing_was_timed(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    points = answer.result["front"]
    times = [3.0, 1.0, 2.0]
    for point, milliseconds in zip(points, times, strict=False):
        point["latency"] = milliseconds
    for point in points[len(times) :]:
        point["latency"] = None
    changed(answer.path, front=points)
    drawn = charts(find_page(answer.path))["front"]["latency"]["data"]
    (front,) = (line for line in drawn if line["name"] == "front")
    assert front["x"] == sorted(front["x"])
    assert front["y"] == sorted(front["y"])
    assert sorted(x for line in drawn for x in line["x"]) == sorted(times)
    # Kept marks are drawn as they are; this find had none, as those of versions before.
    changed(answer.path, front=[{**point, "best_latency": point["latency"] == 3.0} for point in points])
    drawn = charts(find_page(answer.path))["front"]["latency"]["data"]
    assert [line["x"] for line in drawn if line["name"] == "front"] == [[3.0]]
    changed(answer.path, front=[{**point, "latency": None} for point in points])
    assert "latency" not in charts(find_page(answer.path))["front"]


def test_multiply_adds_stand_beside_parameters_and_finds_of_before_have_none(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    before = find_page(answer).read_text().partition("<main>")[2]
    assert "20,000 parameters" in before
    assert not re.search(r"\d multiply-adds|<small>multiply-adds", before)
    result = answer.result
    counted = [{**point, "multiply_adds": 100 * point["parameters"]} for point in result["front"]]
    lines = [{**line, "multiply_adds": 100 * line["parameters"]} for line in result["race"]["lines"]]
    lines[1]["multiply_adds"] = None
    changed(
        answer.path,
        multiply_adds=2_000_000,
        baseline={**answer.baseline, "multiply_adds": None},
        front=counted,
        race={**result["race"], "lines": lines},
    )
    path = find_page(answer.path)
    winner, baseline, _ = re.split(r'<div class="side[ "]', section(path, "answer"))[1:]
    assert "20,000 parameters, 2,000,000 multiply-adds" in winner
    assert "multiply-adds" not in baseline
    front = section(path, "front")
    assert "parameters<br><small>multiply-adds</small>" in front
    assert "43,010<br><small>4,301,000</small>" in front
    race = section(path, "race")
    assert "parameters<br><small>multiply-adds</small>" in race
    assert "20,000<br><small>2,000,000</small>" in race
    assert re.search(r"94,186\s*</td>", race)
    figures = charts(path)
    texts = [t for name in ("race", "front") for trace in figures[name][name]["data"] for t in trace.get("text", ())]
    sized = [text for text in texts if "20,000 parameters" in text]
    assert len(sized) == 4  # three rungs, and the front
    assert all("20,000 parameters<br>2,000,000 multiply-adds" in text for text in sized)
    assert all("multiply-adds" not in text for text in texts if "94,186 parameters" in text)


def test_the_recipe_and_the_grid_are_shown(tmp_path: Path) -> None:
    said = words(section(find_page(made_find(tmp_path / "find")), "recipe"))
    assert "random changes of images: shift , 32 examples per step" in said
    assert "none 0.05 0.0003 97.00 shift 0.05 0.0003 98.50 chosen shift 0.15 0.0003 failed" in said


def test_what_was_not_tried_is_counted(tmp_path: Path) -> None:
    said = words(section(find_page(made_find(tmp_path / "find")), "untried"))
    for fact in (
        "The space nasbench201 has 15,625.",
        "1 search held all of them at once",
        "2 were scored without training, 7 were trained in the race, 2 of them to the last rung.",
        "more than 99.9 % were never trained by themselves",
        "at most 100,000 parameters",
        "1,000 of 1,437 training rows",
        "In the race 250 of them judged",
        "channels 8, cells 1",
        "Longer trainings may rank otherwise.",
    ):
        assert fact in said


def test_each_stage_is_compared_with_its_plan(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    cost = section(find_page(answer), "cost")
    rows = [[words(cell) for cell in re.findall("<td.*?</td>", row)] for row in re.findall("<tr>.*?</tr>", cost)[1:]]
    assert [row[1:] for row in rows] == [
        ["30 s", "40 s"],
        ["50 s", "1 min 10 s"],
        ["1 min 30 s", "2 min 8 s"],
        ["1 min", "1 min"],
    ]
    assert "6 (planned: 8) candidates for 3 epochs, 4 candidates for 9 epochs, 2 candidates for 27 epochs" in rows[2][0]
    assert "3 seeds of 27 (planned: 30) epochs" in rows[3][0]


def test_a_journal_tells_what_its_stages_took_also_where_a_kill_cut_a_line_off(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    journal = answer.path / "journal.jsonl"
    whole = {"recipe": 40.0, "propose": 70.0, "race": 128.0, "answer": 60.0}
    assert used_seconds(journal, 0, 3) == whole
    assert used_seconds(journal, 0, 0) == {"propose": 110.0, "race": 128.0, "answer": 60.0}
    assert used_seconds(journal, 1, 0) == {}
    with journal.open("a") as file:
        file.write('{"key": "began 1", "value": 300.0}\n{"key": "clock", "va')
    assert used_seconds(journal, 0, 3) == whole


def test_the_trust_of_a_search_is_counted_and_its_page_linked(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    before = words(section(find_page(answer), "proposals"))
    assert "Search 1 searches/0-0 gaea-darts, 14 epochs, 51 s; its arg max has 94.50 % with shared weights." in before
    assert "Raced as no. 1: to the last rung, winner ." in before
    assert "Its choices were not judged." in before
    place = answer.path / "searches" / "0-0"
    other = {"option": "b", "architecture": "x", "accuracy": 0.0, "local_loss": 0.0, "local_error": 0.01}
    evidence = [
        {"name": str(loss), "choice": "a", "examples": 1_000, "local_examples": 1_000,
         "alternatives": [{**other, "loss": loss, "error": 0.01}]}
        for loss in (0.5, 0.4, -0.5, 0.0)
    ]  # fmt: skip
    write_json(place / "trust.json", {"asked": {}, "evidence": evidence})
    (place / "report.html").write_text("")
    after = section(find_page(answer), "proposals")
    assert "2 safe 1 unsafe 1 unknown" in words(after)
    assert '<a href="searches/0-0/report.html">' in after
    (place / "trust.json").write_text('{"evidence": 3}')
    assert "Its choices were not judged." in section(find_page(answer), "proposals")


def test_searches_of_two_legs_have_the_names_that_the_race_gives_them(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    searches = answer.path / "searches"
    shutil.copytree(searches / "0-0", searches / "1-0")
    changed(answer.path, legs=2, proposed_by="search 1 of leg 1", also_proposed_by=["an earlier leg"])
    said = words(section(find_page(answer.path), "proposals"))
    assert "The winner was proposed by: arg max of search 1 of leg 1; a leader of an earlier leg ." in said
    assert "Search 1 of leg 1 searches/0-0" in said
    assert "Search 1 searches/1-0" in said


def test_both_cells_of_a_darts_network_are_drawn(tmp_path: Path) -> None:
    first = section(find_page(made_find(tmp_path / "find", space="darts")), "answer")
    assert "The normal cell of the winner." in first
    assert "The reduction cell of the winner." in first
    untried = section(find_page(Answer(tmp_path / "find")), "untried")
    assert re.search(r"has about \d\.\d · 10<sup>1[78]</sup>\.", untried)


def test_a_network_without_cells_is_written_out(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find", space="mlp")
    first = section(find_page(answer), "answer")
    assert "<figure>" not in first
    assert first.count(answer.architecture) == 2  # in place of the drawing, and as text


EVIL = ["a=<b>bold</b>", "a=</script><script>alert(1)</script>", "a=<img src=x onerror=alert(1)>", "a=&lt; & 'x' \"y\"",
        "a={{ 7 * 7 }}", "a=%{x}", "a=<i>", "a=<a href='javascript:alert(1)'>x</a>"]  # fmt: skip


def test_options_that_look_like_markup_are_text_everywhere(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find", space="module", names=EVIL, data="<u>data</u>", sentence="<s>so</s>")
    path = find_page(answer)
    text, html = path.read_text(), shown(path)
    for tag in ("<b>", "<i>", "<u>", "<s>", "<img", "<a href='", "<script>alert", "a=49"):
        assert tag not in html, tag
    assert text.lower().count("</script>") == 4
    assert all(words.count(name) >= 1 for name in EVIL for words in [unescape(html)])
    drawn = [text for trace in charts(path)["race"]["race"]["data"] for text in trace.get("text", ())]
    # Plotly reads some tags: those in a text are its own line breaks.
    assert {tag for text in drawn for tag in re.findall("<[^>]*>", text)} == {"<br>"}
    assert "How many your model has is not known here." in words(html)


def test_a_model_given_again_is_counted(tmp_path: Path) -> None:
    from torch import nn

    answer = made_find(tmp_path / "find", space="module", names=EVIL)
    space = load(nn.Sequential(nn.Flatten(), Choice({"<b>": nn.ReLU(), "c": nn.Tanh(), "d": nn.SiLU()})))
    assert "Your model has 3." in words(section(find_page(answer, space=space), "untried"))


def test_a_file_that_the_folder_names_is_not_run(tmp_path: Path) -> None:
    made_find(tmp_path / "find", space="module", names=EVIL)
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\nmodel = None\n")
    about = read_json(tmp_path / "find" / "run.json")
    about["settings"]["space"] = f"{trap}:model"
    write_json(tmp_path / "find" / "run.json", about)
    find_page(tmp_path / "find")
    assert not (tmp_path / "sprung").exists()


ASKED: dict[str, Any] = {
    "space": load("nasbench201", none=True), "shares": "race=0.5", "max_params": "90k", "level": 0.9, "workers": 1,
    "precision": "bf16", "class_weights": "balanced", "metric": "balanced accuracy", "augment": "shift=1",
    "target": "small", "method": "darts", "seed": 3, "trainings": 40, "epochs": 2,
}  # fmt: skip


def begun(out: Path, **asked: Any) -> dict[str, Any]:
    """What run.json has of a find that is stopped before its first training."""

    def stop(event: str, values: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nasight.find(asked.pop("data", "digits"), **asked, out=out, progress=stop)
    about: dict[str, Any] = read_json(out / "run.json")
    return about


def test_the_call_on_the_page_asks_for_all_that_was_asked_for(tmp_path: Path) -> None:
    first, answer, calls = begun(tmp_path / "first", **ASKED), made_find(tmp_path / "find"), dict[str, Any]()
    kept = {name: first[name] for name in ("settings", "own")}
    write_json(answer.path / "run.json", read_json(answer.path / "run.json") | kept)
    Journal(answer.path).put("budget 0", first["budget"])
    command = re.search(r'<pre id="command">(.*?)</pre>', find_page(answer.path).read_text(), re.DOTALL)
    assert command is not None
    as_written = SimpleNamespace(find=lambda data, **given: calls.update(given, data=data), spaces=nasight.spaces)
    exec(unescape(command[1]).removeprefix("import nasight\n"), {"nasight": as_written})
    assert calls.pop("out") == str(answer.path)
    again = begun(tmp_path / "again", **calls)
    assert {name: again[name] for name in (*kept, "budget")} == {**kept, "budget": first["budget"]}


def test_a_damaged_or_unfinished_find_is_one_sentence(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    changed(answer.path, race={"rungs": RUNGS})
    with pytest.raises(RequestError, match=r"find is damaged: KeyError\('lines'\)"):
        find_page(answer.path)
    (answer.path / "result.json").unlink()
    with pytest.raises(RequestError, match="is not finished; resume it: nasight find --resume"):
        find_page(answer.path)


def test_a_find_without_its_journal_has_a_page(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    (answer.path / "journal.jsonl").unlink()
    path = find_page(answer.path, out=tmp_path / "alone.html")
    assert path == tmp_path / "alone.html"
    assert "The plan of this find is not kept." in section(path, "cost")


@pytest.mark.parametrize("name", FIND_SECTIONS)
def test_a_section_without_values_says_so(name: str) -> None:
    assert '<p class="empty">' in page([(FIND_SECTIONS[name], None)], title="t")


@pytest.mark.parametrize("ends", [(-3.06, -0.09), (0.05, 2.0), (-0.78, 0.59), (0.0, 0.0), (5.0, 5.5)])
def test_the_bar_lies_between_its_numbers_and_none_stands_on_the_zero_line(ends: tuple[float, float]) -> None:
    low, high = ends
    root = ElementTree.fromstring(interval_svg((low + high) / 2, low, high))
    bar, dot = root.find("rect"), root.find("circle")
    assert bar is not None
    assert dot is not None
    left, wide = float(bar.attrib["x"]), float(bar.attrib["width"])
    assert left <= float(dot.attrib["cx"]) <= left + wide
    zero = float(root.findall("path")[1].attrib["d"][1:].split(" ")[0])
    for text, sign in zip(root.findall("text")[:2], (-1, 1), strict=True):
        start = float(text.attrib["x"])
        end = start + sign * 7 * len(text.text or "")
        assert not min(start, end) < zero < max(start, end), text.text
        assert 0 <= end <= 360
    assert (left <= zero <= left + wide) == (low <= 0 <= high)


def test_dots_of_equal_accuracy_are_stacked_and_both_sides_have_one_scale() -> None:
    values, others = [98.0, 98.0, 99.0], [97.0]
    root = ElementTree.fromstring(dots_svg(values, [*values, *others]))
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.findall("circle")]
    assert dots[0][0] == dots[1][0] < dots[2][0]
    assert dots[0][1] > dots[1][1]
    other = ElementTree.fromstring(dots_svg(others, [*values, *others]))
    assert [t.text for t in root.findall("text")] == [t.text for t in other.findall("text")]


def test_every_proposer_of_a_find_has_words_and_an_unknown_one_keeps_its_name() -> None:
    names = ("search 3", "search 1 of leg 2", "likeliest", "likeliest of 75%", "open decision", "score", "size",
             "score and size", "chance", "mutation", "an earlier leg", "reference", "plain", "baseline")  # fmt: skip
    assert all(proposer_words(name) != name for name in names)
    assert proposer_words("my plugin") == "my plugin"


def test_a_candidate_that_failed_late_keeps_what_it_had() -> None:
    candidate = RacedCandidate(3, "a", ("chance",), 5, [90.0, None], left_at=1, reason="failed")
    assert candidate.reached == 0
    assert candidate.why == "its training failed"


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1600])
def test_a_reader_sees_the_answer_first_and_nothing_sticks_out(tmp_path: Path, browser: Browser, width: int) -> None:
    path = find_page(made_find(tmp_path / "find", space="darts"))
    with browser.open(path, width, 900) as tab:
        tab.wait(DRAWN)
        assert tab.value("document.querySelectorAll('.chart').length") == 3
        assert tab.value("document.documentElement.scrollWidth") <= width
        bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
        first = [".verdict", ".side.taken"] if width == 400 else [".verdict", ".sides", "#use", ".drawings figure"]
        for place in first:
            assert tab.value(bottom.format(place)) < 900, place
        assert tab.requests == []
        assert tab.console == []


@pytest.mark.slow
def test_the_better_half_can_be_enlarged_where_others_are_far_below(tmp_path: Path, browser: Browser) -> None:
    range_of = "document.getElementById('chart-race')._fullLayout.yaxis.range"
    with browser.open(find_page(made_find(tmp_path / "find"))) as tab:
        tab.wait(DRAWN)
        assert tab.value(range_of)[0] < 81
        tab.do("document.getElementById('closer').click()")
        low, high = tab.wait(f"{range_of}[0] > 90 && {range_of}")
        assert low < 95.5 < 98.75 < high
        tab.do("document.getElementById('closer').click()")
        tab.wait(f"{range_of}[0] < 81")
        assert tab.console == []


@pytest.mark.slow
def test_pointing_at_a_dot_says_why_it_left_in_the_words_of_the_user(tmp_path: Path, browser: Browser) -> None:
    path = find_page(made_find(tmp_path / "find", space="module", names=EVIL))
    hovered = """(() => {
      const chart = document.getElementById("chart-race");
      const trace = chart.data.findIndex((t) => t.name === "left: no time");
      const point = chart.data[trace].text.findIndex((t) => t.includes("left here"));
      Plotly.Fx.hover(chart, [{ curveNumber: trace, pointNumber: point }]);
      return [...chart.querySelectorAll(".hoverlayer text")].map((t) => t.textContent).join(" ");
    })()"""
    with browser.open(path) as tab:
        tab.wait(DRAWN)
        text = tab.wait(hovered)
        assert "left here: no time for it" in text
        assert any(name in text for name in EVIL)
        assert tab.value("document.scripts.length") == 4
        assert tab.console == []


def test_a_race_of_whole_trainings_is_drawn_over_what_an_example_costs(tmp_path: Path) -> None:
    answer = made_find(tmp_path / "find")
    plan = Journal(answer.path)["plan 0"]
    Journal(answer.path).put("plan 0", {**plan, "rungs": [30], "places": [8], "paced": True, "whole": True})
    race = answer.result["race"]
    lines = [
        {**line, "accuracies": [95.0 + i], "left": None, "multiply_adds": (i + 1) * 1_000_000}
        for i, line in enumerate(race["lines"])
    ]
    recipe = answer.result["recipe"]
    tried = [{**recipe, "accuracy": 97.0, "epochs": 10}, {**recipe, "accuracy": 98.0, "epochs": 30, "whole": True}]
    raced = {**race, "rungs": [30], "lines": lines, "agreements": [], "seed_deviation": None}
    baseline = {**answer.result["baseline"], "epochs": 30}
    changed(answer.path, race=raced, equal="seconds", recipes=tried, baseline=baseline)
    path = find_page(answer.path)
    said, drawn = words(section(path, "race")), charts(path)["race"]["race"]
    assert "All trainings take about as long as those of the answer: as 30 epochs of the reference" in said
    assert "predicts a longer one" not in said
    assert "Another seed alone" not in said
    places = [x for trace in drawn["data"] for x in trace["x"] if x is not None]
    assert sorted(places) == [float(i + 1) for i in range(len(lines))]
    assert drawn["layout"]["xaxis"]["type"] == "log"
    # Recipes of two lengths say how long they were.
    told = words(section(path, "recipe"))
    assert "whole trainings compared them" in told
    assert "short, 10 epochs" in told
    assert section(path, "recipe").count("tag safe") == 1  # tried twice, and chosen once
    assert "left because" not in said
    assert "not trained" not in said
    assert "2 trainings of 10 or 30 epochs" in words(section(path, "cost"))
    # One that would take far too long is proposed, and not trained.
    slow = next(line for line in reversed(lines) if not line["control"] and line["architecture"] != answer.architecture)
    slow |= {"accuracies": [None], "left": {"rung": 0, "reason": "time"}}
    changed(answer.path, race=raced)
    path = find_page(answer.path)
    count = sum(not line["control"] for line in lines) - 1
    said = words(section(path, "race"))
    assert f"{count} candidates and" in said
    assert "1 more was not trained: two epochs would have taken far longer than the first training of others" in said
    assert f"{count} were trained in the race" in words(section(path, "untried"))
