"""The same sessions through PyClick (github.com/markovi/PyClick), where it is installed.

What is the same model with the same estimator must agree to rounding. Where PyClick's estimator is
another one (dynamic Bayesian network and click chain), what follows from the parameters must agree.
"""

import numpy as np
import pytest

from dualrank.clicks.models.em import EM, Beta, Prior
from dualrank.clicks.models.pbm import position_counts
from dualrank.clicks.models.product_em import ProductFit, fit_product
from dualrank.clicks.models.registry import click_model
from dualrank.clicks.models.ubm import browsing_counts
from dualrank.data.click_log import ClickLog

pytest.importorskip(
    "pyclick.click_models.PBM", reason="PyClick is not installed", exc_type=ImportError
)

from pyclick.click_models.CCM import CCM
from pyclick.click_models.CM import CM
from pyclick.click_models.DBN import DBN
from pyclick.click_models.DCM import DCM
from pyclick.click_models.Evaluation import LogLikelihood, Perplexity
from pyclick.click_models.Inference import EMInference
from pyclick.click_models.Param import ParamStatic
from pyclick.click_models.PBM import PBM
from pyclick.click_models.SDBN import SDBN
from pyclick.click_models.UBM import UBM
from pyclick.search_session.SearchResult import SearchResult
from pyclick.search_session.SearchSession import SearchSession

# PyClick's parameters begin as one success out of two trials.
THEIRS = Prior(2.0, 0.5)
ITERATIONS = 10
DEPTH = 10


@pytest.fixture(scope="module")
def log(yandex):
    """Some hundred sessions, one row each."""
    train = yandex["train"]
    each = np.repeat(np.arange(len(train.counts)), train.counts)
    each = np.random.default_rng(0).choice(each, 250, replace=False)
    return ClickLog.from_clicks(
        train.lists, train.list_of[each], train.clicks[each], catalogue=train.catalogue
    )


@pytest.fixture(scope="module")
def sessions(log):
    """The log as PyClick wants it; a document is named by its index, which holds the query."""
    found = []
    for row in np.repeat(np.arange(len(log.counts)), log.counts):
        session = SearchSession("q")
        documents = log.lists.documents[log.list_of[row]]
        session.web_results = [
            SearchResult(int(d), int(c)) for d, c in zip(documents, log.clicks[row], strict=True)
        ]
        found.append(session)
    return found


@pytest.fixture(scope="module")
def shown(log):
    return np.unique(log.lists.documents[log.list_of])


def of_documents(model, name, shown):
    container = model.params[model.param_names[name]]
    return np.array([container.get("q", int(document)).value() for document in shown])


def require_same_scores(ours, theirs, log, sessions):
    """Log-likelihood (PyClick's is the mean over ranks too) and perplexity."""
    likelihood = LogLikelihood().evaluate(theirs, sessions)
    assert ours.log_likelihood(log) / log.sessions / DEPTH == pytest.approx(likelihood, rel=1e-6)
    overall, per_rank = Perplexity().evaluate(theirs, sessions)
    found = ours.perplexity(log)
    assert found.overall == pytest.approx(overall, rel=1e-6)
    np.testing.assert_allclose(found.per_rank, per_rank, rtol=1e-6)


@pytest.mark.parametrize(("name", "peer"), [("pbm", PBM), ("ubm", UBM)])
def test_iterations_of_em_are_the_same(name, peer, log, sessions, shown):
    """From the same start, with the same prior and without the anchor that PyClick lacks."""
    theirs = peer()
    theirs._inference = EMInference(ITERATIONS)
    theirs.train(sessions)
    counts = position_counts(log) if name == "pbm" else browsing_counts(log)
    half = Beta(1.0, 1.0, 0.5)
    start = ProductFit([np.full(counts.pairs, 0.5)], np.full(counts.cells, 0.5), None)
    ours = fit_product(
        [counts],
        half,
        EM(ITERATIONS, 0.0, accelerated=False),
        examination_prior=half,
        anchor=None,
        start=start,
    )
    np.testing.assert_allclose(
        ours.attraction[0][shown], of_documents(theirs, "attr", shown), atol=1e-10
    )
    exam = theirs.params[theirs.param_names.exam]
    for cell in np.flatnonzero(counts.per_cell(counts.clicks + counts.skips)):
        if name == "pbm":
            value = exam.get(cell).value()
        else:
            rank, last = divmod(cell, DEPTH + 1)
            value = exam.get(rank, last - 1 if last else DEPTH - 1).value()
        assert ours.examination[cell] == pytest.approx(value, abs=1e-10)
    model = click_model(name, THEIRS).fit(log)
    found = model.fitted
    found.pairs["attraction"].values[:] = ours.attraction
    found.shared["examination"][:] = ours.examination.reshape(found.shared["examination"].shape)
    require_same_scores(model, theirs, log, sessions)


