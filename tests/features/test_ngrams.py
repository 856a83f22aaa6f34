"""Hashed bags of n-grams: tokens, bins, weights worked out by hand, and the speed that searching needs."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import murmurhash3_32

from nasight.errors import RequestError
from nasight.features import _tokens
from nasight.features._murmur import hash_ngrams
from nasight.features._ngrams import HashedNgrams
from nasight.features._tokens import Lexicon, Vocabulary

WORDS = st.lists(st.sampled_from(["a", "bb", "The", "ünï", "x.", "!", "film"]), max_size=9).map(" ".join)


def tokens_of(
    text: str, kind: str, *, stop_words: bool = False, lowercase: bool = False, published: bool = False
) -> list[str]:
    lexicon = Lexicon()
    found = lexicon.tokens(lexicon.read([text]), Vocabulary(kind, stop_words, lowercase, published))
    letters, starts = lexicon.spelled()
    return [bytes(letters[starts[i] : starts[i + 1] - 1]).decode() for i in found.ids]


def bin_of(gram: str, dimension: int, seed: int = 0) -> int:
    return int(murmurhash3_32(gram, seed=seed, positive=True)) % dimension


def dense(features: object) -> np.ndarray:
    return features.toarray()  # type: ignore[attr-defined]


def test_tokens_are_cut_at_spaces_or_at_punctuation_too() -> None:
    text = "Well,  it's (not) A_1 film!!"
    assert tokens_of(text, "spaces") == ["Well,", "it's", "(not)", "A_1", "film!!"]
    assert tokens_of(text, "punctuation") == ["Well", ",", "it", "'", "s", "(", "not", ")", "A", "_", "1", "film", "!!"]


def test_stop_words_go_in_any_case_and_the_rest_is_lowered_on_request() -> None:
    assert tokens_of("The film AND Me", "spaces", stop_words=True) == ["film"]
    assert tokens_of("The Film", "spaces", lowercase=True) == ["the", "film"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(alphabet="ab.,'\"()!-: $n\tst`", max_size=12), max_size=6).map(" ".join))
def test_pieces_have_the_tokens_that_nltk_finds_in_the_whole_text(text: str) -> None:
    tokenizer = pytest.importorskip("nltk.tokenize").NLTKWordTokenizer()
    assert tokens_of(text, "nltk") == tokenizer.tokenize(" ".join(text.split()))


def test_without_nltk_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tokens, "find_spec", lambda name: None)
    with pytest.raises(RequestError, match=r"needs the package nltk.*nasight\[text\]"):
        HashedNgrams(tokens="nltk").fit(["a b"])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.text(min_size=1, max_size=9), min_size=2, max_size=2), min_size=1), st.integers(0, 2**32 - 1)
)
def test_bins_are_scikit_learns_murmur_hash_of_the_joined_ngram(grams: list[list[str]], seed: int) -> None:
    words = sorted({word for gram in grams for word in gram})
    spelled = [f"{word} ".encode() for word in words]
    starts = np.concatenate([[0], np.cumsum([len(word) for word in spelled])])
    numbers = np.array([[words.index(word) for word in gram] for gram in grams], np.int32)
    found = hash_ngrams(numbers, np.frombuffer(b"".join(spelled), np.uint8), starts, seed)
    assert found.tolist() == [murmurhash3_32(" ".join(gram).encode(), seed=seed, positive=True) for gram in grams]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=6), st.integers(1, 3), st.booleans(), st.integers(1, 50), st.integers(0, 99)
)
def test_counts_are_those_of_scikit_learns_vectorizer_summed_over_a_bin(
    texts: list[str], order: int, binary: bool, dimension: int, seed: int
) -> None:
    vectorizer = CountVectorizer(
        ngram_range=(1, order), binary=binary, tokenizer=str.split, token_pattern=None, lowercase=True
    )
    expected = np.zeros((len(texts), dimension))
    if any(texts):
        counts = vectorizer.fit_transform(texts).toarray()
        for gram, column in vectorizer.vocabulary_.items():
            expected[:, bin_of(gram, dimension, seed)] += counts[:, column]
    made = HashedNgrams(order=order, binary=binary, n_components=dimension, random_state=seed)
    features = made.fit_transform(texts)
    assert (features.dtype, features.shape) == (np.float32, (len(texts), dimension))
    np.testing.assert_array_equal(dense(features), expected)
    np.testing.assert_array_equal(dense(made.transform(texts)), expected)


THREE = ["good good film", "good plot", "bad film"]
LABELS = [1, 1, 0]
# good: 3 times, all in class 1; film: once in each; plot: once in 1; bad: once in 0. T = 7, of which 5 in class 1.


def weight_of(word: str, weights: str, alpha: float, binary: bool = False) -> float:
    made = HashedNgrams(weights=weights, alpha=alpha, binary=binary, n_components=1000).fit(THREE, LABELS)
    return float(made.transform([word])[0, bin_of(word, 1000)])


def test_naive_bayes_weights_of_three_texts() -> None:
    # Smoothed by 1 over 4 words: good 4/9 against 1/6, film 2/9 against 2/6, plot 2/9 against 1/6, bad 1/9 against 2/6.
    by_hand = {"good": 24 / 9, "film": 12 / 18, "plot": 12 / 9, "bad": 6 / 18, "unseen": 6 / 9}
    for word, ratio in by_hand.items():
        assert weight_of(word, "naive-bayes", 1.0) == pytest.approx(np.log2(ratio), rel=1e-5)
    # In texts rather than occurrences, good is in 2 of class 1: 3/8 against 1/6.
    assert weight_of("good", "naive-bayes", 1.0, binary=True) == pytest.approx(np.log2(18 / 8), rel=1e-5)


def test_sif_weights_of_three_texts() -> None:
    # T a = 0.7: 0.7 / (0.7 + count).
    for word, count in {"good": 3, "film": 2, "plot": 1, "bad": 1, "unseen": 0}.items():
        assert weight_of(word, "sif", 0.1) == pytest.approx(0.7 / (0.7 + count), rel=1e-5)
    assert weight_of("good", "sif", 0.1, binary=True) == pytest.approx(0.6 / 2.6, rel=1e-5)


def test_naive_bayes_takes_the_most_telling_of_more_classes() -> None:
    made = HashedNgrams(weights="naive-bayes", n_components=1000).fit(["a", "b", "c c c"], ["x", "y", "z"])
    # c: 3 of 3 in z, none of 2 in the rest; smoothed over 3 words, 4/6 against 1/5.
    assert made.transform(["c"])[0, bin_of("c", 1000)] == pytest.approx(np.log2(20 / 6), rel=1e-5)


def test_scalings_divide_by_the_number_of_ngrams_or_by_the_length() -> None:
    average = HashedNgrams(order=2, scaling="average", n_components=10**6).fit_transform(["a a b", ""])
    # a, a, b, a a, a b
    assert sorted(average[0].data) == pytest.approx([0.2, 0.2, 0.2, 0.4])
    assert average[1].nnz == 0
    normal = HashedNgrams(scaling="normalize", n_components=10**6).fit_transform(["a a b", ""])
    assert sorted(normal[0].data) == pytest.approx([1 / 5**0.5, 2 / 5**0.5])
    for texts in (["", "a b"], ["a", ""], ["", ""]):
        rows = HashedNgrams(scaling="average", n_components=10).fit_transform(texts)
        np.testing.assert_allclose(rows.sum(1).ravel(), [[float(bool(text)) for text in texts]])


def test_reading_more_texts_changes_nothing_that_was_learned() -> None:
    made = HashedNgrams(order=3, weights="sif", alpha=0.1, n_components=512).fit(THREE, LABELS)
    before = dense(made.transform(THREE))
    made.transform(["a new text with words", "film bad good"])
    np.testing.assert_array_equal(before, dense(made.transform(THREE)))
    # An n-gram of seen words that training lacks is new: bad good.
    assert made.transform(["bad good"])[0, bin_of("bad good", 512)] == pytest.approx(1.0)


def test_another_random_state_means_other_bins() -> None:
    one, other = (HashedNgrams(n_components=4096, random_state=s).fit_transform(THREE) for s in (0, 1))
    assert (one != other).nnz
    assert clone(HashedNgrams(order=2)).get_params()["order"] == 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"tokens": "words"}, "tokens must be one of spaces, punctuation, nltk, got 'words'"),
        ({"weights": "tf-idf"}, "weights must be one of None, naive-bayes, sif, got 'tf-idf'"),
        ({"scaling": "max"}, "scaling must be one of none, normalize, average, got 'max'"),
        ({"order": 0}, "order must be a whole number of at least 1, got 0"),
        ({"alpha": -1.0}, "alpha must be a positive number, got -1.0"),
        ({"n_components": 0}, "n_components must be a whole number from 1"),
        ({"weights": "naive-bayes"}, "needs the classes of the texts"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        HashedNgrams(**wrong).fit(THREE)  # type: ignore[arg-type]


def test_a_wrong_text_or_label_is_named() -> None:
    with pytest.raises(RequestError, match="a text is a str, got a float in row 1"):
        HashedNgrams().fit(["a", 2.0])  # type: ignore[list-item]
    with pytest.raises(RequestError, match="got a single str"):
        HashedNgrams().fit("a b")
    with pytest.raises(RequestError, match="3 texts need 3 labels"):
        HashedNgrams().fit(THREE, [0, 1])
    with pytest.raises(RequestError, match="at least two classes"):
        HashedNgrams(weights="naive-bayes").fit_transform(THREE, [1, 1, 1])


@pytest.mark.slow
def test_a_tenth_of_imdb_takes_a_few_seconds(data_folder: Path) -> None:
    path = data_folder / "imdb" / "train.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        items = [json.loads(line) for line in file][::10]
    begin = time.process_time()
    features = HashedNgrams(order=2, weights="naive-bayes").fit_transform(
        [item["text"] for item in items], [item["label"] for item in items]
    )
    assert time.process_time() - begin < 6  # a minute for all 25,000 reviews
    assert features.shape == (2500, 2**20)
