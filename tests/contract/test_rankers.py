"""What every ranker promises; a new one is tested by being registered."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields

import numpy as np
import pytest
import torch

from dualrank.corrections.naive import Naive
from dualrank.data.lists import PADDING
from dualrank.data.scaling import Scaler
from dualrank.errors import DualrankError
from dualrank.learning.feedback import SimulatedClicks
from dualrank.learning.loop import Loop
from dualrank.learning.model import Model
from dualrank.learning.validation import OnGrades
from dualrank.rankers.batch import Batch
from dualrank.rankers.kinds import RANKERS
from dualrank.rankers.ranker import Step
from dualrank.settings import TrainingSettings

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(steps=6, batch_size=32, validate_every=2, checkpoint_every=1)

pytestmark = pytest.mark.parametrize("kind", RANKERS)


class PowerCutError(Exception):
    """In the middle of a training."""


class Problem:
    """Judged queries, their lists, and users who click on them."""

    def __init__(self, dataset, lists, user):
        self.dataset, self.lists = dataset, lists
        self.clicks = SimulatedClicks(dataset, lists, user, sessions=5)
        rng = np.random.default_rng(0)
        whole = self.clicks.everything(400, rng)
        self.batch = whole.labelled()

    def build(self, kind, seed=0):
        return RANKERS[kind]().build(self.dataset.feature_count, seed)

    def started(self, kind, features=None, settings=SETTINGS):
        ranker = self.build(kind)
        features = self.dataset.features if features is None else features
        queries = self.dataset.query_of_document if ranker.whole else None
        ranker.start(torch.from_numpy(features), settings, queries)
        return ranker

    def loop(self, kind, *, seed=0, clicks=None):
        settings = TrainingSettings(**{**SETTINGS.__dict__, "seed": seed})
        return Loop(
            self.build(kind, seed),
            torch.from_numpy(self.dataset.features),
            clicks or self.clicks,
            Naive(),
            settings,
            validation=OnGrades(self.dataset.features, self.dataset, "ndcg@5"),
        )

    def trained(self, kind, **options):
        loop = self.loop(kind, **options)
        loop.run()
        return loop.ranker


@pytest.fixture(scope="module")
def problem(dataset, lists, user):
    return Problem(dataset, lists, user)


@pytest.fixture(scope="module")
def trained(problem):
    """One trained ranker of every kind."""
    return {kind: problem.trained(kind) for kind in RANKERS}


def digest(tensors):
    content = hashlib.sha256()
    for name in sorted(tensors):
        content.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    return content.hexdigest()


def step(ranker, batch):
    """One step on a batch, and the loss before it."""
    shown = batch.to(CPU)
    signal = Naive().signal(ranker.score(shown), shown)
    ranker.move(ranker.evidence(shown, signal), Step(batch.drawn, signal.clicks))
    return float(signal.loss)


def test_scores_are_laid_out_like_lists_with_0_at_padding(problem, kind, trained):
    ranker = problem.started(kind)
    ranker.load_tensors(trained[kind].tensors())
    shown = problem.batch.to(CPU)
    scores = ranker.score(shown)
    assert scores.shape == shown.mask.shape
    assert (~shown.mask).any()
    assert not scores[~shown.mask].any()
    assert scores[shown.mask].std() > 0


def test_padding_never_changes_a_score(problem, kind, trained):
    ranker = problem.started(kind)
    ranker.load_tensors(trained[kind].tensors())
    batch = problem.batch
    wider = np.full((len(batch), 3), PADDING, np.int32)
    padded = Batch(
        np.hstack([batch.documents, wider]),
        np.hstack([batch.labels, np.zeros(wider.shape, np.float32)]),
        batch.drawn,
    )
    scores, found = (ranker.score(each.to(CPU)) for each in (batch, padded))
    depth = batch.documents.shape[1]
    torch.testing.assert_close(found[:, :depth], scores, rtol=1e-5, atol=1e-6)
    assert not found[:, depth:].any()


def test_predict_gives_the_scores_of_lists(problem, kind, trained):
    ranker = problem.started(kind)
    ranker.load_tensors(trained[kind].tensors())
    features, lists = problem.dataset.features, problem.lists
    batch = Batch(lists.documents, np.zeros(lists.documents.shape, np.float32), len(lists))
    scores = ranker.score(batch.to(CPU)).numpy()
    predicted = ranker.predict_lists(features, lists)
    np.testing.assert_allclose(predicted, scores, rtol=1e-5, atol=1e-6)
    whole = ranker.predict(features, problem.dataset.offsets)
    assert whole.shape == (len(features),)
    assert whole.dtype == np.float32


def test_a_step_against_the_slope_lowers_the_loss(problem, kind):
    ranker = problem.started(kind, settings=TrainingSettings(learning_rate=0.05))
    before = step(ranker, problem.batch)
    shown = problem.batch.to(CPU)
    after = float(Naive().signal(ranker.score(shown), shown).loss)
    assert after < before


def test_the_same_seed_gives_the_same_bytes(problem, kind):
    first, second = (digest(problem.trained(kind, seed=3).tensors()) for _ in range(2))
    assert first == second
    torch.manual_seed(99)
    assert digest(problem.trained(kind, seed=3).tensors()) == first


def power_cut_after(steps):
    """What watches a run until the lights go out."""

    def watch(step, loop):
        if step > steps:
            raise PowerCutError

    return watch


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_an_interrupted_run_goes_on_to_the_same_bytes(problem, kind, steps, tmp_path):
    whole = problem.loop(kind)
    history = whole.run()
    steps = min(steps, whole.steps - 1)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(PowerCutError):
        problem.loop(kind).run(checkpoint=checkpoint, watch=power_cut_after(steps))
    resumed = problem.loop(kind)
    assert resumed.run(checkpoint=checkpoint) == history
    assert digest(resumed.ranker.tensors()) == digest(whole.ranker.tensors())
    finished = problem.loop(kind)
    assert finished.run(checkpoint=checkpoint, watch=power_cut_after(0)) == history
    assert digest(finished.ranker.tensors()) == digest(whole.ranker.tensors())
    assert finished.ranker.outcome() == whole.ranker.outcome()


def test_a_saved_model_gives_identical_scores(problem, kind, trained, tmp_path):
    scaler = Scaler.fit(problem.dataset.features, kind="none")
    model = Model(trained[kind], scaler, kind=kind)
    model.save(tmp_path)
    loaded = Model.load(tmp_path)
    assert loaded.kind == kind
    assert type(loaded.ranker) is type(trained[kind])
    expected = model.predict(problem.dataset)
    assert np.array_equal(loaded.predict(problem.dataset), expected)
    assert np.ptp(expected) > 0
    loaded.save(tmp_path / "again")
    for file in ("ranker.safetensors", "manifest.json"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / file).read_bytes()


def test_tensors_that_do_not_fit_are_refused(problem, kind, trained):
    ranker, tensors = problem.build(kind), dict(trained[kind].tensors())
    name = next(iter(tensors))
    before = digest(ranker.tensors())
    for wrong in ({}, {**tensors, name: torch.zeros(99)}, {**tensors, "more": torch.zeros(1)}):
        with pytest.raises((KeyError, ValueError)):
            ranker.load_tensors(wrong)
    assert digest(ranker.tensors()) == before


def test_what_shares_of_a_batch_tell_adds_up_to_what_the_whole_tells(problem, kind):
    if problem.build(kind).at_once:
        pytest.skip("it takes all lists at once, in every worker alike")
    ranker = problem.started(kind)
    for _ in range(3):
        step(ranker, problem.batch)

    def evidence(batch):
        shown = batch.to(CPU)
        signal = Naive().signal(ranker.score(shown), shown)
        return [part.clone() for part in ranker.evidence(shown, signal)]

    whole = evidence(problem.batch)
    shares = [evidence(problem.batch.share(worker, 2)) for worker in range(2)]
    for one, *two in zip(whole, *shares, strict=True):
        torch.testing.assert_close(sum(two), one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e30, 1e30])
def test_features_that_are_all_alike_give_numbers_or_a_sentence(problem, kind, value):
    """Whether they are scaled or not: a ranker learns nothing of them, but no nan either."""
    features = np.full_like(problem.dataset.features, value)
    ranker = problem.started(kind, features)
    with suppress(DualrankError):
        step(ranker, problem.batch)
    assert ranker.is_finite()
    assert not np.isnan(ranker.predict(problem.dataset.features)).any()


def test_one_huge_feature_never_makes_the_ranker_a_nan(problem, kind):
    features = problem.dataset.features.copy()
    features[problem.batch.documents[0, 0], 0] = 1e30
    ranker = problem.started(kind, features)
    for _ in range(1 if ranker.at_once else 3):
        step(ranker, problem.batch)
    assert ranker.is_finite()
    assert not np.isnan(ranker.predict(problem.dataset.features)).any()


def test_no_documents_have_no_scores(problem, kind, trained):
    nothing = np.zeros((0, problem.dataset.feature_count), np.float32)
    assert trained[kind].predict(nothing).shape == (0,)


def test_layers_are_the_ranker(problem, kind, trained):
    layers = trained[kind].layers()
    if layers is None:
        pytest.skip("it is no network")
    h = problem.dataset.features.astype(np.float64)
    for layer in layers:
        h = h @ layer.weight.T + layer.bias
        if layer.activation is not None:
            assert layer.activation == "elu"
            h = np.where(h > 0, h, np.expm1(np.minimum(h, 0)))
    found = trained[kind].predict(problem.dataset.features)
    np.testing.assert_allclose(found, h[:, 0], rtol=1e-4, atol=1e-5)


def test_two_threads_may_ask_at_once(problem, kind, trained):
    ranker, features = trained[kind], problem.dataset.features
    questions = [features * scale for scale in (1.0, -1.0, 0.5, 2.0)] * 10
    expected = [ranker.predict(each) for each in questions]
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(ranker.predict, questions))
    assert all(map(np.array_equal, found, expected))


def test_a_ranker_that_has_finished_holds_no_training_data(problem, kind, trained):
    """It still scores, and nothing in it is as long as the training matrix."""
    documents = problem.dataset.document_count
    for name, value in vars(trained[kind]).items():
        if isinstance(value, np.ndarray | torch.Tensor) and value.ndim:
            assert len(value) < documents, name
    assert len(trained[kind].predict(problem.dataset.features)) == documents


def test_no_option_of_a_ranker_is_named_like_a_setting_of_the_loop(kind):
    """The command line would take one for the other."""
    own = {field.name for field in fields(RANKERS[kind])} - {"seed"}
    assert own.isdisjoint(field.name for field in fields(TrainingSettings))
