"""Do the features tell documents apart, and say anything about what is clicked?

A feature that is the same for all documents of a list (a constant, or something about the query)
orders nothing there, and documents that look alike in all features cannot be told apart by any
ranker. Features may also differ and say nothing: then every other point that leans on features has
nothing to lean on. Both are asked, each feature by itself (see `feature_worth`) and the rankers of
all of them, which must predict held-out clicks better than position alone does: a small log tells
that there is something to learn long before a ranker has learned it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import ALARM
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question

NAME = "features"
# A feature that differs on fewer lists than this is as good as constant.
SELDOM = 0.01
# Documents that look like another one of their list, of all that are shown.
MANY_ALIKE = 0.5
# Features are called useless where luck alone often shows as much as they do, and clicks that
# differ by this factor for a standard deviation of one would have been seen; generated web search
# data, whose features are good, have 1.05 to 1.1.
NO_SIGN, NOTABLE = 0.2, 1.1
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
    worth, pair, led = facts.worth, facts.trained, ""
    if worth is None:
        return asked.answer("not measured", f"No clicks show what the features are worth.{idle}")
    numbers |= asdict(worth) | {"most_telling": _name(dataset, worth.most_telling)}
    if not isinstance(pair, str):
        lead = pair.beyond_position
        numbers |= {"lead_over_position_alone": lead.gain, "standard_error": lead.error}
        led = (
            f" On {lead.clicks:,} held-out clicks a ranker of them leads position alone by "
            f"{lead.in_errors:+.1f} standard errors."
        )
    lucky = "p < 0.0001" if worth.p_value < 0.0001 else f"p = {worth.p_value:.2g}"
    if facts.features_tell:
        by = f"({lucky}; most of all by {_name(dataset, worth.most_telling)})"
        if worth.p_value >= ALARM:
            by = "(taken together)"
        return asked.answer(
            "good",
            f"The features tell which documents are clicked, given the position {by}.{led}{idle}",
        )
    if worth.p_value > NO_SIGN and worth.blind <= NOTABLE:
        return asked.answer(
            "warning",
            f"No feature is seen to tell which documents are clicked, given the position "
            f"({lucky}), where a factor of {worth.blind:.2f} for a standard deviation of one would "
            f"have been: {apart}, or hardly, and nothing that leans on them is confirmed."
            f"{led}{idle}",
            "Look at how the features are made and joined, and add some that say what a document "
            "is worth.",
        )
    missed = f" A factor of {worth.blind:.2f} for a standard deviation of one could be missed."
    return asked.answer(
        "not measured",
        "Whether the features tell which documents are clicked, given the position, cannot be told "
        f"({lucky}, where {ALARM:g} would be clear).{missed if worth.blind > NOTABLE else ''}"
        f"{led}{idle}",
        "Log longer; until then nothing that leans on them is confirmed.",
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
