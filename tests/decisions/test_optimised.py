"""Optimised interleaving: allowed lists, neutral to random clicks, and at its best."""

import numpy as np
import pytest

from dualrank.decisions.optimised_interleaving import allowed_lists, optimised
from dualrank.errors import DataError, SettingsError


def drawn_rankings(seed, pool=14, depth=8):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=pool)
    return {
        arm: [f"d{d}" for d in np.argsort(base + rng.normal(size=pool))[:depth]] for arm in "AB"
    }


def is_allowed(shown, first, second):
    """Every beginning is a beginning of the one with one of the other."""
    return all(
        any(
            set(first[:i]) | set(second[:j]) == set(shown[:length])
            for i in range(length + 1)
            for j in range(length + 1)
        )
        for length in range(1, len(shown) + 1)
    )


def test_allowed_lists_are_those_of_the_prefix_constraint():
    rankings = drawn_rankings(1, pool=6, depth=4)
    first, second = rankings.values()
    found = allowed_lists(first, second, 4)
    from itertools import permutations

    every = {*first, *second}
    expected = [p for p in permutations(sorted(every), 4) if is_allowed(p, first, second)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("seed", range(12))
def test_random_clicks_prefer_nobody(seed):
    rankings = drawn_rankings(seed)
    lists = optimised(rankings, 8)
    assert sum(each.probability for each in lists) == pytest.approx(1)
    assert len(lists) <= 9
    for position in range(8):
        expected = sum(
            each.probability
            * each.credits[position]
            * {"A": 1, "B": -1, None: 0}[each.arms[position]]
            for each in lists
        )
        assert expected == pytest.approx(0, abs=1e-9)
    assert all(is_allowed(each.documents, *rankings.values()) for each in lists)


def test_no_neutral_choice_is_more_sensitive():
    from scipy.optimize import linprog

    rankings = drawn_rankings(4)
    first, second = rankings.values()
    lists = allowed_lists(first, second, 8)
    credit = np.array(
        [[np.log((1 + _rank(second, d)) / (1 + _rank(first, d))) for d in each] for each in lists]
    )
    sensitivity = np.array([_sensitivity(row) for row in credit])
    best = linprog(
        -sensitivity,
        A_eq=np.vstack([credit.T, np.ones(len(lists))]),
        b_eq=np.append(np.zeros(8), 1),
        bounds=(0, None),
    )
    chosen = {each.documents: each.probability for each in optimised(rankings, 8)}
    got = sum(s * chosen.get(each, 0) for s, each in zip(sensitivity, lists, strict=True))
    assert got == pytest.approx(-best.fun, abs=1e-6)


def _rank(ranking, document):
    return ranking.index(document) + 1 if document in ranking else 9


def _sensitivity(row):
    looked = 1 / np.arange(1, 9)
    looked /= looked.sum()
    ahead, behind = looked[row > 0].sum(), looked[row < 0].sum()
    if not (ahead and behind):
        return 0.0
    shares = np.array([ahead, behind]) / (ahead + behind)
    return -(ahead + behind) * float(shares @ np.log2(shares))


def test_documents_both_rank_alike_count_nothing():
    lists = optimised({"A": list("pqxyz"), "B": list("pqzyx")}, 5)
    for each in lists:
        assert each.documents[:2] == ("p", "q")
        assert each.arms[:2] == (None, None)
        assert each.arms[each.documents.index("y")] is None
    (same,) = optimised({"A": list("xyz"), "B": list("xyz")}, 3)
    assert same.probability == 1
    assert same.arms == (None, None, None)


def test_the_higher_ranking_has_the_credit_and_one_is_the_most():
    lists = optimised({"A": list("abcd"), "B": list("efgh")}, 4)
    credits = {d: (a, c) for each in lists for d, a, c in zip(*_columns(each), strict=True)}
    assert credits["a"] == ("A", pytest.approx(1))
    assert credits["e"] == ("B", pytest.approx(1))
    assert credits["b"][1] < 1


def _columns(each):
    return each.documents, each.arms, each.credits


def test_what_is_refused():
    with pytest.raises(SettingsError, match="compares two rankings, not 3"):
        optimised({"A": ["x"], "B": ["y"], "C": ["z"]})
    with pytest.raises(DataError, match="is neutral to random clicks"):
        optimised({"A": list("ab"), "B": list("bcdefg")}, 6)
    long = {"A": [f"a{i}" for i in range(20)], "B": [f"b{i}" for i in range(20)]}
    with pytest.raises(SettingsError, match="depth=20 allows more than 16,384 lists"):
        optimised(long, 20)
