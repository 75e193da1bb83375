"""Steps of a belief on all lists at once."""

import numpy as np
import pytest
import torch

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.corrections.whole_steps import (
    LONGEST,
    SHARE,
    bend_of_each,
    bend_of_softmax,
    move_some_of_the_way,
)
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists

LISTS, DEPTH = 7, 4
RNG = torch.Generator().manual_seed(3)
CLICKS = torch.rand(LISTS, DEPTH, generator=RNG, dtype=torch.float64) * 5
GROUND = torch.randn(LISTS, DEPTH, generator=RNG, dtype=torch.float64)
SCORES = torch.randn(LISTS, DEPTH, generator=RNG, dtype=torch.float64)
AT = torch.randn(DEPTH + 1, generator=RNG, dtype=torch.float64)
MASK = torch.ones(LISTS, DEPTH, dtype=torch.float64)
MASK[::3, 2:] = 0


def utilities(at, ground):
    return SCORES + at[:DEPTH] + (at[DEPTH] * GROUND if ground else 0.0)


def softmax_loss(at, ground):
    chances = torch.exp(utilities(at, ground)) * MASK
    return ((CLICKS * MASK).sum(1) * torch.log(chances.sum(1))).sum()


def read_loss(at, ground):
    return (MASK * torch.nn.functional.softplus(utilities(at, ground))).sum()


@pytest.mark.parametrize("ground", [False, True])
def test_bends_are_what_differentiating_twice_gives(ground):
    at = AT if ground else AT[:DEPTH]
    given = GROUND if ground else None
    chances = torch.exp(utilities(at, ground)) * MASK
    expected = (CLICKS * MASK).sum(1, keepdim=True) * chances / chances.sum(1, keepdim=True)
    hessian = torch.autograd.functional.hessian(lambda x: softmax_loss(x, ground), at)
    torch.testing.assert_close(bend_of_softmax(expected, given), hessian)
    p = torch.sigmoid(utilities(at, ground))
    hessian = torch.autograd.functional.hessian(lambda x: read_loss(x, ground), at)
    torch.testing.assert_close(bend_of_each(MASK * p * (1 - p), given), hessian)


def test_steps_lead_to_where_the_loss_is_least():
    """By a share of what is left each time, once Newton's step would be exact."""
    at = torch.zeros(DEPTH, dtype=torch.float64)
    seen = (CLICKS * MASK).sum(0)
    for _ in range(400):
        chances = torch.exp(SCORES + at) * MASK
        expected = (CLICKS * MASK).sum(1, keepdim=True) * chances / chances.sum(1, keepdim=True)
        slope = expected.sum(0) - seen
        assert move_some_of_the_way([at], slope, bend_of_softmax(expected))
    assert float(slope.abs().max()) < (1 - SHARE) ** 300 * float(seen.max())


def test_no_step_is_too_long_and_none_is_made_on_what_is_no_number():
    bend = torch.diag(torch.tensor([1e-9, 1.0, 1.0]))
    at, worth = torch.zeros(2), torch.zeros(1)
    assert move_some_of_the_way([at, worth], torch.tensor([5.0, 0.1, -0.1]), bend, rate=1e9)
    assert float(at.abs().max()) == pytest.approx(LONGEST)
    before = at.clone()
    for slope, curve in ((torch.full((3,), torch.nan), bend), (torch.ones(3), bend * torch.inf)):
        assert not move_some_of_the_way([at, worth], slope, curve)
    assert torch.equal(at, before)


@pytest.mark.parametrize("method", ["dla", "likelihood"])
def test_sessions_without_a_click_do_not_slow_what_trees_learn_about_position(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(480, 3)).astype(np.float32)
    grades = np.clip(np.round(X[:, 0] + X[:, 1] + 1), 0, 4)
    data = Dataset.from_arrays(X, np.repeat(np.arange(60), 8), grades, max_grade=4)
    lists = top_lists(data, rng.normal(size=480), 6)
    log = sample_log(data, lists, PositionBasedUser(), 6_000, 1)
    nobody = np.zeros((len(lists), 6), dtype=bool)
    quiet = ClickLog.from_clicks(
        lists,
        np.append(log.list_of, np.arange(len(lists))),
        np.concatenate([log.clicks, nobody]),
        np.append(log.counts, np.full(len(lists), 10_000)),
    )
    curves = [
        dr.fit(each, data, method=method, ranker=dr.Trees(), validation=0, steps=20)
        for each in (log, quiet)
    ]
    found = [each.propensity.examination for each in curves]
    assert found[0][-1] < 0.8
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
