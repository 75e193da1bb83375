"""`auto` makes one ranker of those that held-out clicks speak for, and says which and why."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import CascadeUser
from dualrank.data.click_log import PERIOD, ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists
from dualrank.data.lists import RankedLists, top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation.click_check import hold_out
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.auto import (
    BY_POSITION,
    BY_READING,
    fit_best,
    harvested_propensity,
    never_displayed,
    telling_context,
)
from dualrank.learning.choice import choose_by_clicks, choose_by_grades
from dualrank.learning.feedback import SimulatedClicks
from dualrank.learning.fit import fit
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

QUERIES, DOCUMENTS = 600, 10
SETTINGS = TrainingSettings(steps=400)
QUICK = TrainingSettings(steps=20)


def collection(seed):
    """Relevance is the first feature; the second is what a careless logging ranker sorts by."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES * DOCUMENTS, 2)).astype(np.float32)
    grades = np.digitize(X[:, 0] + 0.5 * rng.normal(size=len(X)), [-0.5, 0.3, 1.0, 1.7])
    return Dataset.from_arrays(X, np.repeat(np.arange(QUERIES), DOCUMENTS), grades, max_grade=4)


@pytest.fixture(scope="module")
def data():
    return collection(0)


@pytest.fixture(scope="module")
def biased(data):
    """The log of one ranker: dual learning can see through it, harvesting has nothing to go by."""
    scores = data.features @ [0.5, 1.0]
    return sample_log(data, top_lists(data, scores), PositionBasedUser(), 200_000, 1)


def auto(log, data, **options):
    plan = Plan("auto", Linear(), SETTINGS, validation=0.2).with_options(**options)
    return fit(log, data, plan)


def quality(model, data):
    return evaluate(model.predict(data), data, ["ndcg@10"])["ndcg@10"]


@pytest.fixture(scope="module")
def by_position(data, biased):
    """Whose examination depends on the position: the model, and all candidates."""
    return fit_best(biased, data, Plan("auto", Linear(), SETTINGS, validation=0.2))


def test_where_examination_depends_on_the_position_corrections_are_added_up(data, by_position):
    model, candidates = by_position
    assert list(candidates) == list(BY_POSITION)
    why = model.training["auto"]
    assert model.training["method"] == "auto"
    assert why["chosen"] == " + ".join(why["weights"])
    assert next(iter(why["weights"])) in ("grounded", "likelihood")
    assert set(why["leads"]) == {"auto", *BY_POSITION} - {"naive"}
    assert why["leads"]["auto"]["gain"] > 2 * why["leads"]["auto"]["error"]
    assert why["why"].startswith("it predicts the held-out clicks of ")
    assert "standard errors better than naive, if examination depends on" in why["why"]
    # Every document was displayed.
    assert why["why"].endswith("Clicks cannot tell whether what attracts them also satisfies")
    assert quality(model, data) > quality(candidates["naive"], data) + 0.02


def test_its_scores_are_the_weighted_sum_that_the_manifest_says(data, by_position, tmp_path):
    model, candidates = by_position
    weights = model.training["auto"]["weights"]
    expected = sum(weight * candidates[n].predict(data) for n, weight in weights.items())
    scores = model.predict(data)
    first = next(iter(weights.values()))
    np.testing.assert_allclose(scores, expected / first, rtol=1e-3, atol=1e-4)
    assert list(weights.values()) != [1.0]
    model.save(tmp_path)
    loaded = Model.load(tmp_path)
    assert np.array_equal(loaded.predict(data), scores)
    assert loaded.training["auto"] == model.training["auto"]


def test_users_who_leave_after_a_click_are_known_and_corrected_by_what_they_read(data):
    lists = top_lists(data, data.features @ [0.5, 1.0])
    log = sample_log(data, lists, CascadeUser(), 100_000, 1)
    model, candidates = fit_best(log, data, Plan("auto", Linear(), SETTINGS, validation=0.2))
    assert list(candidates) == list(BY_READING)
    why = model.training["auto"]
    assert "users read from the top and stop after clicks" in why["why"]
    assert next(iter(why["weights"])) in ("stopping", "grounded-stopping")
    assert quality(model, data) > quality(candidates["naive"], data) + 0.02


