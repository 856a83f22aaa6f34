"""A quick share of `make faults`; each test says what all of it says, of fewer cases."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults import fuzz, hammer, inputs, jobs, kills, shortages, strangers
from faults.bases import make_bases
from faults.nursery import forked, warm
from nasight.anatomy import read_cells
from nasight.errors import RequestError
from nasight.runs import parse_json
from nasight.spaces import load

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module", autouse=True)
def one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(before)[-1]})
    warm()
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("faults") / "bases"
    ending = forked(lambda: make_bases(found), limit=300)
    assert ending.status == 0, ending.error
    return found


def test_what_was_killed_and_resumed_is_what_was_never_killed() -> None:
    some = [*islice(jobs.searches(), 0, None, 25), *(job for job in jobs.others() if job.command != "find")]
    counts = kills.kill_all(some, 1)
    assert not [each for count in counts.values() for each in count.different]
    assert sum(count.kills for count in counts.values()) >= len(some)


def test_bad_inputs_end_in_a_sentence_soon_and_without_much_memory(place: Path) -> None:
    some = chain(
        fuzz.harmed_folders(place, 60, seed=1),
        inputs.data_files(36, seed=1),
        inputs.cell_texts(40, seed=1),
        inputs.python_values(50, seed=1),
        inputs.command_words(25, seed=1),
    )
    found = fuzz.count(some)
    assert found.tracebacks == []
    assert found.hangs == []
    assert found.memory < 1.5e9


def test_a_strangers_folder_runs_nothing_and_changes_nothing_outside(place: Path) -> None:
    found = strangers.attempts(place, every=25)
    assert found.attempts > 10
    assert found.successes == []


def test_shortages_are_said_and_cost_nothing(place: Path) -> None:
    found = [shortages.read_only(place), shortages.few_files(), shortages.clock(10**9), shortages.many_rows()]
    assert [fault for fault in found if fault.survived is False] == []


def test_two_processes_on_one_folder_mix_nothing_and_lose_nothing() -> None:
    found = hammer.hammer(6)
    assert found.wrong == []


@settings(max_examples=150, deadline=None, database=None)
@given(st.text() | st.binary().map(repr))
def test_any_text_is_a_cell_or_a_sentence(text: str) -> None:
    for read in (read_cells, load("nasbench201").parse, load("mlp").parse, load("darts").parse):
        with suppress(RequestError):
            read(text)


@settings(max_examples=150, deadline=None, database=None)
@given(st.binary())
def test_any_bytes_are_json_or_a_sentence(content: bytes) -> None:
    with suppress(RequestError):
        parse_json(content, "it")
