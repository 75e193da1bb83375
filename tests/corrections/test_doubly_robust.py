"""Doubly robust labels are right where either propensities or the regression are."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.corrections.affine import Affine
from dualrank.corrections.correction import Basis
from dualrank.corrections.doubly_robust import DoublyRobust
from dualrank.data.click_log import Column
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity
from dualrank.settings import TrainingSettings

NONE = np.zeros(6)


@pytest.fixture(scope="module")
def truth(dataset, user):
    """Examination, and the relevance of every document."""
    grades = dataset.require_grades()
    return user.examination(6), user.perceived_relevance(grades, dataset.max_grade)


def within(labels, log, expected, error, mask):
    """All labels within 4.6 standard errors, and their mean by position within 4."""
    off = np.where(mask, labels - expected, 0.0)
    assert np.abs(off[mask] / error[mask]).max() < 4.6
    weights = log.sessions_per_list[:, None] * mask
    mean = (weights * off).sum(axis=0)
    assert (np.abs(mean) < 4 * np.sqrt((weights**2 * error**2).sum(axis=0))).all()


def errors(log, examination, relevance, denominator):
    """Of the mean over sessions of c/denominator, where P(c) = e r."""
    p = examination * log.lists.gather(relevance)
    return np.sqrt(p * (1 - p) / log.sessions_per_list[:, None]) / denominator


@pytest.mark.parametrize("guess", [0.0, 0.3, "random"])
def test_with_true_propensities_labels_are_relevance_whatever_the_regression_says(
    log, truth, guess
):
    examination, relevance = truth
    wrong = np.random.default_rng(0).random(len(relevance)) if guess == "random" else guess
    wrong = np.broadcast_to(wrong, relevance.shape)
    labels = DoublyRobust(examination[None], NONE, wrong, 0.0).labels(log)
    error = errors(log, examination, relevance, examination)
    within(labels, log, log.lists.gather(relevance), error, log.lists.mask)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 1.0])
def test_with_a_true_regression_labels_are_relevance_whatever_the_denominator(
    log, truth, threshold
):
    examination, relevance = truth
    labels = DoublyRobust(examination[None], NONE, relevance, threshold).labels(log)
    error = errors(log, examination, relevance, np.maximum(examination, threshold))
    within(labels, log, log.lists.gather(relevance), error, log.lists.mask)
    ipw = log.clicks_per_list / log.sessions_per_list[:, None] / np.maximum(examination, threshold)
    off = np.abs(ipw - log.lists.gather(relevance))[log.lists.mask].mean()
    assert np.abs(labels - log.lists.gather(relevance))[log.lists.mask].mean() < off


def test_without_a_threshold_labels_are_affine_and_the_regression_cancels(log, truth):
    examination, relevance = truth
    offsets = np.linspace(0.1, 0.0, 6)
    robust = DoublyRobust(examination[None], offsets, relevance, 0.0).labels(log)
    np.testing.assert_allclose(robust, Affine(examination, offsets).labels(log), atol=1e-12)


def test_every_session_has_the_curve_of_its_context(log, truth):
    _, relevance = truth
    codes = (np.arange(len(log.counts)) % 2).astype(np.int32)
    told = replace(log, columns={"device": Column(("desk", "phone"), codes)})
    curves = np.array([[1, 0.5, 0.4, 0.3, 0.2, 0.1], [1, 0.9, 0.8, 0.7, 0.6, 0.5]])
    found = DoublyRobust(curves, NONE, relevance, 0.25, context="device").labels(told)
    expected = np.zeros_like(found)
    for row, (index, code) in enumerate(zip(log.list_of, codes, strict=True)):
        for k, document in enumerate(log.lists.documents[index]):
            if document >= 0:
                r, e = relevance[document], curves[code, k]
                label = r + (log.clicks[row, k] - e * r) / max(e, 0.25)
                expected[index, k] += log.counts[row] * label / log.sessions_per_list[index]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_without_a_propensity_it_learns_one_and_has_none_by_context(log, dataset):
    basis = Basis(6, TrainingSettings(), log, features=dataset.features)
    built = DoublyRobust.build(basis)
    assert built.propensity() is None
    assert built.slopes.max() == 1
    assert 0 < built.threshold < 1
    given = replace(basis, propensity=Propensity.of([1, 0.8, 0.6, 0.4, 0.3, 0.2]))
    assert DoublyRobust.build(given).propensity() is given.propensity
    with pytest.raises(SettingsError, match="takes curves by context from a propensity"):
        DoublyRobust.build(replace(basis, context="device"))
