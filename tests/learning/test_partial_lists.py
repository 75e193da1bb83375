"""Lists with gaps: what was not shown or not logged is not known, and the rest is learned from."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.losses import plackett_luce_loss
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists
from dualrank.data.lists import RankedLists, top_lists
from dualrank.data.log.read_log import read_log
from dualrank.errors import DataError
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.feedback import DisplayedOrder
from dualrank.learning.fit import fit
from dualrank.learning.logging_scores import logging_scores
from dualrank.propensity.estimators import estimate
from dualrank.rankers.batch import Batch
from dualrank.rankers.network import Linear
from dualrank.settings import TrainingSettings

QUERIES, DOCUMENTS, SESSIONS = 200, 10, 30_000
SETTINGS = TrainingSettings(steps=600)
# Lists of few documents, most of them without a click, move the curve by less at a step.
LONGER = TrainingSettings(steps=1_000, propensity_rate=3.0)
SEED = 0


@pytest.fixture(scope="module")
def data():
    """Relevance is the first feature; the second is what a careless logging ranker sorts by."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(QUERIES * DOCUMENTS, 2)).astype(np.float32)
    grades = np.digitize(X[:, 0] + 0.5 * rng.normal(size=len(X)), [-0.5, 0.3, 1.0, 1.7])
    return Dataset.from_arrays(X, np.repeat(np.arange(QUERIES), DOCUMENTS), grades, max_grade=4)


def logged(data, *rankers):
    """What users of these rankers did, in full."""
    lists = join_lists([top_lists(data, data.features @ ranker) for ranker in rankers])
    return sample_log(data, lists, PositionBasedUser(), SESSIONS, np.random.default_rng([SEED, 1]))


def sampled(log, data):
    """Every impression is logged with a chance of 0.3."""
    table = log.to_table(data)
    keep = np.random.default_rng([SEED, 2]).random(len(table)) < 0.3
    return read_log(table.filter(pa.array(keep)), data, partial=True)


def single(log, data):
    """Of every session one impression is logged."""
    table = log.to_table(data)
    session = table["session_id"].to_numpy()
    order = np.lexsort((np.random.default_rng([SEED, 3]).random(len(table)), session))
    first = order[np.append(True, np.diff(session[order]) > 0)]
    return read_log(table.take(pa.array(first)), data, partial=True)


@pytest.fixture(scope="module")
def full(data):
    return logged(data, [0.5, 1.0])


@pytest.fixture(scope="module")
def moved(data):
    """The log of two rankers that disagree: documents were seen at several positions."""
    return logged(data, [0.5, 1.0], [0.2, -0.5])


@pytest.fixture(scope="module")
def partial(full, data):
    return sampled(full, data)


@pytest.fixture(scope="module")
def moved_partial(moved, data):
    return sampled(moved, data)


def quality(model, data):
    return evaluate(model.predict(data), data, ["ndcg@10"])["ndcg@10"]


def trained(log, data, method, settings=SETTINGS):
    return fit(log, data, method=method, ranker=Linear(), settings=settings, validation=0.2)


def error(curve):
    """How far a curve is from the users' own, as the mean of absolute logarithms."""
    truth = PositionBasedUser().examination(len(curve))
    return float(np.abs(np.log(curve) - np.log(truth / truth[0])).mean())


def test_corrections_gain_from_sampled_impressions_what_they_gain_from_all(data, full, partial):
    assert partial.lists.have_gaps.mean() > 0.9
    naive, dual = (quality(trained(partial, data, m), data) for m in ("naive", "dla"))
    assert dual > naive + 0.01
    likely = trained(partial, data, "likelihood", LONGER)
    assert quality(likely, data) > naive + 0.025
    assert quality(likely, data) > quality(trained(full, data, "likelihood"), data) - 0.015
    assert error(likely.propensity.examination) < 0.3


def test_curves_are_read_off_what_is_there(data, moved, moved_partial):
    for part in (moved_partial, single(moved, data)):
        assert error(estimate(part, "click-through").examination) > 0.3
        assert error(estimate(part, "harvest-all-pairs").examination) < 0.25
        assert error(estimate(part, "pbm").examination) < 0.25


