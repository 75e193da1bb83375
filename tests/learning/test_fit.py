"""`fit`: a click log and features in, a model out, for every method and ranker."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dualrank
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.generator import World
from dualrank.data.lists import RankedLists, top_lists
from dualrank.errors import CheckpointError, DataError, SettingsError
from dualrank.evaluation.evaluator import evaluate
from dualrank.evaluation.propensity_error import inverse_propensity_mse
from dualrank.learning.feedback import Judgments, SimulatedClicks
from dualrank.learning.fit import fit
from dualrank.learning.methods import METHODS
from dualrank.learning.model import Model
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

QUICK = TrainingSettings(steps=40, batch_size=32, validate_every=10)
TRUTH = Propensity.of(PositionBasedUser().curve)
BY_LAYOUT = replace(TRUTH, details={"context": "layout", "contexts": {}})

RECIPES = {
    "dla": {"method": "dla", "ranker": DNN((8,))},
    "dla-linear": {"method": "dla", "ranker": Linear()},
    "dla-elu": {"method": "dla", "ranker": DNN((8,), elu_output=True)},
    "ipw": {"method": "ipw", "ranker": DNN((8,)), "propensity": TRUTH},
    "naive": {"method": "naive", "ranker": DNN((8,))},
    "svm-naive": {"method": "naive", "ranker": RankingSVM(C=10.0)},
    "svm-ipw": {"method": "ipw", "ranker": RankingSVM(C=10.0), "propensity": TRUTH},
    "likelihood": {"method": "likelihood", "ranker": DNN((8,))},
    "imitation": {"method": "imitation", "ranker": DNN((8,))},
    "grounded": {"method": "grounded", "ranker": DNN((8,))},
    "grounded-linear": {"method": "grounded", "ranker": Linear()},
    "stopping": {"method": "stopping", "ranker": DNN((8,))},
    "grounded-stopping": {"method": "grounded-stopping", "ranker": DNN((8, 4))},
}


def takers(option):
    """Methods that take an option, in words."""
    *others, last = [m.name for m in METHODS.values() if option in m.takes and m.name != "auto"]
    return f"{', '.join(others)} and {last} do"


def total_error(examination):
    return np.abs(np.log(examination / TRUTH.examination)).mean()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_method_beats_its_lists_and_survives_its_directory(log, dataset, tmp_path, recipe):
    settings = replace(QUICK, steps=250)
    model = fit(log, dataset, settings=settings, **RECIPES[recipe])
    scores = model.predict(dataset)
    assert scores.shape == (dataset.document_count,)
    assert np.isfinite(scores).all()
    poor = evaluate(dataset.features[:, 2], dataset, ["ndcg@5"])["ndcg@5"]
    assert evaluate(scores, dataset, ["ndcg@5"])["ndcg@5"] > poor + 0.1
    model.save(tmp_path)
    assert np.array_equal(Model.load(tmp_path).predict(dataset), scores)


@pytest.mark.parametrize("validation", [0, 0.2, "grades"])
def test_the_manifest_is_json_that_every_reader_accepts(log, dataset, tmp_path, validation):
    """No NaN or Infinity, which are JavaScript but not JSON."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    given = dataset if validation == "grades" else validation
    fit(log, dataset, ranker=Linear(), validation=given, settings=QUICK).save(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    training = json.loads(text, parse_constant=refuse)["training"]
    assert training["method"] == "dla"
    assert training["settings"]["steps"] == QUICK.steps
    assert len(training["data"]) == 64


def test_the_public_name_is_this_function():
    assert dualrank.fit is fit


def test_propensities_are_those_that_were_learned_given_or_none(log, dataset):
    dual = fit(log, dataset, ranker=Linear(), validation=0, settings=QUICK)
    assert dual.propensity.method == "dual learning"
    assert dual.propensity.sessions == log.sessions
    assert dual.propensity.depth == log.lists.depth
    assert dual.propensity.examination[0] == 1
    given = fit(log, dataset, settings=QUICK, **RECIPES["ipw"])
    assert given.propensity is TRUTH
    assert fit(log, dataset, settings=QUICK, **RECIPES["naive"]).propensity is None


@pytest.mark.parametrize("seed", range(2))
def test_dual_learning_sees_through_the_order_of_a_good_ranker(seed):
    """Lists in the order of half of relevance: clicks fall much faster than examination."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600 * 14, 5)).astype(np.float32)
    utility = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X))
    grades = np.digitize(utility, np.quantile(utility, [0.26, 0.62, 0.9, 0.98]))
    data = Dataset.from_arrays(X, np.repeat(np.arange(600), 14), grades)
    log = sample_log(data, top_lists(data, X[:, 0], 10), PositionBasedUser(), 200_000, rng)
    raw = log.clicks_per_list.sum(axis=0)
    settings = TrainingSettings(steps=500, batch_size=128, seed=seed)
    model = fit(log, data, ranker=DNN((16,)), settings=settings)
    assert total_error(raw / raw[0]) > 0.4
    assert total_error(model.propensity.examination) < total_error(raw / raw[0]) / 2
    assert model.training["position_model"] == "variables"


def log_by_device(data, etas, sessions, seed=0):
    """Lists in the order of half of relevance, on devices whose users read unlike each other."""
    rng = np.random.default_rng(seed)
    lists = top_lists(data, data.features[:, 0], 10)
    parts = [
        sample_log(data, lists, PositionBasedUser(eta=eta), count, rng)
        for eta, count in zip(etas, sessions, strict=True)
    ]
    codes = np.repeat(np.arange(len(parts)), [len(part.counts) for part in parts])
    return ClickLog.from_clicks(
        lists,
        np.concatenate([part.list_of for part in parts]),
        np.concatenate([part.clicks for part in parts]),
        np.concatenate([part.counts for part in parts]),
        columns={"device": Column(("desk", "phone"), codes.astype(np.int32))},
    )


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600 * 14, 5)).astype(np.float32)
    utility = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X))
    grades = np.digitize(utility, np.quantile(utility, [0.26, 0.62, 0.9, 0.98]))
    return Dataset.from_arrays(X, np.repeat(np.arange(600), 14), grades)


@pytest.mark.parametrize("position_model", ["network", "recurrent"])
def test_every_position_model_sees_through_the_order_of_a_good_ranker(wide, position_model):
    lists = top_lists(wide, wide.features[:, 0], 10)
    log = sample_log(wide, lists, PositionBasedUser(), 200_000, np.random.default_rng(0))
    raw = log.clicks_per_list.sum(axis=0)
    settings = TrainingSettings(steps=500, batch_size=128)
    model = fit(log, wide, ranker=DNN((16,)), settings=settings, position_model=position_model)
    assert total_error(model.propensity.examination) < total_error(raw / raw[0]) / 2
    assert model.training["position_model"] == position_model


def test_two_devices_get_the_two_curves_of_their_users(wide, tmp_path):
    log = log_by_device(wide, (0.5, 1.2), (150_000, 150_000))
    settings = TrainingSettings(steps=600, batch_size=256)
    model = fit(log, wide, ranker=DNN((16,)), settings=settings, context="device")
    model.save(tmp_path)
    held = Model.load(tmp_path).propensity.details
    assert held["context"] == "device"
    truth = {eta: np.log(TRUTH.examination) * eta for eta in (0.5, 1.2)}
    learned = {n: np.log(each["examination"]) for n, each in held["contexts"].items()}
    desk, phone = learned["desk"], learned["phone"]
    assert np.abs(desk - truth[0.5]).mean() < np.abs(desk - truth[1.2]).mean() / 3
    assert np.abs(phone - truth[1.2]).mean() < np.abs(phone - truth[0.5]).mean() / 3
    assert model.training["position_model"] == "contextual"
    assert model.training["context"] == "device"


def test_dual_learning_beats_raw_click_through_on_generated_data():
    data = World(32).generate(1_000, 0)
    initial = RankingSVM(C=10.0).fit_grades(data.take(np.arange(60)))
    lists = top_lists(data, initial.score(data.features), 10)
    log = sample_log(data, lists, PositionBasedUser(), 200_000, np.random.default_rng(0))
    raw = log.clicks_per_list.sum(0) / (lists.mask * log.sessions_per_list[:, None]).sum(0)
    settings = TrainingSettings(steps=800, batch_size=128)
    learned = fit(log, data, ranker=DNN((32,)), settings=settings).propensity.examination
    of_raw = inverse_propensity_mse(raw / raw[0], TRUTH.examination)
    assert inverse_propensity_mse(learned, TRUTH.examination) < of_raw / 2


def test_the_same_seed_gives_the_same_model(log, dataset):
    first, second = (fit(log, dataset, ranker=DNN((8,)), settings=QUICK) for _ in range(2))
    assert np.array_equal(first.predict(dataset), second.predict(dataset))
    assert first.training == second.training
    other = fit(log, dataset, ranker=DNN((8,)), settings=replace(QUICK, seed=1))
    assert not np.array_equal(first.predict(dataset), other.predict(dataset))


def test_grades_of_the_data_are_not_used(log, dataset):
    blind = replace(dataset, grades=None, max_grade=0.0)
    with_grades = fit(log, dataset, ranker=DNN((8,)), settings=QUICK)
    without = fit(log, blind, ranker=DNN((8,)), settings=QUICK)
    assert np.array_equal(with_grades.predict(dataset), without.predict(dataset))


def test_validation_by_grades_keeps_the_best_step_by_the_named_metric(log, dataset, make_dataset):
    judged = make_dataset(queries=30, seed=5)
    settings = replace(QUICK, metric="map")
    model = fit(log, dataset, ranker=DNN((8,)), validation=judged, settings=settings)
    history = model.training["history"]
    assert history["steps"] == [10, 20, 30, 40]
    found = evaluate(model.predict(judged), judged, ["map"])["map"]
    assert found == pytest.approx(max(history["values"]), abs=1e-12)


def test_validation_by_held_out_clicks_is_between_zero_and_one(log, dataset):
    history = fit(log, dataset, ranker=DNN((8,)), settings=QUICK).training["history"]
    assert len(history["values"]) == 4
    assert all(0 < value <= 1 for value in history["values"])
    assert history["best_value"] in history["values"]


def test_held_out_queries_are_not_trained_on(log, dataset):
    whole = fit(log, dataset, ranker=Linear(), validation=0, settings=QUICK)
    part = fit(log, dataset, ranker=Linear(), validation=0.5, settings=QUICK)
    assert whole.propensity.sessions == log.sessions
    assert 0.3 * log.sessions < part.propensity.sessions < 0.7 * log.sessions


def test_without_validation_the_last_ranker_is_kept(log, dataset):
    history = fit(log, dataset, ranker=Linear(), validation=0, settings=QUICK).training["history"]
    assert history["best_step"] == QUICK.steps
    assert history["values"] == []
    assert history["best_value"] is None


def test_data_with_another_number_of_features_are_refused(log, dataset, make_dataset):
    model = fit(log, dataset, ranker=Linear(), settings=QUICK)
    with pytest.raises(DataError, match="7 features; the scaling was learned on 5"):
        model.predict(make_dataset(features=7))
    with pytest.raises(DataError, match="7 features; the scaling was learned on 5"):
        fit(log, dataset, validation=make_dataset(features=7), settings=QUICK)


def test_validation_data_need_grades(log, dataset):
    blind = replace(dataset, grades=None)
    with pytest.raises(DataError, match="no grades"):
        fit(log, dataset, validation=blind, settings=QUICK)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "em"}, f"unknown method 'em'; known are {', '.join(METHODS)}"),
        ({"method": "ipw"}, "method ipw needs a propensity; dla learns it from the clicks"),
        ({"propensity": TRUTH}, "method dla takes no propensity; ipw and doubly-robust do"),
        (
            {"method": "naive", "propensity": TRUTH},
            "method naive takes no propensity; ipw and doubly-robust do",
        ),
        (
            {"ranker": RankingSVM()},
            "a ranker of kind svm takes all clicks at once, so that nothing is learned beside it "
            "as by dla; use method='ipw' or method='naive'",
        ),
        (
            {"position_model": "tree"},
            "unknown position model 'tree'; known are variables, network, recurrent, contextual",
        ),
        (
            {"position_model": "contextual"},
            "the contextual position model and the name of a context column go together",
        ),
        (
            {"position_model": "network", "context": "device"},
            "the contextual position model and the name of a context column go together",
        ),
        (
            {"method": "naive", "position_model": "network"},
            f"method naive takes no position model; {takers('position_model')}",
        ),
        (
            {"method": "naive", "context": "device"},
            f"method naive takes no context; {takers('context')}",
        ),
        (
            {"method": "ipw", "propensity": TRUTH, "context": "device"},
            "the propensity has no curves by device",
        ),
        (
            {"method": "ipw", "propensity": BY_LAYOUT, "context": "device"},
            "the propensity has no curves by device, but by layout",
        ),
        (
            {"method": "ipw", "ranker": RankingSVM(), "propensity": TRUTH, "context": "device"},
            "the propensity has no curves by device",
        ),
        (
            {"method": "grounded", "ranker": DNN((8,), elu_output=True)},
            "method grounded makes one ranker of several: scores that go through an elu do not add "
            "up to those of a network",
        ),
        ({"validation": 1.0}, "validation is a share between 0 and 1, not 1.0"),
        ({"validation": -0.1}, "validation is a share between 0 and 1, not -0.1"),
        (
            {"method": "ipw", "propensity": Propensity.of([1.0, 0.5])},
            "lists show 6 documents, but the propensity knows 2 positions",
        ),
        (
            {"method": "ipw", "ranker": RankingSVM(), "propensity": Propensity.of([1.0, 0.5])},
            "lists show 6 documents, but the propensity knows 2 positions",
        ),
        (
            {"scaling": "rank"},
            "the scaling is 'rank'; expected one of none, standard, minmax, log",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(log, dataset, options, sentence):
    with pytest.raises(SettingsError) as caught:
        fit(log, dataset, settings=QUICK, **options)
    assert str(caught.value) == sentence


def test_a_context_that_the_log_does_not_have_is_refused(log, dataset):
    with pytest.raises(DataError, match="no column 'device' beside the clicks; it has none"):
        fit(log, dataset, settings=QUICK, context="device")


def test_a_checkpoint_of_another_position_model_is_refused(log, dataset, tmp_path):
    options = {"ranker": Linear(), "settings": QUICK, "checkpoint": tmp_path / "checkpoint"}
    fit(log, dataset, **options)
    with pytest.raises(CheckpointError, match="position_model was 'variables' and is 'network'"):
        fit(log, dataset, position_model="network", **options)


def test_a_log_of_other_documents_is_refused(log, dataset):
    with pytest.raises(DataError, match="shows documents that this data set does not have"):
        fit(log, dataset.take(np.arange(5)), settings=QUICK)


def log_of(pattern, documents=None):
    """One session per row of the pattern, each on a query of its own."""
    pattern = np.asarray(pattern, bool)
    documents = np.arange(pattern.size).reshape(pattern.shape) if documents is None else documents
    lists = RankedLists(np.asarray(documents, np.int32), np.arange(len(pattern), dtype=np.int32))
    return ClickLog.from_clicks(lists, np.arange(len(pattern)), pattern)


def queries_of(count, depth, features=3):
    X = np.random.default_rng(0).normal(size=(count * depth, features))
    return Dataset.from_arrays(X, np.repeat(np.arange(count), depth))


def test_a_log_without_clicks_is_refused():
    silent, data = log_of(np.zeros((10, 3))), queries_of(10, 3)
    with pytest.raises(DataError, match="none of the 10 sessions has a click"):
        fit(silent, data, validation=0, settings=QUICK)
    with pytest.raises(DataError, match="none of the 10 sessions has a click"):
        fit(silent, data, settings=QUICK)


def test_a_single_query_cannot_be_held_out():
    one, data = log_of([[1, 0, 0]]), queries_of(1, 3)
    with pytest.raises(DataError, match="too few queries with clicks to hold some out"):
        fit(one, data, settings=QUICK)
    model = fit(one, data, validation=0, ranker=Linear(), settings=QUICK)
    assert np.isfinite(model.predict(data)).all()


@pytest.mark.parametrize("recipe", ["dla", "ipw", "naive"])
def test_one_document_per_query_is_refused_since_nothing_can_be_compared(recipe):
    clicks = np.random.default_rng(1).random((40, 1)) < 0.5
    with pytest.raises(DataError, match="no list shows two documents"):
        fit(log_of(clicks), queries_of(40, 1), settings=QUICK, **RECIPES[recipe])


def test_a_propensity_of_an_earlier_model_does_not_stay(log, dataset, tmp_path):
    fit(log, dataset, ranker=Linear(), settings=QUICK).save(tmp_path)
    assert (tmp_path / "propensity.json").exists()
    fit(log, dataset, method="naive", ranker=Linear(), settings=QUICK).save(tmp_path)
    assert not (tmp_path / "propensity.json").exists()


def test_constant_features_are_dropped_and_change_no_score(log, dataset):
    wide = replace(dataset, features=np.insert(dataset.features, 2, np.float32(3.5), axis=1).copy())
    plain = fit(log, dataset, ranker=DNN((8,)), settings=QUICK)
    padded = fit(log, wide, ranker=DNN((8,)), settings=QUICK)
    assert np.array_equal(plain.predict(dataset), padded.predict(wide))


def test_features_that_never_vary_are_refused(log, dataset):
    flat = replace(dataset, features=np.ones_like(dataset.features))
    with pytest.raises(DataError, match="constant in training"):
        fit(log, flat, settings=QUICK)


def test_an_interrupted_fit_is_resumed_to_the_same_model(log, dataset, tmp_path):
    settings = replace(QUICK, checkpoint_every=5)
    whole = fit(log, dataset, ranker=DNN((8,)), settings=settings)

    def pull_the_plug(done, total):
        if done == 20:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    options = {"ranker": DNN((8,)), "settings": settings, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        fit(log, dataset, progress=pull_the_plug, **options)
    resumed = fit(log, dataset, **options)
    assert np.array_equal(resumed.predict(dataset), whole.predict(dataset))
    assert resumed.training == whole.training


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "naive"}, "method was 'ipw' and is 'naive'"),
        ({"ranker": DNN((4,))}, "ranker_settings.hidden was [8] and is [4]"),
        ({"ranker": DNN((8,), elu_output=True)}, "elu_output was False and is True"),
        ({"ranker": Linear()}, "ranker was 'DNN' and is 'Linear'"),
        ({"scaling": "minmax"}, "scaling was 'standard' and is 'minmax'"),
        ({"validation": 0.3}, "validation was 0.1 and is 0.3"),
        ({"validation": "judged"}, "validation was 0.1 and is"),
        ({"propensity": Propensity.of([1.0] * 6)}, "examination was"),
        ({"settings": replace(QUICK, seed=9)}, "seed was 0 and is 9"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_the_difference_named(
    log, dataset, make_dataset, tmp_path, change, named
):
    path = tmp_path / "checkpoint"
    options = {"method": "ipw", "ranker": DNN((8,)), "propensity": TRUTH, "settings": QUICK}
    fit(log, dataset, checkpoint=path, **options)
    change = dict(change)
    if change.get("validation") == "judged":
        change["validation"] = make_dataset(seed=9)
    changed = {**options, **change}
    if changed["method"] != "ipw":
        del changed["propensity"]
    with pytest.raises(CheckpointError) as caught:
        fit(log, dataset, checkpoint=path, **changed)
    assert named in str(caught.value)


def test_a_checkpoint_of_other_clicks_or_features_is_refused(log, dataset, tmp_path):
    path = tmp_path / "checkpoint"
    fit(log, dataset, ranker=Linear(), settings=QUICK, checkpoint=path)
    more = ClickLog(log.lists, log.list_of, log.clicks, log.counts + 1)
    with pytest.raises(CheckpointError, match="data was"):
        fit(more, dataset, ranker=Linear(), settings=QUICK, checkpoint=path)
    shifted = replace(dataset, features=dataset.features * 2)
    with pytest.raises(CheckpointError, match="data was"):
        fit(log, shifted, ranker=Linear(), settings=QUICK, checkpoint=path)


class Noted:
    """A source of labels of one's own: grades, with a note of every draw."""

    def __init__(self, dataset, lists):
        self.lists, self._source, self.draws = lists, Judgments(dataset, lists), []

    def draw(self, size, rng):
        self.draws.append(size)
        return self._source.draw(size, rng)


def test_any_source_of_labels_is_learned_from(dataset, lists, user, make_dataset):
    judged = make_dataset(seed=5)
    clicks = SimulatedClicks(dataset, lists, user, sessions=4)
    options = {"validation": judged, "scaling": "none", "settings": QUICK}
    model = fit(clicks, dataset, method="dla", ranker=DNN((8,)), **options)
    assert len(model.training["history"]["values"]) == 4
    assert model.propensity.depth == lists.depth
    own = Noted(dataset, lists)
    oracle = fit(own, dataset, method="naive", ranker=DNN((8,)), **options)
    assert own.draws == [QUICK.batch_size] * QUICK.steps
    same = fit(Judgments(dataset, lists), dataset, method="naive", ranker=DNN((8,)), **options)
    assert np.array_equal(oracle.predict(dataset), same.predict(dataset))
    svm = fit(clicks, dataset, method="naive", ranker=RankingSVM(C=10.0), **options)
    assert svm.training["converged"]


@pytest.mark.parametrize("options", [{}, {"method": "click-model", "validation": 0}])
def test_of_other_sources_than_logs_nothing_is_held_out_or_extracted(dataset, lists, options):
    with pytest.raises(SettingsError, match="Judgments is no click log: nothing can be held out"):
        fit(Judgments(dataset, lists), dataset, **options)


def test_every_step_can_be_watched(log, dataset):
    curves = []

    def watch(step, loop):
        scores = loop.ranker.predict(dataset.features)
        curves.append((step, loop.correction.propensity().examination[-1], scores.std()))

    fit(log, dataset, ranker=DNN((8,)), settings=QUICK, scaling="none", watch=watch)
    steps, examination, spread = zip(*curves, strict=True)
    assert steps == tuple(range(1, QUICK.steps + 1))
    assert examination[-1] < examination[0]
    assert spread[-1] > spread[0]


@pytest.mark.parametrize("method", ["ipw", "dla"])
def test_curves_by_device_are_used_by_every_ranker_that_can(wide, method):
    """The Ranking SVM takes contexts too: each session is weighted by the curve of its own."""
    log = log_by_device(wide, (0.5, 1.2), (5_000, 5_000))
    curves = {
        name: {"examination": (TRUTH.examination**eta).tolist()}
        for name, eta in (("desk", 0.5), ("phone", 1.2))
    }
    given = replace(TRUTH, details={"context": "device", "contexts": curves})
    recipe = {"method": method, "context": "device", "settings": QUICK, "validation": 0}
    recipe |= {"propensity": given} if method == "ipw" else {}
    ranker = RankingSVM(C=1.0) if method == "ipw" else Linear()
    model = fit(log, wide, ranker=ranker, **recipe)
    del recipe["context"]
    common = fit(log, wide, ranker=ranker, **recipe)
    assert not np.allclose(model.predict(wide), common.predict(wide), rtol=1e-3)


def test_a_ranking_svm_that_goes_on_says_the_same_of_itself(log, dataset, tmp_path):
    options = {"method": "naive", "ranker": RankingSVM(C=10.0), "settings": QUICK}
    first, again = (
        fit(log, dataset, checkpoint=tmp_path / "checkpoint", **options) for _ in range(2)
    )
    assert np.array_equal(first.predict(dataset), again.predict(dataset))
    assert first.training == again.training
    assert first.training["C"] == 10.0


def test_a_setting_that_there_is_not_is_answered_with_those_there_are(log, dataset):
    with pytest.raises(SettingsError) as caught:
        fit(log, dataset, stepz=3)
    assert str(caught.value).startswith(
        "there is no setting 'stepz' (did you mean steps?); there are method, ranker, settings"
    )
    with pytest.raises(SettingsError, match="there is no setting 'depth'; there are method"):
        fit(log, dataset, settings=QUICK, depth=3)
