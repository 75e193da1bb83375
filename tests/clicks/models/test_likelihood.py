"""Likelihoods against every hidden state written out, and EM that only climbs."""

import itertools
import math

import numpy as np
import pytest

from dualrank.clicks.models.em import EM, HALF, Prior
from dualrank.clicks.models.registry import click_model
from dualrank.data.click_log import ClickLog

DEPTH = 4
PATTERNS = np.array(list(itertools.product([False, True], repeat=DEPTH)))
NO_PRIOR = Prior(strength=0.0)
BY_EM = ["pbm", "pbm-trust", "dcm-em", "ccm", "ubm", "sdbn-em", "dbn"]


def bernoulli(p, outcome):
    return p if outcome else 1 - p


def by_hidden_states(model, documents, clicks):
    """P(clicks), summed over attraction, examination, satisfaction and relevance."""
    pairs = {k: v.values[documents] for k, v in model.fitted.pairs.items()}
    shared, name = model.fitted.shared, model.name
    a = pairs["attraction"]
    total = 0.0
    hidden = itertools.product([False, True], repeat=DEPTH)
    for examined in hidden:
        for inner in itertools.product([False, True], repeat=DEPTH):  # satisfied, or relevant
            p, last = 1.0, 0
            for k in range(DEPTH):
                c, e, s = clicks[k], examined[k], inner[k]
                if name in ("pbm", "ubm"):
                    theta = shared["examination"][k]
                    p *= bernoulli(theta[last] if name == "ubm" else theta, e)
                    p *= bernoulli(a[k] if e else 0.0, c)
                    p *= 0.5  # `inner` has no part in it
                elif name == "pbm-trust":
                    rate = shared["relevant" if s else "irrelevant"][k]
                    p *= bernoulli(a[k], s) * bernoulli(rate, c) * 0.5
                else:
                    p *= bernoulli(a[k] if e else 0.0, c)
                    p *= float(e) if k == 0 else 1.0
                    if k == DEPTH - 1:
                        p *= 0.5  # what would follow the last rank is not seen
                    elif not (e and c):
                        onward = {"dbn": "continuation", "ccm": "after_skip"}.get(name)
                        rate = shared[onward][0] if onward else 1.0
                        p *= bernoulli(rate if e else 0.0, examined[k + 1]) * 0.5
                    else:
                        p *= after_click(name, shared, pairs, k, s, examined[k + 1])
                last = k + 1 if c else last
            total += p
    return total


def after_click(name, shared, pairs, k, s, goes_on):
    if name == "cascade":
        return bernoulli(0.0, goes_on) * 0.5
    if name == "dcm":
        return bernoulli(shared["continuation"][k], goes_on) * 0.5
    if name == "ccm":
        rate = shared["after_relevant_click" if s else "after_irrelevant_click"][0]
        return bernoulli(pairs["attraction"][k], s) * bernoulli(rate, goes_on)
    gamma = shared["continuation"][0]
    return bernoulli(pairs["satisfaction"][k], s) * bernoulli(0.0 if s else gamma, goes_on)


@pytest.mark.parametrize("name", ["pbm", "pbm-trust", "dcm", "ccm", "ubm", "sdbn", "dbn"])
def test_likelihood_is_the_sum_over_hidden_states(name, known_model, rotated_lists):
    lists = rotated_lists(1)
    model = known_model(name, DEPTH, seed=3)
    for pattern in PATTERNS:
        log = ClickLog.from_clicks(lists, np.array([1]), pattern[None])
        expected = math.log(by_hidden_states(model, lists.documents[1], pattern))
        assert model.log_likelihood(log) == pytest.approx(expected, abs=1e-9)


def test_the_cascade_gives_every_possible_session_its_probability(known_model, rotated_lists):
    lists, model = rotated_lists(1), known_model("cascade", DEPTH, seed=3)
    for pattern in PATTERNS[PATTERNS.sum(axis=1) <= 1]:
        log = ClickLog.from_clicks(lists, np.array([1]), pattern[None])
        expected = math.log(by_hidden_states(model, lists.documents[1], pattern))
        # After the first click nothing is uncertain, and `SURE` charges 1e-6 for each such skip.
        assert model.log_likelihood(log) == pytest.approx(expected, abs=1e-5)


def test_a_second_click_surprises_the_cascade_but_not_infinitely(known_model, rotated_lists):
    log = ClickLog.from_clicks(rotated_lists(1), np.array([0]), np.array([[1, 1, 0, 0]], bool))
    model = known_model("cascade", DEPTH)
    first = math.log(model.fitted.pairs["attraction"].values[0])
    assert model.log_likelihood(log) == pytest.approx(first + math.log(1e-6), abs=1e-5)


@pytest.fixture(scope="module")
def noise(rotated_lists):
    """Clicks that follow no model, on lists of several lengths."""
    rng = np.random.default_rng(5)
    lists = rotated_lists(7, ragged=True)
    list_of = rng.integers(len(lists), size=3_000)
    clicks = (rng.random((3_000, DEPTH)) < rng.random((3_000, 1))) & lists.mask[list_of]
    return ClickLog.from_clicks(lists, list_of, clicks)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("prior", [NO_PRIOR, Prior(3.0), Prior(2.0, 0.5)])
@pytest.mark.parametrize("name", BY_EM)
def test_the_objective_never_falls(name, prior, accelerated, noise):
    em = EM(max_iterations=300, tolerance=0.0, accelerated=accelerated)
    objective = np.array(click_model(name, prior, em).fit(noise).fitted.climb.objective)
    assert len(objective) > 15
    assert np.diff(objective).min() >= -1e-10 * abs(objective[0])


@pytest.mark.parametrize("name", BY_EM)
def test_acceleration_ends_where_plain_em_ends(name, noise):
    ends = [
        click_model(name, Prior(2.0), EM(100_000, 1e-6, accelerated)).fit(noise).fitted
        for accelerated in (False, True)
    ]
    plain, accelerated = ends
    assert accelerated.climb.iterations < plain.climb.iterations
    assert accelerated.climb.objective[-1] == pytest.approx(plain.climb.objective[-1], abs=1e-3)


@pytest.mark.parametrize("name", ["pbm", "dcm-em", "ccm", "ubm", "sdbn-em", "dbn"])
def test_what_em_climbs_is_the_likelihood_of_the_log(name, noise):
    """The objective without priors is `log_likelihood`, which is computed another way."""
    few, more = (
        click_model(name, NO_PRIOR, EM(n, 0.0, accelerated=False)).fit(noise) for n in (4, 6)
    )
    smoothing = 0.0
    for key, values in few.fitted.shared.items():
        free = values[1:] if key == "examination" and values.ndim == 1 else values
        if key == "examination" and values.ndim == 2:
            inside = np.tril(np.ones(values.shape, bool))
            inside[0, 0] = False
            free = np.append(values[inside], np.full((~inside).sum() - 1, 0.5))
        if name != "sdbn-em":
            smoothing += HALF.log_density(free)
    objective = more.fitted.climb.objective[4] - smoothing
    assert objective == pytest.approx(few.log_likelihood(noise), rel=1e-9)