@pytest.mark.parametrize("method", ["dla", "likelihood"])
def test_curves_are_learned_from_sampled_impressions(data, moved_partial, method):
    raw = error(estimate(moved_partial, "click-through").examination)
    assert error(trained(moved_partial, data, method).propensity.examination) < 0.75 * raw


def test_single_impressions_teach_by_stopping_and_no_other_way(data, full):
    partial = single(full, data)
    for method in ("dla", "likelihood", "naive", "auto"):
        with pytest.raises(DataError, match=r"no list shows two documents.*use method='stopping'"):
            trained(partial, data, method)
    learned = quality(trained(partial, data, "stopping"), data)
    assert learned > quality(trained(full, data, "naive"), data) + 0.02


def test_what_must_know_the_clicks_above_refuses_gaps(data, partial):
    with pytest.raises(DataError, match=r"lists have gaps.*likelihood, dla and ipw learn from"):
        trained(partial, data, "stopping")
    with pytest.raises(DataError, match="the click model dcm-em follows users down the list"):
        trained(partial, data, "dcm")


def test_auto_takes_no_candidate_that_needs_whole_lists(data, partial):
    quick = TrainingSettings(steps=20)
    model = fit(partial, data, method="auto", ranker=Linear(), settings=quick)
    assert not any("stopping" in name for name in model.training["auto"]["leads"])


# One list with gaps above, between and below its documents, and the same without them.
GAPS = np.array([[-1, 0, -1, 1, 2, -1]], dtype=np.int32)
CLOSED = np.array([[0, 1, 2]], dtype=np.int32)
PLACES = [1, 3, 4]


def shown(documents, labels):
    return Batch(documents, np.array([labels], dtype=np.float32), 1).to(torch.device("cpu"))


def test_dual_learning_compares_with_the_first_document_that_was_logged():
    scores = torch.tensor([[0.0, 2.0, 0.0, 0.5, -1.0, 0.0]])
    gaps = shown(GAPS, [0, 1, 0, 1, 1, 0])
    slope, clicks = DualLearning(6, SETTINGS).position_evidence(scores, gaps)
    closed = shown(CLOSED, [1, 1, 1])
    expected, of_closed = DualLearning(3, SETTINGS).position_evidence(scores[:, PLACES], closed)
    torch.testing.assert_close(slope[:, PLACES], expected)
    assert clicks == of_closed
    assert not slope[:, [0, 2, 5]].any()


def test_the_order_of_what_was_logged_is_imitated():
    scores = torch.tensor([[0.0, 2.0, 0.0, 0.5, -1.0, 0.0]])
    gaps = plackett_luce_loss(scores, torch.tensor([[0, 1.0, 0, 1, 1, 0]]), shown(GAPS, [0.0] * 6))
    closed = plackett_luce_loss(scores[:, PLACES], torch.ones(1, 3), shown(CLOSED, [0.0] * 3))
    torch.testing.assert_close(gaps.value, closed.value)
    torch.testing.assert_close(gaps.slope[:, PLACES], closed.slope)
    torch.testing.assert_close(gaps.curvature()[:, PLACES], closed.curvature())


def test_candidates_may_have_stood_in_a_gap(data, full, partial):
    rng = np.random.default_rng(0)
    gaps = partial.take_lists(np.flatnonzero(partial.lists.have_gaps))
    assert (DisplayedOrder(gaps, data).draw(64, rng).documents[:, 10:] < 0).all()
    assert (DisplayedOrder(full, data).draw(64, rng).documents[:, 10:] < 0).all()
    top = top_lists(data, data.features[:, 0], 3)
    log = sample_log(data, top, PositionBasedUser(), 100, rng)
    assert (DisplayedOrder(log, data).draw(64, rng).documents[:, 3:] >= 0).any()


def test_logging_scores_are_those_among_what_was_logged():
    scores = np.array([2.0, 0.5, -1.0, 4.0])
    four = Dataset.from_arrays(np.zeros((4, 1)), [1] * 4)
    three = Dataset.from_arrays(np.zeros((3, 1)), [1] * 3)
    query = np.zeros(1, dtype=np.int32)
    found = logging_scores(scores, RankedLists(GAPS, query), four)
    expected = logging_scores(scores[:3], RankedLists(CLOSED, query), three)
    np.testing.assert_allclose(found[:, PLACES], expected)
    assert not found[:, [0, 2, 5]].any()
