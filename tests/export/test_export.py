"""Written files: they compute what nasight's networks compute, alone, and read well."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from command import run
from nasight.errors import RequestError, RunError
from nasight.export import ExportDesign, fitted, module_from, python_source, same_outputs, to_torch_export
from nasight.spaces import load
from nasight.spaces.module import Choice, ModuleSpace
from nasight.training import train

SIZES: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "nasbench201": ((3, 9, 11), {"channels": 4, "cells": 1}),
    "darts": ((3, 11, 9), {"channels": 4, "cells": 4}),
    "nasbench1shot1-1": ((1, 9, 9), {"channels": 4, "cells": 1}),
    "nasbench1shot1-2": ((1, 8, 8), {"channels": 4, "cells": 2}),
    "nasbench1shot1-3": ((2, 8, 8), {"channels": 4, "cells": 1}),
    "mlp": ((1, 6, 6), {"width": 12}),
}


def disturbed(network: nn.Module) -> nn.Module:
    """Batch norms as after training: nothing about them is 0 or 1."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                for value in (module.weight, module.bias, module.running_mean, module.running_var):
                    assert value is not None
                    value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    return network.eval()


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(SIZES)), st.integers(0, 2**31))
def test_a_written_network_computes_what_nasight_s_does_for_any_architecture(name: str, seed: int) -> None:
    space, (inputs, size) = load(name), SIZES[name]
    arch = space.sample(torch.Generator().manual_seed(seed))
    if space.usable(arch) is not None:
        return
    design = ExportDesign(space, arch, inputs, 5, size)
    network, plain = disturbed(design.network()), module_from(python_source(design))
    plain.load_state_dict(fitted(network.state_dict(), plain))
    assert same_outputs(network, plain, inputs) < 1e-5
    assert sum(p.numel() for p in plain.parameters()) == sum(p.numel() for p in network.parameters())


def test_a_wrong_wire_is_noticed() -> None:
    space = load("nasbench201")
    text = "|nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|nor_conv_3x3~2|"
    design = ExportDesign(space, space.parse(text), (3, 8, 8), 5, {"channels": 4, "cells": 1})
    network, source = disturbed(design.network()), python_source(design)
    wrong = module_from(source.replace("avg_pool(x1)", "avg_pool(x2)"))
    wrong.load_state_dict(fitted(network.state_dict(), wrong))
    with pytest.raises(RunError, match="differs from nasight's by"):
        same_outputs(network, wrong, (3, 8, 8))


def test_weights_trained_with_an_auxiliary_head_fit_without_it() -> None:
    space = load("darts")
    design = ExportDesign(space, space.parse("DARTS_V1"), (3, 32, 32), 10, {"channels": 4, "cells": 3})
    network = disturbed(space.network(design.arch, (3, 32, 32), 10, auxiliary=True, channels=4, cells=3))
    plain = module_from(python_source(design))
    plain.load_state_dict(fitted(network.state_dict(), plain))
    assert same_outputs(network, plain, (3, 32, 32)) < 1e-5


@pytest.mark.slow
def test_a_search_over_one_s_own_file_is_exported_as_a_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "from nasight import Choice\n"
        "def build():\n"
        "    act = Choice({'relu': nn.ReLU(), 'tanh': nn.Tanh()})\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), act, nn.Linear(16, 10))\n"
    )
    arguments = ["--space", f"{tmp_path / 'mine.py'}:build", "--data", "digits", "--epochs", "1", "--threads", "1"]
    assert run("search", *arguments, "--preset", "tiny", "--out", str(tmp_path / "r")) == 0
    assert run("export", str(tmp_path / "r"), *arguments[:2], "--torch-export", str(tmp_path / "n.pt2")) == 0
    assert torch.export.load(tmp_path / "n.pt2").module()(torch.zeros(3, 1, 8, 8)).shape == (3, 10)
    capsys.readouterr()
    assert run("export", str(tmp_path / "r"), *arguments[:2], "--python", str(tmp_path / "n.py")) == 2
    assert "take --torch-export net.pt2 instead" in capsys.readouterr().err
    assert not (tmp_path / "n.py").exists()


@pytest.mark.parametrize("cell", ["DARTS_V2", "NASNet", "AmoebaNet"])
def test_published_cells_are_written_too(cell: str) -> None:
    space = load("darts")
    design = ExportDesign(space, space.parse(cell), (3, 16, 16), 10, {"channels": 4, "cells": 3})
    network, plain = disturbed(design.network()), module_from(python_source(design))
    plain.load_state_dict(fitted(network.state_dict(), plain))
    assert same_outputs(network, plain, (3, 16, 16)) < 1e-5


