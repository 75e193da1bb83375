"""Methods by likelihood on logs whose truth is known: what each finds, and what confounds it."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import CascadeUser
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import SettingsError
from dualrank.evaluation.click_check import hold_out
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.feedback import SimulatedClicks
from dualrank.learning.fit import fit
from dualrank.learning.logging_scores import Ground
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.train_one import train_one
from dualrank.learning.whole_source import WholeSource
from dualrank.rankers.network import DNN, Linear
from dualrank.settings import TrainingSettings

DEPTH = 8
RHO = PositionBasedUser().examination(DEPTH)
SETTINGS = TrainingSettings(steps=400, batch_size=128, validate_every=50, normalisation="clicks")
QUICK = TrainingSettings(steps=30, batch_size=32, validate_every=10)


def error_of(examination):
    """How far a curve is off on average, as a factor's logarithm."""
    return np.abs(np.log(examination * RHO[0] / RHO)).mean()


def expected_log(hidden, seed, queries=300):
    """Clicks as often as expected, on lists of a ranker that sorts by how relevant documents are.

    It knows what the features tell and, `hidden` times as much, what they do not. Queries have
    between 8 and 40 candidates.
    """
    rng = np.random.default_rng(seed)
    candidates = rng.integers(8, 41, queries)
    X = rng.normal(size=(candidates.sum(), 3)).astype(np.float32)
    utility = X[:, 0] + 0.5 * X[:, 1] + hidden * rng.normal(size=len(X))
    data = Dataset.from_arrays(X, np.repeat(np.arange(queries), candidates))
    lists = top_lists(data, utility, DEPTH)
    rates = RHO * np.exp(0.5 * utility)[lists.documents]
    sessions = 20_000
    # Rounded down, so that no list has more clicks than sessions.
    counts = np.floor(sessions * rates / rates.sum(axis=1).max()).astype(int)
    # A row for a click at each rank, and one for sessions without a click.
    clicks = np.tile(np.vstack([np.eye(DEPTH), np.zeros(DEPTH)]).astype(bool), (queries, 1))
    counts = np.hstack([counts, sessions - counts.sum(axis=1, keepdims=True)])
    rows = np.repeat(np.arange(queries), DEPTH + 1)
    return data, ClickLog.from_clicks(lists, rows, clicks, counts.ravel())


def curves(data, log, *methods):
    plans = {name: Plan(name, Linear(), SETTINGS) for name in methods}
    return {name: fit(log, data, plan).propensity.examination for name, plan in plans.items()}


def test_where_features_tell_what_the_logging_ranker_knew_the_curve_is_found():
    data, log = expected_log(0.0, 0)
    found = curves(data, log, "likelihood", "grounded")
    raw = log.clicks_per_list.sum(axis=0)
    assert error_of(found["likelihood"]) < 0.05
    assert error_of(found["grounded"]) < 0.1
    assert error_of(raw / raw[0]) > 0.3


def test_where_they_do_not_only_a_ground_tells_position_from_the_logging_ranker():
    data, log = expected_log(1.0, 0)
    found = curves(data, log, "dla", "likelihood", "grounded")
    assert error_of(found["dla"]) > 0.4
    assert error_of(found["likelihood"]) > 0.4
    assert error_of(found["grounded"]) < error_of(found["likelihood"]) / 4


def test_sampled_clicks_show_the_same(make_dataset):
    """Some 100,000 sessions of simulated users on lists of different lengths."""
    data = make_dataset(queries=400, lengths=(4, 15), seed=2)
    lists = top_lists(data, data.features @ [1.0, 0.5, 0, 0, 0], DEPTH)
    log = sample_log(data, lists, PositionBasedUser(), 100_000, 1)
    shown = (lists.mask * log.sessions_per_list[:, None]).sum(axis=0)
    raw = log.clicks_per_list.sum(axis=0) / shown
    for method in ("likelihood", "grounded"):
        found = fit(log, data, Plan(method, Linear(), replace(SETTINGS, normalisation="sessions")))
        assert error_of(found.propensity.examination) < error_of(raw / raw[0]) / 3
        assert found.propensity.sessions < log.sessions


