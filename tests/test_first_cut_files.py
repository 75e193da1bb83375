"""What the first cut wrote is read today, with the same scores, counts and curves."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.models.registry import load_click_model
from dualrank.data.click_log import ClickLog
from dualrank.learning.model import Model
from dualrank.propensity.propensity import Propensity

FOLDER = Path(__file__).with_name("fixtures") / "first-cut"
HELD = json.loads((FOLDER / "scores.json").read_text())
MODELS = sorted(folder.name for folder in (FOLDER / "models").iterdir())


def plain(name):
    return json.loads((FOLDER / name).read_text())


def test_there_is_a_model_of_every_kind():
    assert sorted(HELD["scores"]) == MODELS
    assert len(MODELS) == 5


@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_scores_that_they_gave(name):
    """To the rounding of float32: processors add up in different orders."""
    model = Model.load(FOLDER / "models" / name)
    scores = model.predict(np.array(HELD["features"], np.float32))
    np.testing.assert_allclose(scores, HELD["scores"][name], rtol=1e-5, atol=1e-6)
    assert np.ptp(scores) > 0


@pytest.mark.parametrize("name", MODELS)
def test_models_still_say_how_they_were_trained(name):
    manifest = plain(f"models/{name}/manifest.json")
    assert manifest["format"] == 1
    model = Model.load(FOLDER / "models" / name)
    assert model.training == manifest["training"]
    assert list(model.feature_names) == manifest["feature_names"]
    path = FOLDER / "models" / name / "propensity.json"
    assert (model.propensity is not None) == path.exists()
    if model.propensity is not None:
        written = json.loads(path.read_text())
        assert model.propensity.examination.tolist() == written["examination"]


@pytest.mark.parametrize("name", MODELS)
def test_models_can_be_written_again_and_score_the_same(name, tmp_path):
    model = Model.load(FOLDER / "models" / name)
    model.save(tmp_path)
    features = np.array(HELD["features"], np.float32)
    assert Model.load(tmp_path).predict(features).tolist() == model.predict(features).tolist()


def test_the_reduced_log_has_the_sessions_lists_and_clicks_that_were_counted():
    expected = plain("reduced-log.json")
    log = ClickLog.read(FOLDER / "reduced-log.parquet")
    assert log.sessions == expected["sessions"]
    assert len(log.lists) == expected["lists"]
    assert log.clicks_per_list.sum(axis=0).tolist() == expected["clicks_per_position"]


@pytest.mark.parametrize("name", ["propensity-by-device.json", "propensity-click-through.json"])
def test_curves_are_those_that_were_written(name, tmp_path):
    written, curve = plain(name), Propensity.read(FOLDER / name)
    for part in ("examination", "low", "high"):
        values = getattr(curve, part)
        assert (None if values is None else values.tolist()) == written[part]
    assert (curve.method, curve.sessions) == (written["method"], written["sessions"])
    curve.write(tmp_path / name)
    assert json.loads((tmp_path / name).read_text()) == written


def test_curves_of_contexts_are_those_that_were_written():
    written = plain("propensity-by-device.json")
    curve = Propensity.read(FOLDER / "propensity-by-device.json")
    assert curve.context == "device"
    found = {name: each.examination.tolist() for name, each in curve.by_context.items()}
    expected = {name: each["examination"] for name, each in written["contexts"].items()}
    assert found == expected
    assert len(found) == 2


@pytest.mark.parametrize("name", ["pbm", "ubm", "dbn"])
def test_click_models_are_read_and_still_fit_the_log_they_were_fitted_to(name):
    """The parameters of the file, and those that today's code finds on the same log."""
    model = load_click_model(FOLDER / f"click-model-{name}.parquet")
    assert model.name == name
    relevance = model.relevance().column("relevance").to_numpy()
    written = pq.read_table(FOLDER / f"click-model-{name}.parquet")
    expected = written["attraction"].to_numpy()
    if name == "dbn":
        expected = expected * written["satisfaction"].to_numpy()
    np.testing.assert_allclose(relevance, expected, rtol=1e-12)
    log = ClickLog.read(FOLDER / "reduced-log.parquet")
    again = type(model)().fit(log)
    assert model.log_likelihood(log) == pytest.approx(again.log_likelihood(log), rel=1e-5)


def test_a_click_model_of_json_has_the_parameters_of_its_file_and_the_relevance_of_its_table():
    written = plain("click-model-pbm.json")
    model = load_click_model(FOLDER / "click-model-pbm.json")
    assert model.fitted.shared["examination"].tolist() == written["shared"]["examination"]
    other = load_click_model(FOLDER / "click-model-pbm.parquet")
    assert model.relevance().equals(other.relevance())