@pytest.mark.parametrize("options", [{"layers": 2}, {"layers": 3, "parametrization": "ntk", "scale_inputs": True}])
def test_both_forms_of_a_fully_connected_network_are_written(options: dict[str, Any]) -> None:
    space = load("mlp", **options)
    for seed in range(6):
        design = ExportDesign(space, space.sample(torch.Generator().manual_seed(seed)), (7,), 3, {"width": 5})
        network, plain = design.network(), module_from(python_source(design))
        plain.load_state_dict(fitted(network.state_dict(), plain))
        assert same_outputs(network, plain, (7,)) < 1e-5


def test_written_files_pass_ruff_and_name_no_nasight_import(tmp_path: Path) -> None:
    for name, (inputs, size) in SIZES.items():
        space = load(name)
        for seed in range(8):
            arch = space.sample(torch.Generator().manual_seed(seed))
            if space.usable(arch) is None:
                source = python_source(
                    ExportDesign(space, arch, inputs, 5, size), weights="w.pt", statistics=([0.5], [1.0])
                )
                (tmp_path / f"{name}_{seed}.py").write_text(source)
                assert "import nasight" not in source
                assert "from nasight" not in source
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", str(tmp_path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


ALONE = """
import sys
class Refuse:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "nasight":
            raise ImportError("nasight is not here")
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, {folder!r})
import torch, net
network = net.load()
x = torch.load({x!r}, weights_only=True)
torch.save(network(net.prepare(x)).detach(), {out!r})
"""


@pytest.mark.slow
def test_a_trained_run_s_file_runs_without_nasight_and_gives_the_same_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from nasight.data import load as load_data
    from nasight.training import load_trained

    fast = ["--data", "digits", "--preset", "tiny", "--examples", "200", "--epochs", "1", "--threads", "1"]
    folder, file = tmp_path / "run", tmp_path / "net.py"
    assert run("search", *fast, "--channels", "4", "--out", str(folder)) == 0
    assert run("export", str(folder), "--python", str(tmp_path / "untrained.py")) == 0
    assert "not trained" in capsys.readouterr().out
    assert (
        run(
            "train",
            str(folder),
            "--preset",
            "tiny",
            "--seeds",
            "1",
            "--epochs",
            "1",
            "--examples",
            "100",
            "--workers",
            "1",
        )
        == 0
    )
    capsys.readouterr()
    assert run("export", str(folder), "--python", str(file), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["trained"]
    assert said["weights"] == str(tmp_path / "net.pt")

    (trained,) = folder.glob("train/*/seed-0")
    data = load_data("digits")
    assert data.test_x is not None
    assert data.test_y is not None
    x = data.test_x.float() / (255 if data.test_x.dtype == torch.uint8 else 1)
    torch.save(x, tmp_path / "x.pt")
    script = ALONE.format(folder=str(tmp_path), x=str(tmp_path / "x.pt"), out=str(tmp_path / "y.pt"))
    subprocess.run([sys.executable, "-I", "-c", script], check=True)
    found = torch.load(tmp_path / "y.pt", weights_only=True)
    # With the file's own normalization the accuracy is the one that training reported.
    reported = json.loads((trained / "result.json").read_text())["accuracy"]
    assert 100 * float((found.argmax(1) == data.test_y).double().mean()) == pytest.approx(reported)
    names: dict[str, Any] = {"__name__": "net", "__file__": str(file)}
    exec(file.read_text(), names)
    with torch.no_grad():
        expected = load_trained(trained, space=load("nasbench201"))(names["prepare"](x))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    shown = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, check=True).stdout
    counted = json.loads((trained / "result.json").read_text())["multiply_adds"]
    assert counted > said["parameters"]
    assert shown == f"{said['parameters']:,} parameters, {counted:,} multiply-adds per example, output (2, 10)\n"
    assert run("export", str(trained), "--torch-export", str(tmp_path / "net.pt2")) == 0
    loaded = torch.export.load(tmp_path / "net.pt2").module()
    torch.testing.assert_close(loaded(names["prepare"](x)), expected, rtol=1e-5, atol=1e-5)