@pytest.mark.parametrize(("name", "peer"), [("cascade", CM), ("dcm", DCM), ("sdbn", SDBN)])
def test_closed_forms_are_the_same(name, peer, log, sessions, shown):
    theirs = peer()
    theirs.train(sessions)
    ours = click_model(name, THEIRS).fit(log)
    attraction = ours.fitted.pairs["attraction"].values[shown]
    np.testing.assert_allclose(attraction, of_documents(theirs, "attr", shown), atol=1e-12)
    if name == "sdbn":
        satisfaction = ours.fitted.pairs["satisfaction"].values[shown]
        np.testing.assert_allclose(satisfaction, of_documents(theirs, "sat", shown), atol=1e-12)
    if name == "dcm":
        theirs_by_rank = [theirs.params[theirs.param_names.cont].get(k) for k in range(DEPTH)]
        # Ours counts one trial beforehand, theirs two.
        clicks = np.array([p._denominator - 2 for p in theirs_by_rank])
        went_on = np.array([p._numerator - 1 for p in theirs_by_rank])
        found = ours.fitted.shared["continuation"]
        np.testing.assert_allclose(found, (went_on + 0.5) / (clicks + 1), atol=1e-12)
        found[:] = [p.value() for p in theirs_by_rank]
    if name == "cascade":
        # After the first click PyClick charges 10⁻⁶ for every rank, ours for every click.
        _, per_rank = Perplexity().evaluate(theirs, sessions)
        np.testing.assert_allclose(ours.perplexity(log).per_rank, per_rank, rtol=1e-5)
    else:
        require_same_scores(ours, theirs, log, sessions)


@pytest.mark.parametrize(("name", "peer"), [("dbn", DBN), ("ccm", CCM)])
def test_the_same_parameters_give_the_same_probabilities(name, peer, log, sessions, shown):
    ours, theirs = click_model(name).fit(log), peer()
    names = {"attraction": "attr", "satisfaction": "sat"}
    for parameter, values in ours.fitted.pairs.items():
        container = theirs.params[theirs.param_names[names[parameter]]]
        for document in shown:
            container.set(ParamStatic(values.values[document]), "q", int(document))
    names = {
        "continuation": "cont",
        "after_skip": "cont_noclick",
        "after_irrelevant_click": "cont_click_nonrel",
        "after_relevant_click": "cont_click_rel",
    }
    for parameter, values in ours.fitted.shared.items():
        theirs.params[theirs.param_names[names[parameter]]].set(ParamStatic(values[0]))
    require_same_scores(ours, theirs, log, sessions)


@pytest.mark.parametrize(("name", "peer"), [("dbn", DBN), ("ccm", CCM)])
def test_exact_em_reaches_a_higher_likelihood(name, peer, log, sessions):
    """PyClick's update of attraction leaves the clicks above out of account (see the docs)."""
    few = sessions[:25]
    rows = np.repeat(np.arange(len(log.counts)), log.counts)[:25]
    part = ClickLog.from_clicks(log.lists, log.list_of[rows], log.clicks[rows])
    theirs = peer(EMInference(4))
    theirs.train(few)
    ours = click_model(name, THEIRS, EM(4, 0.0, accelerated=False)).fit(part)
    per_rank = LogLikelihood().evaluate(theirs, few)
    assert ours.log_likelihood(part) / part.sessions / DEPTH > per_rank
