"""The loop: repeatable, keeps the best ranker, survives what clicks throw at it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.ipw import InversePropensity
from dualrank.corrections.likelihood import Likelihood
from dualrank.corrections.naive import Naive
from dualrank.data.lists import top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.learning.feedback import Judgments, SimulatedClicks
from dualrank.learning.loop import Loop, part_of
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Batch
from dualrank.rankers.network import DNN
from dualrank.rankers.optimizer import Optimizer
from dualrank.rankers.trees import Trees
from dualrank.settings import TrainingSettings

SETTINGS = TrainingSettings(steps=12, batch_size=32, validate_every=5)


@pytest.fixture
def make_loop(dataset, lists, user):
    def make(method="dla", feedback=None, settings=SETTINGS, validation=None, hidden=(4,)):
        correction = {
            "dla": lambda: DualLearning(lists.depth, settings),
            "ipw": lambda: InversePropensity(Propensity.of(user.curve), lists.depth),
            "naive": Naive,
            "likelihood": lambda: Likelihood(lists.depth, settings),
        }[method]()
        return Loop(
            DNN(hidden).build(dataset.feature_count, settings.seed),
            torch.from_numpy(dataset.features),
            feedback or SimulatedClicks(dataset, lists, user),
            correction,
            settings,
            validation=validation,
        )

    return make


def parameters(loop):
    model = getattr(loop.correction, "model", None)
    beliefs = [p.detach() for p in model.parameters()] if model else []
    return [p.clone() for p in (*loop.ranker.weights, *loop.ranker.biases, *beliefs)]


def digest(loop):
    return b"".join(p.numpy().tobytes() for p in parameters(loop))


class ByFunction:
    """Values a ranker by a function of it."""

    def __init__(self, function):
        self._function = function

    def measuring(self, ranker):
        return lambda: [self._function(ranker)]

    def value(self, measured):
        return measured[0]

    def doubt(self, measured, other):
        return 0.15


class MovingBelief(ByFunction):
    """Measures twice a number, and believes in one, then the other."""

    def __init__(self, measured):
        super().__init__(None)
        self._measured, self.count = measured, 0

    def measuring(self, ranker):
        def measure():
            self.count += 1
            return self._measured[self.count - 1]

        return measure

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
def test_the_same_seed_gives_the_same_bytes(make_loop, method, optimizer):
    settings = replace(SETTINGS, optimizer=optimizer)
    first, second = (make_loop(method, settings=settings) for _ in range(2))
    first.run()
    second.run()
    assert digest(first) == digest(second)
    assert first.history == second.history


def test_another_seed_gives_other_bytes(make_loop):
    first, second = make_loop(), make_loop(settings=replace(SETTINGS, seed=1))
    first.run()
    second.run()
    assert digest(first) != digest(second)


def test_one_step_is_the_dual_learning_algorithm_by_hand(make_loop, dataset, lists, batch):
    """Both models move from the same batch, each with the other's weights from before the step."""
    settings = replace(SETTINGS, steps=1, gradient_clip=1e9, max_weight=1e6)
    loop = make_loop(feedback=Scripted(lists, batch), settings=settings)
    generator = torch.Generator().manual_seed(0)
    for parameter in (*loop.ranker.weights, *loop.ranker.biases):
        parameter.normal_(0, 0.5, generator=generator)
    loop.correction.model.phi.data.copy_(torch.linspace(0, -2, lists.depth))
    before = [p.clone().double().requires_grad_() for p in parameters(loop)]
    loop.step()

    w1, w2, b1, b2, g = before
    documents = torch.from_numpy(batch.documents)
    mask, labels = documents >= 0, torch.from_numpy(batch.labels).double()
    x = torch.from_numpy(dataset.features)[documents.clamp(min=0)].double()
    f = (torch.nn.functional.elu(x @ w1.t() + b1) @ w2.t() + b2)[..., 0]
    log_s, log_e = (
        torch.log_softmax(t.masked_fill(~mask, -1e9), dim=1) for t in (f, g.expand(f.shape))
    )
    by_examination, by_relevance = (
        torch.exp(t.detach()[:, :1] - t.detach().masked_fill(~mask, 0.0)) for t in (log_e, log_s)
    )
    l_s, l_e = -labels * by_examination * log_s, -labels * by_relevance * log_e
    ((l_s.sum() + l_e.sum()) / batch.drawn).backward()
    rates = [settings.rate] * 4 + [settings.propensity_rate]
    for old, new, rate in zip(before, parameters(loop), rates, strict=True):
        torch.testing.assert_close(new.double(), old - rate * old.grad, rtol=1e-4, atol=1e-6)


