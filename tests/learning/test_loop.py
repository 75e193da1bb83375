"""The loop: repeatable, keeps the best ranker, survives what clicks throw at it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from dualrank.corrections.weighting import DualLearning, GivenPropensity, NoCorrection

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.losses import masked_log_softmax, ratio_to_first, softmax_cross_entropy
from dualrank.data.lists import top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.learning.feedback import Batch, Judgments, SimulatedClicks
from dualrank.learning.loop import Trainer
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.optimizer import Optimizer
from dualrank.settings import TrainingSettings

SETTINGS = TrainingSettings(steps=12, batch_size=32, validate_every=5)


@pytest.fixture
def make_trainer(dataset, lists, user):
    def make(method="dla", feedback=None, settings=SETTINGS, validation=None, hidden=(4,)):
        weighting = {
            "dla": lambda: DualLearning(lists.depth, settings),
            "ipw": lambda: GivenPropensity(Propensity.of(user.curve), lists.depth),
            "naive": NoCorrection,
        }[method]()
        return Trainer(
            DNN(hidden).build(dataset.feature_count, settings.seed),
            torch.from_numpy(dataset.features),
            feedback or SimulatedClicks(dataset, lists, user),
            weighting,
            settings,
            validation=validation,
        )

    return make


def parameters(trainer):
    beside = getattr(trainer.weighting, "model", None)
    models = [trainer.ranker, *([beside] if beside else [])]
    return [p.detach().clone() for model in models for p in model.parameters()]


def digest(trainer):
    return b"".join(p.numpy().tobytes() for p in parameters(trainer))


class ByFunction:
    """Values a ranker by a function of it."""

    def __init__(self, function):
        self._function = function

    def measure(self, ranker):
        return [self._function(ranker)]

    def value(self, measured):
        return measured[0]


class MovingBelief(ByFunction):
    """Measures twice a number, and believes in one, then the other."""

    def __init__(self, measured):
        super().__init__(None)
        self._measured, self.count = measured, 0

    def measure(self, ranker):
        self.count += 1
        return self._measured[self.count - 1]

    def value(self, measured):
        return measured[0] if self.count == 1 else measured[1]


class Scripted:
    """Hands out prepared batches, one per step, the last one for ever."""

    def __init__(self, lists, *batches):
        self.lists, self._batches = lists, list(batches)

    def draw(self, size, rng):
        return self._batches.pop(0) if len(self._batches) > 1 else self._batches[0]


@pytest.fixture
def batch(dataset, lists, user):
    return SimulatedClicks(dataset, lists, user).draw(32, np.random.default_rng(8))


@pytest.mark.parametrize("method", ["dla", "ipw", "naive"])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_the_same_seed_gives_the_same_bytes(make_trainer, method, optimizer):
    settings = replace(SETTINGS, optimizer=optimizer)
    first, second = (make_trainer(method, settings=settings) for _ in range(2))
    first.run()
    second.run()
    assert digest(first) == digest(second)
    assert first.history == second.history


def test_another_seed_gives_other_bytes(make_trainer):
    first, second = make_trainer(), make_trainer(settings=replace(SETTINGS, seed=1))
    first.run()
    second.run()
    assert digest(first) != digest(second)


def test_one_step_is_the_dual_learning_algorithm_by_hand(make_trainer, dataset, lists, batch):
    """Both models move from the same batch, each with the other's weights from before the step."""
    settings = replace(SETTINGS, steps=1, gradient_clip=1e9, max_weight=1e6)
    trainer = make_trainer(feedback=Scripted(lists, batch), settings=settings)
    generator = torch.Generator().manual_seed(0)
    for parameter in trainer.ranker.parameters():
        parameter.data.normal_(0, 0.5, generator=generator)
    phi = trainer.weighting.model.phi
    phi.data = torch.linspace(0, -2, lists.depth)
    before = [p.clone().double().requires_grad_() for p in parameters(trainer)]
    trainer.step()

    w1, w2, b1, b2, g = before
    documents = torch.from_numpy(batch.documents)
    mask, labels = documents >= 0, torch.from_numpy(batch.labels).double()
    x = torch.from_numpy(dataset.features)[documents.clamp(min=0)].double()
    f = (torch.nn.functional.elu(x @ w1.t() + b1) @ w2.t() + b2)[..., 0]
    log_relevance = masked_log_softmax(f, mask)
    log_examination = masked_log_softmax(g.expand(f.shape), mask)
    l_s = softmax_cross_entropy(log_relevance, labels, ratio_to_first(log_examination))
    l_e = softmax_cross_entropy(log_examination, labels, ratio_to_first(log_relevance))
    ((l_s.sum() + l_e.sum()) / batch.drawn).backward()
    rates = [settings.learning_rate] * 4 + [settings.propensity_rate]
    for old, new, rate in zip(before, parameters(trainer), rates, strict=True):
        torch.testing.assert_close(new.double(), old - rate * old.grad, rtol=1e-4, atol=1e-6)


