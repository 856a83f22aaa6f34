"""Orders of architectures: the figures are scipy's, the intervals cover, a constant is said to be one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from nasight.errors import RequestError
from nasight.trust._ranking import log_probabilities, rank_agreement, ranking


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(4, 40), st.sampled_from([2, 5, 1000]))
def test_kendall_and_spearman_are_scipy_s_with_and_without_ties(seed, n, levels):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(levels, size=(2, n)).astype(float)
    found = rank_agreement(a, b, resamples=20)
    if a.min() == a.max() or b.min() == b.max():
        assert "are equal, so they order nothing" in found.undecided
        return
    assert found.kendall == pytest.approx(kendalltau(a, b).statistic, abs=1e-12)
    assert found.spearman == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


def test_a_resample_counted_at_once_is_the_resample_written_out(monkeypatch):
    rng = np.random.default_rng(0)
    a = rng.integers(6, size=30).astype(float)
    b = a + rng.normal(size=30)
    at_once = rank_agreement(a, b, resamples=50)
    monkeypatch.setattr("nasight.trust._ranking.PAIRS_AT_ONCE", 3)
    one_by_one = rank_agreement(a, b, resamples=50)
    assert at_once.kendall_interval == pytest.approx(one_by_one.kendall_interval)
    assert at_once.spearman_interval == pytest.approx(one_by_one.spearman_interval)


@pytest.mark.slow
def test_the_95_percent_interval_holds_the_true_kendall_in_about_95_of_100_samples():
    # Kendall's tau of a bivariate normal with correlation r is 2/pi asin(r).
    true, r, rng, hits = 2 / np.pi * np.arcsin(0.6), 0.6, np.random.default_rng(1), 0
    for trial in range(200):
        a, noise = rng.normal(size=(2, 60))
        low, high = rank_agreement(a, r * a + np.sqrt(1 - r**2) * noise, resamples=300, seed=trial).kendall_interval
        hits += low <= true <= high
    assert 0.90 <= hits / 200 <= 0.99


def test_a_predictor_that_knows_more_leads_more_often_and_regret_is_what_its_choice_costs():
    rng = np.random.default_rng(2)
    truth = rng.normal(size=80)
    found = ranking(
        truth,
        {"sharp": truth + 0.2 * rng.normal(size=80), "dull": truth + 2 * rng.normal(size=80), "flat": np.ones(80)},
    )
    assert found.leads["sharp"] > 0.99
    assert sum(found.leads.values()) == pytest.approx(1)
    assert found.predictors["flat"].agreement.kendall is None
    assert found.predictors["flat"].regret == pytest.approx(truth.max() - truth.mean())
    assert ranking(truth, {"truth": truth}).predictors["truth"].regret == 0


def test_log_probabilities_are_those_of_independent_rows():
    rng = np.random.default_rng(3)
    rows = [rng.dirichlet(np.ones(k)) for k in (3, 4, 2)]
    every = np.array([(i, j, k) for i in range(3) for j in range(4) for k in range(2)])
    log_p = log_probabilities(rows, every)
    assert np.exp(log_p).sum() == pytest.approx(1)
    assert every[log_p.argmax()].tolist() == [row.argmax() for row in rows]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ([1, 2, 3], [1, 2], "got 3 and 2"),
        ([1, float("nan"), 3, 4], [1, 2, 3, 4], "1 of 4 values of the first are not finite"),
        (["a", "b"], [1, 2], "must be numbers"),
        ([], [], "a row of numbers"),
    ],
)
def test_wrong_values_are_refused_in_one_sentence(a, b, said):
    with pytest.raises(RequestError, match=said):
        rank_agreement(a, b)


def test_three_values_are_said_to_be_too_few():
    assert rank_agreement([1, 2, 3], [1, 2, 3]).undecided == "3 values are too few for an interval; 4 are the least"
