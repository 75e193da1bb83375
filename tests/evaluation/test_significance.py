from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dualrank.errors import DataError, SettingsError
from dualrank.evaluation import significance
from dualrank.evaluation.significance import FisherResult, fisher_test


def enumerated_p_value(differences):
    """All sign patterns of whole-number differences, in exact arithmetic."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(s >= observed for s in sums) / len(sums)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-20, 20).filter(bool), min_size=1, max_size=9))
def test_few_differences_are_enumerated_exactly(differences):
    # Tenths are not exact in binary, so that sums which are equal differ in rounding.
    result = fisher_test(np.array(differences) / 10, np.zeros(len(differences)))
    assert result.exact
    assert result.permutations == 2 ** len(differences)
    assert result.p_value == enumerated_p_value(differences)


def test_sixteen_differences_are_exact_and_seventeen_are_sampled():
    ones = np.ones(17)
    assert fisher_test(ones[:16], np.zeros(16)) == FisherResult(1.0, 2 / 2**16, 2**16, True)
    sampled = fisher_test(ones, np.zeros(17), permutations=1000)
    assert (sampled.permutations, sampled.exact) == (1000, False)


def test_equal_pairs_are_left_out_of_the_signs_but_not_of_the_mean():
    a = np.r_[np.full(4, 0.5), np.linspace(0, 1, 1000)]
    b = np.r_[np.full(4, 0.25), np.linspace(0, 1, 1000)]
    assert fisher_test(a, b) == FisherResult(1 / 1004, 2 / 16, 16, True)


def test_no_difference_at_all_is_no_evidence():
    assert fisher_test([0.3, 0.4], [0.3, 0.4]) == FisherResult(0.0, 1.0, 1, True)


def test_skipped_queries_take_no_part():
    a, b = [0.5, np.nan, 1.0], [0.25, np.nan, 0.5]
    assert fisher_test(a, b) == fisher_test([0.5, 1.0], [0.25, 0.5])


def test_the_same_seed_gives_the_same_p_value():
    rng = np.random.default_rng(4)
    a, b = rng.random((2, 300))
    first = fisher_test(a, b, permutations=5000, seed=7)
    assert fisher_test(a, b, permutations=5000, seed=7) == first
    others = {fisher_test(a, b, permutations=5000, seed=s).p_value for s in range(5)}
    assert len(others) > 1


def test_exchanging_the_rankers_only_changes_the_sign():
    a, b = np.random.default_rng(5).random((2, 300))
    forward = fisher_test(a, b, permutations=5000)
    backward = fisher_test(b, a, permutations=5000)
    assert backward.difference == -forward.difference
    # With the same signs every sum is the negative of the other.
    assert backward.p_value == forward.p_value


@pytest.mark.parametrize("n", [5, 12, 16])
def test_sampled_p_values_agree_with_exact_ones(monkeypatch, n):
    rng = np.random.default_rng(n)
    a, b = rng.random((2, n))
    a += 0.2
    exact = fisher_test(a, b)
    monkeypatch.setattr(significance, "EXACT_UP_TO", 0)
    permutations = 200_000
    sampled = fisher_test(a, b, permutations=permutations, seed=1)
    assert exact.exact
    assert not sampled.exact
    # Five standard errors of a binomial proportion, and the observed pattern counted once.
    p = exact.p_value
    error = 5 * np.sqrt(p * (1 - p) / permutations) + 1 / permutations
    assert sampled.p_value == pytest.approx(p, abs=error)


@pytest.mark.parametrize("n", [17, 63, 64, 65, 128, 200])
def test_with_equal_sizes_it_is_the_sign_test(n):
    wins = n // 2 + n // 20 + 1
    d = np.r_[np.ones(wins), -np.ones(n - wins)]
    permutations = 200_000
    p = stats.binomtest(wins, n).pvalue
    error = 5 * np.sqrt(p * (1 - p) / permutations) + 1 / permutations
    assert fisher_test(d, np.zeros(n), permutations=permutations).p_value == pytest.approx(
        p, abs=error
    )


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40, 63, 64])
def test_every_bit_of_a_word_is_the_sign_of_one_difference(n):
    rng = np.random.default_rng(n)
    d, words = rng.normal(size=n), rng.integers(0, 2**64, 500, dtype=np.uint64)
    sums = np.ones(500)
    significance._add_signed_sums(sums, words, d)
    bits = words[:, None] >> np.arange(n, dtype=np.uint64) & np.uint64(1)
    np.testing.assert_allclose(sums, 1 + np.where(bits, d, -d).sum(axis=1), atol=1e-12)


def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(8)
    a, b = rng.random((2, 400, 60))
    p_values = [
        fisher_test(x, y, permutations=999, seed=i).p_value
        for i, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(0.05, abs=4 * 0.0109)


def test_a_real_difference_is_found_and_the_smallest_p_value_counts_the_observed_sum():
    rng = np.random.default_rng(9)
    b = rng.random(2000)
    a = b + rng.normal(0.02, 0.1, 2000)
    result = fisher_test(a, b, permutations=10_000)
    assert result.difference == pytest.approx((a - b).mean())
    assert result.p_value == 1 / 10_001


def test_more_permutations_than_fit_one_chunk():
    a, b = np.random.default_rng(10).random((2, 100))
    few = fisher_test(a, b, permutations=significance._CHUNK)
    many = fisher_test(a, b, permutations=3 * significance._CHUNK + 1)
    assert many.permutations == 3 * significance._CHUNK + 1
    assert many.p_value == pytest.approx(few.p_value, abs=0.02)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            [1.0],
            [1.0, 2.0],
            "a and b must be one value per query each, for the same queries; "
            "they have shapes (1,) and (2,)",
        ),
        (
            [[1.0]],
            [[1.0]],
            "a and b must be one value per query each, for the same queries; "
            "they have shapes (1, 1) and (1, 1)",
        ),
        (
            [1.0, np.nan],
            [1.0, 2.0],
            "pair 1 is nan and 2; both must be finite, or nan together",
        ),
        ([np.inf], [1.0], "pair 0 is inf and 1; both must be finite, or nan together"),
        ([], [], "there is no pair of values to compare"),
        ([np.nan], [np.nan], "there is no pair of values to compare"),
    ],
)
def test_bad_pairs_are_named(a, b, message):
    with pytest.raises(DataError) as error:
        fisher_test(a, b)
    assert str(error.value) == message


def test_permutations_must_be_positive():
    with pytest.raises(SettingsError) as error:
        fisher_test([1.0], [0.0], permutations=0)
    assert str(error.value) == "permutations is 0; it must be 1 or more"