def test_padded_documents_are_never_scored(make_trainer, dataset, lists, batch):
    """Other features in the last row, which PADDING = −1 would point at, change nothing."""
    assert (batch.documents == -1).any()
    batch.documents.setflags(write=False)
    last = dataset.document_count - 1
    kept = ~(batch.documents == last).any(axis=1)
    without_last = Batch(batch.documents[kept], batch.labels[kept], batch.drawn)
    first = make_trainer(feedback=Scripted(lists, without_last))
    second = make_trainer(feedback=Scripted(lists, without_last))
    second._features = second._features.clone()
    second._features[last] = torch.nan
    first.run()
    second.run()
    assert digest(first) == digest(second)


@pytest.mark.parametrize("method", ["dla", "ipw", "naive"])
def test_the_two_normalisations_differ_by_the_sum_of_weights_over_the_sessions(
    make_trainer, lists, batch, method
):
    moved = {}
    for normalisation in ("sessions", "clicks"):
        settings = replace(
            SETTINGS, steps=1, normalisation=normalisation, gradient_clip=1e9, schedule="constant"
        )
        trainer = make_trainer(method, Scripted(lists, batch), settings)
        before = parameters(trainer)
        weights = trainer.weighting.weights()
        trainer.step()
        moved[normalisation] = [
            new - old for new, old in zip(parameters(trainer), before, strict=True)
        ]
    weighted = float((weights * torch.from_numpy(batch.labels)).sum())
    for by_sessions, by_clicks in zip(moved["sessions"], moved["clicks"], strict=True):
        torch.testing.assert_close(by_sessions * batch.drawn, by_clicks * weighted)
    assert any(part.abs().max() > 1e-4 for part in moved["sessions"])
    assert weighted != batch.drawn


def test_the_best_ranker_on_validation_is_kept(make_trainer):
    values, seen = [0.1, 0.5, 0.3], []

    def validate(ranker):
        seen.append([p.detach().clone() for p in ranker.parameters()])
        return values[len(seen) - 1]

    trainer = make_trainer(validation=ByFunction(validate))
    history = trainer.run()
    assert history.steps == [5, 10, 12]
    assert history.values == values
    assert (history.best_step, history.best_value) == (10, 0.5)
    assert all(map(torch.equal, trainer.ranker.parameters(), seen[1]))
    assert not all(map(torch.equal, seen[1], seen[2]))


def test_of_equally_good_rankers_the_first_is_kept(make_trainer):
    history = make_trainer(validation=ByFunction(lambda ranker: 0.5)).run()
    assert history.best_step == 5


def test_the_best_ranker_is_valued_anew_by_what_is_believed_now(make_trainer):
    # By the first belief the first ranker is worth 0.9; by the later one only 0.2.
    validation = MovingBelief([[0.9, 0.2], [0.1, 0.5], [0.1, 0.4]])
    history = make_trainer(validation=validation).run()
    assert history.values == [0.9, 0.5, 0.4]
    assert (history.best_step, history.best_value) == (10, 0.5)


def test_without_validation_the_last_ranker_is_kept(make_trainer):
    history = make_trainer().run()
    assert history.best_step == SETTINGS.steps
    assert history.values == []