def test_padded_documents_are_never_scored(make_loop, dataset, lists, batch):
    """Other features in the last row, which PADDING = −1 would point at, change nothing."""
    assert (batch.documents == -1).any()
    batch.documents.setflags(write=False)
    last = dataset.document_count - 1
    kept = ~(batch.documents == last).any(axis=1)
    without_last = Batch(batch.documents[kept], batch.labels[kept], batch.drawn)
    first = make_loop(feedback=Scripted(lists, without_last))
    second = make_loop(feedback=Scripted(lists, without_last))
    poisoned = torch.from_numpy(dataset.features.copy())
    poisoned[last] = torch.nan
    second.ranker.start(poisoned, SETTINGS)
    first.run()
    second.run()
    assert digest(first) == digest(second)


@pytest.mark.parametrize("method", ["dla", "ipw", "naive"])
def test_the_two_normalisations_differ_by_the_sum_of_weights_over_the_sessions(
    make_loop, lists, batch, method
):
    moved = {}
    for normalisation in ("sessions", "clicks"):
        settings = replace(
            SETTINGS, steps=1, normalisation=normalisation, gradient_clip=1e9, schedule="constant"
        )
        loop = make_loop(method, Scripted(lists, batch), settings)
        before = parameters(loop)
        labelled = batch.labelled().to(loop.device)
        weighted = float(loop.correction.signal(torch.zeros_like(labelled.labels), labelled).clicks)
        loop.step()
        moved[normalisation] = [
            new - old for new, old in zip(parameters(loop), before, strict=True)
        ]
    for by_sessions, by_clicks in zip(moved["sessions"], moved["clicks"], strict=True):
        torch.testing.assert_close(by_sessions * batch.drawn, by_clicks * weighted)
    assert any(part.abs().max() > 1e-4 for part in moved["sessions"])
    assert weighted != batch.drawn


def test_the_best_ranker_on_validation_is_kept(make_loop):
    values, seen = [0.1, 0.5, 0.3], []

    def validate(ranker):
        seen.append([t.clone() for t in ranker.tensors().values()])
        return values[len(seen) - 1]

    loop = make_loop(validation=ByFunction(validate))
    history = loop.run()
    assert history.steps == [5, 10, 12]
    assert history.values == values
    assert (history.best_step, history.best_value) == (10, 0.5)
    assert all(map(torch.equal, loop.ranker.tensors().values(), seen[1]))
    assert not all(map(torch.equal, seen[1], seen[2]))


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([0.1, 0.1, 0.1, 0.2, 0.5, 0.3], 10),
        ([0.6, 0.1, 0.1, 0.2, 0.5, 0.3], 0),
        ([0.1, 0.6, 0.1, 0.2, 0.5, 0.3], 1),
        # Ahead of the start by less than luck does not count; beyond it, any lead does.
        ([0.4, 0.1, 0.1, 0.2, 0.5, 0.3], 0),
        ([0.1, 0.1, 0.1, 0.45, 0.5, 0.3], 10),
    ],
)
def test_a_likelihood_keeps_ranker_and_belief_of_its_best_step_the_start_included(
    make_loop, values, best
):
    seen, beliefs = [], []

    def validate(ranker):
        seen.append([t.clone() for t in ranker.tensors().values()])
        beliefs.append(loop.correction.propensity().examination)
        return values[len(seen) - 1]

    loop = make_loop("likelihood", validation=ByFunction(validate))
    # On a ground a ranker is worth something before its first step.
    loop.correction.worth = torch.tensor([0.1])
    loop.correction.start(loop.device)
    history = loop.run()
    assert history.steps == [0, 1, 2, 5, 10, 12]
    kept = history.steps.index(best)
    assert (history.best_step, history.best_value) == (best, values[kept])
    assert all(map(torch.equal, loop.ranker.tensors().values(), seen[kept]))
    np.testing.assert_array_equal(loop.correction.propensity().examination, beliefs[kept])
    assert not np.array_equal(beliefs[kept], beliefs[-1])


