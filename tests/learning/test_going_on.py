"""Learning that begins where another model ended."""

import numpy as np
import pytest

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.errors import SettingsError
from dualrank.learning import SimulatedClicks

SHORT = {"ranker": dr.DNN((8,)), "steps": 60, "validation": 0, "schedule": "constant"}


@pytest.fixture(scope="module")
def model(log, dataset):
    return dr.fit(log, dataset, **SHORT)


def test_no_step_to_speak_of_leaves_the_model_what_it_was(log, dataset, model):
    options = SHORT | {"steps": 1, "learning_rate": 1e-12, "propensity_rate": 1e-12}
    again = dr.fit(log, dataset, start=model, **options)
    np.testing.assert_allclose(again.predict(dataset), model.predict(dataset), atol=1e-6)
    np.testing.assert_allclose(
        again.propensity.examination, model.propensity.examination, rtol=1e-5
    )


def test_going_on_is_ahead_of_beginning_anew(dataset, lists, model):
    """After ten steps on new clicks, the start is still most of what is known."""
    new = sample_log(dataset, lists, PositionBasedUser(), 4_000, 9)
    few = SHORT | {"steps": 10}
    ndcg = {
        name: dr.evaluate(each.predict(dataset), dataset, ["ndcg@10"])["ndcg@10"]
        for name, each in {
            "on": dr.fit(new, dataset, start=model, **few),
            "anew": dr.fit(new, dataset, **few),
            "start": model,
        }.items()
    }
    assert ndcg["on"] > ndcg["anew"]
    assert abs(ndcg["on"] - ndcg["start"]) < ndcg["start"] - ndcg["anew"] + 0.01


def test_the_start_itself_stays_what_it_was(log, dataset, model):
    before = model.predict(dataset)
    dr.fit(log, dataset, start=model, **SHORT)
    np.testing.assert_array_equal(model.predict(dataset), before)


def test_curves_by_context_begin_with_the_common_one(log, dataset, model):
    from dataclasses import replace

    from dualrank.data.click_log import Column

    codes = np.arange(len(log.counts), dtype=np.int32) % 2
    told_apart = replace(log, columns={"device": Column(("phone", "desktop"), codes)})
    options = SHORT | {"steps": 1, "learning_rate": 1e-12, "propensity_rate": 1e-12}
    again = dr.fit(told_apart, dataset, start=model, context="device", **options)
    for curve in again.propensity.by_context.values():
        np.testing.assert_allclose(curve.examination, model.propensity.examination, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ranker": dr.Linear()}, "a dnn model is no start for a linear ranker"),
        ({"ranker": dr.DNN((9,))}, "is no start for this ranker: it weights.0 has shape"),
        ({"position_model": "network"}, "cannot begin with a curve; variables can"),
        ({"method": "auto", "validation": 0.1}, "method auto trains its candidates anew"),
        ({"method": "grounded"}, "grounded stands on a ranker of its own"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(log, dataset, model, options, sentence):
    with pytest.raises(SettingsError, match=sentence):
        dr.fit(log, dataset, start=model, **(SHORT | options))


def test_a_source_with_a_state_of_its_own_takes_no_checkpoint(dataset, lists, tmp_path):
    clicks = SimulatedClicks(dataset, lists, PositionBasedUser())
    with pytest.raises(SettingsError, match="no checkpoint holds its state"):
        dr.fit(clicks, dataset, checkpoint=tmp_path / "c.safetensors", **SHORT)


def test_what_is_no_correction_is_no_method(log, dataset):
    with pytest.raises(SettingsError, match="unknown method <class 'int'>"):
        dr.fit(log, dataset, method=int)
