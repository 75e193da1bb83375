"""Labels: clicks as the user's probabilities say, lists as often as they should be drawn."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import CascadeUser
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.position_models import PositionVariables
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists, top_lists
from dualrank.errors import DataError
from dualrank.learning.feedback import (
    DisplayedOrder,
    EstimatedRelevance,
    Judgments,
    LoggedClicks,
    ReadClicks,
    SimulatedClicks,
)
from dualrank.learning.loop import Loop
from dualrank.rankers.batch import Batch
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

SESSIONS = 200_000


@pytest.fixture(scope="module")
def simulated(dataset, lists, user):
    return SimulatedClicks(dataset, lists, user).draw(SESSIONS, np.random.default_rng(0))


@pytest.fixture(scope="module")
def probabilities(dataset, lists, user):
    return user.click_probabilities(lists.gather(dataset.grades), lists.mask, 4)


def test_padding_is_never_clicked(simulated):
    assert (simulated.documents == PADDING).any()
    assert not simulated.labels[simulated.documents == PADDING].any()


def test_click_rates_per_position_are_the_probabilities_of_the_user(simulated, probabilities):
    expected = probabilities.mean(axis=0)
    found = simulated.labels.sum(axis=0) / simulated.drawn
    error = np.sqrt(expected * (1 - expected) / SESSIONS)
    # Six normal errors: all are below 4.5 but once in 24,000 samples.
    assert (np.abs(found - expected) / error).max() < 4.5


def test_every_document_is_clicked_as_often_as_its_grade_and_position_say(
    simulated, lists, probabilities
):
    counts = np.bincount(
        simulated.documents[simulated.labels == 1], minlength=lists.documents.max() + 1
    )
    found = np.where(lists.mask, counts[lists.documents], 0)
    p = probabilities / len(lists)
    error = np.sqrt(SESSIONS * p * (1 - p))
    off = np.abs(found - SESSIONS * p)[lists.mask] / error[lists.mask]
    # Some 250 binomial errors with at least 15 expected clicks each: a normal exceeds 5 once in
    # 1.7 million.
    assert off.max() < 5


def test_lists_without_a_click_are_drawn_and_can_be_left_out(simulated, probabilities):
    assert len(simulated) == simulated.drawn == SESSIONS
    labelled = simulated.labelled()
    assert labelled.drawn == SESSIONS
    assert labelled.labels.any(axis=1).all()
    assert labelled.labels.sum() == simulated.labels.sum()
    clicked = 1 - np.prod(1 - probabilities, axis=1).mean()
    error = np.sqrt(clicked * (1 - clicked) / SESSIONS)
    assert abs(len(labelled) / SESSIONS - clicked) < 4.5 * error
    assert clicked < 0.9


def test_clicks_are_zero_or_one(simulated):
    assert set(np.unique(simulated.labels)) == {0.0, 1.0}


def test_the_same_generator_state_gives_the_same_batch(dataset, lists, user):
    source = SimulatedClicks(dataset, lists, user)
    first, second = (source.draw(500, np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first.documents, second.documents)
    assert np.array_equal(first.labels, second.labels)


class Fixed:
    """Hands out the same batch at every step."""

    def __init__(self, lists, batch):
        self.lists, self._batch = lists, batch

    def draw(self, size, rng):
        return self._batch


def test_lists_without_clicks_could_be_computed_but_would_change_no_gradient(
    dataset, lists, probabilities
):
    rng = np.random.default_rng(1)
    clicks = (rng.random(probabilities.shape) < probabilities).astype(np.float32)
    clicked = clicks.any(axis=1)
    assert 0 < clicked.sum() < len(lists)
    batch = Batch(lists.documents, clicks, len(lists))
    settings = TrainingSettings(batch_size=len(lists), steps=3)
    learned = []
    for clicked_only in (False, True):
        loop = Loop(
            DNN((4,)).build(dataset.feature_count),
            torch.from_numpy(dataset.features),
            Fixed(lists, batch),
            DualLearning(lists.depth, settings),
            settings,
        )
        loop.correction.clicked_only = clicked_only
        loop.run()
        learned.append([*loop.ranker.tensors().values(), loop.correction.model.phi.detach()])
    for with_unclicked, without in zip(*learned, strict=True):
        torch.testing.assert_close(with_unclicked, without, rtol=1e-5, atol=1e-7)
    assert learned[0][-1].abs().max() > 1e-3


def test_full_batch_gradients_of_lists_with_counts_are_those_of_sessions(dataset, lists, user):
    """To 1e-12 in float64, for the ranker and for φ, with padding among the lists."""
    log = sample_log(dataset, lists, user, 5_000, np.random.default_rng(3))
    rows = np.repeat(np.arange(len(log.counts)), log.counts)
    shown = log.lists.documents
    sessions = Batch(shown[log.list_of[rows]], log.clicks[rows].astype(float), len(rows))
    counted = Batch(shown, log.clicks_per_list.astype(float), log.sessions)
    assert len(sessions.documents) > 10 * len(counted.documents)
    settings = TrainingSettings(batch_size=len(rows), gradient_clip=1e9, schedule="constant")
    gradients = []
    for batch in (sessions, counted):
        ranker = DNN((4,)).build(dataset.feature_count)
        ranker.weights = [weight.double() for weight in ranker.weights]
        ranker.biases = [bias.double() for bias in ranker.biases]
        ranker.weights[-1].normal_(generator=torch.Generator().manual_seed(1))
        phi = PositionVariables(lists.depth).double()
        torch.nn.init.normal_(phi.phi, generator=torch.Generator().manual_seed(2))
        held = (*ranker.weights, *ranker.biases, phi.phi.detach())
        before = [tensor.clone() for tensor in held]
        loop = Loop(
            ranker,
            torch.from_numpy(dataset.features).double(),
            Fixed(lists, batch),
            DualLearning(lists.depth, settings, phi),
            settings,
        )
        loop.step()
        rates = [settings.rate] * (len(before) - 1) + [settings.propensity_rate]
        gradients.append([(b - a) / r for b, a, r in zip(before, held, rates, strict=True)])
    for of_sessions, of_lists in zip(*gradients, strict=True):
        torch.testing.assert_close(of_sessions, of_lists, rtol=0, atol=1e-12)
    assert min(float(gradients[0][part].abs().max()) for part in (0, 1, -1)) > 1e-3


def small_log():
    """Three lists over five documents: 6, 3 and 1 sessions, the last one without a click."""
    lists = RankedLists(
        np.array([[0, 1], [2, PADDING], [3, 4]], np.int32), np.array([0, 1, 2], np.int32)
    )
    return ClickLog(
        lists,
        np.array([0, 0, 1, 1, 2], np.int32),
        np.array([[1, 0], [1, 1], [1, 0], [0, 0], [0, 0]], bool),
        np.array([4, 2, 1, 2, 1]),
    )


def test_logged_lists_are_drawn_in_proportion_to_their_sessions():
    batch = LoggedClicks(small_log()).draw(100_000, np.random.default_rng(0))
    assert len(batch) == batch.drawn == 100_000
    for first, share in ((0, 0.6), (2, 0.3), (3, 0.1)):
        found = (batch.documents[:, 0] == first).mean()
        assert abs(found - share) < 4.5 * np.sqrt(share * (1 - share) / 100_000)
    assert 3 not in batch.labelled().documents[:, 0]


def test_labels_of_logged_lists_are_their_mean_clicks():
    batch = LoggedClicks(small_log()).draw(50, np.random.default_rng(0))
    for documents, labels in zip(batch.documents.tolist(), batch.labels.tolist(), strict=True):
        expected = {0: [1, 2 / 6], 2: [1 / 3, 0], 3: [0, 0]}[documents[0]]
        assert labels == pytest.approx(expected)


def test_a_list_is_drawn_with_one_of_its_contexts_and_that_ones_mean_clicks():
    log = small_log()
    device = Column(("phone", "desk"), np.array([0, 1, 1, 1, 0], np.int32))
    feedback = LoggedClicks(replace(log, columns={"device": device}), "device")
    batch = feedback.draw(9_000, np.random.default_rng(0))
    expected = {(0, 0): [1, 0], (0, 1): [1, 1], (2, 1): [1 / 3, 0], (3, 0): [0, 0]}
    keys = list(zip(batch.documents[:, 0].tolist(), batch.contexts.tolist(), strict=True))
    assert set(keys) == set(expected)
    for key, labels in zip(keys, batch.labels.tolist(), strict=True):
        assert labels == pytest.approx(expected[key])
    share = keys.count((0, 0)) / 9_000
    assert abs(share - 0.4) < 4.5 * np.sqrt(0.4 * 0.6 / 9_000)
    whole = feedback.everything(1, np.random.default_rng(0))
    assert whole.drawn == 10
    assert list(zip(whole.documents[:, 0], whole.contexts, strict=True)) == sorted(expected)
    np.testing.assert_allclose(whole.labels, [[4, 0], [2, 2], [1, 0], [0, 0]])
    assert whole.queries.tolist() == [0, 0, 1, 2]


def test_lists_of_the_log_that_were_never_displayed_are_never_drawn():
    log = small_log()
    unseen = ClickLog(log.lists, log.list_of[2:], log.clicks[2:], log.counts[2:])
    batch = LoggedClicks(unseen).draw(1_000, np.random.default_rng(0))
    assert set(batch.documents[:, 0]) == {2, 3}


def test_a_log_without_any_click_is_refused():
    log = small_log()
    silent = ClickLog(log.lists, log.list_of, np.zeros_like(log.clicks), log.counts)
    with pytest.raises(DataError, match="none of the 10 sessions has a click"):
        LoggedClicks(silent)


def test_judgments_hand_out_relevance_without_noise(dataset, lists):
    batch = Judgments(dataset, lists).draw(300, np.random.default_rng(0))
    assert batch.drawn == 300
    grades = np.where(batch.documents == PADDING, 0, dataset.grades[batch.documents])
    np.testing.assert_allclose(batch.labels, (2**grades - 1) / 15, rtol=1e-6)


@pytest.mark.parametrize("max_grade", [4, None])
def test_judgments_without_a_positive_grade_are_refused(max_grade):
    data = Dataset.from_arrays([[0.0], [1.0]], [1, 1], grades=[0, 0], max_grade=max_grade)
    with pytest.raises(DataError, match="grade"):
        Judgments(data, top_lists(data, np.zeros(2), 2))


def test_judgments_of_documents_that_are_not_displayed_do_not_count():
    data = Dataset.from_arrays([[0.0], [1.0]], [1, 1], grades=[0, 1])
    with pytest.raises(DataError, match="no displayed document has a grade above 0"):
        Judgments(data, top_lists(data, np.array([1.0, 0.0]), 1))


def test_simulated_clicks_need_grades():
    data = Dataset.from_arrays([[0.0], [1.0]], [1, 1])
    with pytest.raises(DataError, match="no grades"):
        SimulatedClicks(data, top_lists(data, np.zeros(2), 2), PositionBasedUser())


@pytest.mark.parametrize("user", [PositionBasedUser(), CascadeUser()])
def test_many_users_in_front_of_a_list_give_their_mean_clicks(user):
    data = Dataset.from_arrays(np.zeros((4, 1)), ["q"] * 4, [2, 0, 1, 2], max_grade=2)
    lists = top_lists(data, np.array([4.0, 3, 2, 1]), depth=3)
    expected = user.browse(lists.gather(data.grades), lists.mask, 2).marginal()[0]
    batch = SimulatedClicks(data, lists, user, sessions=500).draw(20, np.random.default_rng(0))
    assert batch.drawn == 20
    assert np.allclose(batch.labels * 500, np.rint(batch.labels * 500), atol=1e-3)
    np.testing.assert_allclose(batch.labels.mean(axis=0), expected, atol=0.03)


def unclicked_log(lists, sessions):
    clicks = np.zeros((len(sessions), lists.depth), bool)
    return ClickLog.from_clicks(lists, np.arange(len(sessions)), clicks, np.array(sessions))


def test_estimated_relevance_is_the_label_wherever_a_document_is_displayed():
    lists = RankedLists(np.array([[0, 1, 2], [2, 0, PADDING]], np.int32), np.zeros(2, np.int32))
    relevance = np.array([0.1, 0.2, 0.3])
    feedback = EstimatedRelevance(unclicked_log(lists, [3, 1]), relevance)
    batch = feedback.draw(40_000, np.random.default_rng(0))
    shown = batch.documents != PADDING
    expected = np.where(shown, relevance[batch.documents], 0)
    np.testing.assert_allclose(batch.labels, expected, rtol=1e-6)
    # Lists come equally often, with an error of 0.25%, though one had three times the sessions.
    assert (batch.documents[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.012)


def test_lists_without_relevance_are_drawn_but_have_no_label():
    lists = RankedLists(np.array([[0, 1], [2, 3]], np.int32), np.array([0, 1], np.int32))
    feedback = EstimatedRelevance(unclicked_log(lists, [1, 1]), np.array([0.5, 0, 0, 0]))
    batch = feedback.draw(1_000, np.random.default_rng(0))
    assert set(batch.documents[:, 0]) == {0, 2}
    assert set(batch.labelled().documents[:, 0]) == {0}
    assert batch.labelled().drawn == 1_000
    with pytest.raises(DataError, match="no displayed document has any relevance"):
        EstimatedRelevance(unclicked_log(lists, [1, 1]), np.zeros(4))


def test_everything_of_a_log_are_its_clicks():
    whole = LoggedClicks(small_log()).everything(7, np.random.default_rng(0))
    np.testing.assert_allclose(whole.labels, [[6, 2], [1, 0], [0, 0]])
    assert whole.queries.tolist() == [0, 1, 2]
    assert whole.drawn == 10


def test_everything_of_simulated_users_is_as_many_sessions_as_were_asked_for(
    dataset, lists, user, probabilities
):
    source = SimulatedClicks(dataset, lists, user, sessions=10)
    whole = source.everything(SESSIONS // 10, np.random.default_rng(0))
    assert whole.drawn == SESSIONS
    assert whole.queries.tolist() == lists.queries.tolist()
    assert not whole.labels[~lists.mask].any()
    expected = probabilities.mean(axis=0)
    error = np.sqrt(expected * (1 - expected) / SESSIONS)
    assert (np.abs(whole.labels.sum(axis=0) / SESSIONS - expected) / error).max() < 4.5


def order_log(depth=3):
    """One query of nine candidates, and one of two, of which everything is displayed."""
    data = Dataset.from_arrays(np.zeros((11, 1)), [1] * 9 + [2] * 2)
    documents = np.full((2, depth), PADDING, np.int32)
    documents[0], documents[1, :2] = [4, 0, 7], [10, 9]
    lists = RankedLists(documents, np.array([0, 1], np.int32))
    return unclicked_log(lists, [3, 1]), data


def test_what_was_displayed_comes_first_and_others_are_never_among_it():
    log, data = order_log()
    batch = DisplayedOrder(log, data).draw(8_000, np.random.default_rng(0))
    # An order tells several ranks at once: a quarter of the lists is drawn.
    assert len(batch) == batch.drawn == 2_000
    large = batch.documents[:, 0] == 4
    # Lists come in proportion to their sessions, 3 to 1, with an error of 1%.
    assert large.mean() == pytest.approx(0.75, abs=0.045)
    assert (batch.documents[large, :3] == [4, 0, 7]).all()
    assert set(np.unique(batch.documents[large, 3:])) == {PADDING, 1, 2, 3, 5, 6, 8}
    assert set(map(tuple, batch.documents[~large])) == {(10, 9, *[PADDING] * 4)}
    assert (batch.labels[large] == [1, 1, 1, 0, 0, 0]).all()
    assert (batch.labels[~large] == [1, 1, 0, 0, 0, 0]).all()
    assert (batch.queries == np.where(large, 0, 1)).all()
    assert not batch.ground[:, :3].any()


def test_others_stand_for_all_that_were_not_displayed():
    """The mean of Σ e^{s + ground} over draws is Σ e^s over every other candidate."""
    log, data = order_log()
    scores = np.random.default_rng(1).normal(size=11)
    batch = DisplayedOrder(log, data).draw(80_000, np.random.default_rng(0))
    for first, others in ((4, [1, 2, 3, 5, 6, 8]), (10, [])):
        rows = batch.documents[:, 0] == first
        documents = batch.documents[rows, 3:]
        weights = np.where(documents == PADDING, 0, np.exp(scores[documents]))
        sums = (weights * np.exp(batch.ground[rows, 3:])).sum(axis=1)
        expected = np.exp(scores[others]).sum()
        assert abs(sums.mean() - expected) <= 4 * sums.std() / np.sqrt(rows.sum()) + 1e-9
        assert sums.std() / np.sqrt(rows.sum()) < 0.01 * expected + 1e-9


def test_everything_of_an_order_is_every_list_once():
    log, data = order_log()
    whole = DisplayedOrder(log, data).everything(1, np.random.default_rng(0))
    assert whole.documents[:, :2].tolist() == [[4, 0], [10, 9]]
    assert (whole.drawn, whole.queries.tolist()) == (2, [0, 1])


def read_by_hand(log, context=None):
    """Sessions that read each place, one after the other: to the last click, or all of the list."""
    found = {}
    for row, (which, count) in enumerate(zip(log.list_of, log.counts, strict=True)):
        key = (int(which), 0 if context is None else int(log.columns[context].codes[row]))
        sums = found.setdefault(key, [np.zeros(log.lists.depth), 0])
        clicked = np.flatnonzero(log.clicks[row])
        for k in range(log.lists.depth):
            if len(clicked) == 0 or k <= clicked[-1]:
                sums[0][k] += count
        sums[1] += count
    return found


@pytest.mark.parametrize("context", [None, "device"])
def test_what_was_read_is_that_of_a_loop_over_sessions(dataset, lists, context):
    log = sample_log(dataset, lists, CascadeUser(), 2_000, np.random.default_rng(3))
    codes = np.random.default_rng(0).integers(2, size=len(log.counts)).astype(np.int32)
    log = replace(log, columns={"device": Column(("desk", "phone"), codes)})
    feedback = ReadClicks(log, context)
    whole = feedback.everything(1, np.random.default_rng(0))
    expected = read_by_hand(log, context)
    contexts = np.zeros(len(whole), int) if whole.contexts is None else whole.contexts
    keys = list(zip(feedback.list_of.tolist(), contexts.tolist(), strict=True))
    assert set(expected) <= set(keys)
    for row, key in enumerate(keys):
        if key in expected:
            np.testing.assert_allclose(whole.examined[row], expected[key][0], rtol=1e-5)
    place = {(tuple(lists.documents[row]), code): n for n, (row, code) in enumerate(keys)}
    drawn = feedback.draw(200, np.random.default_rng(0))
    contexts = np.zeros(200, int) if drawn.contexts is None else drawn.contexts
    for documents, code, examined, labels in zip(
        drawn.documents, contexts, drawn.examined, drawn.labels, strict=True
    ):
        key = keys[place[tuple(documents), int(code)]]
        np.testing.assert_allclose(examined, expected[key][0] / expected[key][1], rtol=1e-5)
        assert (labels <= examined + 1e-6).all()


def test_clicks_alone_do_not_tell_what_was_read():
    assert LoggedClicks(small_log()).draw(5, np.random.default_rng(0)).examined is None


def test_every_list_is_drawn_with_what_it_stands_on():
    log = small_log()
    ground = np.array([[0.1, 0.2], [0.3, 0], [0.5, 0.6]], np.float32)
    device = Column(("phone", "desk"), np.array([0, 1, 1, 1, 0], np.int32))
    by_device = replace(log, columns={"device": device})
    for feedback in (LoggedClicks(log, None, ground), LoggedClicks(by_device, "device", ground)):
        row_of = {0: 0, 2: 1, 3: 2}
        for batch in (feedback.draw(50, np.random.default_rng(0)), feedback.everything(1, None)):
            expected = ground[[row_of[first] for first in batch.documents[:, 0].tolist()]]
            assert np.array_equal(batch.ground, expected)
            half = batch.share(1, 2)
            assert np.array_equal(half.ground, expected[1::2])