def careless(seed=0):
    """Relevance is the first feature; the logging ranker looks twice as much at the second."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300 * 10, 2)).astype(np.float32)
    grades = np.digitize(X[:, 0] + 0.3 * rng.normal(size=len(X)), [-0.5, 0.3, 1.0, 1.7])
    data = Dataset.from_arrays(X, np.repeat(np.arange(300), 10), grades, max_grade=4)
    return data, top_lists(data, X @ [0.5, 1.0])


def test_of_users_who_leave_with_a_click_stopping_learns_the_attraction_and_others_do_not():
    data, lists = careless()
    log = sample_log(data, lists, CascadeUser(), 100_000, 1)
    taken, quality, believed = {}, {}, {}
    for method in ("naive", "dla", "likelihood", "stopping", "grounded-stopping"):
        plan = Plan(method, Linear(), replace(SETTINGS, normalisation="sessions"))
        model = fit(log, data, plan)
        first, second = model.ranker.weights[0][0].tolist()
        taken[method] = abs(second / first)
        believed[method] = model.propensity
        quality[method] = evaluate(model.predict(data), data, ["ndcg@10"])["ndcg@10"]
    for method in ("stopping", "grounded-stopping"):
        assert taken[method] < 0.08
        assert believed[method] is None
    for method in ("naive", "dla", "likelihood"):
        assert taken[method] > 0.12
        assert quality[method] < min(quality["stopping"], quality["grounded-stopping"]) - 0.003


def test_imitation_recovers_the_logging_ranker_from_the_order_alone(make_dataset):
    """Clicks that say the opposite change nothing."""
    data = make_dataset(queries=300, lengths=(8, 20))
    truth = np.array([1.0, -0.7, 0.4, 0.0, 0.0])
    lists = top_lists(data, data.features @ truth, 5)
    clicks = np.zeros((len(lists), 5), bool)
    clicks[:, -1] = True
    log = ClickLog.from_clicks(lists, np.arange(len(lists)), clicks, np.full(len(lists), 20))
    plan = Plan("imitation", Linear(), replace(SETTINGS, steps=800), scaling="none")
    found = fit(log, data, plan).ranker.weights[0][0].numpy()
    cosine = found @ truth / np.linalg.norm(found) / np.linalg.norm(truth)
    assert cosine > 0.99


def test_a_grounded_model_is_what_was_learned_and_the_ground_in_one_ranker(log, dataset, tmp_path):
    """g(x) + a · z(x), where a is counted in spreads of what lies under the lists."""
    plan = Plan("grounded", DNN((6,)), QUICK, validation=0)
    source = WholeSource.of(log, dataset, plan)
    ground = train_one(source, plan.for_method("imitation"))
    learned = []
    model = train_one(
        source, plan, ground=ground, watch=lambda step, loop: learned.append(loop.ranker)
    )
    assert model.ranker.sizes == (dataset.feature_count, 12, 1)
    worth = model.training["worth_of_ground"]
    scale = Ground.of(ground, log.lists, dataset).scale
    scores = learned[-1].predict(model.scaler.transform(dataset.features))
    expected = scores + worth / scale * ground.predict(dataset)
    np.testing.assert_allclose(model.predict(dataset), expected, atol=1e-5)
    assert scores.std() > 0
    assert worth > 0
    by_itself = fit(log, dataset, plan)
    assert np.array_equal(by_itself.predict(dataset), model.predict(dataset))
    model.save(tmp_path)
    assert np.array_equal(Model.load(tmp_path).predict(dataset), model.predict(dataset))


def test_held_out_queries_are_not_trained_on(log, dataset):
    """Clicks on them may change which step is kept, but no step."""
    plan = Plan("grounded", DNN((4,)), replace(QUICK, validate_every=1_000), validation=0.3)
    _, held_out = hold_out(log, 0.3, QUICK.seed)
    held = np.isin(log.lists.queries, held_out.lists.queries)[log.list_of]
    rolled = np.where(held[:, None] & log.lists.mask[log.list_of], ~log.clicks, log.clicks)
    other = ClickLog(log.lists, log.list_of, rolled, log.counts)

    def steps_of(log):
        seen = []
        fit(log, dataset, plan, watch=lambda step, loop: seen.append(loop.recorded(step)["loss"]))
        return seen

    assert steps_of(log) == steps_of(other)


def test_what_stands_on_a_ground_or_an_order_needs_a_log(dataset, lists, user):
    for method in ("imitation", "grounded", "stopping", "grounded-stopping"):
        source = SimulatedClicks(dataset, lists, user)
        with pytest.raises(SettingsError, match="is no click log"):
            fit(source, dataset, method=method, validation=0, settings=QUICK)


@pytest.mark.parametrize(
    ("method", "moments"),
    [("grounded", (10, 20, 40)), ("grounded-stopping", (10, 20, 40)), ("imitation", (10, 20)),
     ("auto", (10, 30, 60, 80))],
)  # fmt: skip
def test_an_interrupted_run_goes_on_to_the_same_model(log, dataset, tmp_path, method, moments):
    """Wherever it was interrupted: in the ground, between, or on top of it."""
    settings = replace(QUICK, checkpoint_every=5)
    options = {"method": method, "ranker": DNN((4,)), "settings": settings}
    whole = fit(log, dataset, **options)
    for at in moments:
        path = tmp_path / f"{at}.safetensors"

        def pull_the_plug(done, total, at=at):
            if done == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(log, dataset, checkpoint=path, progress=pull_the_plug, **options)
        resumed = fit(log, dataset, checkpoint=path, **options)
        assert np.array_equal(resumed.predict(dataset), whole.predict(dataset))
        assert resumed.training == whole.training
