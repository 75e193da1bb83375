"""`auto` corrects where held-out clicks support it, and stays naive where they do not."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import CascadeUser
from dualrank.data.click_log import Column
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists
from dualrank.data.lists import top_lists
from dualrank.errors import SettingsError
from dualrank.learning.auto import candidates, harvested_propensity
from dualrank.learning.choice import choose_by_clicks, choose_by_grades, doubt
from dualrank.learning.feedback import SimulatedClicks
from dualrank.learning.fit import fit
from dualrank.learning.plan import Plan
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import Linear
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

QUERIES, DOCUMENTS = 600, 10
SETTINGS = TrainingSettings(steps=400)


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


def test_dual_learning_is_taken_where_it_is_clearly_ahead(data, biased):
    model = fit(biased, data, method="auto", ranker=Linear(), settings=SETTINGS, validation=0.2)
    why = model.training["auto"]
    assert model.training["method"] == "auto"
    assert why["chosen"] == "dla"
    assert "better than naive by" in why["why"]
    assert why["leads"]["dla"]["gain"] > 2 * why["leads"]["dla"]["error"]
    assert "no query–document pair was seen" in why["not_harvested"]
    assert model.propensity.method == "dual learning"


def test_without_a_clear_lead_it_stays_naive(data):
    few = sample_log(data, top_lists(data, data.features @ [0.5, 1.0]), PositionBasedUser(), 300, 1)
    model = fit(few, data, method="auto", ranker=Linear(), settings=SETTINGS, validation=0.2)
    why = model.training["auto"]
    assert why["chosen"] == "naive"
    assert "no correction is clearly ahead" in why["why"]
    assert model.propensity is None


def test_several_rankers_in_the_log_make_harvesting_a_candidate(data):
    lists = join_lists(
        [top_lists(data, data.features @ w) for w in ([0.5, 1.0], [0.5, -1.0], [1.0, 0.2])]
    )
    log = sample_log(data, lists, PositionBasedUser(), 200_000, 1)
    assert isinstance(harvested_propensity(log), Propensity)
    why = fit(log, data, method="auto", ranker=Linear(), settings=SETTINGS).training["auto"]
    assert set(why["leads"]) == {"ipw", "dla"}
    assert "not_harvested" not in why
    svm = fit(log, data, method="auto", ranker=RankingSVM()).training["auto"]
    assert set(svm["leads"]) == {"ipw"}


def test_a_context_is_for_those_candidates_that_learn_curves_by_it(data):
    lists = join_lists([top_lists(data, data.features @ w) for w in ([0.5, 1.0], [0.5, -1.0])])
    log = sample_log(data, lists, PositionBasedUser(), 200_000, 1)
    device = Column(("desktop", "phone"), (np.arange(len(log.counts)) % 2).astype(np.int32))
    plan = Plan(method="auto", context="device", position_model="contextual")
    plans, _ = candidates(replace(log, columns={"device": device}), plan)
    assert {name: each.context for name, each in plans.items()} == {
        "naive": None,
        "ipw": None,
        "dla": "device",
    }


def test_a_blurred_harvest_is_no_candidate(data):
    lists = join_lists([top_lists(data, data.features @ w) for w in ([0.5, 1.0], [0.5, -1.0])])
    why = harvested_propensity(sample_log(data, lists, PositionBasedUser(), 400, 1))
    assert "is known only between" in why or "clicked" in why


def test_judged_queries_decide_where_there_are_some(data, biased):
    judged = collection(5)
    model = fit(biased, data, method="auto", ranker=Linear(), settings=SETTINGS, validation=judged)
    why = model.training["auto"]
    assert f"ndcg@10 on {QUERIES} judged queries: naive 0." in why["why"]
    assert why["chosen"] == "dla"


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


def test_every_candidate_has_a_checkpoint_of_its_own(data, biased, tmp_path):
    fit(
        biased,
        data,
        method="auto",
        ranker=Linear(),
        settings=TrainingSettings(steps=20),
        checkpoint=tmp_path / "run.safetensors",
    )
    assert {p.name for p in tmp_path.iterdir()} == {"run-naive.safetensors", "run-dla.safetensors"}


def test_progress_counts_over_all_candidates(data, biased):
    seen = []
    fit(
        biased,
        data,
        method="auto",
        ranker=Linear(),
        settings=TrainingSettings(steps=20),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(10, 40), (20, 40), (30, 40), (40, 40)]


def test_users_who_leave_after_a_click_are_not_corrected_by_position(data):
    lists = top_lists(data, data.features @ [0.5, 1.0])
    log = sample_log(data, lists, CascadeUser(), 200_000, 1)
    assert "sessions click a second time 0.00 times as often" in doubt(log)
    why = fit(log, data, method="auto", ranker=Linear(), settings=SETTINGS).training["auto"]
    assert why["chosen"] == "naive"
    assert why["why"].startswith("sessions click a second time")


def test_position_based_clicks_raise_no_doubt(biased):
    assert doubt(biased) is None


def test_candidates_are_what_the_log_and_the_ranker_allow(data, biased):
    plans, not_harvested = candidates(biased, Plan("auto", ranker=Linear(), settings=SETTINGS))
    assert {name: plan.way.name for name, plan in plans.items()} == {"naive": "naive", "dla": "dla"}
    assert all(plan.settings == SETTINGS for plan in plans.values())
    assert "no query–document pair was seen" in not_harvested
    plans, _ = candidates(biased, Plan("auto", ranker=RankingSVM()))
    assert set(plans) == {"naive"}


def test_a_source_without_a_log_cannot_be_chosen_by(data):
    clicks = SimulatedClicks(data, top_lists(data, data.features[:, 0]), PositionBasedUser())
    with pytest.raises(SettingsError, match="chooses by clicks held out of it"):
        fit(clicks, data, method="auto")
