"""Pairs of a click and a skip by the ratio of propensities."""

import numpy as np
import pytest
import torch

from dualrank.corrections.prs import PropensityRatio
from dualrank.propensity.propensity import Propensity

EXAMINATION = np.array([1.0, 0.6, 0.3, 0.1])
BY_DEVICE = {
    "context": "device",
    "contexts": {"phone": {"examination": [1.0, 0.5, 0.2, 0.05]}},
}


@pytest.fixture
def lists(show):
    rng = np.random.default_rng(0)
    mask = np.arange(4) < np.array([4, 3, 1, 4, 2])[:, None]
    scores = torch.from_numpy(rng.normal(size=mask.shape) * mask)
    return scores, show(rng.random(mask.shape) * mask, mask, contexts=[0, 1, 0, 1, 0])


def by_loop(scores, shown, curves):
    total = 0.0
    for row, context in enumerate(shown.contexts.tolist()):
        s, c, e = scores[row].tolist(), shown.labels[row].tolist(), curves[context]
        n = int(shown.mask[row].sum())
        for i in range(n):
            for j in set(range(n)) - {i}:
                pair = c[i] * (1 - c[j]) * e[j] / e[i] / (n - 1)
                total += pair * np.log(1 + np.exp(s[j] - s[i]))
    return total


def test_the_loss_is_that_of_a_plain_loop_in_the_context_of_each_list(lists):
    scores, shown = lists
    given = Propensity(EXAMINATION, "given", details=BY_DEVICE)
    prs = PropensityRatio(given, 4, contexts=["desk", "phone"])
    expected = by_loop(scores, shown, [EXAMINATION, [1.0, 0.5, 0.2, 0.05]])
    assert float(prs.signal(scores, shown).loss) == pytest.approx(expected, rel=1e-6)


def test_mean_clicks_of_independent_sessions_give_the_loss_of_the_sessions(show):
    """c_i (1 − c_j) of means has the expectation of its mean over sessions."""
    rng = np.random.default_rng(1)
    p, lists, sessions = np.array([0.6, 0.4, 0.3, 0.1]), 400, 5
    clicks = (rng.random((lists, sessions, 4)) < p).astype(float)
    scores = torch.tensor([[0.5, -0.2, 0.1, 1.0]], dtype=torch.float64)
    prs = PropensityRatio(Propensity.of(EXAMINATION), 4)

    def losses(labels):
        return np.array([float(prs.signal(scores, show(row[None])).loss) for row in labels])

    of_means = losses(clicks.mean(axis=1))
    of_sessions = losses(clicks.reshape(-1, 4)).reshape(lists, sessions).mean(axis=1)
    apart = of_means - of_sessions
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(lists)
    assert of_means.std() < of_sessions.std()


def _settled(relevance, show):
    """The scores at which the expected loss of one list is lowest."""
    scores, shown = torch.zeros(1, 4, dtype=torch.float64), show((EXAMINATION * relevance)[None])
    prs = PropensityRatio(Propensity.of(EXAMINATION), 4)
    for _ in range(5_000):
        scores -= 0.3 * prs.signal(scores, shown).slope
    return scores[0].numpy()


def test_relevant_documents_come_first_where_relevance_is_no_chance(show):
    scores = _settled(np.array([0.0, 1.0, 0.0, 1.0]), show)
    assert scores[[1, 3]].min() > scores[[0, 2]].max()


def test_what_is_a_chance_is_corrected_twice(show):
    scores = _settled(np.full(4, 0.05), show)
    np.testing.assert_allclose(scores - scores[0], -np.log(EXAMINATION), atol=0.06)
