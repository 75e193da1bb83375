"""How the best ranker is recognised on clicks that were held out, or by their likelihood."""

import numpy as np
import pytest
import torch

from dualrank.corrections.imitation import Imitation
from dualrank.corrections.likelihood import Likelihood
from dualrank.corrections.stopping import Stopping
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.learning.feedback import DisplayedOrder, LoggedClicks, ReadClicks
from dualrank.learning.validation import OnHeldOutClicks, OnLikelihood
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.ranker import Ranker
from dualrank.settings import TrainingSettings


class Scores:
    """A ranker that scores a document by its first feature."""

    by_list, follow, follow_lists = False, Ranker.follow, Ranker.follow_lists

    def predict(self, features, offsets=None):
        return features[:, 0]


@pytest.fixture
def held_out():
    """Document 3 first of three, document 5 last of two; four and two sessions."""
    lists = RankedLists(
        np.array([[3, 0, 1], [4, 5, PADDING]], np.int32), np.array([0, 1], np.int32)
    )
    clicks = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]], bool)
    return ClickLog(lists, np.array([0, 0, 1], np.int32), clicks, np.array([3, 1, 2]))


def value(scores, log, propensity=None):
    features = np.asarray(scores, np.float32)[:, None]
    validation = OnHeldOutClicks(features, log, lambda: propensity)
    return validation.value(validation.measuring(Scores())())


def test_it_is_the_discounted_rank_of_clicked_documents_by_hand(held_out):
    # Ranks by score: document 0 first, 3 second, 1 third; 5 first, 4 second.
    scores = [0.9, 0.1, 0.0, 0.5, 0.2, 0.4]
    clicks_on = {3: 4, 0: 1, 5: 2}
    ranks = {3: 2, 0: 1, 5: 1}
    discounted = sum(n / np.log2(1 + ranks[d]) for d, n in clicks_on.items())
    assert value(scores, held_out) == pytest.approx(discounted / 7)


def test_labels_that_add_up_to_nothing_are_worth_nothing(held_out):
    labels = np.zeros((2, 3))
    validation = OnHeldOutClicks(np.ones((6, 1), np.float32), held_out, lambda: None, labels=labels)
    assert validation.value(validation.measuring(Scores())()) == 0


def test_clicks_are_weighted_by_the_propensity_believed(held_out):
    scores = [0.9, 0.1, 0.0, 0.5, 0.2, 0.4]
    weighted = {3: 4, 0: 1 / 0.25, 5: 2 / 0.25}
    ranks = {3: 2, 0: 1, 5: 1}
    discounted = sum(w / np.log2(1 + ranks[d]) for d, w in weighted.items())
    believed = Propensity.of([0.8, 0.2, 0.1, 0.1])
    assert value(scores, held_out, believed) == pytest.approx(discounted / sum(weighted.values()))


def test_the_propensity_is_asked_for_at_every_validation(held_out):
    believed = [Propensity.of([1, 1, 1]), Propensity.of([1.0, 0.01, 0.01])]
    features = np.array([0.9, 0.1, 0.0, 0.5, 0.2, 0.4], np.float32)[:, None]
    validation = OnHeldOutClicks(features, held_out, lambda: believed.pop(0))
    measured = validation.measuring(Scores())()
    assert validation.value(measured) != validation.value(measured)


def test_a_ranker_that_puts_every_clicked_document_first_gets_one(held_out):
    only = ClickLog(held_out.lists, held_out.list_of[[0, 2]], held_out.clicks[[0, 2]],
                    held_out.counts[[0, 2]])  # fmt: skip
    assert value([0, 0, 0, 1, 0, 1], only) == 1
    assert value([1, 1, 0, 0, 1, 0], only) < 0.7


def test_padding_never_takes_a_rank(held_out):
    very_low = [-1e30] * 6
    assert value(very_low, held_out) == value([0.0] * 6, held_out)


def test_a_ranker_that_sees_lists_is_given_them_one_by_one():
    """Padding is in no list; a document on two lists is scored on each."""

    class FirstOfItsList:
        by_list, follow, follow_lists = True, Ranker.follow, Ranker.follow_lists
        predict_lists = Ranker.predict_lists

        def predict(self, features, offsets=None):
            return features[:, 0] - np.repeat(features[offsets[:-1], 0], np.diff(offsets))

    features = np.array([[5.0], [7.0], [8.0]], np.float32)
    lists = RankedLists(np.array([[1, 0, 2], [0, 2, -1]], np.int32), np.zeros(2, np.int32))
    scores = FirstOfItsList().predict_lists(features, lists)
    assert scores.tolist() == [[0, -2, 1], [0, 3, 0]]


SCORES = np.array([0.9, 0.1, 0.0, 0.5, 0.2, 0.4])
PHI = np.array([0.0, -0.7, -1.5])


