"""Pairs of a click and a skip by what both are worth at their positions."""

import numpy as np
import pytest
import torch

from dualrank.corrections import pairwise
from dualrank.corrections.pairwise import Pairwise
from dualrank.rankers.ranker import Step

DEPTH = 4


@pytest.fixture
def lists(show):
    rng = np.random.default_rng(0)
    mask = np.arange(DEPTH) < np.array([4, 3, 1, 4, 2, 4])[:, None]
    scores = torch.from_numpy(rng.normal(size=mask.shape) * mask)
    return scores, show(rng.random(mask.shape) * mask, mask)


def by_loop(scores, shown, clicked, skipped):
    """The loss, S⁺ and S⁻."""
    total, plus, minus = 0.0, np.zeros(DEPTH), np.zeros(DEPTH)
    for s, c, mask in zip(scores.tolist(), shown.labels.tolist(), shown.mask, strict=True):
        n = int(mask.sum())
        for i in range(n):
            for j in set(range(n)) - {i}:
                loss = c[i] * (1 - c[j]) / (n - 1) * np.log(1 + np.exp(s[j] - s[i]))
                total += loss / (clicked[i] * skipped[j])
                plus[i] += loss / skipped[j]
                minus[j] += loss / clicked[i]
    return total, plus, minus


@pytest.mark.parametrize("p", [0.0, 0.5, 2.0])
def test_losses_and_ratios_are_those_of_plain_loops(lists, p, monkeypatch):
    monkeypatch.setattr(pairwise, "P", p)
    scores, shown = lists
    correction = Pairwise(DEPTH)
    clicked = skipped = np.ones(DEPTH)
    running = np.zeros((2, DEPTH))
    for _ in range(4):
        signal = correction.signal(scores, shown)
        expected, *sums = by_loop(scores, shown, clicked, skipped)
        assert float(signal.loss) == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(signal.evidence[0], sums, rtol=1e-5)
        correction.learn(signal.evidence, Step(len(scores), signal.clicks))
        running += pairwise.MOVE * (np.array(sums) - running)
        clicked, skipped = (running / running[:, :1]) ** (1 / (1 + p))
        np.testing.assert_allclose(correction.ratios(), [clicked, skipped], rtol=1e-4)


def test_an_even_ranker_leaves_the_click_and_skip_rates_of_positions(show):
    """With L_ij = c_i (1 − c_j) they solve the equations of t⁺ and t⁻ exactly."""
    rates = np.array([0.4, 0.2, 0.1, 0.05])
    shown, scores = show(np.tile(rates, (50, 1))), torch.zeros(50, DEPTH, dtype=torch.float64)
    correction = Pairwise(DEPTH)
    for _ in range(3_000):
        signal = correction.signal(scores, shown)
        correction.learn(signal.evidence, Step(50, signal.clicks))
    expected = [rates / rates[0], (1 - rates) / (1 - rates[0])]
    np.testing.assert_allclose(correction.ratios(), expected, rtol=1e-3)
    np.testing.assert_allclose(correction.propensity().examination, expected[0], rtol=1e-3)
