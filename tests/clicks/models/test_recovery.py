"""Each model, fitted on sessions sampled from itself, finds its parameters again.

Three derived checks. Over all parameters: twice the gain in log-likelihood over the truth is χ²
with as many degrees of freedom as there are free parameters. Pair by pair: 95% intervals miss 5% of
the time. What all pairs share: its mean over independent logs is within the t interval of these.
"""

import numpy as np
import pytest
from scipy import stats

from dualrank.clicks.models.em import Prior
from dualrank.clicks.models.registry import click_model

DEPTH, LOGS, SESSIONS, QUERIES = 4, 8, 125_000, 6
PAIRS = QUERIES * DEPTH
NO_PRIOR = Prior(strength=0.0)
ALMOST_NEVER = 1e-5

MODELS_BY_TRUTH = {
    "document-ctr": "document-ctr",
    "pbm": "pbm",
    "pbm-trust": "pbm-trust",
    "cascade": "cascade",
    "dcm": "dcm-em",
    "ccm": "ccm",
    "ubm": "ubm",
    "sdbn": "sdbn-em",
    "dbn": "dbn",
}
# Ranks, cells and probabilities that all pairs share and that are free. The last rank has nothing
# to go on to; the trust model has two parameters of ranks less than it has names for.
SHARED = {"pbm": DEPTH - 1, "pbm-trust": 2 * DEPTH - 2, "dcm": DEPTH - 1, "ccm": 3, "dbn": 1}
SHARED["ubm"] = DEPTH * (DEPTH + 1) // 2 - 1


@pytest.fixture(scope="module", params=MODELS_BY_TRUTH)
def fits(request, known_model, rotated_lists):
    """A million sessions of one model, as several logs, each with its fit."""
    truth = known_model(request.param, PAIRS, seed=1)
    name = MODELS_BY_TRUTH[request.param]
    lists = rotated_lists(QUERIES)
    logs = [truth.sample(lists, SESSIONS, seed) for seed in range(LOGS)]
    return request.param, truth, [(log, click_model(name, NO_PRIOR).fit(log)) for log in logs]


def test_the_gain_over_the_truth_is_chi_squared(fits):
    name, truth, fitted = fits
    gains = [2 * (m.log_likelihood(log) - truth.log_likelihood(log)) for log, m in fitted]
    satisfactions = PAIRS if name in ("dbn", "sdbn") else 0
    degrees = LOGS * (PAIRS + satisfactions + SHARED.get(name, 0))
    low, high = stats.chi2.ppf([ALMOST_NEVER, 1 - ALMOST_NEVER], degrees)
    assert low < sum(gains) < high


def test_intervals_of_pairs_miss_one_in_twenty(fits):
    _, truth, fitted = fits
    true = truth.relevance_of_pairs().values
    missed = 0
    for _, model in fitted:
        found = model.relevance_of_pairs()
        missed += ((true < found.low) | (true > found.high)).sum()
    # Intervals take what pairs share as known; its error is one that all pairs of a log have.
    assert missed <= stats.binom.ppf(1 - ALMOST_NEVER, LOGS * PAIRS, 0.08)
    assert missed >= stats.binom.ppf(ALMOST_NEVER, LOGS * PAIRS, 0.05)


def test_shared_parameters_are_found(fits):
    _, truth, fitted = fits
    for name, true in truth.fitted.shared.items():
        found = np.array([model.fitted.shared[name] for _, model in fitted])
        reach = stats.t.ppf(1 - ALMOST_NEVER / 2, LOGS - 1)
        error = found.std(axis=0, ddof=1) / np.sqrt(LOGS) * reach
        seen = true > 0
        if name == "continuation" and len(true) == DEPTH:
            seen[-1] = False  # nobody can go on from the last rank
        assert (np.abs(found.mean(axis=0) - true) <= error + 1e-3)[seen].all()


@pytest.mark.parametrize("name", ["dcm", "sdbn"])
def test_the_closed_form_is_right_where_every_reader_leaves_at_the_last_click(
    name, known_model, rotated_lists, with_values
):
    """The last document is clicked by all who reach it, so who clicks no more has left."""
    lists = rotated_lists(1)
    lists.documents[:, -1] = 7
    truth = with_values(
        known_model(name, 8), attraction=[0.3, 0.5, 0.2, 0.6, 0.5, 0.5, 0.5, 1 - 1e-12]
    )
    log = truth.sample(lists, 400_000, 0)
    model = click_model(name, NO_PRIOR).fit(log)
    found, true = model.fitted.pairs["attraction"], truth.fitted.pairs["attraction"].values
    clicked = np.arange(4)
    error = (found.high - found.low)[clicked]
    assert (np.abs(found.values - true)[clicked] < 1.3 * error).all()
    if name == "dcm":
        true_lambda = truth.fitted.shared["continuation"][:-1]
        found_lambda = model.fitted.shared["continuation"][:-1]
        assert np.abs(found_lambda - true_lambda).max() < 4.5 * 0.5 / np.sqrt(60_000)


@pytest.mark.parametrize("name", ["dcm", "sdbn"])
def test_elsewhere_the_closed_form_calls_documents_too_attractive(name, known_model, rotated_lists):
    truth = known_model(name, PAIRS, seed=1)
    log = truth.sample(rotated_lists(QUERIES), SESSIONS, 0)
    closed, exact = (
        np.mean(click_model(kind).fit(log).fitted.pairs["attraction"].values)
        for kind in (name, f"{name}-em")
    )
    true = truth.fitted.pairs["attraction"].values.mean()
    assert closed > true + 0.02
    assert abs(exact - true) < 0.01
