"""Do the features tell documents apart, and say anything about what is clicked?

A feature that is the same for all documents of a list (a constant, or something about the query)
orders nothing there, and documents that look alike in all features cannot be told apart by any
ranker. Features may also differ and say nothing: then a ranker of them predicts held-out clicks no
better than position alone does, and every other point that leans on features has nothing to lean
on. That is asked as rankers are compared (see `evaluation.click_check`), against no ranker at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question
from dualrank.diagnostics.trained_pair import BEYOND

NAME = "features"
# A feature that differs on fewer lists than this is as good as constant.
SELDOM = 0.01
# Documents that look like another one of their list, of all that are shown.
MANY_ALIKE = 0.5
MOST_LISTS = 4_000
MOST_NAMES = 5


def telling_features(facts: LogFacts) -> Point:
    """Which features are the same for all documents, and what the others say about clicks."""
    dataset = facts.dataset
    if dataset is None:
        return Question(NAME).answer(
            "not measured", "No features were given.", "Give the features of the documents."
        )
    if not facts.compares:
        return Question(NAME).answer(
            "not measured",
            "Every list shows one document, so that features order nothing within a list.",
            "Put what one user saw at once under one session_id, or train with method stopping.",
        )
    differing, alike = differences(dataset, facts.log.lists, facts.seed)
    useless = np.flatnonzero(differing < SELDOM)
    count = len(differing)
    numbers: dict[str, object] = {
        "features": count,
        "same_for_all_documents_of_a_list": [_name(dataset, k) for k in useless],
        "share_of_documents_that_look_like_another": alike,
    }
    asked = Question(NAME, numbers)
    apart = "these features do not tell documents apart"
    if len(useless) == count:
        return asked.answer(
            "failed",
            f"{'The feature is' if count == 1 else f'All {count} features are'} the same for all "
            f"documents of a list, or nearly always: {apart}, and no ranker can be learned from "
            "them.",
            "Look at how the features are made and joined.",
        )
    idle = ""
    if len(useless):
        verb = "is" if len(useless) == 1 else "are"
        idle = (
            f" {len(useless)} of {count} {verb} the same for all documents of a list, and order "
            f"nothing: {_listed([_name(dataset, k) for k in useless])}."
        )
    if alike > MANY_ALIKE:
        return asked.answer(
            "warning",
            f"{alike:.0%} of the documents shown look like another one of their list in every "
            f"feature: {apart}.{idle}",
            "Add features that differ between the documents of a query.",
        )
    if isinstance(facts.trained, str):
        return asked.answer("not measured", f"{facts.trained[0].upper()}{facts.trained[1:]}.{idle}")
    lead = facts.trained.beyond_position
    numbers |= {"lead_over_position_alone": lead.gain, "standard_error": lead.error}
    led = (
        f"On {lead.clicks:,} held-out clicks a ranker of these features leads position alone by "
        f"{lead.in_errors:+.1f} standard errors"
    )
    if facts.trained.tells:
        return asked.answer("good", f"{led}: they say something about what is clicked.{idle}")
    return asked.answer(
        "warning",
        f"{led}, where {BEYOND:.1f} would be clear: {apart}, or the log is too small to learn by "
        f"them, and nothing that leans on them is confirmed.{idle}",
        "Look at how the features are made and joined, add some that say what a document is worth, "
        "or log longer.",
    )


def differences(
    dataset: Dataset, lists: RankedLists, seed: int = 0
) -> tuple[NDArray[np.float64], float]:
    """On which share of lists each feature differs, and how many documents look like another.

    Of a sample of the lists, if there are many.
    """
    rng = np.random.default_rng([seed, 0x_FEA7])
    long = np.flatnonzero(lists.mask.sum(axis=1) >= 2)
    if len(long) == 0:
        return np.zeros(dataset.feature_count), 0.0
    documents = lists.documents[rng.permutation(long)[:MOST_LISTS]]
    row = np.nonzero(documents >= 0)[0]
    shown = dataset.features[documents[documents >= 0]]
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    differs = np.maximum.reduceat(shown, starts) > np.minimum.reduceat(shown, starts)
    # Two documents of a list look alike where list and features are the same bytes (−0 is 0).
    keyed = np.column_stack([row.astype(np.float32), shown + np.float32(0)])
    whole = np.ascontiguousarray(keyed).view(np.dtype((np.void, keyed.itemsize * keyed.shape[1])))
    _, look, times = np.unique(whole.ravel(), return_inverse=True, return_counts=True)
    return differs.mean(axis=0), float((times[look.ravel()] > 1).mean())


def _name(dataset: Dataset, feature: int | np.integer) -> str:
    if dataset.feature_names is not None:
        return dataset.feature_names[int(feature)]
    return f"feature {int(feature) + 1}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
