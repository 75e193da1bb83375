"""Steps of a belief on all lists at once."""

import numpy as np
import pytest
import torch

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.corrections.position_models import ContextualPositions, PositionNetwork
from dualrank.corrections.whole_steps import (
    LONGEST,
    SHARE,
    bend_of_each,
    bend_of_softmax,
    border_of_each,
    border_of_softmax,
    bordered,
    some_of_the_way,
)
from dualrank.data.click_log import ClickLog, Column
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


def softmax_expected(at, ground):
    chances = torch.exp(utilities(at, ground)) * MASK
    return (CLICKS * MASK).sum(1, keepdim=True) * chances / chances.sum(1, keepdim=True)


def read_curvature(at, ground):
    p = torch.sigmoid(utilities(at, ground))
    return MASK * p * (1 - p)


@pytest.mark.parametrize(
    ("loss", "found", "bend", "border"),
    [
        (softmax_loss, softmax_expected, bend_of_softmax, border_of_softmax),
        (read_loss, read_curvature, bend_of_each, border_of_each),
    ],
)
def test_bends_are_what_differentiating_twice_gives(loss, found, bend, border):
    hessian = torch.autograd.functional.hessian(lambda at: loss(at, False), AT[:DEPTH])
    torch.testing.assert_close(bend(found(AT, False)), hessian)
    hessian = torch.autograd.functional.hessian(lambda at: loss(at, True), AT)
    values = found(AT, True)
    whole = bordered(bend(values).float(), *border(values, GROUND))
    torch.testing.assert_close(whole, hessian.float(), rtol=1e-5, atol=1e-5)


def test_steps_lead_to_where_the_loss_is_least():
    """By a share of what is left each time, once Newton's step would be exact."""
    at = torch.zeros(DEPTH + 1, dtype=torch.float64)
    seen = (CLICKS * MASK).sum(0)
    for _ in range(400):
        expected = softmax_expected(at, False)
        slope = expected.sum(0) - seen
        at[:DEPTH] += some_of_the_way(slope, bend_of_softmax(expected))
    assert float(slope.abs().max()) < (1 - SHARE) ** 300 * float(seen.max())


def test_a_position_that_would_go_too_far_slows_no_other():
    bend = torch.diag(torch.tensor([1e-9, 1.0, 1.0]))
    way = some_of_the_way(torch.tensor([5.0, 0.1, -0.1]), bend)
    assert float(way[0]) == -LONGEST
    torch.testing.assert_close(way[1:], torch.tensor([-0.1, 0.1]) * SHARE, rtol=1e-3, atol=0)


def test_no_rate_goes_further_than_newton():
    way = some_of_the_way(torch.tensor([0.4]), torch.tensor([[2.0]]), rate=1e9)
    assert float(way) == pytest.approx(-0.2, rel=1e-5)


def test_contexts_end_where_clicks_and_prior_agree():
    """Σ slopes of the clicks and δ/σ² are 0 for each context, and their sum for the common φ."""
    model = ContextualPositions(DEPTH, {"a": 10, "b": 30}, spread=0.5)
    clicks = torch.stack([CLICKS[0], 10 * CLICKS[1]]).float()
    for _ in range(3_000):
        expected = clicks.sum(1, keepdim=True) * torch.softmax(model().detach(), dim=1)
        slope = expected - clicks
        bend = torch.stack([bend_of_softmax(row[None]) for row in expected])
        model.follow_contexts(slope, bend, 1.0)
        model.follow(some_of_the_way(slope.sum(0), bend.sum(0)))
    delta = (model() - model.phi).detach()
    torch.testing.assert_close(slope + delta / 0.25, torch.zeros(2, DEPTH), rtol=0, atol=2e-2)
    assert float(delta.abs().max()) > 0.05


def test_a_network_of_positions_goes_the_way_that_its_table_should():
    model = PositionNetwork(DEPTH)
    for target in (torch.tensor([0.0, -0.2, -0.4, -0.1]), torch.tensor([0.1, -0.3, -0.4, 0.0])):
        for _ in range(20):
            model.follow(0.3 * (target - model().detach()[0]))
        torch.testing.assert_close(model().detach()[0], target, rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "dla"},
        {"method": "likelihood"},
        {"method": "dla", "position_model": "network"},
        {"method": "dla", "context": "device"},
    ],
)
def test_sessions_without_a_click_do_not_slow_what_trees_learn_about_position(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(480, 3)).astype(np.float32)
    grades = np.clip(np.round(X[:, 0] + X[:, 1] + 1), 0, 4)
    data = Dataset.from_arrays(X, np.repeat(np.arange(60), 8), grades, max_grade=4)
    lists = top_lists(data, rng.normal(size=480), 6)
    log = sample_log(data, lists, PositionBasedUser(), 6_000, 1)
    nobody = np.zeros((len(lists), 6), dtype=bool)
    odd = log.list_of % 2
    quiet = ClickLog.from_clicks(
        lists,
        np.append(log.list_of, np.arange(len(lists))),
        np.concatenate([log.clicks, nobody]),
        np.append(log.counts, np.full(len(lists), 10_000)),
        columns={"device": Column(("a", "b"), np.append(odd, np.arange(len(lists)) % 2))},
    )
    log = ClickLog.from_clicks(
        lists, log.list_of, log.clicks, log.counts, columns={"device": Column(("a", "b"), odd)}
    )
    models = [
        dr.fit(each, data, ranker=dr.Trees(), validation=0, steps=20, **options)
        for each in (log, quiet)
    ]
    found = [each.propensity.examination for each in models]
    assert found[0][-1] < 0.8
    # Curves are averaged over sessions, which contexts have other shares of.
    np.testing.assert_allclose(found[1], found[0], rtol=1e-2 if "context" in options else 1e-5)