def test_a_module_of_one_s_own_goes_through_torch_export_and_is_refused_as_source(tmp_path: Path) -> None:
    space = ModuleSpace(lambda: nn.Sequential(nn.Linear(4, 8), Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})))
    design = ExportDesign(space, space.parse("1=tanh"), (4,))
    with pytest.raises(RequestError, match=r"cannot be written as source.*--torch-export"):
        python_source(design)
    assert to_torch_export(design.network(), (4,), tmp_path / "net.pt2") < 1e-5
    assert torch.export.load(tmp_path / "net.pt2").module()(torch.zeros(7, 4)).shape == (7, 8)


def test_the_genotype_is_what_other_tools_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "--space", "darts", "--arch", "DARTS_V1", "--genotype") == 0
    shown = capsys.readouterr().out.strip()
    assert shown.startswith("Genotype(normal=[('sep_conv_3x3'")
    assert load("darts").parse(shown) == load("darts").parse("DARTS_V1")


def test_without_its_packages_onnx_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    place = ["--inputs", "8", "--onnx", str(tmp_path / "n.onnx")]
    assert run("export", "--space", "mlp", "--arch", "relu,relu,relu/0,0", *place) == 2
    assert "ONNX needs the packages onnx and onnxscript: pip install onnx onnxscript" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "arch", "inputs"),
    [
        ("mlp", "relu,tanh,swish/0,1", "8"),
        (
            "nasbench201",
            "|nor_conv_3x3~0|+|skip_connect~0|avg_pool_3x3~1|+|none~0|nor_conv_1x1~1|nor_conv_3x3~2|",
            "3,9,9",
        ),
    ],
)
def test_an_onnx_file_computes_what_the_network_does(
    space: str, arch: str, inputs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    size = [] if space == "mlp" else ["--channels", "4", "--cells", "1"]
    place = tmp_path / "n.onnx"
    assert (
        run("export", "--space", space, "--arch", arch, "--inputs", inputs, *size, "--onnx", str(place), "--json") == 0
    )
    assert json.loads(capsys.readouterr().out)["difference"] <= 1e-5
    assert place.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--space", "mlp", "--arch", "relu,relu,relu/0,0"], "say what to export"),
        (["--python", "n.py"], "a RUN, or --space and --arch is missing"),
        (["nowhere", "--python", "n.py"], "nowhere is not a run"),
        (["--space", "darts", "--arch", "DARTS_V2", "--python", "no/such/n.py"], "there is no folder 'no/such'"),
        (
            ["--space", "darts", "--arch", "DARTS_V2", "--python", "n.py", "--inputs", "3,x"],
            "such as 3,32,32, got '3,x'",
        ),
        (["--space", "nasbench201", "--arch", "|none~0|", "--genotype"], "has 3 parts"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("export", *arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda about, code: about["data"].update(inputs=[1, code, 8]),
        lambda about, code: about["settings"].update(max_params=10**9, params_size={"channels": code, "cells": 1}),
    ],
)
def test_code_in_the_file_of_a_strangers_run_is_refused_and_not_run(
    change: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--preset", "tiny", "--examples", "120", "--epochs", "1", "--channels", "2", "--threads", "1"]
    assert run("search", "--data", "digits", *tiny, "--out", str(tmp_path / "run")) == 0
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    ran = tmp_path / "ran"
    change(about, f"__import__('pathlib').Path({str(ran)!r}).touch()")
    (tmp_path / "run" / "run.json").write_text(json.dumps(about))
    capsys.readouterr()
    assert run("export", str(tmp_path / "run"), "--python", str(tmp_path / "net.py")) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not ran.exists()
    assert not (tmp_path / "net.py").exists()


def test_a_training_of_a_space_with_options_is_exported_by_its_own_folder(tmp_path: Path) -> None:
    place = tmp_path / "seed-0"
    train(load("mlp", layers=3), "relu,tanh/1", "digits", preset="tiny", epochs=1, examples=60, out=place)
    assert run("export", str(place), "--python", str(tmp_path / "net.py")) == 0


def test_inputs_that_a_network_does_not_take_are_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "from torch import nn\nfrom nasight import Choice\n"
        "def build():\n    act = Choice({'relu': nn.ReLU(), 'tanh': nn.Tanh()})\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4), act, nn.Linear(4, 10))\n"
    )
    words = ("--space", f"{tmp_path / 'own.py'}:build", "--arch", "2=relu", "--inputs", "3,32,32")
    assert run("export", *words, "--torch-export", str(tmp_path / "n.pt2")) == 2
    assert "does not take inputs of shape (3, 32, 32)" in capsys.readouterr().err
    assert run("export", "--space", "mlp", "--arch", "relu,relu,relu/0,0", "--classes", "0", "--python", "n.py") == 2
