"""How well do the features tell where a document was shown?

A linear model of the features is fitted to the place in the list (both taken from the list's mean),
and ranks the lists of held-out queries: its mean Spearman correlation with the order shown is 1
where the features say all that the logging ranker went by, and 0 where they say nothing of it, be
the order random or made from something else.

High is not bad by itself. Every ranker that looks at the features is told by them, the useless one
as well as the perfect one. But the better they tell the position, the fewer documents there are
that look alike and stood apart, and it is those that dual learning compares. Whether enough are
left is asked of held-out clicks (see `joint_learning`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.ranking import by_rank
from dualrank.data.scaling import Scaler
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.joint_learning import supported
from dualrank.diagnostics.point import Point, Question

NAME = "logging ranker"
STRONG = 0.8
MOST_LISTS = 4_000
FEWEST_LISTS = 10
RIDGE = 1.0
EQUAL = 1e-9
"""Scores that differ by less, of the largest, are taken for equal."""


def logging_ranker(facts: LogFacts) -> Point:
    """The rank correlation of the order shown with the best linear guess at it."""
    if facts.dataset is None:
        return Question(NAME).answer("not measured", "No features were given.")
    found = order_by_features(facts.dataset, facts.log.lists, facts.seed)
    if found is None:
        return Question(NAME).answer("not measured", "Too few lists of three documents or more.")
    asked = Question(NAME, {"spearman": found})
    said = f"Features tell the order shown with a mean Spearman correlation of {found:.2f}"
    if np.isnan(found):
        return asked.answer(
            "not measured",
            "The features give the documents of a list equal scores, and tell nothing of the order "
            "in which they were shown.",
        )
    if found < STRONG and not facts.features_tell:
        return asked.answer(
            "not measured",
            f"{said}; but as they are not seen to tell which documents are clicked, that says "
            "nothing of whether relevance and position can be told apart by them.",
        )
    if found < STRONG:
        return asked.answer(
            "good",
            f"{said}: documents that look alike stood at different positions.",
        )
    if supported(facts):
        return asked.answer(
            "good",
            f"{said}, so that alike documents stood at alike positions; held-out clicks show that "
            "enough of them did not.",
        )
    return asked.answer(
        "warning",
        f"{said}: relevance and position can hardly be told apart by features.",
        "Collect some swaps (see plan_swaps); a harvested curve does not need the features.",
    )


def order_by_features(dataset: Dataset, lists: RankedLists, seed: int = 0) -> float | None:
    """Mean Spearman correlation on held-out queries, or None where there are too few lists.

    nan where all documents of every list look alike.
    """
    rng = np.random.default_rng([seed, 0x_10CC])
    long = np.flatnonzero(lists.mask.sum(axis=1) >= 3)
    chosen = rng.permutation(long)[: 2 * MOST_LISTS]
    queries = np.unique(lists.queries[chosen])
    first = np.isin(lists.queries[chosen], rng.permutation(queries)[: len(queries) // 2])
    if min(first.sum(), (~first).sum()) < FEWEST_LISTS:
        return None
    documents = lists.documents[chosen]
    shown = dataset.features[np.unique(documents[documents >= 0])]
    if (shown == shown[0]).all():
        return float("nan")
    scaler = Scaler.fit(shown, kind="standard")
    x, y = _centred(dataset, scaler, documents[first])
    gram = x.T @ x + RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, x.T @ y)
    held = documents[~first]
    scores = np.zeros(held.shape)
    mask = held >= 0
    scores[mask] = scaler.transform(dataset.features[held[mask]]) @ weights
    # Equal features must give equal scores, whatever the order of additions.
    unit = EQUAL * np.abs(scores).max(initial=1.0)
    scores = np.round(scores / unit)
    known = np.where(mask, scores, scores[:, :1])
    if (known == known[:, :1]).all():
        return float("nan")
    return float(spearman_with_order(scores, mask).mean())


def spearman_with_order(
    scores: NDArray[np.float64], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Spearman's correlation of every list's scores with the order in which it stands.

    Equal scores have the mean of their ranks, and scores that are all equal tell nothing: 0.

    >>> spearman_with_order(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]]), np.ones((2, 3), bool))
    array([1., 0.])
    """
    ranks = by_rank(scores, mask, np.arange(scores.shape[1], dtype=np.float64))
    stands = np.cumsum(mask, axis=1) - 1
    n = mask.sum(axis=1, keepdims=True)
    middle = (n - 1) / 2
    apart, place = (np.where(mask, each - middle, 0.0) for each in (ranks, stands))
    spread = np.sqrt((apart**2).sum(axis=1) * (place**2).sum(axis=1))
    correlation: NDArray[np.float64] = np.divide(
        (apart * place).sum(axis=1), spread, out=np.zeros(len(scores)), where=spread > 0
    )
    return correlation


def _centred(
    dataset: Dataset, scaler: Scaler, documents: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features and height in the list, minus their means over the list."""
    row, position = np.nonzero(documents >= 0)
    x = scaler.transform(dataset.features[documents[row, position]]).astype(np.float64)
    y = -position.astype(np.float64)
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    counts = np.diff(np.append(starts, len(row)))
    x -= np.repeat(np.add.reduceat(x, starts) / counts[:, None], counts, axis=0)
    y -= np.repeat(np.add.reduceat(y, starts) / counts, counts)
    return x, y
