"""A model folder gives the trained network's answers, with nasight and without it, and runs no code of a stranger."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import nasight
from nasight.data import load as load_data
from nasight.data import prepare, read_image
from nasight.errors import RequestError, RunError
from nasight.spaces import load as load_space
from nasight.spaces.module import Choice
from nasight.studies import Model, load_model, trained_model, write_model
from nasight.training import load_trained, train

FAST: dict[str, Any] = {"preset": "tiny", "epochs": 1, "examples": 60}
CELL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
SPACES = {
    "mlp": ("relu,tanh,swish/1,0", {}),
    "nasbench201": (CELL, {"size": {"channels": 2, "cells": 1}}),
    "darts": ("DARTS_V2", {"size": {"channels": 2, "cells": 3}}),
}


def own() -> nn.Module:
    act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, name="act")
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), act, nn.Linear(16, 10))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished training on digits, with its model folder."""
    place = tmp_path_factory.mktemp("run") / "a"
    train("mlp", "relu,tanh,swish/1,0", "digits", out=place, **FAST)
    write_model(place / "model", trained_model(place))
    return place


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    """A copy of the model folder that a test may change."""
    shutil.copytree(run / "model", tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    about = json.loads((folder / "model.json").read_text())
    edit(about)
    (folder / "model.json").write_text(json.dumps(about))


def expected(place: Path, data: Any, **settings: Any) -> np.ndarray[Any, Any]:
    """The probabilities of the test rows by the training loop's own network and batches."""
    from nasight.training import parts, settings_for

    space = load_space(json.loads((place / "run.json").read_text())["space"])
    dataset = load_data(data)
    prepared = prepare(dataset, parts(dataset, settings_for(space, **settings))[0])
    (x, _), *rest = prepared.batches("test", size=1000)
    assert not rest
    with torch.no_grad():
        found: np.ndarray[Any, Any] = torch.softmax(load_trained(place)(x), 1).numpy()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_a_model_folder_answers_as_the_trained_network_does(name: str, tmp_path: Path) -> None:
    arch, more = SPACES[name]
    train(name, arch, "digits", out=tmp_path / "run", **FAST, **more)
    write_model(tmp_path / "model", trained_model(tmp_path / "run"))
    model, x = load_model(tmp_path / "model"), load_data("digits").test_x
    assert x is not None
    np.testing.assert_allclose(
        model.probabilities(x), expected(tmp_path / "run", "digits", **FAST, **more), rtol=1e-5, atol=1e-6
    )
    assert not model.network.training


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_one_shot_space_has_a_model(number: int, tmp_path: Path) -> None:
    space = load_space(f"nasbench1shot1-{number}")
    arch = space.format(space.reference)
    train(space, arch, "digits", out=tmp_path / "run", size={"channels": 2, "cells": 1}, **FAST)
    write_model(tmp_path / "model", trained_model(tmp_path / "run"))
    assert load_model(tmp_path / "model").probabilities(np.zeros((2, 8, 8), np.float32)).shape == (2, 10)


@pytest.mark.slow
def test_an_auxiliary_head_serves_training_and_is_not_in_the_model(tmp_path: Path) -> None:
    y = np.arange(24) % 2
    x = np.random.default_rng(0).integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    settings = {"preset": "tiny", "epochs": 1, "size": {"channels": 2, "cells": 3}, "auxiliary": True, "batch_size": 8}
    train("darts", "DARTS_V2", (x, y, x, y), out=tmp_path / "run", **settings)  # type: ignore[arg-type]
    write_model(tmp_path / "model", trained_model(tmp_path / "run"))
    (tmp_path / "run" / "inputs.json").unlink()  # as versions before 0.3 left a training
    with pytest.raises(RequestError, match="name it with --data"):
        trained_model(tmp_path / "run")
    assert trained_model(tmp_path / "run", (x, y, x, y)).card == load_model(tmp_path / "model").card
    model = load_model(tmp_path / "model")
    assert not any(name.startswith("auxiliary") for name in model.network.state_dict())
    np.testing.assert_allclose(
        model.probabilities(x), expected(tmp_path / "run", (x, y, x, y), **settings), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(RequestError, match="pixels 0 to 255, and x holds other numbers; give uint8"):
        model.probabilities(x / np.float32(255))


def test_the_card_says_what_the_network_is_and_how_good(run: Path) -> None:
    card, result = load_model(run).card, json.loads((run / "result.json").read_text())
    assert (card.accuracy, card.judged_by) == (result["accuracy"], "the test part")
    assert (card.inputs, card.classes) == ((1, 8, 8), tuple("0123456789"))
    assert (card.data.name, card.data.fingerprint) == ("digits", load_data("digits").fingerprint)
    assert (card.values.type, card.values.low, card.values.high) == ("float32", 0.0, 1.0)
    assert card.parameters == result["parameters"]
    assert card.multiply_adds == result["multiply_adds"] > 0


def test_a_training_without_a_model_folder_gives_the_same_model(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "tiny" / "seed-0", ignore=shutil.ignore_patterns("model"))
    x = load_data("digits").test_x
    assert x is not None
    wanted = nasight.load_model(run).probabilities(x)
    for place in (tmp_path / "tiny" / "seed-0", tmp_path / "tiny", tmp_path):
        np.testing.assert_array_equal(load_model(place).probabilities(x), wanted)


def test_examples_come_in_every_shape_that_data_has(run: Path) -> None:
    model, x = load_model(run), load_data("digits").test_x
    assert x is not None
    wanted = model.probabilities(x)
    for same in (x[:, 0], x.numpy(), x[:, 0, :, :, None], x.flatten(1), x[:, 0].tolist()):
        np.testing.assert_allclose(model.probabilities(same), wanted, atol=1e-6)
    np.testing.assert_array_equal(model.predict(x), np.array(model.classes)[wanted.argmax(1)])
    np.testing.assert_allclose(model.probabilities(x, batch_size=7), wanted, atol=1e-6)
    bytes_ = (x * 255).round().to(torch.uint8)
    np.testing.assert_allclose(model.probabilities(bytes_), model.probabilities(bytes_.float() / 255), atol=1e-6)
    assert model.probabilities(x[:0]).shape == (0, 10)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.zeros((2, 9, 8)), r"takes examples of shape \(1, 8, 8\), those of x are \(1, 9, 8\)"),
        (np.full((2, 8, 8), np.nan), "NaN or infinite value in row 0"),
        (np.zeros((2, 63)), "takes examples of shape"),
        ([["a"]], "must be an array of numbers"),
        (["no.png"], "there is no file no.png"),
    ],
)
def test_examples_that_do_not_fit_are_refused_in_one_sentence(run: Path, x: Any, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        load_model(run).probabilities(x)


def photos(folder: Path) -> list[Path]:
    """A digit in every kind of image file, of several sizes."""
    digit = load_data("digits").train_x[3, 0].numpy()
    gray = Image.fromarray((digit * 255).round().astype(np.uint8))
    large = gray.resize((40, 30))
    color = Image.merge("RGB", [large, large.point(lambda v: v // 2), large.rotate(90, expand=False)])
    alpha = color.copy()
    alpha.putalpha(large)
    deep = Image.fromarray(np.asarray(large).astype(np.uint16) * 257)
    kinds: dict[str, tuple[Image.Image, dict[str, Any]]] = {
        "exact.png": (gray, {}),
        "gray.jpg": (large, {}),
        "color.jpg": (color, {"quality": 90}),
        "color.webp": (color, {}),
        "alpha.png": (alpha, {}),
        "gray_alpha.png": (alpha.convert("LA"), {}),
        "palette.gif": (color.convert("P"), {}),
        "clear.png": (color.convert("P"), {"transparency": 3}),
        "deep.png": (deep, {}),
        "deep.tif": (deep, {}),
        "bits.png": (large.convert("1"), {}),
        "print.tif": (color.convert("CMYK"), {}),
    }
    for name, (image, how) in kinds.items():
        image.save(folder / name, **how)
    return sorted(folder / name for name in kinds)


def test_photos_of_every_kind_become_examples(run: Path, tmp_path: Path) -> None:
    files, model = photos(tmp_path), load_model(run)
    found = list(model.predictions(files, batch_size=5))
    assert [each.file for each in found] == [str(file) for file in files]
    np.testing.assert_allclose(sum(each.probabilities for each in found), model.probabilities(files).sum(0), atol=1e-5)
    exact = (load_data("digits").train_x[3:4] * 255).round() / 255
    np.testing.assert_allclose(model.probabilities(tmp_path / "exact.png"), model.probabilities(exact), atol=1e-6)
    # Sixteen bits and eight bits of the same picture are one picture.
    np.testing.assert_array_equal(
        read_image(tmp_path / "deep.png", (1, 30, 40)), read_image(tmp_path / "deep.tif", (1, 30, 40))
    )
    eight = Image.open(tmp_path / "deep.png")
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png", (1, 30, 40))[0], np.asarray(eight) // 257)


def test_an_image_of_the_right_size_has_the_pixels_that_a_training_sees(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, mode in (("a", "RGB"), ("b", "L"), ("c", "RGBA"), ("d", "P")):
        (tmp_path / name).mkdir()
        bands = Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8))
        bands.convert(mode).save(tmp_path / name / "x.png")
    data = load_data(tmp_path)
    for row, name in enumerate("abcd"):
        np.testing.assert_array_equal(read_image(tmp_path / name / "x.png", (3, 6, 5)), data.train_x[row].numpy())


def test_an_image_that_is_broken_is_named_and_the_others_go_on(run: Path, tmp_path: Path) -> None:
    good = photos(tmp_path)[:2]
    (tmp_path / "half.png").write_bytes((tmp_path / "alpha.png").read_bytes()[:90])
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("not a picture")
    Image.fromarray(np.full((8, 8), 0.5, np.float32)).save(tmp_path / "fractions.tif")
    bad = [tmp_path / name for name in ("half.png", "empty.jpg", "text.jpg", "fractions.tif", "missing.png")]
    failed = dict[str, str]()
    found = list(load_model(run).predictions([good[0], *bad, good[1]], failed=failed.__setitem__))
    assert [each.file for each in found] == [str(file) for file in good]
    assert list(failed) == [str(file) for file in bad]
    assert all("\n" not in why and str(file) in why for file, why in failed.items())
    with pytest.raises(RequestError, match=r"text\.jpg cannot be read as an image"):
        load_model(run).predict([good[0], tmp_path / "text.jpg"])


def test_files_are_read_when_their_batch_is_asked_for(run: Path, tmp_path: Path) -> None:
    (file, *_), asked = photos(tmp_path), list[int]()

    def files() -> Any:
        for number in range(1000):
            asked.append(number)
            yield file

    found = load_model(run).predictions(files(), batch_size=4)
    next(found)
    assert len(asked) == 4


def test_rows_of_npz_files_and_tables_are_examples(run: Path, tmp_path: Path) -> None:
    model, x = load_model(run), load_data("digits").test_x
    assert x is not None
    np.savez(tmp_path / "x.npz", x=x[:5], y=np.zeros(5))
    rows = "\n".join(",".join(f"{value:.4f}" for value in row) for row in x[:5].flatten(1).tolist())
    (tmp_path / "x.csv").write_text(",".join(f"p{i}" for i in range(64)) + f"\n{rows}\n")
    wanted = model.probabilities(x[:5])
    for name in ("x.npz", "x.csv"):
        found = list(model.predictions([tmp_path / name]))
        assert [each.row for each in found] == [0, 1, 2, 3, 4]
        np.testing.assert_allclose([each.probabilities for each in found], wanted, atol=1e-5)
    np.savez(tmp_path / "other.npz", images=x[:5])
    with pytest.raises(RequestError, match="lacks the array 'x'; it holds images"):
        model.predict(tmp_path / "other.npz")
    (tmp_path / "texts.csv").write_text("a,b\n1,red\n")
    with pytest.raises(RequestError, match=r"column 'b' of .* holds texts"):
        model.predict(tmp_path / "texts.csv")


ALONE = """
import sys
class Refuse:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "nasight":
            raise ImportError("nasight is not here")
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, {folder!r})
import numpy as np, predict
model = predict.load()
np.savez({out!r}, files=model.probabilities({files!r}), x=model.probabilities(np.load({x!r})["x"]))
predict.main([{files!r}[0], {x!r}])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nasbench201", "own module"])
def test_the_folder_alone_gives_the_same_probabilities_without_nasight(kind: str, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    files, place, x = photos(tmp_path / "photos"), tmp_path / "run", load_data("digits").test_x
    assert x is not None
    if kind == "own module":
        train(load_space(own), "act=tanh", "digits", out=place, **FAST)
        model = trained_model(place, space=own)
    else:
        train("nasbench201", CELL, "digits", out=place, **FAST, size={"channels": 4, "cells": 1})
        model = trained_model(place)
    write_model(tmp_path / "model", model)
    np.savez(tmp_path / "x.npz", x=x)
    words = {"out": str(tmp_path / "out.npz"), "x": str(tmp_path / "x.npz"), "files": [str(file) for file in files]}
    script = ALONE.format(folder=str(tmp_path / "model"), **words)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path)
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_allclose(found["files"], model.probabilities(files), rtol=0, atol=1e-5)
        np.testing.assert_allclose(found["x"], model.probabilities(x), rtol=0, atol=1e-5)
    lines = done.stdout.splitlines()
    assert lines[0] == "file,row,class,probability"
    assert len(lines) == 2 + len(x)


@pytest.mark.slow
def test_the_folder_alone_names_a_broken_file_and_goes_on_with_the_others(run: Path, tmp_path: Path) -> None:
    good = photos(tmp_path)[:2]
    (tmp_path / "half.png").write_bytes((tmp_path / "alpha.png").read_bytes()[:90])
    (tmp_path / "text.jpg").write_text("not a picture")
    (tmp_path / "bad.npz").write_text("no archive")
    bad = [tmp_path / name for name in ("half.png", "text.jpg", "bad.npz", "missing.png")]
    write_model(tmp_path / "model", load_model(run))
    words = [sys.executable, str(tmp_path / "model" / "predict.py"), *map(str, [good[0], *bad, good[1]])]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["file", *map(str, good)]
    told = done.stderr.splitlines()
    assert [line.partition(" cannot be read: ")[0] for line in told[:-1]] == [f"predict.py: {file}" for file in bad]
    assert told[-1] == "predict.py: 4 of 6 files cannot be read; the others are done"


def test_the_folder_alone_ends_quietly_when_nobody_reads_on(run: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "model", load_model(run))
    np.savez(tmp_path / "x.npz", x=np.zeros((20_000, 1, 8, 8), np.float32))
    words = [sys.executable, str(tmp_path / "model" / "predict.py"), str(tmp_path / "x.npz")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_a_module_of_one_s_own_is_kept_as_a_program_and_loaded_with_its_code_only(tmp_path: Path) -> None:
    train(load_space(own), "act=tanh", "digits", out=tmp_path / "run", **FAST)
    with pytest.raises(RequestError, match=r"code of its author \('module'\).* name it: --space"):
        trained_model(tmp_path / "run")
    model = trained_model(tmp_path / "run", space=own)
    write_model(tmp_path / "model", model)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["network"] == "network.pt2"
    assert about["why"].startswith("a network of your own module cannot be written as source")
    with pytest.raises(RequestError, match="if you trust it, name it: --space"):
        load_model(tmp_path / "model")
    x = load_data("digits").test_x
    found = load_model(tmp_path / "model", space=own)
    np.testing.assert_array_equal(found.probabilities(x), model.probabilities(x))


class Untraceable(nn.Module):
    """Torch cannot follow a branch on a value; a part called `auxiliary` is the module's own."""

    def __init__(self) -> None:
        super().__init__()
        self.auxiliary = nn.Linear(64, 10)
        self.act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, name="act")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.act(self.auxiliary(x.flatten(1)))
        return out if out.sum().item() > 0 else -out


@pytest.mark.slow
def test_a_module_that_torch_cannot_trace_is_kept_all_the_same_and_the_folder_says_why(tmp_path: Path) -> None:
    train(load_space(Untraceable), "act=relu", "digits", out=tmp_path / "run", **FAST)
    write_model(tmp_path / "model", trained_model(tmp_path / "run", space=Untraceable))
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["network"] is None
    assert "torch.export cannot trace this network" in about["why"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.json", "weights.safetensors"]
    model = load_model(tmp_path / "model", space=Untraceable)
    assert model.probabilities(np.zeros((2, 8, 8), np.float32)).shape == (2, 10)


def test_code_in_the_folder_of_a_stranger_is_not_run(copied: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    bomb = f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n"
    for name in ("network.py", "predict.py", "mine.py", "__init__.py", "torch.py", "safetensors.py"):
        (copied / name).write_text(bomb + "def build(): pass\n")
    (copied / "network.pt2").write_bytes(b"no program")
    load_model(copied).predict(np.zeros((1, 8, 8), np.float32))
    for space in (f"{copied}/mine.py:build", "mine.py:build", "__init__:build", "no such space"):
        change(copied, lambda about, space=space: about.update(space=space))  # type: ignore[misc]
        with pytest.raises(RequestError, match="if you trust it, name it"):
            load_model(copied)
    assert not ran.exists()


def test_code_that_a_stranger_s_training_names_is_not_run(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    (tmp_path / "mine.py").write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    about["space"] = f"{tmp_path}/mine.py:build"
    (tmp_path / "run" / "run.json").write_text(json.dumps(about))
    with pytest.raises(RequestError, match="if you trust it, name it"):
        load_model(tmp_path / "run")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda about: about.update(format=2), "is of format '2', and this version of nasight reads format 1"),
        (lambda about: about.pop("mean"), "lacks 'mean'"),
        (lambda about: about.update(code="import os"), "has 'code', which is unknown here"),
        (lambda about: about.update(inputs=[1, 10**9, 10**9]), "larger than 4,194,304 numbers"),
        (lambda about: about.update(inputs=[1, 8.5, 8]), r"inputs\.1"),
        (lambda about: about.update(inputs=[1, -8, 8]), r"inputs\.1' should be greater than or equal to 1, got -8"),
        (lambda about: about["size"].update(width=10**12), r"size\.width"),
        (lambda about: about["size"].update(width="__import__('os')"), r"size\.width"),
        (lambda about: about["size"].update(width=65536), "do not fit|cannot be built|network of"),
        (lambda about: about["size"].update(height=5), "has no size 'height'"),
        (lambda about: about.update(space_options={"layers": 10**9}), "layers is 1000000000, and at most 500"),
        (lambda about: about.update(space_options={"layers": [4]}), "space_options"),
        (lambda about: about.update(space_options={"depth": 4}), "does not take depth"),
        (lambda about: about.update(architecture="relu"), "expected a text like"),
        (lambda about: about.update(architecture="r" * 10**5), "architecture"),
        (lambda about: about.update(classes=["a"] * 10), "two classes are called 'a'"),
        (lambda about: about.update(classes=list("ab")), "do not fit"),
        (lambda about: about.update(mean=[0.0, 0.0]), "mean and std must have 1 numbers, got 2, 1"),
        (lambda about: about.update(std=[0.0]), r"std\.0"),
        (lambda about: about.update(std=[float("nan")]), r"std\.0"),
        (lambda about: about.update(tensors=about["tensors"][1:]), "tensors are not those that"),
        (lambda about: about.update(tensors=about["tensors"][::-1]), "do not fit"),
        (lambda about: about["files"].clear(), "its checksum is not the one"),
    ],
)
def test_a_card_that_is_wrong_is_refused_in_one_sentence(
    copied: Path, edit: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    change(copied, edit)
    with pytest.raises(RequestError, match=sentence) as raised:
        load_model(copied)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 10**6, b'{"format": 1' + b"0" * 10**4 + b"}"]
)
def test_a_damaged_card_is_refused_in_one_sentence(copied: Path, content: bytes) -> None:
    (copied / "model.json").write_bytes(content)
    with pytest.raises(RequestError, match=r"model\.json is damaged") as raised:
        load_model(copied)
    assert "\n" not in str(raised.value)


def test_damaged_weights_are_refused_in_one_sentence(copied: Path, tmp_path: Path) -> None:
    weights = copied / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + b"x")
    with pytest.raises(RequestError, match=r"its checksum is not the one in model\.json"):
        load_model(copied)
    for content in (b"", whole[:100], b"\xff" * 100, (10**15).to_bytes(8, "little") + b"{}"):
        weights.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        change(copied, lambda about, digest=digest: about["files"].update({weights.name: digest}))  # type: ignore[misc]
        with pytest.raises(RequestError, match=r"weights\.safetensors is damaged") as raised:
            load_model(copied)
        assert "\n" not in str(raised.value)
    with weights.open("wb") as file:
        file.truncate(10**12)  # sparse: it takes no room on disk, and must not be read
    with pytest.raises(RequestError, match="larger than the weights of its network"):
        load_model(copied)
    weights.unlink()
    with pytest.raises(RequestError, match=r"lacks weights\.safetensors"):
        load_model(copied)


