"""Plackett and Luce's model of an order: against a plain loop, and right at the extremes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dualrank.corrections.imitation import Imitation
from dualrank.corrections.losses import plackett_luce_loss

LISTS, SHOWN, DEPTH = 9, 4, 7


def plain(scores, targets, mask):
    """−Σ_k t_k log P(k is drawn next), the documents of every list one after the other."""
    total = 0.0
    for row in range(len(scores)):
        places = np.flatnonzero(mask[row])
        for k in places:
            left = [np.exp(scores[row, j]) for j in places if j >= k]
            total -= targets[row, k] * np.log(left[0] / sum(left))
    return total


@pytest.fixture
def problem():
    """Up to four displayed documents of each list, and after them some of three others."""
    rng = np.random.default_rng(0)
    displayed = np.arange(SHOWN) < rng.integers(1, SHOWN + 1, LISTS)[:, None]
    others = rng.random((LISTS, DEPTH - SHOWN)) < 0.6
    mask = np.hstack([displayed, others])
    labels = np.where(mask, np.arange(DEPTH) < SHOWN, False).astype(float)
    return rng.normal(size=mask.shape), labels, mask


def test_the_loss_is_that_of_a_plain_loop(problem, show):
    scores, labels, mask = problem
    found = plackett_luce_loss(
        torch.from_numpy(scores), show(labels, mask).labels, show(labels, mask)
    )
    assert float(found.value) == pytest.approx(plain(scores, labels, mask), rel=1e-12)
    weighted = labels * np.random.default_rng(1).random(labels.shape)
    shown = show(weighted, mask)
    found = plackett_luce_loss(torch.from_numpy(scores), shown.labels, shown)
    assert float(found.value) == pytest.approx(plain(scores, weighted, mask), rel=1e-12)


def test_slope_and_curvature_are_derivatives_of_the_plain_loop(problem, show):
    scores, labels, mask = problem
    shown, step = show(labels, mask), 1e-4
    loss = plackett_luce_loss(torch.from_numpy(scores), shown.labels, shown)
    curvature, here = loss.curvature(), plain(scores, labels, mask)
    for cell in map(tuple, np.argwhere(mask)):
        ends = []
        for sign in (1, -1):
            moved = scores.copy()
            moved[cell] += sign * step
            ends.append(plain(moved, labels, mask))
        assert float(loss.slope[cell]) == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)
        bend = (sum(ends) - 2 * here) / step**2
        assert float(curvature[cell]) == pytest.approx(bend, abs=1e-5)
    assert not loss.slope[~shown.mask].any()
    # A constant added to all scores of a list changes no probability.
    np.testing.assert_allclose(loss.slope.sum(dim=1), 0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_far_apart_give_finite_numbers_and_the_right_slope(dtype, show):
    """±200: e^{s} alone would overflow. Each draw is then certain, or as good as impossible."""
    shown = show(np.array([[1, 1, 1, 0]], dtype))
    down = torch.tensor([[200.0, 67.0, -67.0, -200.0]]).to(shown.labels.dtype)
    for scores, value, slope in (
        (down, 0.0, [0, 0, 0, 0]),
        (down.flip(1), 400.0 + 267.0 + 133.0, [-1, -1, -1, 3]),
    ):
        loss = plackett_luce_loss(scores, shown.labels, shown)
        for found in (loss.value, loss.slope, loss.curvature()):
            assert torch.isfinite(found).all()
        assert float(loss.value) == pytest.approx(value, abs=1e-4)
        np.testing.assert_allclose(loss.slope[0], slope, atol=1e-6)
        assert (loss.curvature() >= 0).all()


def test_what_others_stand_for_counts_as_so_many(show):
    """An other with the ground log 3 weighs as three of its kind."""
    one = np.array([[1.0, 1.0, 0.0]])
    three = np.array([[1.0, 1.0, 0.0, 0.0, 0.0]])
    scores = torch.tensor([[0.4, -0.3, 0.9]], dtype=torch.float64)
    ground = torch.tensor([[0.0, 0.0, np.log(3)]], dtype=torch.float64)
    found = Imitation().signal(scores, replace(show(one), ground=ground))
    expected = Imitation().signal(scores[:, [0, 1, 2, 2, 2]], show(three))
    assert float(found.loss) == pytest.approx(float(expected.loss), rel=1e-12)
    assert float(found.slope[0, 2]) == pytest.approx(float(expected.slope[0, 2:].sum()), rel=1e-12)