def likelihood_of(correction, feedback):
    correction.model.phi.data = torch.from_numpy(PHI).float()
    validation = OnLikelihood(SCORES.astype(np.float32)[:, None], feedback, correction)
    return validation.value(validation.measuring(Scores())())


def test_likelihood_is_that_of_where_clicks_fell_per_click(held_out):
    total = 0.0
    for documents, clicks in (([3, 0, 1], [4, 1, 0]), ([4, 5], [0, 2])):
        utility = SCORES[documents] + PHI[: len(documents)]
        total += clicks @ (utility - np.log(np.exp(utility).sum()))
    found = likelihood_of(Likelihood(3, TrainingSettings()), LoggedClicks(held_out))
    assert found == pytest.approx(total / 7, rel=1e-5)


def test_how_much_two_likelihoods_differ_by_luck_is_told_by_groups_of_queries():
    """Of independent queries the standard error of a mean difference, per click."""
    rng = np.random.default_rng(0)
    lists = RankedLists(
        np.tile(np.arange(2, dtype=np.int32), (1_000, 1)), np.arange(1_000, dtype=np.int32)
    )
    clicks = rng.random((1_000, 2)) < [[0.5, 0.3]]
    log = ClickLog(lists, np.arange(1_000, dtype=np.int32), clicks, np.ones(1_000, np.int64))
    validation = OnLikelihood(
        np.array([[0.0], [1.0]], np.float32), LoggedClicks(log), Likelihood(2, TrainingSettings())
    )
    one = validation.measuring(Scores())()
    assert validation.doubt(one, one) == 0
    log_p = np.log(np.exp([0.0, 1.0]) / np.exp([0.0, 1.0]).sum())
    per_query = clicks @ log_p - clicks.sum(axis=1) * np.log(0.5)
    even = (np.array(one) * 0 - np.log(2) * clicks.sum() / len(one)).tolist()
    expected = np.sqrt(1_000) * (clicks @ log_p).std() / clicks.sum()
    assert validation.doubt(one, even) == pytest.approx(expected, rel=0.3)
    assert validation.value(one) - validation.value(even) == pytest.approx(
        per_query.sum() / clicks.sum(), rel=1e-4
    )


def test_one_query_leaves_all_in_doubt(held_out):
    one = held_out.take_lists(np.array([0]))
    validation = OnLikelihood(
        SCORES.astype(np.float32)[:, None], LoggedClicks(one), Likelihood(3, TrainingSettings())
    )
    measured = validation.measuring(Scores())()
    assert validation.doubt(measured, measured) == np.inf


def test_likelihood_of_who_stops_is_that_of_clicks_among_what_was_read(held_out):
    """Three sessions read to the first rank and one to the second; two to the second."""
    total = 0.0
    for documents, clicks, read in (([3, 0], [4, 1], [4, 1]), ([4, 5], [0, 2], [2, 2])):
        chance = 1 / (1 + np.exp(-SCORES[documents] - PHI[:2]))
        total += np.array(clicks) @ np.log(chance)
        total += (np.array(read) - clicks) @ np.log(1 - chance)
    found = likelihood_of(Stopping(3, TrainingSettings()), ReadClicks(held_out))
    assert found == pytest.approx(total / 7, rel=1e-5)


def test_an_order_is_judged_by_the_same_others_every_time(held_out):
    data = Dataset.from_arrays(np.zeros((6, 1)), [1] * 4 + [2] * 2)
    features = SCORES.astype(np.float32)[:, None]
    validation = OnLikelihood(features, DisplayedOrder(held_out, data), Imitation())
    assert validation.measuring(Scores())() == validation.measuring(Scores())()
    better = SCORES.copy()
    better[[3, 0, 1, 4, 5]] = [3, 2, 1, 2, 1]
    other = OnLikelihood(
        better.astype(np.float32)[:, None], DisplayedOrder(held_out, data), Imitation()
    )
    assert other.measuring(Scores())()[0] > validation.measuring(Scores())()[0]


def test_a_ranker_that_tells_nothing_does_not_look_like_the_order_displayed():
    """All scores equal: the value is that of a random order, wherever clicks fell."""
    lists = RankedLists(np.arange(4, dtype=np.int32)[None], np.zeros(1, np.int32))
    log = ClickLog.from_clicks(lists, np.zeros(1, int), np.eye(4, dtype=bool)[:1])
    validation = OnHeldOutClicks(np.ones((4, 1), np.float32), log, lambda: None)
    equal = validation.value(validation._of(np.zeros((1, 4), np.float32)))
    assert equal == pytest.approx(np.mean(1 / np.log2(np.arange(2, 6))))
    displayed = validation.value(validation._of(-np.arange(4, dtype=np.float32)[None]))
    assert displayed == 1
