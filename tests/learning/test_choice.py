"""Which of two models is better: clicks or grades decide that neither was trained on."""

import json

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import CascadeUser
from dualrank.data.lists import top_lists
from dualrank.errors import DataError
from dualrank.evaluation.click_check import ClickCheck, hold_out
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.choice import choose
from dualrank.learning.fit import fit
from dualrank.learning.plan import Plan
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

QUICK = TrainingSettings(steps=40, batch_size=32, validate_every=10)
PLAN = Plan(ranker=DNN((8,)), settings=QUICK)


def both(log, dataset, plan):
    """The model of a plan, and the naive one of the same plan."""
    plans = {plan.way.name: plan, "naive": plan.for_method("naive")}
    return {name: fit(log, dataset, each) for name, each in plans.items()}


def test_by_clicks_the_lead_is_that_on_the_queries_which_both_held_out(log, dataset):
    plan = PLAN.with_options(validation=0.3)
    models = both(log, dataset, plan)
    choice = choose(models, log, dataset, plan)
    _, held_out = hold_out(log, 0.3, QUICK.seed)
    scores = {name: model.predict(dataset) for name, model in models.items()}
    expected = ClickCheck(held_out).lead(scores["dla"], over=scores["naive"])
    assert choice.leads == {"dla": expected}
    assert choice.chosen == ("dla" if expected.is_clear else "naive")
    assert expected.gain != 0
    assert json.loads(json.dumps(choice.to_dict()))["leads"]["dla"]["gain"] == expected.gain


def test_the_naive_model_differs_from_the_plan_by_its_method_alone(log, dataset):
    plan = PLAN.with_options(validation=0.3, position_model="network")
    naive = both(log, dataset, plan)["naive"]
    alone = fit(log, dataset, method="naive", ranker=DNN((8,)), settings=QUICK, validation=0.3)
    assert np.array_equal(naive.predict(dataset), alone.predict(dataset))
    assert naive.training == alone.training


def test_by_grades_the_lead_is_the_difference_of_the_metric(log, dataset, make_dataset):
    judged = make_dataset(seed=5)
    plan = PLAN.with_options(validation=judged)
    models = both(log, dataset, plan)
    choice = choose(models, log, dataset, plan)
    values = {
        name: evaluate(model.predict(judged), judged, ["ndcg@10"])["ndcg@10"]
        for name, model in models.items()
    }
    assert choice.leads["dla"].gain == pytest.approx(values["dla"] - values["naive"])
    assert choice.chosen == max(values, key=values.get)


def test_a_correction_that_is_clearly_better_is_chosen(make_dataset):
    """A logging ranker that sorts by noise: clicks follow the position, relevance does not."""
    dataset = make_dataset(queries=400, lengths=(8, 11))
    noise = np.random.default_rng(0).normal(size=dataset.document_count)
    log = sample_log(dataset, top_lists(dataset, noise, 8), PositionBasedUser(), 60_000, 1)
    shown_first = np.zeros(dataset.document_count, np.float32)
    for position in range(8):
        shown = log.lists.documents[:, position]
        shown_first[shown[shown >= 0]] = -position
    models = {"naive": Fixed(shown_first), "dla": Fixed(dataset.features @ [1, 0.5, 0, 0, 0])}
    choice = choose(models, log, dataset, PLAN.with_options(validation=0.3))
    assert choice.chosen == "dla"
    assert choice.leads["dla"].is_clear
    backwards = {"naive": models["dla"], "dla": models["naive"]}
    assert choose(backwards, log, dataset, PLAN.with_options(validation=0.3)).chosen == "naive"


class Fixed:
    """A model that has its scores already."""

    def __init__(self, scores):
        self._scores = scores

    def predict(self, dataset):
        return self._scores


def test_users_who_stop_are_judged_by_what_they_read(dataset, lists):
    """Cascade users: clicks alone would praise scores that know the position."""
    log = sample_log(dataset, lists, CascadeUser(), 20_000, 0)
    plan = PLAN.with_options(validation=0.3)
    best = {"naive": Fixed(-dataset.grades), "dla": Fixed(dataset.grades)}
    choice = choose(best, log, dataset, plan)
    assert choice.chosen == "dla"
    assert choice.why.endswith("what was read accounted for")


def test_where_nothing_is_held_out_nothing_is_claimed(log, dataset):
    plan = PLAN.with_options(validation=0)
    with pytest.raises(DataError, match="nothing was held out to compare the models by"):
        choose(both(log, dataset, plan), log, dataset, plan)


def test_ranking_svms_hold_the_same_queries_out_and_are_compared_too(log, dataset):
    given = Propensity.of([1.0, 0.9, 0.7, 0.5, 0.4, 0.3])
    plan = Plan("ipw", RankingSVM(C=1.0), propensity=given, validation=0.3)
    models = both(log, dataset, plan)
    rest, held_out = hold_out(log, 0.3, 0)
    on_rest = fit(rest, dataset, plan.with_options(validation=0))
    assert np.array_equal(models["ipw"].predict(dataset), on_rest.predict(dataset))
    choice = choose(models, log, dataset, plan)
    assert choice.leads["ipw"].queries <= len(np.unique(held_out.lists.queries))
