"""Labels for other learners: what clicks owe to relevance."""

import numpy as np
import pytest

from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.letor.reader import read_letor
from dualrank.data.letor.writer import write_letor
from dualrank.data.lists import PADDING, RankedLists
from dualrank.engines.debiased_labels import debiased_labels, label_documents
from dualrank.errors import DataError
from dualrank.propensity.propensity import Propensity


def test_labels_are_weighted_clicks_per_session():
    """Document 1 stood second in six sessions and first in three."""
    lists = RankedLists(np.array([[0, 1], [1, PADDING]], np.int32), np.array([0, 0], np.int32))
    log = ClickLog(
        lists,
        np.array([0, 0, 1, 1], np.int32),
        np.array([[1, 0], [0, 1], [1, 0], [0, 0]], bool),
        np.array([4, 2, 1, 2]),
    )
    data = Dataset.from_arrays(np.eye(3), [7, 7, 8], doc_ids=["a", "b", "c"])
    found = debiased_labels(log, data, Propensity.of([1.0, 0.25]))
    assert found.grades.tolist() == pytest.approx([4 / 6, (2 * 4 + 1) / 9])
    assert found.ids_of_documents().tolist() == ["a", "b"]
    clipped = debiased_labels(log, data, Propensity.of([1.0, 0.25]), max_weight=2.0)
    assert clipped.grades[1] == pytest.approx((2 * 2 + 1) / 9)


def test_weights_are_sessions_as_if_at_the_first_position():
    """Six sessions at a position that is examined a quarter as often, and three at the first."""
    lists = RankedLists(np.array([[0, 1], [1, PADDING]], np.int32), np.array([0, 0], np.int32))
    log = ClickLog(
        lists,
        np.array([0, 1], np.int32),
        np.array([[1, 0], [0, 0]], bool),
        np.array([6, 3]),
    )
    data = Dataset.from_arrays(np.eye(3), [7, 7, 8], doc_ids=["a", "b", "c"])
    found = label_documents(log, data, Propensity.of([1.0, 0.25]))
    assert found.weights.tolist() == [6, 6 / 4 + 3]
    assert found.graded(2).documents.grades.tolist() == [1, 0]


def test_labels_are_weighted_by_the_context_of_each_session():
    lists = RankedLists(np.array([[0, 1]], np.int32), np.array([0], np.int32))
    log = ClickLog(
        lists,
        np.array([0, 0, 0], np.int32),
        np.array([[0, 1], [0, 1], [0, 0]], bool),
        np.array([2, 3, 5]),
        columns={"device": Column(("desk", "phone"), np.array([0, 1, 1], np.int32))},
    )
    data = Dataset.from_arrays(np.eye(2), [7, 7], doc_ids=["a", "b"])
    curves = {"phone": {"examination": [1.0, 0.1]}, "desk": {"examination": [1.0, 0.5]}}
    given = Propensity(np.array([1.0, 0.2]), "x", details={"context": "device", "contexts": curves})
    assert debiased_labels(log, data, given).grades[1] == pytest.approx((2 * 2 + 3 * 10) / 10)


def test_with_the_true_propensities_labels_are_relevance(dataset, lists, user, tmp_path):
    log = sample_log(dataset, lists, user, 300_000, np.random.default_rng(0))
    labels = debiased_labels(log, dataset, Propensity.of(user.curve))
    relevance = user.perceived_relevance(dataset.grades, 4) * user.curve[0]
    ids = dict(zip(dataset.ids_of_documents().tolist(), relevance.tolist(), strict=True))
    expected = np.array([ids[name] for name in labels.ids_of_documents().tolist()])
    # Some 250 labels with at least 4,000 sessions each and weights up to 3.4.
    error = np.sqrt(expected * 3.4 / 4_000)
    assert (np.abs(labels.grades - expected) / error).max() < 5
    write_letor(labels, tmp_path / "labels.txt")
    assert read_letor(tmp_path / "labels.txt").grades.tolist() == labels.grades.tolist()


def test_a_curve_that_is_too_short_is_refused(log, dataset):
    with pytest.raises(DataError, match="show 6 documents, but the propensity knows 2"):
        debiased_labels(log, dataset, Propensity.of([1.0, 0.5]))
