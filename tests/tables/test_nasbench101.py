"""NAS-Bench-101: files written by Google's protobuf and a bitwise checksum, read back by ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import record_file
from hypothesis import given, settings
from hypothesis import strategies as st

from command import run
from nasight.errors import RequestError
from nasight.spaces import load as load_space
from nasight.tables import Module, ModuleTable, load, race
from nasight.tables._module_size import ModuleSize
from nasight.tables._records import fields, masked_crc32c

OFFICIAL = "conv3x3-bn-relu(0)|maxpool3x3(1)|conv3x3-bn-relu(2)|conv3x3-bn-relu(0)|conv1x1-bn-relu(0+3+4)|out(2+5)"


def shot_cells(count: int) -> list[str]:
    """Cells of the first 1Shot1 space whose nodes all lead to the output, no two alike up to the order of nodes."""
    space, rng, found = load_space("nasbench1shot1-1"), np.random.default_rng(0), dict[str, str]()
    while len(found) < count:
        choices = {d.name: str(rng.choice(d.options)) for d in space.decisions}
        text = space.format(space.architecture(choices))
        module = Module.parse(text)
        if module.pruned() == module:
            found.setdefault(module.hash(), text)
    return list(found.values())


@pytest.fixture(scope="module")
def shots() -> list[str]:
    return shot_cells(20)


@pytest.fixture(scope="module")
def cells(shots: list[str]) -> list[tuple[np.ndarray, list[str]]]:
    """200 different ones: 20 of 1Shot1's first space, the rest any."""
    return record_file.cells_with(shots)


@pytest.fixture(scope="module")
def path(cells: list[tuple[np.ndarray, list[str]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("nb101") / "nasbench_full.tfrecord"
    record_file.write(file, cells)
    return file


@pytest.fixture(scope="module")
def table(path: Path) -> ModuleTable:
    found = load(path)
    assert isinstance(found, ModuleTable)
    return found


def test_the_hash_is_the_benchmarks_own() -> None:
    """The first key of the official file, with the cell and the 9 edges that it stands for there."""
    module = Module.parse(OFFICIAL)
    assert (module.hash(), module.edges) == ("00005c142e6f48ac74fdcf73e3439874", 9)


INCEPTION = "conv1x1-bn-relu(0)|conv3x3-bn-relu(0)|conv3x3-bn-relu(0)|conv3x3-bn-relu(3)|maxpool3x3(0)|out(1+2+4+5)"


@pytest.mark.parametrize(
    ("text", "parameters", "multiply_adds"),
    [
        # Parameters as the official file has them: those of its first key, and of the cell that its README queries.
        (OFFICIAL, 8_555_530, 1_261_835_264),
        (INCEPTION, 2_694_282, 402_002_944),
        # By hand: a stem, nine 1x1 projections, a layer.
        (
            "out(0)",
            27 * 128 + 256
            + 3 * 128**2 + 128 * 256 + 2 * 256**2 + 256 * 512 + 2 * 512**2 + 2 * 3 * (128 + 256 + 512)
            + 5130,
            1024 * (27 * 128 + 3 * 128**2) + 256 * (128 * 256 + 2 * 256**2) + 64 * (256 * 512 + 2 * 512**2) + 5120,
        ),
    ],
)  # fmt: skip
def test_sizes_are_those_of_the_benchmarks_networks(text: str, parameters: int, multiply_adds: int) -> None:
    module = Module.parse(text).pruned()
    assert module is not None
    assert ModuleSize.of(module) == ModuleSize(parameters, multiply_adds)


def test_multiply_adds_are_told_where_the_parameters_are_those_of_the_benchmarks_network() -> None:
    cells = sorted((Module.parse(text) for text in (OFFICIAL, INCEPTION)), key=Module.hash)
    parameters = [ModuleSize.of(cells[0]).parameters, 7]
    arrays = {
        "hashes": np.array([cell.hash().encode() for cell in cells]), "texts": np.array([cell.text for cell in cells]),
        "params_M": np.array(parameters) / 1e6, "c10_test108": np.array([90.0, 91.0]),
    }  # fmt: skip
    found = ModuleTable(arrays, name="two", source="here")
    assert [found.multiply_adds(place) for place in (0, 1)] == [ModuleSize.of(cells[0]).multiply_adds, None]


def test_the_checksum_of_the_digits_is_the_published_one() -> None:
    assert record_file.checksum(b"123456789") == int(masked_crc32c([b"123456789"])[0])
    crc = 0xE3069283  # CRC-32C of "123456789" in every catalog of checksums
    assert int(masked_crc32c([b"123456789"])[0]) == ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) % 2**32


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6))
def test_checksums_of_many_contents_are_those_of_each(contents: list[bytes]) -> None:
    assert masked_crc32c(contents).tolist() == [record_file.checksum(content) for content in contents]


