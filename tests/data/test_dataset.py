"""What a data set promises, and the sentence each broken promise gets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from nasight.data import EARLIER, Augment, Dataset, augment_text, load, read_augment
from nasight.errors import RequestError

X = np.zeros((4, 6, 6), np.uint8)
Y = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ((X, np.zeros(4, int)), "one class only"),
        ((np.full((4, 5), np.nan), Y), "NaN or infinite value in row 0"),
        ((np.array([[0.0], [0.0], [np.inf], [0.0]]), Y), "NaN or infinite value in row 2"),
        ((np.full((4, 5), 1e300), Y), "NaN or infinite"),
        ((X, [0, 1, float("nan"), 1]), "the label of row 2 in y is missing or infinite"),
        ((X, [0.5, 1, 2, float("inf")]), "the label of row 3 in y is missing or infinite"),
        ((X, ["a", "b", None, "a"]), "the label of row 2 in y is missing"),
        ((X, ["a", "a", "a", "a"]), "one class only"),
        ((X, ["a", "b", "a", "b"], X, ["a", "b", "c", "a"]), "y_test has the class 'c', which y lacks"),
        ((X, [0.5, 0.5, 0.5, 0.5]), "is 0.5 in all training rows"),
        ((X, [[1, 1], [1, 0], [1, 1], [1, 0]]), "the label '0' .* is 1 in all training rows"),
        ((X, [[0.5, 1], [1, 2], [1, 3], [1, 0]], X, [0.5, 1, 2, 3]), "y has 2 columns, y_test 1"),
        ((X, [["a"], ["a", "b"], [], ["b"]], X, [["c"], [], [], []]), "there is a label 'c'"),
        ((np.zeros((4, 3, 128)), Y), r"looks like series of 3 channels .* vectors \(4, 384\) .* \(4, 1, 3, 128\)"),
        ((X, np.zeros((4, 2, 2))), r"a label or a row of them for every example, got shape \(4, 2, 2\)"),
        ((X, [0, 1, 0]), "4 examples but 3 labels"),
        ((X[:0], []), "is empty"),
        ((np.zeros((4, 1, 0, 6)), Y), "is empty"),
        ((np.zeros((1001, 2)), np.arange(1001)), "at most 1000 classes"),
        ((np.zeros((4, 1, 2, 3, 3)), Y), r"got shape \(4, 1, 2, 3, 3\)"),
        ((np.zeros(4), Y), r"got shape \(4,\)"),
        ((np.zeros((4, 2), complex), Y), "real numbers"),
        (([[1, 2], [3]], [0, 1]), "rows of different lengths"),
        ((X, Y, X), "got 3 arrays"),
        ((X, Y, X[:, :5], Y), r"test examples are torch.uint8 of shape \(1, 5, 6\)"),
        ((X, Y, X / 255, Y), "test examples are torch.float32"),
        ((X, Y, X, [0, 1, 2, 0]), "label 2, but training knows classes 0 to 1"),
        (7, "got a int"),
    ],
)
def test_broken_data_is_refused_in_one_sentence(arrays: object, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence) as caught:
        load(arrays)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert re.search(r"\.\s", str(caught.value)) is None


def test_half_a_test_part_is_refused() -> None:
    x, y = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])
    with pytest.raises(RequestError, match="its labels are missing"):
        Dataset("half", x, y, x, None, ("a", "b"), "here")


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ((4, 8, 9), (1, 8, 9)),
        ((4, 8, 9, 3), (3, 8, 9)),
        ((4, 8, 9, 1), (1, 8, 9)),
        ((4, 3, 8, 9), (3, 8, 9)),
        ((4, 3, 8, 3), (3, 8, 3)),
        ((4, 5, 8, 9), (5, 8, 9)),
        ((4, 16, 1, 1), (16, 1, 1)),
        ((4, 7), (7,)),
    ],
)
def test_an_axis_of_channels_is_added_or_moved_where_its_place_is_clear(
    given: tuple[int, ...], inputs: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).integers(0, 256, given, dtype=np.uint8)
    data = load((x, Y))
    assert data.inputs == inputs
    assert data.train_x.dtype == (torch.uint8 if len(inputs) == 3 else torch.float32)
    assert data.train_x.long().sum() == x.sum(dtype=np.int64)
    if given[-1] in (1, 3) and inputs[0] == given[-1] and given[1] > 3:
        assert (data.train_x[2, :, 1, 4].numpy() == x[2, 1, 4]).all()


@pytest.mark.parametrize("kind", ["uint8", ">f8", "<i2", "f2", "bool", "uint16", "i8", "longdouble"])
def test_any_type_of_numbers_and_any_memory_layout_is_read(kind: str) -> None:
    x = (np.arange(4 * 6 * 6).reshape(4, 6, 6) % 2).astype(kind)[:, ::-1]
    x.flags.writeable = False
    data = load((x, Y.astype("u1")))
    assert data.train_x[:, 0].double().tolist() == x.astype(float).tolist()


def test_a_data_set_does_not_follow_later_changes_of_the_callers_array() -> None:
    for x in (np.ones((4, 3), np.float32), torch.ones(4, 3)):
        data = load((x, Y))
        x[:] = 5
        assert (data.train_x == 1).all()


def test_equal_content_has_one_fingerprint_and_a_changed_pixel_type_or_shape_another() -> None:
    changed = X.copy()
    changed[3, 5, 5] = 1
    prints = [
        load(arrays).fingerprint
        for arrays in (
            (X, Y),
            (changed, Y),
            (X.astype(np.float32), Y),
            (X.reshape(4, 4, 9), Y),
            (X, 1 - Y),
            (X, Y, X, Y),
        )
    ]
    assert len(set(prints)) == len(prints)
    assert load((torch.from_numpy(X)[:, None], Y)).fingerprint == prints[0]


def test_the_digits_and_their_split_are_the_same_everywhere() -> None:
    data = load("digits")
    assert (len(data.train_y), len(data.test_y), data.inputs) == (1437, 360, (1, 8, 8))  # type: ignore[arg-type]
    assert data.augmentation == Augment(crop=1, flip=False)
    assert data.fingerprint == "eb29d84dc0f777b12b3d23728c40042313cf1bc684ccea6219e79edac172c705"


def test_unknown_images_are_left_as_they_are_unless_somebody_asks() -> None:
    images, vectors = (np.zeros((4, 3, 32, 40)), Y), (np.zeros((4, 5)), Y)
    assert load(images).augmentation is None
    assert load(images, augment="shift,flip").augmentation == Augment(crop=4, flip=True)
    assert load(images, augment="flip,cutout").augmentation == Augment(crop=0, flip=True, cutout=16)
    assert load(images, augment="shift=2").augmentation == Augment(crop=2, flip=False)
    assert load("digits", augment="none").augmentation is None
    assert load("digits").augmentation == Augment(crop=1, flip=False)
    assert load(images, augment="jitter,crop").augmentation == Augment(0, False, area=0.08, jitter=0.4)
    assert load(images, augment="crop=0.25,jitter=1").augmentation == Augment(0, False, area=0.25, jitter=1.0)
    for wrong in ("mirror", "shift=40", "flip=2", "shift=-1", "none,flip", "", "crop=0", "crop=2", "jitter=nan"):
        with pytest.raises(RequestError, match="augment must be none, or some of shift, flip, cutout, crop and jitter"):
            load(images, augment=wrong)
    with pytest.raises(RequestError, match="for images"):
        load(vectors, augment="shift")
    assert load(vectors).augmentation is None


def test_a_run_that_keeps_no_words_for_its_changes_means_what_was_assumed_then() -> None:
    images = (np.zeros((4, 3, 32, 40)), Y)
    assert load(images).changes == "none"
    assert load(images, augment=EARLIER).augmentation == Augment(crop=4, flip=True)
    assert load(images, augment=EARLIER).changes is None
    assert load(images, augment="shift,flip").changes is None
    assert load(images, augment="shift").changes == "shift=4"
    assert load("digits", augment=EARLIER).augmentation == load("digits").augmentation
    assert load("digits", augment="shift").changes is None
    assert load("digits", augment="flip").changes == "flip"


def test_the_words_that_a_run_keeps_are_read_as_the_same_changes() -> None:
    for changes in (Augment(3, True, 2, 0.1234567891, 1 / 3), Augment(0, False, area=1.0), Augment(0, True, jitter=1)):
        assert read_augment(augment_text(changes), (3, 32, 32)) == changes
    assert augment_text(Augment(4, True, 16, 0.08, 0.4)) == "crop=0.08,shift=4,flip,jitter=0.4,cutout=16"


def test_colors_change_only_where_black_and_white_are_known() -> None:
    fractions, wide, four = (np.full(shape, 0.5, np.float32) for shape in ((4, 3, 8, 8), (4, 3, 8, 8), (4, 4, 8, 8)))
    wide[0, 0, 0, 0], wide[1, 0, 0, 0] = -1, 2
    assert load((fractions, Y), augment="jitter").changes == "jitter=0.4"
    assert load("digits", augment="jitter").inputs == (1, 8, 8)
    with pytest.raises(RequestError, match=r"images of 8 bits \(uint8\) or values from 0 to 1; those .* from -1 to 2"):
        load((wide, Y), augment="jitter")
    with pytest.raises(RequestError, match="images of 1 or 3 channels, not of 4"):
        load((four, Y), augment="jitter")
    assert load((wide, Y), augment="crop,flip").changes == "crop=0.08,flip"


@pytest.mark.slow
def test_the_fingerprint_of_cifar_10_takes_well_under_a_second(published: Callable[[str], Dataset]) -> None:
    data = published("cifar-10")
    start = time.perf_counter()
    assert len(data.fingerprint) == 64
    assert time.perf_counter() - start < 1


def test_a_share_keeps_every_class_and_leaves_the_test_part() -> None:
    data = load("digits")
    small = data.subset(0.1, torch.Generator().manual_seed(0))
    assert len(small.train_y) == 144
    assert small.train_y.bincount().tolist() == pytest.approx((data.train_y.bincount() / 10).tolist(), abs=1)
    assert small.test_x is data.test_x
    assert data.subset(1, torch.Generator()) is data


def test_the_two_parts_of_a_split_are_all_rows_once() -> None:
    data = load("digits")
    part, rest = data.split(0.5, torch.Generator().manual_seed(0))
    assert sorted(part.tolist() + rest.tolist()) == list(range(1437))
    assert len(part) == 718


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan"), 0.001])
def test_a_share_that_is_no_share_or_too_small_is_refused(share: float) -> None:
    with pytest.raises(RequestError, match="share"):
        load("digits").subset(share, torch.Generator())
    with pytest.raises(RequestError, match="leaves 1 of 1437 rows"):
        load("digits").split(0.9995, torch.Generator())
