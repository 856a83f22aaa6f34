"""Published genotypes with `none`: read, drawn, counted, trained and exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from command import run
from nasight.anatomy import read_cells
from nasight.errors import RequestError
from nasight.export import ExportDesign, fitted, module_from, python_source, same_outputs
from nasight.spaces import load
from nasight.training import train

SPACE = load("darts")
# More of it than in any published cell, and a node that nothing reaches.
TEXT = (
    "Genotype(normal=[('sep_conv_5x5', 1), ('none', 0), ('sep_conv_3x3', 0), ('skip_connect', 2), "
    "('none', 1), ('none', 2), ('dil_conv_3x3', 4), ('sep_conv_3x3', 2)], normal_concat=range(2, 6), "
    "reduce=[('max_pool_3x3', 0), ('none', 1), ('sep_conv_3x3', 2), ('skip_connect', 0), "
    "('skip_connect', 1), ('none', 0), ('max_pool_3x3', 3), ('sep_conv_5x5', 1)], reduce_concat=range(2, 6))"
)
# ASHA200 of liamcli/gaea_release@1604615, which random search found.
PUBLISHED = (
    "Genotype(normal=[('skip_connect', 1), ('dil_conv_3x3', 0), ('sep_conv_3x3', 1), ('skip_connect', 0), "
    "('none', 1), ('max_pool_3x3', 0), ('skip_connect', 1), ('dil_conv_3x3', 0)], normal_concat=[2, 3, 4, 5], "
    "reduce=[('max_pool_3x3', 1), ('avg_pool_3x3', 0), ('sep_conv_5x5', 1), ('skip_connect', 2), "
    "('max_pool_3x3', 3), ('none', 1), ('skip_connect', 0), ('sep_conv_5x5', 4)], reduce_concat=[2, 3, 4, 5])"
)
SIZE = {"channels": 4, "cells": 5}


def test_it_is_read_and_its_text_is_read_back() -> None:
    arch = SPACE.parse(TEXT)
    assert arch["normal 0->2"] == "none"
    assert arch["normal 1->2"] == "sep_conv_5x5"
    assert SPACE.parse(SPACE.format(arch)) == arch
    assert SPACE.parse(SPACE.format(arch, style="json")) == arch
    assert arch not in SPACE


def test_a_node_of_none_alone_is_zero_and_the_others_are_sums_of_what_is_left() -> None:
    arch = SPACE.parse(TEXT)
    network = SPACE.network(arch, (3, 16, 16), 10, **SIZE).eval()
    cell = network.cells[0]
    x = torch.randn(2, 12, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        out = cell(x, x)
        node_2 = cell.operations[1](cell.inputs[1](x))
    assert torch.equal(out[:, :4], node_2)
    assert out[:, 8:12].abs().max() == 0


@pytest.mark.parametrize("text", [TEXT, PUBLISHED])
def test_none_adds_no_parameters(text: str) -> None:
    arch = SPACE.parse(text)
    counted = SPACE.parameters((3, 16, 16), 10, **SIZE)(arch)
    network = SPACE.network(arch, (3, 16, 16), 10, **SIZE)
    assert counted == sum(p.numel() for p in network.parameters())


@pytest.mark.slow
def test_its_drawing_leaves_none_and_what_reads_it_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = read_cells(TEXT)
    assert [len(design["normal"].into(node)) for node in range(2, 6)] == [1, 2, 0, 1]
    assert design.idle == 1
    assert design.architecture() == SPACE.parse(TEXT)
    assert run("cell", TEXT, "--out", str(tmp_path / "cell.svg"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["parameters"] > 0
    assert ">none<" not in (tmp_path / "cell.svg").read_text()


def test_it_is_trained_and_exported() -> None:
    size = {"channels": 4, "cells": 3}
    result = train(SPACE, TEXT, "digits", preset="tiny", epochs=1, examples=100, size=size)
    assert result.parameters > 0
    design = ExportDesign(SPACE, SPACE.parse(TEXT), (3, 16, 16), 10, size)
    mine, plain = design.network(), module_from(python_source(design))
    plain.load_state_dict(fitted(mine.state_dict(), plain))
    assert same_outputs(mine, plain, (3, 16, 16)) <= 1e-5


@pytest.mark.slow
def test_a_published_one_is_read_drawn_counted_and_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arch = SPACE.parse(PUBLISHED)
    design = read_cells(PUBLISHED)
    for kind in ("normal", "reduce"):
        assert [len(design[kind].into(node)) for node in range(2, 6)] == [2, 2, 1, 2]
    assert SPACE.parse(SPACE.format(arch)) == arch
    assert run("cell", PUBLISHED, "--out", str(tmp_path / "cell.svg")) == 0
    capsys.readouterr()
    assert ">none<" not in (tmp_path / "cell.svg").read_text()
    assert train(SPACE, PUBLISHED, "digits", preset="tiny", epochs=1, examples=100, size=SIZE).parameters > 0


def test_a_cell_cut_off_from_its_inputs_is_no_network() -> None:
    dead = TEXT.replace("('sep_conv_5x5', 1), ('none', 0)", "('none', 1), ('none', 0)").replace(
        "normal_concat=range(2, 6)", "normal_concat=[2]"
    )
    assert "no path of operations leads from the inputs of the normal cell" in str(SPACE.usable(SPACE.parse(dead)))
    with pytest.raises(RequestError, match="is not a network"):
        python_source(ExportDesign(SPACE, SPACE.parse(dead), (3, 16, 16), 10, SIZE))
