"""N-grams as the authors' released code makes them, against its formulas written out on dense arrays."""

from __future__ import annotations

import re
from math import log2
from typing import Any
from unicodedata import category

import numpy as np
import pytest
from sklearn.utils import murmurhash3_32

from nasight.data import rows
from nasight.errors import RequestError
from nasight.features import Evaluator, HashedNgrams, family, select, split
from nasight.features._family import config_seed
from nasight.features._methods import Call
from nasight.features._released_tokens import STOP_WORDS
from nasight.features._tokens import Lexicon, Vocabulary

TEXTS = ["The film -- it's GOOD, good!", "don't see this film", "a $5 ticket; good fun", "Dont! bad bad film", "..."]
LABELS = [1, 0, 1, 0, 0]
D = 7  # so few bins that n-grams share them


def tokens_of(text: str, kind: str, *, stop_words: bool = False) -> list[str]:
    lexicon = Lexicon()
    found = lexicon.tokens(lexicon.read([text]), Vocabulary(kind, stop_words, False, True))
    letters, starts = lexicon.spelled()
    return [bytes(letters[starts[i] : starts[i + 1] - 1]).decode() for i in found.ids]


def test_spaces_strip_punctuation_marks_and_symbols_and_drop_what_is_empty() -> None:
    assert tokens_of("(it's) -- $5 e\u0301té a_b", "spaces") == ["its", "5", "eté", "ab"]
    assert tokens_of("it's... $5", "punctuation") == ["it", "'", "s", "...", "$", "5"]
    assert {category(c)[0] for c in "\u0301$_."} == {"M", "S", "P"}


def test_there_are_179_stop_words_and_they_go_as_written_capitalized_or_without_apostrophe() -> None:
    assert len(STOP_WORDS) == 179
    assert {"mightn't", "shan", "won't", "should've", "ma", "y"} <= STOP_WORDS
    assert tokens_of("The THE dont Dont you", "punctuation", stop_words=True) == ["THE", "Dont"]


def bins_of(texts: list[str], *, order: int, binary: bool, seed: int) -> np.ndarray:
    """(texts, D) as a loop over n-grams."""
    found = np.zeros((len(texts), D))
    for row, text in enumerate(texts):
        words = [w for part in text.split() if (w := re.sub(r"[^\w]|_", "", part))]
        for n in range(1, order + 1):
            for start in range(len(words) - n + 1):
                found[row, murmurhash3_32(" ".join(words[start : start + n]), seed=seed, positive=True) % D] += 1
    return np.sign(found) if binary else found


def weights_of(kind: str, alpha: float, totals: np.ndarray) -> list[float]:
    """Of each bin, from (2, D) sums: log2 of the ratio of smoothed shares, or T a / (T a + count)."""
    if kind == "sif":
        mass = alpha * totals.sum()
        return [mass / (mass + count) for count in totals.sum(0)]
    q, p = ((side + alpha) / (side + alpha).sum() for side in totals)
    return [log2(a / b) for a, b in zip(p, q, strict=True)]


@pytest.mark.parametrize("scaling", ["none", "normalize", "average"])
@pytest.mark.parametrize("weights", ["naive-bayes", "sif"])
@pytest.mark.parametrize("binary", [False, True])
def test_weights_and_binary_marks_belong_to_bins(binary: bool, weights: str, scaling: str) -> None:
    made = HashedNgrams(
        tokens="spaces", lowercase=False, order=2, binary=binary, weights=weights, alpha=0.3, scaling=scaling,
        n_components=D, random_state=5, published=True,
    )  # fmt: skip
    found = made.fit_transform(TEXTS, LABELS).toarray()
    bins = bins_of(TEXTS, order=2, binary=binary, seed=5)
    totals = np.stack([bins[np.array(LABELS) == c].sum(0) for c in (0, 1)])
    expected = bins * weights_of(weights, 0.3, totals)
    if scaling == "average":
        expected /= np.maximum(bins.sum(1), 1)[:, None]
    if scaling == "normalize":
        expected /= np.maximum(np.linalg.norm(expected, axis=1), 1e-30)[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made.transform(TEXTS).toarray(), found, rtol=1e-6)
    plain = HashedNgrams(**{**made.get_params(), "published": False}).fit_transform(TEXTS, LABELS).toarray()
    assert np.abs(plain - found).max() > 1e-3  # by n-grams it is something else