def test_settings_left_open_are_those_that_suit_the_correction(make_loop):
    assert make_loop("dla").settings.rate == 0.2
    assert make_loop("likelihood").settings.rate == Likelihood.suits["learning_rate"]
    asked = make_loop("likelihood", settings=replace(SETTINGS, learning_rate=0.05))
    assert (asked.settings.rate, asked.settings.decay) == (0.05, Likelihood.suits["weight_decay"])


def test_of_equally_good_rankers_the_first_is_kept(make_loop):
    history = make_loop(validation=ByFunction(lambda ranker: 0.5)).run()
    assert history.best_step == 5


def test_the_best_ranker_is_valued_anew_by_what_is_believed_now(make_loop):
    # By the first belief the first ranker is worth 0.9; by the later one only 0.2.
    validation = MovingBelief([[0.9, 0.2], [0.1, 0.5], [0.1, 0.4]])
    history = make_loop(validation=validation).run()
    assert history.values == [0.9, 0.5, 0.4]
    assert (history.best_step, history.best_value) == (10, 0.5)


def test_without_validation_the_last_ranker_is_kept(make_loop):
    history = make_loop().run()
    assert history.best_step == SETTINGS.steps
    assert history.values == []


def test_the_schedule_follows_the_share_of_steps_done(make_loop, monkeypatch):
    seen = []
    monkeypatch.setattr(Optimizer, "move", lambda self, gradients, step: seen.append(step.done))
    make_loop("naive", settings=replace(SETTINGS, steps=4)).run()
    assert seen == [0, 0.25, 0.5, 0.75]


def test_sessions_drawn_and_clicked_are_counted(make_loop):
    history = make_loop().run()
    assert history.drawn == SETTINGS.steps * SETTINGS.batch_size
    assert 0 < history.clicked < history.drawn


def test_a_poisoned_batch_is_left_out_by_both_models_and_training_goes_on(make_loop, lists, batch):
    poison = Batch(batch.documents, np.where(batch.labels > 0, np.inf, 0).astype("f4"), batch.drawn)
    loop = make_loop(feedback=Scripted(lists, batch, poison, batch))
    history = loop.run()
    assert history.left_out == 2
    assert all(torch.isfinite(p).all() for p in parameters(loop))
    clean = make_loop(feedback=Scripted(lists, batch))
    assert clean.run().left_out == 0
    assert digest(clean) != digest(loop)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
@pytest.mark.parametrize("max_weight", [1_000.0, float("inf")])
def test_absurd_rates_never_yield_a_nan(make_loop, optimizer, max_weight):
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
    loop = make_loop(settings=settings)
    loop.run()
    assert all(torch.isfinite(p).all() for p in parameters(loop))


def test_progress_is_told_and_ends_at_the_last_step(make_loop):
    heard = []
    make_loop().run(progress=lambda done, total: heard.append((done, total)))
    assert heard == [(10, 12), (12, 12)]


def test_training_without_a_single_click_is_an_error_and_not_a_result(make_loop, dataset, lists):
    nobody = PositionBasedUser(eta=1, epsilon=0, curve=(1e-12,) * 6)
    loop = make_loop(feedback=SimulatedClicks(dataset, lists, nobody))
    with pytest.raises(DataError, match="none of the 384 sessions drawn had a click"):
        loop.run()