def test_a_second_model_replaces_the_first_and_leaves_nothing_beside_it(run: Path, copied: Path) -> None:
    model = load_model(run)
    for number in (1, 2):
        assert write_model(copied, model) == copied, number
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]
    for name in ("model.json", "network.py", "predict.py", "weights.safetensors"):
        assert (copied / name).read_bytes() == (run / "model" / name).read_bytes()


@pytest.mark.parametrize("at", range(8))
def test_a_kill_while_a_model_is_replaced_leaves_a_whole_one(
    at: int, run: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends at the n-th file or move: nothing after it happens, not even the cleaning up."""
    model, calls = load_model(run), 0
    real = {name: getattr(os, name) for name in ("rename", "replace")}

    class Killed(BaseException):
        pass

    def dying(name: str) -> Callable[..., None]:
        def move(*paths: Any) -> None:
            nonlocal calls
            calls += 1
            if calls > at:
                raise Killed
            real[name](*paths)

        return move

    monkeypatch.setattr(Path, "rename", dying("rename"))
    monkeypatch.setattr(Path, "replace", dying("replace"))
    monkeypatch.setattr(shutil, "rmtree", lambda *args, **kwargs: None)
    try:
        write_model(copied, model)
    except Killed:
        assert at < 6
    monkeypatch.undo()
    x = np.zeros((1, 8, 8), np.float32)
    np.testing.assert_array_equal(load_model(copied).probabilities(x), model.probabilities(x))
    write_model(copied, model)
    assert load_model(copied.parent).folder == copied
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]


def test_nothing_but_a_model_is_overwritten_and_links_are_not_followed(run: Path, tmp_path: Path) -> None:
    model, other = load_model(run), tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(RequestError, match=r"holds 'thesis\.txt', which is no part of a model"):
        write_model(other, model)
    (tmp_path / "link").symlink_to(other)
    with pytest.raises(RequestError, match="is a link to elsewhere"):
        write_model(tmp_path / "link", model)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.safetensors").symlink_to(other / "thesis.txt")
    write_model(tmp_path / "model", model)
    assert (other / "thesis.txt").read_text() == "years of work"
    assert not (tmp_path / "model" / "weights.safetensors").is_symlink()
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="is a file; name a folder"):
        write_model(tmp_path / "file", model)
    with pytest.raises(RunError, match="cannot write"):
        write_model(tmp_path / "file" / "model", model)


def test_a_folder_without_a_model_or_a_finished_training_says_so(tmp_path: Path, run: Path) -> None:
    with pytest.raises(RequestError, match="there is no folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(RequestError, match="holds no model and no finished training"):
        load_model(tmp_path)
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("model", "result.json"))
    with pytest.raises(RequestError, match="is not finished"):
        load_model(tmp_path / "run")


def test_numbers_that_are_no_pixels_do_not_take_photos(tmp_path: Path) -> None:
    y = np.arange(40) % 2
    x = np.random.default_rng(0).normal(size=(40, 8, 8)) + y[:, None, None]
    train("mlp", "relu,relu,relu/0,0", (x, y), out=tmp_path / "run", **FAST)
    model: Model = trained_model(tmp_path / "run", (x, y))
    (file, *_) = photos(tmp_path)
    with pytest.raises(RequestError, match="which are no pixels"):
        model.predict(file)
    with pytest.raises(RequestError, match="on other data"):
        trained_model(tmp_path / "run", (x + 1, y))


def test_vectors_are_classified_too(tmp_path: Path) -> None:
    y = np.arange(60) % 3
    x = np.random.default_rng(0).normal(size=(60, 5)) + 3 * y[:, None]
    train("mlp", "relu,relu,relu/0,0", (x, y), out=tmp_path / "run", **FAST)
    write_model(tmp_path / "model", trained_model(tmp_path / "run", (x, y)))
    model = load_model(tmp_path / "model")
    assert set(model.predict(x)) <= {"0", "1", "2"}
    with pytest.raises(RequestError, match=r"takes rows of 5 numbers, and a\.png is no \.npz or table"):
        model.predict("a.png")