CONFIGS: list[dict[str, Any]] = [
    {"tokens": "spaces", "stop_words": False, "lowercase": False, "order": 1, "binary": b, "weights": w, "alpha": 0.5,
     "scaling": "none"} for b, w in ((False, "naive-bayes"), (True, "sif"))
]  # fmt: skip


def test_configurations_of_a_call_share_the_sums_over_their_rows() -> None:
    fitted = family("ngrams", published=True).fit(TEXTS, LABELS)
    which = np.array([0, 1, 1, 0, 0])
    train = fitted.features(TEXTS, CONFIGS, which, D, 3).rows(0, 5).toarray()
    others = ["good film", "bad fun"]
    test = fitted.features(others, CONFIGS, np.array([1, 0]), D, 3).rows(0, 2).toarray()
    seeds = [config_seed(config, 3) for config in CONFIGS]
    bins = np.concatenate(
        [bins_of([t], order=1, binary=CONFIGS[c]["binary"], seed=seeds[c]) for t, c in zip(TEXTS, which, strict=True)]
    )
    totals = np.stack([bins[np.array(LABELS) == c].sum(0) for c in (0, 1)])
    weights = [weights_of(config["weights"], 0.5, totals) for config in CONFIGS]
    np.testing.assert_allclose(train, bins * np.array([weights[c] for c in which]), rtol=1e-5)
    expected = [
        bins_of([others[i]], order=1, binary=c == 1, seed=seeds[c])[0] * weights[c] for i, c in ((0, 1), (1, 0))
    ]
    np.testing.assert_allclose(test, expected, rtol=1e-5)


def test_a_model_of_one_configuration_has_the_features_of_its_transformer_also_in_a_new_process() -> None:
    for_ngrams = family("ngrams", published=True)
    alone = for_ngrams.fit(TEXTS, LABELS).features(["bad film"], CONFIGS[:1], np.zeros(1, np.int64), D, 3)
    transformer = for_ngrams.transformer(CONFIGS[0], D, 3).fit(TEXTS, LABELS)
    np.testing.assert_allclose(alone.rows(0, 1).toarray(), transformer.transform(["bad film"]).toarray(), rtol=1e-6)


def test_the_svm_is_solved_to_the_released_tolerance() -> None:
    data = rows((TEXTS * 4, LABELS * 4))
    models = []
    for published in (False, True):
        evaluator = Evaluator(family("ngrams", published=published), split(data, 0.5))
        assert evaluator.tolerance == (1e-5 if published else 0.1)
        models.append(evaluator.solve(Call((0,), 50, shared=False), CONFIGS[:1], 1).model)
    assert models[1].iterations > models[0].iterations


def test_a_published_selection_says_so_and_needs_maps_of_the_paper(tmp_path: Any) -> None:
    texts, labels = TEXTS * 8, LABELS * 8
    asked: dict[str, Any] = {"method": "weight-sharing", "configs": 4, "dimension": 64, "validation": 0.25}
    found = select("ngrams", (texts, labels), published=True, out=tmp_path / "a", **asked)
    plain = select("ngrams", (texts, labels), **asked)
    assert [row["dimension"] for row in found.history] == [row["dimension"] for row in plain.history]
    assert '"published": true' in (tmp_path / "a" / "run.json").read_text()
    with pytest.raises(RequestError, match="give maps by name"):
        select([HashedNgrams()], (texts, labels), published=True)


def test_a_real_valued_target_is_refused_as_the_estimator_refuses_it() -> None:
    x = np.arange(20.0).reshape(10, 2)
    with pytest.raises(RequestError, match=r"real values such as 0\.5, 10 different ones"):
        select("fourier", (x, np.arange(10) + 0.5), configs=2, dimension=10)
    whole = select("fourier", (x, np.repeat([1.0, 2.0], 5)), configs=2, dimension=10)
    assert whole.result["training_rows"] == 8