def test_it_says_how_much_of_its_top_was_never_displayed(data):
    lists = top_lists(data, data.features @ [0.5, 1.0], 3)
    log = sample_log(data, lists, PositionBasedUser(), 20_000, 1)
    model, _ = fit_best(log, data, Plan("auto", Linear(), QUICK, validation=0.2))
    _, held_out = hold_out(log, 0.2, QUICK.seed)
    share = never_displayed(model.predict(data), held_out.lists, data)
    ever = set(lists.documents.ravel().tolist())
    top = top_lists(data, model.predict(data), 3).documents[held_out.lists.queries]
    assert 0 < share == pytest.approx(1 - np.mean([each in ever for each in top.ravel().tolist()]))
    assert f"nor what the {share:.0%} of its top 3 are worth" in model.training["auto"]["why"]


def test_documents_of_queries_that_were_not_logged_do_not_count_as_unseen(data):
    lists = top_lists(data, data.features[:, 0], 5)
    part = RankedLists(lists.documents[:10], lists.queries[:10])
    assert never_displayed(data.features[:, 0], part, data) == 0
    assert never_displayed(-data.features[:, 0], part, data) == 1


def test_with_few_clicks_it_is_no_worse_than_its_first_candidate_or_naive(data):
    lists = top_lists(data, data.features @ [0.5, 1.0])
    log = sample_log(data, lists, PositionBasedUser(), 300, 1)
    model, candidates = fit_best(log, data, Plan("auto", Linear(), SETTINGS, validation=0.2))
    worst = min(quality(candidates[name], data) for name in ("naive", "grounded"))
    assert quality(model, data) > worst - 0.005
    assert json.loads(json.dumps(model.training["auto"]))


def on_devices(data, etas, sessions=60_000):
    """Each device has its users, on lists of the same ranker."""
    lists = top_lists(data, data.features @ [0.5, 1.0])
    parts = [
        sample_log(data, lists, PositionBasedUser(eta=eta), sessions, seed)
        for seed, eta in enumerate(etas)
    ]
    codes = np.repeat(np.arange(len(parts)), [len(part.counts) for part in parts])
    column = Column(("desk", "phone"), codes.astype(np.int32))
    return ClickLog.from_clicks(
        lists,
        np.concatenate([part.list_of for part in parts]),
        np.concatenate([part.clicks for part in parts]),
        np.concatenate([part.counts for part in parts]),
        columns={"device": column},
    )


def test_a_column_by_which_examination_differs_is_found_and_gets_its_curves(data):
    log = on_devices(data, (0.3, 1.8))
    model, candidates = fit_best(log, data, Plan("auto", Linear(), QUICK, validation=0.2))
    assert "with a curve for every device" in model.training["auto"]["why"]
    for name in ("grounded", "likelihood"):
        assert candidates[name].training["context"] == "device"
        assert set(candidates[name].propensity.by_context) == {"desk", "phone"}
    assert "context" not in candidates["naive"].training


def test_a_column_is_found_whatever_form_the_curve_was_asked_to_have(data):
    log = on_devices(data, (0.3, 1.8))
    plan = Plan("auto", Linear(), QUICK, validation=0.2, position_model="network")
    _, candidates = fit_best(log, data, plan)
    assert candidates["likelihood"].training["position_model"] == "contextual"


def test_a_handful_of_queries_gives_a_model(data):
    few = data.take(np.arange(6))
    log = sample_log(few, top_lists(few, few.features[:, 1]), PositionBasedUser(), 2_000, 1)
    why = fit(log, few, method="auto", ranker=Linear(), settings=QUICK).training["auto"]
    assert "held-out clicks of 2 queries" in why["why"]


def test_too_few_held_out_clicks_are_refused_before_anything_is_trained(data):
    few = data.take(np.arange(2))
    log = sample_log(few, top_lists(few, few.features[:, 1]), PositionBasedUser(), 2_000, 1)
    seen = []
    with pytest.raises(DataError, match="hold out a larger share, or train by one method"):
        fit_best(log, few, Plan("auto", Linear()), progress=lambda *at: seen.append(at))
    assert not seen


def test_a_column_that_changes_nothing_is_left_alone(data):
    log = on_devices(data, (1.0, 1.0))
    model, candidates = fit_best(log, data, Plan("auto", Linear(), QUICK, validation=0.2))
    assert "with a curve for every" not in model.training["auto"]["why"]
    assert all("context" not in each.training for each in candidates.values())


