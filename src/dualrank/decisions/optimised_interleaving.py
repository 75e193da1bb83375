"""Optimised interleaving of two rankings: which lists to show how often, so that most is learned.

Radlinski, Craswell: "Optimized interleaving for online retrieval evaluation" (WSDM 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualrank.decisions.interleaving import Interleaving, Rankings, check_rankings
from dualrank.errors import DataError, SettingsError

MOST_LISTS = 1 << 14
"""Lists that are enumerated for one query; two rankings of ten documents allow 1,024 at most."""
_TINY = 1e-9


def optimised(rankings: Rankings, depth: int = 10) -> list[Interleaving]:
    """The lists to show for two rankings A and B, each with its probability.

    Allowed is every list of which each beginning is a beginning of A with one of B (what a user
    sees is never worse than both). A click on a document counts

        δ = log((1 + rank in B) / (1 + rank in A)) / log((depth + 2) / 2)

    for A where this is above zero, and for B where it is below (a document that is not among an
    arm's first `depth` has rank `depth` + 1 there, and the largest credit is 1). The paper leaves
    the credit open, and names among others the difference of ranks and that of inverse ranks; this
    one lies between the two, each of which misses much where rankers differ at the other end of
    the list. Documents that both rank alike count nothing.

    Probabilities p solve a linear program: maximise the expected sensitivity Σ p(L) s(L)
    such that at every position the expected credit Σ p(L) δ(L_i) is zero, so that a user who clicks
    at random, however deep he looks, prefers nobody. s(L) is the chance that one click, at rank i
    with probability ∝ 1/i, decides at all, times the entropy of whom it decides for.

    The solution has at most `depth` + 1 lists. A program without a solution is refused with a
    DataError: so it is where one ranking is shorter than the lists, whose end is then always of the
    other; `build_lists` takes team drafts for such a query.

    >>> for each in optimised({"A": ["x", "y"], "B": ["y", "x"]}, depth=2):
    ...     print(each.documents, each.arms, round(each.credits[0], 3))
    ('x', 'y') ('A', 'B') 0.585
    ('y', 'x') ('B', 'A') 0.585
    """
    check_rankings(rankings, depth)
    if len(rankings) != 2:
        raise SettingsError(
            f"optimised interleaving compares two rankings, not {len(rankings)}; "
            "give way='team-draft' for more"
        )
    (one, first), (other, second) = rankings.items()
    lists = allowed_lists(first, second, depth)
    value = _credit(first[:depth], second[:depth], depth)
    credit = np.array([[value[document] for document in each] for each in lists])
    shares = _shares(credit)
    if shares is None:
        raise DataError(
            "no choice among the lists that these rankings allow is neutral to random clicks"
        )
    return [
        Interleaving(
            each,
            tuple(one if worth > 0 else other if worth < 0 else None for worth in worths),
            tuple(abs(worth) for worth in worths),
            share,
        )
        for each, worths, share in zip(lists, credit.tolist(), shares.tolist(), strict=True)
        if share > 0
    ]


def allowed_lists(first: Sequence[str], second: Sequence[str], depth: int) -> list[tuple[str, ...]]:
    """Every list of which each beginning is a beginning of one ranking with one of the other.

    >>> allowed_lists(["x", "y", "z"], ["y", "w", "x"], 2)
    [('x', 'y'), ('y', 'w'), ('y', 'x')]
    """
    grown: dict[tuple[str, ...], None] = {(): None}
    for _ in range(depth):
        longer: dict[tuple[str, ...], None] = {}
        for begun in grown:
            for ranking in (first[:depth], second[:depth]):
                best = next((each for each in ranking if each not in begun), None)
                if best is not None:
                    longer[(*begun, best)] = None
        if not longer:
            break
        if len(longer) > MOST_LISTS:
            raise SettingsError(
                f"depth={depth} allows more than {MOST_LISTS:,} lists of a query; "
                "give a smaller one, or way='team-draft'"
            )
        grown = longer
    return sorted(grown)


def _credit(first: Sequence[str], second: Sequence[str], depth: int) -> dict[str, float]:
    """How much higher the first ranks every document than the second, by the logarithm of ranks."""
    ranks = [{doc: rank for rank, doc in enumerate(each, 1)} for each in (first, second)]
    last, largest = depth + 1, math.log((depth + 2) / 2)
    return {
        document: math.log((1 + ranks[1].get(document, last)) / (1 + ranks[0].get(document, last)))
        / largest
        for document in (*first, *second)
    }


def _shares(credit: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """How often to show each list; None where no choice is neutral at every position."""
    from scipy.optimize import linprog

    lists, depth = credit.shape
    if not credit.any():
        return np.eye(1, lists)[0]
    looked = 1 / np.arange(1, depth + 1)
    looked /= looked.sum()
    ahead, behind = (credit > 0) @ looked, (credit < 0) @ looked
    decides = ahead + behind
    chance = np.divide(ahead, decides, out=np.zeros(lists), where=decides > 0)
    sensitivity = decides * _entropy(chance)
    # A position on which all lists agree is in no constraint, or would be without a solution.
    neutral = credit.T[credit.any(axis=0)]
    found = linprog(
        -sensitivity,
        A_eq=np.vstack([neutral, np.ones(lists)]),
        b_eq=np.append(np.zeros(len(neutral)), 1.0),
        bounds=(0, None),
        method="highs",
    )
    if not found.success:
        return None
    shares = np.where(found.x > _TINY, found.x, 0.0)
    return shares / shares.sum()


def _entropy(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a coin that falls on one side with these chances, in bits."""
    both = np.stack([chance, 1 - chance])
    logs = np.log2(both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(-(both * logs).sum(axis=0))
