"""The naive twin: the same ranker without correction, and an honest comparison with it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from dualrank.learning.twin import fit_twin

from dualrank.learning.fit import fit
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

QUICK = TrainingSettings(steps=40, batch_size=32, validate_every=10)
SAME = {"ranker": DNN((8,)), "scaling": "standard", "settings": QUICK}


@pytest.mark.parametrize("validation", [0.3, "judged"])
def test_the_twin_is_the_naive_ranker_of_the_same_settings(log, dataset, make_dataset, validation):
    options = {**SAME, "validation": make_dataset(seed=5) if validation == "judged" else 0.3}
    model, twin = fit_twin(fit(log, dataset, **options), log, dataset, **options)
    alone = fit(log, dataset, method="naive", **options)
    assert np.array_equal(twin.predict(dataset), alone.predict(dataset))
    told = model.training["twin"]
    assert told["history"] == alone.training["history"]
    assert told["chosen"] in ("dla", "naive")
    assert set(told["leads"]) == {"dla"}
    json.dumps(model.training)


def test_the_lead_on_judged_queries_is_the_difference_of_the_metric(log, dataset, make_dataset):
    judged = make_dataset(seed=5)
    options = {**SAME, "validation": judged}
    model, twin = fit_twin(fit(log, dataset, **options), log, dataset, **options)
    from dualrank.evaluation.evaluator import evaluate

    ours, theirs = (evaluate(m.predict(judged), judged, ["ndcg@10"]) for m in (model, twin))
    gain = model.training["twin"]["leads"]["dla"]["gain"]
    assert gain == pytest.approx(ours["ndcg@10"] - theirs["ndcg@10"])


def test_where_a_click_ends_the_session_the_model_is_not_praised(log, dataset, monkeypatch):
    monkeypatch.setattr("dualrank.learning.twin.doubt", lambda _: "a click ends the session")
    options = {**SAME, "validation": 0.3}
    model, _ = fit_twin(fit(log, dataset, **options), log, dataset, **options)
    assert model.training["twin"]["chosen"] == "naive"
    assert model.training["twin"]["why"] == "a click ends the session"


def test_where_nothing_is_held_out_nothing_is_claimed(log, dataset):
    options = {**SAME, "validation": 0}
    model, _ = fit_twin(fit(log, dataset, **options), log, dataset, **options)
    assert "chosen" not in model.training["twin"]
    assert model.training["twin"]["why"] == "nothing was held out to compare the two by"


def test_a_ranking_svm_has_seen_all_clicks(log, dataset):
    options = {**SAME, "ranker": RankingSVM(C=1.0), "validation": 0.1}
    given = Propensity.of([1.0, 0.9, 0.7, 0.5, 0.4, 0.3])
    model = fit(log, dataset, method="ipw", propensity=given, **options)
    model, _ = fit_twin(model, log, dataset, **options)
    assert "all clicks" in model.training["twin"]["why"]


def test_an_interrupted_twin_goes_on(log, dataset, tmp_path):
    options = {**SAME, "settings": replace(QUICK, checkpoint_every=5), "validation": 0.3}
    model = fit(log, dataset, **options)
    whole, _ = fit_twin(model, log, dataset, **options)

    def pull_the_plug(done, total):
        if done == 20:
            raise KeyboardInterrupt

    path = tmp_path / "twin"
    with pytest.raises(KeyboardInterrupt):
        fit_twin(model, log, dataset, checkpoint=path, progress=pull_the_plug, **options)
    resumed, _ = fit_twin(model, log, dataset, checkpoint=path, **options)
    assert resumed.training == whole.training