def test_a_ranker_that_diverged_is_refused(make_loop):
    loop = make_loop()
    loop.ranker.weights[0].fill_(torch.inf)
    with pytest.raises(SettingsError, match=r"training diverged at learning rate 0.2; lower it"):
        loop.run()


def test_a_step_without_clicks_moves_nothing(make_loop, lists, batch):
    empty = Batch(batch.documents, np.zeros_like(batch.labels), batch.drawn)
    loop = make_loop(feedback=Scripted(lists, empty))
    before = digest(loop)
    loop.step()
    assert digest(loop) == before
    assert loop.history.drawn == batch.drawn


def test_lists_of_one_document_have_no_loss_and_move_nothing(make_loop, make_dataset, user):
    single = make_dataset(queries=30, lengths=(1, 2))
    lists = top_lists(single, np.zeros(30), 6)
    labels = np.zeros(lists.documents.shape, np.float32)
    labels[:, 0] = 1
    loop = make_loop(feedback=Scripted(lists, Batch(lists.documents, labels, len(lists))))
    loop.ranker.start(torch.from_numpy(single.features), SETTINGS)
    before = digest(loop)
    history = loop.run()
    assert history.clicked > 0
    assert digest(loop) == before
    with pytest.raises(DataError, match="no list shows two documents"):
        SimulatedClicks(single, lists, user)


def test_the_ranker_learns_to_put_relevant_documents_first(make_loop, dataset, lists):
    """Training on grades must at least find the two features that the grades are made of."""
    settings = replace(SETTINGS, steps=300, batch_size=64)
    loop = make_loop("naive", Judgments(dataset, lists), settings, hidden=())
    loop.run()
    w = loop.ranker.weights[0][0]
    assert w[0] > 3 * w[2:].abs().max()
    assert w[1] > w[2:].abs().max()


def test_every_step_is_watched_with_the_state_it_has_reached(make_loop):
    seen = []

    def watch(step, loop):
        loss = loop.recorded(step)["loss"]
        seen.append((step, loop.correction.propensity().examination[-1], loss))

    loop = make_loop(validation=ByFunction(lambda ranker: 0.5))
    loop.run(watch=watch)
    assert [step for step, *_ in seen] == list(range(1, SETTINGS.steps + 1))
    assert len({examination for _, examination, _ in seen}) == SETTINGS.steps
    assert all(loss > 0 for *_, loss in seen)
    assert loop.recorded(SETTINGS.steps)["validation"] == 0.5
    assert "validation" not in loop.recorded(1)


def test_lists_without_a_label_are_scored_only_where_a_correction_asks_for_them(
    make_loop, lists, batch
):
    scored = []

    class Watched(Naive):
        def signal(self, scores, shown):
            scored.append(len(scores))
            return super().signal(scores, shown)

    for clicked_only in (True, False):
        loop = make_loop("naive", Scripted(lists, batch))
        loop.correction = Watched()
        loop.correction.clicked_only = clicked_only
        loop.step()
    clicked = int(batch.labels.any(axis=1).sum())
    assert scored == [clicked, len(batch)]
    assert clicked < len(batch)


def test_parts_of_a_work_count_over_the_whole():
    heard = []
    for number in range(3):
        part_of(lambda done, total: heard.append((done, total)), number, 3)(5, 10)
    assert heard == [(5, 30), (15, 30), (25, 30)]
    part_of(None, 0, 1)(1, 2)


class OnlyDraws:
    """A source of one's own that gives some lists at a time, not all."""

    def __init__(self, source):
        self.lists, self.draw = source.lists, source.draw


def test_a_source_that_cannot_be_taken_whole_is_refused_by_rankers_that_take_all(
    dataset, lists, user
):
    source = OnlyDraws(SimulatedClicks(dataset, lists, user))
    features = torch.from_numpy(dataset.features)
    with pytest.raises(SettingsError) as caught:
        Loop(Trees().build(dataset.feature_count), features, source, Naive(), SETTINGS)
    assert str(caught.value) == (
        "OnlyDraws has no method everything, by which a TreeRanker takes all lists at once"
    )
