"""Sets of feature maps: what is drawn, and that mixed rows are the rows of the single maps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import loguniform, randint
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from nasight.errors import RequestError
from nasight.features import _tokens
from nasight.features._families import FourierFamily, NgramFamily, family
from nasight.features._family import ArrayRows, RowSource

TEXTS = [
    "A good film, and a good plot.",
    "The worst film!",
    "",
    "It wasn't bad at all (no, really).",
    "good",
    'He said: "never again."',
    "Bad, bad film",
] * 3
CLASSES = np.array([1, 0, 0, 1, 1, 0, 0] * 3)


def whole(source: RowSource) -> np.ndarray:
    rows = source.rows(0, source.n)
    return rows.toarray() if sparse.issparse(rows) else rows


def numbers(rows: int = 30, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)
    x[:, 2] = 1.5
    return x


@pytest.fixture(params=["fourier", "ngrams"])
def case(request: pytest.FixtureRequest) -> tuple[Any, Any, Any, Any]:
    """A set of maps, training rows, their classes, and rows that training has not seen."""
    if request.param == "fourier":
        return FourierFamily(), numbers(), None, numbers(9, seed=1)
    pytest.importorskip("nltk")
    return NgramFamily(), TEXTS, CLASSES, ["A new film", *TEXTS[:5], "bad plot, unheard of"]


def test_mixed_rows_are_the_rows_of_the_single_transformers(case: tuple[Any, Any, Any, Any]) -> None:
    maps, train, classes, fresh = case
    rng = np.random.default_rng(0)
    configs = maps.sample(24, rng)
    fitted = maps.fit(train, classes)
    alone = [maps.transformer(config, 40, seed=3).fit(train, classes) for config in configs]
    for rows in (train, fresh, train):
        index = rng.permutation(len(rows))[: len(rows) - 2]
        assignment = rng.integers(len(configs), size=len(index))
        source = fitted.features(rows, configs, assignment, 40, 3, index=index)
        assert (source.n, source.dimension, source.sparse) == (len(index), 40, maps.name == "ngrams")
        picked = [rows[i] for i in index]
        single = [np.asarray(m.transform(picked).toarray() if source.sparse else m.transform(picked)) for m in alone]
        expected = np.stack([single[c][i] for i, c in enumerate(assignment)])
        found = whole(source)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=2e-4)


def test_blocks_are_parts_of_the_whole_and_a_seed_decides_everything(case: tuple[Any, Any, Any, Any]) -> None:
    maps, train, classes, _ = case
    configs = maps.sample(5, np.random.default_rng(1))
    assignment = np.arange(len(train)) % 5
    fitted = maps.fit(train, classes)
    source = fitted.features(train, configs, assignment, 16, 0)
    blocks = [source.rows(i, i + 4) for i in range(0, source.n, 4)]
    together = np.concatenate([b.toarray() if sparse.issparse(b) else b for b in blocks])
    np.testing.assert_allclose(together, whole(source), atol=1e-5)
    fitted.clear()
    np.testing.assert_array_equal(whole(fitted.features(train, configs, assignment, 16, 0)), whole(source))
    assert (whole(fitted.features(train, configs, assignment, 16, 1)) != whole(source)).any()


def test_draws_follow_the_published_distributions_and_are_plain_values(case: tuple[Any, Any, Any, Any]) -> None:
    maps = case[0]
    configs = maps.sample(2000, np.random.default_rng(0))
    assert json.loads(json.dumps(configs)) == configs
    assert len({json.dumps(config) for config in configs}) == 2000
    options = {
        "fourier": {"scaling": 4, "kernel": 2},
        "ngrams": {
            "tokens": 3, "stop_words": 2, "lowercase": 2, "order": 3, "binary": 2, "weights": 2, "scaling": 3,
        },
    }[maps.name]  # fmt: skip
    for name, count in options.items():
        shares = np.unique([str(config[name]) for config in configs], return_counts=True)[1] / 2000
        assert len(shares) == count
        np.testing.assert_allclose(shares, 1 / count, atol=0.05)
    logs = np.log10([config["gamma" if maps.name == "fourier" else "alpha"] for config in configs])
    np.testing.assert_allclose(np.quantile(logs, [0, 0.25, 0.5, 0.75, 1]), np.linspace(-5, 1, 5), atol=0.3)


def test_configurations_share_frequencies_and_offsets() -> None:
    # With gamma so small that the cosine is cos(b), all rows of all configurations agree.
    configs = [{"scaling": "none", "kernel": kernel, "gamma": 1e-30} for kernel in ("gaussian", "laplacian")]
    found = whole(FourierFamily().fit(numbers()).features(numbers(), configs, np.arange(30) % 2, 25, 0))
    assert np.ptp(found, axis=0).max() < 1e-6


def test_each_ngram_configuration_has_a_hash_of_its_own() -> None:
    maps = NgramFamily(["spaces"])
    config = maps.sample(1, np.random.default_rng(0))[0]
    other = {**config, "alpha": config["alpha"] * 2}
    seeds = {maps.transformer(c, 10, seed).random_state for c in (config, other) for seed in (0, 1)}
    assert len(seeds) == 4


def test_ngram_set_without_nltk_says_so_unless_nltk_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tokens, "find_spec", lambda name: None)
    with pytest.raises(RequestError, match="needs the package nltk"):
        family("ngrams")
    drawn = NgramFamily(["spaces", "punctuation"]).sample(50, np.random.default_rng(0))
    assert {config["tokens"] for config in drawn} == {"spaces", "punctuation"}


def test_own_list_of_transformers_is_a_set() -> None:
    maps = [StandardScaler(), FunctionTransformer(), FunctionTransformer(np.square)]
    own = family(maps)
    configs = own.sample(64, np.random.default_rng(0))
    assert sorted(config["map"] for config in configs) == [0, 1, 2]
    assert (own.sized, own.solver) == (False, "ridge")
    train, rows = numbers(), numbers(8, seed=2)
    assignment = np.array([0, 1, 2, 0, 1, 2, 2, 1])
    found = whole(own.fit(train).features(rows, [{"map": 0}, {"map": 1}, {"map": 2}], assignment, 0, 0))
    single = [StandardScaler().fit(train).transform(rows), rows, rows**2]
    np.testing.assert_allclose(found, np.stack([single[c][i] for i, c in enumerate(assignment)]), rtol=1e-5)
    assert not hasattr(maps[0], "mean_"), "the user's own objects stay as they were"


def test_own_sparse_maps_of_texts_stay_sparse() -> None:
    own = family([HashingVectorizer(n_features=32), HashingVectorizer(n_features=32, norm=None)], solver="svm")
    source = own.fit(TEXTS, CLASSES).features(TEXTS, [{"map": 0}, {"map": 1}], np.arange(21) % 2, 0, 0)
    assert (source.sparse, source.dimension, own.solver) == (True, 32, "svm")
    expected = HashingVectorizer(n_features=32, norm=None).transform(TEXTS).toarray()
    np.testing.assert_allclose(whole(source)[1::2], expected[1::2])


def test_own_maps_of_different_widths_are_refused() -> None:
    own = family([StandardScaler(), PolynomialFeatures(2)])
    with pytest.raises(RequestError, match=r"equally many features, got 6 from StandardScaler\(\) and 28 from Poly"):
        own.fit(numbers()).features(numbers(), [{"map": 0}, {"map": 1}], np.arange(30) % 2, 0, 0)


def test_own_dict_of_distributions_is_a_set() -> None:
    own = family({"map": Nystroem, "gamma": loguniform(1e-3, 1), "n_components": [10], "degree": randint(1, 4)})
    configs = own.sample(20, np.random.default_rng(0))
    assert json.loads(json.dumps(configs)) == configs
    assert all(1e-3 <= c["gamma"] <= 1 and c["n_components"] == 10 and c["degree"] in (1, 2, 3) for c in configs)
    assert configs == own.sample(20, np.random.default_rng(0))
    found = whole(own.fit(numbers()).features(numbers(), configs, np.arange(30) % 20, 999, 4))
    one = Nystroem(**configs[7], random_state=4).fit(numbers()).transform(numbers())
    np.testing.assert_allclose(found[[7, 27]], one[[7, 27]], rtol=1e-4, atol=1e-6)


def test_own_dict_takes_the_dimension_of_the_search_where_it_says_nothing() -> None:
    own = family({"map": RBFSampler, "gamma": [0.1, 1.0]})
    assert own.sized
    configs = own.sample(5, np.random.default_rng(0))
    assert sorted(config["gamma"] for config in configs) == [0.1, 1.0]
    assert own.fit(numbers()).features(numbers(), configs, np.arange(30) % 2, 17, 0).dimension == 17


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("fourrier", "there is no set of feature maps 'fourrier'; known names are fourier, ngrams"),
        (3, "maps must be a name .* got a int"),
        ([], "at least 1 transformer"),
        ([StandardScaler], "map 0 must be a transformer"),
        ({"gamma": [1]}, "needs a transformer class under 'map', got None"),
        ({"map": RBFSampler, "gama": [1]}, "RBFSampler has no parameter 'gama'; it has gamma, n_components"),
        ({"map": RBFSampler, "gamma": 1.0}, "'gamma' must be a list of values or a scipy.stats distribution"),
    ],
)
def test_a_wrong_set_is_refused_in_a_sentence(wrong: Any, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        family(wrong)


def test_wrong_rows_are_refused_in_a_sentence() -> None:
    fitted = FourierFamily().fit(numbers())
    config = FourierFamily().sample(1, np.random.default_rng(0))
    with pytest.raises(RequestError, match="6 columns as in training, got 2"):
        fitted.features(np.ones((3, 2)), config, np.zeros(3, int), 5, 0)
    with pytest.raises(RequestError, match="30 rows need 30 assignments"):
        fitted.features(numbers(), config, np.zeros(3, int), 5, 0)
    with pytest.raises(RequestError, match="texts go with the n-grams"):
        FourierFamily().fit(TEXTS)


def test_a_matrix_is_a_row_source_without_a_copy() -> None:
    matrix = np.ones((4, 3), np.float32)
    source = ArrayRows(matrix)
    assert (source.n, source.dimension, source.sparse) == (4, 3, False)
    assert np.shares_memory(source.rows(1, 3), matrix)
    assert ArrayRows(sparse.eye(3)).rows(0, 2).dtype == np.float32