def test_a_context_that_was_asked_for_is_taken(data):
    log = on_devices(data, (1.0, 1.0))
    plan = Plan("auto", Linear(), QUICK, context="device", position_model="contextual")
    _, candidates = fit_best(log, data, plan)
    with_curves = {name for name, each in candidates.items() if "context" in each.training}
    assert with_curves == {"grounded", "likelihood"}


def test_a_column_of_one_value_or_of_periods_tells_no_context(data, biased):
    scores = data.features[:, 0]
    log = on_devices(data, (0.3, 1.8))
    period = replace(log, columns={PERIOD: log.columns["device"]})
    assert telling_context(period, scores, reads=False) is None
    assert telling_context(biased, scores, reads=False) is None
    assert telling_context(log, scores, reads=False) == "device"


def test_several_rankers_in_the_log_make_harvesting_a_candidate_of_an_svm(data):
    lists = join_lists(
        [top_lists(data, data.features @ w) for w in ([0.5, 1.0], [0.5, -1.0], [1.0, 0.2])]
    )
    log = sample_log(data, lists, PositionBasedUser(), 200_000, 1)
    assert isinstance(harvested_propensity(log), Propensity)
    svm = fit(log, data, method="auto", ranker=RankingSVM()).training["auto"]
    assert set(svm["leads"]) == {"ipw"}
    assert "not_harvested" not in svm


def test_an_svm_without_a_harvest_stays_naive_and_says_why(data, biased):
    why = fit(biased, data, method="auto", ranker=RankingSVM()).training["auto"]
    assert (why["chosen"], why["leads"]) == ("naive", {})
    assert "no query–document pair was seen" in why["not_harvested"]


def test_a_blurred_harvest_is_no_candidate(data):
    lists = join_lists([top_lists(data, data.features @ w) for w in ([0.5, 1.0], [0.5, -1.0])])
    why = harvested_propensity(sample_log(data, lists, PositionBasedUser(), 400, 1))
    assert "is known only between" in why or "clicked" in why


def test_judged_queries_decide_where_there_are_some(data, biased):
    judged = collection(5)
    model = auto(biased, data, validation=judged)
    why = model.training["auto"]
    assert f"ndcg@10 on {QUERIES} judged queries: naive 0." in why["why"]
    assert why["chosen"] in BY_POSITION[1:]
    assert "weights" not in why


def test_the_best_of_the_clear_leads_is_taken(data, biased):
    relevance = data.features[:, 0]
    scores = {
        "naive": data.features @ [1.0, 1.0],
        "better": data.features @ [1.0, 0.4],
        "best": relevance,
        "noise": np.random.default_rng(0).normal(size=len(relevance)),
    }
    choice = choose_by_clicks(scores, biased)
    assert choice.chosen == "best"
    assert choice.leads["noise"].gain < 0
    assert choose_by_grades(scores, data, "ndcg@10").chosen == "best"


def test_it_needs_something_to_choose_by(data, biased):
    with pytest.raises(SettingsError, match="needs something to choose by"):
        fit(biased, data, method="auto", validation=0)


def test_candidates_have_a_checkpoint_each_and_are_counted_together(data, biased, tmp_path):
    seen = []
    fit(
        biased,
        data,
        method="auto",
        ranker=Linear(),
        settings=QUICK,
        checkpoint=tmp_path / "run.safetensors",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(10 * part, 80) for part in range(1, 9)]
    assert {p.name for p in tmp_path.iterdir()} == {f"run-{n}.safetensors" for n in BY_POSITION}


def test_rankers_that_do_not_add_up_are_chosen_among(data, biased):
    ranker = DNN((4,), elu_output=True)
    model, candidates = fit_best(biased, data, Plan("auto", ranker, QUICK, validation=0.2))
    assert set(candidates) == {"naive", "imitation", "likelihood"}
    chosen = model.training["auto"]["chosen"]
    assert np.array_equal(model.predict(data), candidates[chosen].predict(data))


def test_a_source_without_a_log_cannot_be_chosen_by(data):
    clicks = SimulatedClicks(data, top_lists(data, data.features[:, 0]), PositionBasedUser())
    with pytest.raises(SettingsError, match="chooses by clicks held out of it"):
        fit(clicks, data, method="auto")