@pytest.mark.slow
def test_200_cells_are_read_back_as_they_were_written(
    table: ModuleTable, cells: list[tuple[np.ndarray, list[str]]]
) -> None:
    assert (len(table), table.lengths) == (200, (4, 12, 36, 108))
    for number, (matrix, operations) in enumerate(cells):
        place = table.index(json.dumps({"matrix": matrix.tolist(), "ops": operations}))
        assert table.canonical(place) == record_file.graph_hash(matrix, operations)
        assert table.columns["params_M"][place] == pytest.approx((1000 * number + 7) / 1e6)
        for epochs in table.lengths:
            given = np.array([record_file.accuracies(number, epochs, repeat) for repeat in range(3)])
            assert table.columns[f"c10_val{epochs}"][place] == pytest.approx(100 * given[:, 0].mean(), abs=1e-9)
            assert table.columns[f"c10_val{epochs}_std"][place] == pytest.approx(100 * given[:, 0].std(), abs=1e-9)
            assert table.columns[f"c10_test{epochs}"][place] == pytest.approx(100 * given[:, 1].mean(), abs=1e-9)
            assert table.columns[f"c10_traintime{epochs}_s"][place] == pytest.approx(given[:, 2].mean())


@pytest.mark.slow
def test_what_was_read_once_is_kept_until_the_file_changes(path: Path, table: ModuleTable, tmp_path: Path) -> None:
    assert path.with_name(f"{path.name}.npz").is_file()
    assert load(path).fingerprint == table.fingerprint
    shorter = tmp_path / path.name
    record_file.write(shorter, record_file.random_cells(3), lengths=(108,), repeats=1)
    assert load(shorter).lengths == (108,)
    record_file.write(shorter, record_file.random_cells(4, seed=5), lengths=(108,), repeats=1)
    assert len(load(shorter)) == 4


@pytest.mark.slow
def test_cells_are_found_in_any_order_of_their_nodes_and_with_idle_ones(table: ModuleTable, shots: list[str]) -> None:
    twice = "maxpool3x3(0)|conv3x3-bn-relu(0)|out(1+2)"
    other = "conv3x3-bn-relu(0)|maxpool3x3(0)|conv1x1-bn-relu(2)|out(1+2)"
    assert Module.parse(twice).hash() == Module.parse(other).pruned().hash()  # type: ignore[union-attr]
    arch = load_space("nasbench1shot1-1").parse(shots[3])
    assert table.index(arch) == table.index(shots[3])
    with pytest.raises(RequestError, match="no path leads"):
        table.index("conv3x3-bn-relu()|out(1)")
    with pytest.raises(RequestError, match=r"does not list .* its hash 00005c142e6f48ac"):
        table.index(OFFICIAL)


@pytest.mark.slow
def test_a_race_finds_better_cells_than_a_draw_and_the_same_ones_again(table: ModuleTable) -> None:
    asked = {"table": table, "budget": 20_000.0, "trials": 6, "workers": 1}
    found = race(["rs", "rea", "hyperband", "sh"], **asked)  # type: ignore[arg-type]
    assert found == race(["rs", "rea", "hyperband", "sh"], **asked)  # type: ignore[arg-type]
    mean = table.columns["c10_test108"].mean()
    assert all(mean < standing.test["c10"][0] <= table.optimum("c10") for standing in found.standings)
    assert found.standings[0].published == {}
    with pytest.raises(RequestError, match="reinforce learns a distribution"):
        race(["reinforce"], **asked)  # type: ignore[arg-type]