def test_the_schedule_follows_the_share_of_steps_done(make_trainer, monkeypatch):
    seen = []
    monkeypatch.setattr(Optimizer, "set_progress", lambda self, done: seen.append(done))
    make_trainer("naive", settings=replace(SETTINGS, steps=4)).run()
    assert seen == [0, 0.25, 0.5, 0.75]


def test_sessions_drawn_and_clicked_are_counted(make_trainer):
    history = make_trainer().run()
    assert history.drawn == SETTINGS.steps * SETTINGS.batch_size
    assert 0 < history.clicked < history.drawn


def test_a_poisoned_batch_is_left_out_by_both_models_and_training_goes_on(
    make_trainer, lists, batch
):
    poison = Batch(batch.documents, np.where(batch.labels > 0, np.inf, 0).astype("f4"), batch.drawn)
    trainer = make_trainer(feedback=Scripted(lists, batch, poison, batch))
    history = trainer.run()
    assert history.left_out == 2
    assert all(torch.isfinite(p).all() for p in parameters(trainer))
    clean = make_trainer(feedback=Scripted(lists, batch))
    assert clean.run().left_out == 0
    assert digest(clean) != digest(trainer)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
@pytest.mark.parametrize("max_weight", [1_000.0, float("inf")])
def test_absurd_rates_never_yield_a_nan(make_trainer, optimizer, max_weight):
    settings = replace(
        SETTINGS,
        steps=60,
        optimizer=optimizer,
        learning_rate=1e4,
        propensity_rate=1e3,
        max_weight=max_weight,
        gradient_clip=1e30,
        schedule="constant",
    )
    trainer = make_trainer(settings=settings)
    trainer.run()
    assert all(torch.isfinite(p).all() for p in parameters(trainer))


def test_progress_is_told_and_ends_at_the_last_step(make_trainer):
    told = []
    make_trainer().run(progress=lambda done, total: told.append((done, total)))
    assert told == [(10, 12), (12, 12)]


def test_training_without_a_single_click_is_an_error_and_not_a_result(make_trainer, dataset, lists):
    nobody = PositionBasedUser(eta=1, epsilon=0, curve=(1e-12,) * 6)
    trainer = make_trainer(feedback=SimulatedClicks(dataset, lists, nobody))
    with pytest.raises(DataError, match="none of the 384 sessions drawn had a click"):
        trainer.run()


def test_a_ranker_that_diverged_is_refused(make_trainer):
    trainer = make_trainer()
    torch.nn.init.constant_(trainer.ranker.weights[0], torch.inf)
    with pytest.raises(SettingsError, match=r"training diverged at learning rate 0.2; lower it"):
        trainer.run()


def test_a_step_without_clicks_moves_nothing(make_trainer, lists, batch):
    empty = Batch(batch.documents[:0], batch.labels[:0], batch.drawn)
    trainer = make_trainer(feedback=Scripted(lists, empty))
    before = digest(trainer)
    trainer.step()
    assert digest(trainer) == before
    assert trainer.history.drawn == batch.drawn


def test_lists_of_one_document_have_no_loss_and_move_nothing(make_trainer, make_dataset, user):
    single = make_dataset(queries=30, lengths=(1, 2))
    lists = top_lists(single, np.zeros(30), 6)
    labels = np.zeros(lists.documents.shape, np.float32)
    labels[:, 0] = 1
    trainer = make_trainer(feedback=Scripted(lists, Batch(lists.documents, labels, len(lists))))
    trainer._features = torch.from_numpy(single.features)
    before = digest(trainer)
    history = trainer.run()
    assert history.clicked > 0
    assert digest(trainer) == before
    with pytest.raises(DataError, match="no list shows two documents"):
        SimulatedClicks(single, lists, user)


def test_the_ranker_learns_to_put_relevant_documents_first(make_trainer, dataset, lists):
    """Training on grades must at least find the two features that the grades are made of."""
    settings = replace(SETTINGS, steps=300, batch_size=64)
    trainer = make_trainer("naive", Judgments(dataset, lists), settings, hidden=())
    trainer.run()
    w = trainer.ranker.weights[0][0].detach()
    assert w[0] > 3 * w[2:].abs().max()
    assert w[1] > w[2:].abs().max()