def spoiled(content: bytes, how: str) -> bytes:
    if how == "flipped":
        return content[:40] + bytes([content[40] ^ 1]) + content[41:]
    return content[:-3] if how == "cut" else b"\xff" * 100


@pytest.mark.parametrize(
    ("how", "says"),
    [("flipped", "record 1: the checksum of its content"), ("cut", "record 3: it ends after"), ("junk", "no length")],
)
def test_damage_is_refused_with_the_number_of_the_record(how: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "a.tfrecord"
    record_file.write(file, record_file.random_cells(3), lengths=(108,), repeats=1)
    file.write_bytes(spoiled(file.read_bytes(), how))
    with pytest.raises(RequestError, match=says):
        load(file)


def test_a_message_that_ends_early_is_refused() -> None:
    with pytest.raises(ValueError, match="inside a number"):
        list(fields(b"\x80"))
    with pytest.raises(ValueError, match="longer than the message"):
        list(fields(b"\x0a\x05ab"))


def test_without_the_file_one_sentence_says_where_its_owner_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["table", "query", OFFICIAL, "--table", "nasbench101", "--folder", str(tmp_path)]
    assert run(*asked) == 2
    shown = capsys.readouterr().err
    assert "https://storage.googleapis.com/nasbench/nasbench_only108.tfrecord" in shown
    assert shown.count("\n") == 1


@pytest.mark.slow
def test_the_command_queries_and_races(
    path: Path, table: ModuleTable, shots: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["--table", "nasbench101", "--folder", str(path.parent), "--json"]
    assert run("table", "query", shots[0], *source) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["of"], row["datasets"]["c10"]["test108"]) == (200, table.columns["c10_test108"][table.index(shots[0])])
    assert run("table", "race", "--budget", "20000s", "--trials", "2", "--processes", "1", *source) == 0
    assert [s["name"] for s in json.loads(capsys.readouterr().out)["standings"]] == ["rs", "rea", "hyperband"]


@pytest.mark.slow
def test_the_regret_of_a_search_is_the_best_of_its_space_less_each_proposal(
    shots: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All cells of this file are of the space, so the best of the space is the best of the file."""
    file = tmp_path / "shots.tfrecord"
    record_file.write(file, [record_file.cell_of_text(text) for text in shots], lengths=(108,), repeats=1)
    small = ["--preset", "tiny", "--epochs", "3", "--examples", "60", "--channels", "2", "--out", str(tmp_path / "r")]
    assert run("search", "--space", "nasbench1shot1-1", "--method", "gaea-darts", "--data", "digits", *small) == 0
    history = tmp_path / "r" / "history.jsonl"
    rows = [json.loads(line) for line in history.read_text().splitlines()]
    for row, text in zip(rows, (shots[0], OFFICIAL, shots[1]), strict=True):
        row["architecture"] = text  # two proposals that the small file lists, and one that it does not
    history.write_text("".join(json.dumps(row) + "\n" for row in rows))
    state = json.loads((tmp_path / "r" / "state.json").read_text())
    state.pop("history", None)  # its checksum is that of the search's own proposals
    (tmp_path / "r" / "state.json").write_text(json.dumps(state))
    capsys.readouterr()
    asked = ["--table", str(file), "--out", str(tmp_path / "r.svg"), "--json"]
    assert run("table", "regret", str(tmp_path / "r"), *asked) == 0
    found = json.loads(capsys.readouterr().out)
    (curve,) = found["curves"]
    tests = [100 * record_file.accuracies(number, 108, 0)[1] for number in range(len(shots))]
    assert found["optimum"] == {"nasbench1shot1-1": pytest.approx(max(tests))}
    assert (curve["epochs"], curve["missing"]) == ([0, 2], 1)
    assert curve["mean"] == pytest.approx([max(tests) - tests[0], max(tests) - tests[1]])
    assert "<svg" in (tmp_path / "r.svg").read_text()
