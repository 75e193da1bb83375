"""The demo's users: what they ask and click, and how wishes reach them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from dualrank.data.lists import top_lists
from dualrank.errors import DataError
from dualrank.evaluation.evaluator import Evaluator
from dualrank.online.demo.demo_habits import Account, Habits, account_in, wish
from dualrank.online.demo.demo_start import first_model, start_of
from dualrank.online.demo.demo_users import Crowd, Users
from dualrank.online.demo.demo_world import DEPTH, DemoWorld


class Service:
    """Ranks by scores that a test gives, and keeps what users sent."""

    def __init__(self, world, scores):
        data = world.dataset
        self.score = dict(zip(data.ids_of_documents().tolist(), scores.tolist(), strict=True))
        self.shown, self.clicks, self.clients = {}, [], set()

    def post(self, path, body):
        found = json.loads(body)
        if path == "/events":
            self.clicks += [(each["impression_id"], each["doc_id"]) for each in found["events"]]
            return {}
        rankings = []
        for query in found["queries"]:
            names = [each["doc_id"] for each in query["documents"]]
            names.sort(key=lambda name: -self.score[name])
            impression = str(len(self.shown))
            self.shown[impression] = names[: query["displayed"]]
            self.clients.add(query["client"])
            results = [{"doc_id": name} for name in names]
            rankings.append({"impression_id": impression, "results": results})
        return {"rankings": rankings}


@pytest.fixture(scope="module")
def world():
    return DemoWorld.of(3, queries=60)


@pytest.fixture(scope="module")
def model(world):
    return first_model(world, Habits().user)


@pytest.fixture(scope="module")
def first(world, model):
    return start_of(world, model).quality


def test_users_click_as_often_as_their_habits_say(world, first):
    rng = np.random.default_rng(0)
    service = Service(world, rng.random(world.dataset.document_count))
    crowd = Crowd(world, first)
    habits = Habits(eta=1.0, noise=0.2)
    for _ in range(40):
        crowd.search(service, habits, 500)
    places = [service.shown[shown].index(name) for shown, name in service.clicks]
    clicked = np.bincount(places, minlength=DEPTH)
    data = world.dataset
    grade = dict(zip(data.ids_of_documents().tolist(), data.grades.tolist(), strict=True))
    expected = np.zeros(DEPTH)
    for names in service.shown.values():
        gains = (2 ** np.array([grade[name] for name in names]) - 1) / 15
        chance = (0.2 + 0.8 * gains) * habits.user.examination(DEPTH)[: len(names)]
        expected[: len(names)] += chance
    assert np.allclose(clicked, expected, atol=4.5 * np.sqrt(expected.max()), rtol=0)
    assert np.abs(clicked / expected - 1).max() < 0.15
    assert len(service.clients) > 1_000


def test_quality_is_that_of_the_evaluator(world, model, first):
    data = world.dataset
    scores = np.random.default_rng(1).random(data.document_count)
    crowd = Crowd(world, first)
    evaluator = Evaluator(data, ["ndcg@10"])
    frozen = evaluator.per_query(model.predict(data))["ndcg@10"]
    assert np.allclose(crowd.frozen, frozen)
    assert np.array_equal(crowd.shown, crowd.frozen)  # before anybody has searched
    crowd.search(Service(world, scores), Habits(), 1_000)
    assert np.allclose(crowd.shown, evaluator.per_query(scores)["ndcg@10"])


def test_the_first_model_is_better_than_none_and_has_not_seen_the_grades(world, model):
    data = world.dataset
    evaluator = Evaluator(data, ["ndcg@10"])
    noise = np.random.default_rng(0).random(data.document_count)
    assert evaluator(model.predict(data))["ndcg@10"] > evaluator(noise)["ndcg@10"] + 0.02
    best = top_lists(data, data.grades, DEPTH)
    assert not np.array_equal(top_lists(data, model.predict(data), DEPTH).documents, best.documents)


def test_the_service_is_given_features_and_no_grades(world, tmp_path):
    from dualrank.data.features import read_features

    world.write_features(tmp_path / "features.parquet")
    read = read_features(tmp_path / "features.parquet")
    assert read.grades is None
    assert np.array_equal(read.features, world.dataset.features)
    assert np.array_equal(read.ids_of_documents(), world.dataset.ids_of_documents())


def test_users_change_by_themselves_when_it_is_time(tmp_path):
    account = Account(DEPTH, [])
    users = Users(None, account, tmp_path, change=1.0)
    account.behave(Habits(eta=0.5))
    account.next_change = {"time": 0.0, "eta": 1.5}
    users._decide()
    assert account.habits.eta == 1.5
    assert account.next_change is None
    assert [each["eta"] for each in account.truths] == [0.5, 1.5]
    assert account.truths[1]["examination"][-1] == pytest.approx((0.06 / 0.68) ** 1.5)


def test_a_wish_reaches_users_and_they_tell_of_it(tmp_path):
    account = Account(DEPTH, [1.0] * DEPTH)
    users = Users(None, account, tmp_path, change=1.0)
    account.behave(Habits(eta=0.5))
    account.next_change = {"time": float("inf"), "eta": 1.5}
    wish(tmp_path, {"rate": 100})
    users._decide()
    assert account.next_change is not None  # another rate is no other habit
    wish(tmp_path, {"eta": 1.2})
    users._decide()
    assert account.habits == Habits(eta=1.2, noise=0.1, rate=100.0)
    assert account.next_change is None
    account.see(0.7, 0.6)
    account.write(tmp_path)
    told = account_in(tmp_path)
    assert told["knobs"] == {"eta": 1.2, "noise": 0.1, "rate": 100.0}
    assert told["quality"][-1]["shown"] == 0.7
    assert told["examination"] == Habits(eta=1.2).examination(DEPTH)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"eta": 3}, "eta is 3; expected 0 to 2"),
        ({"eta": float("nan")}, "eta is nan; expected 0 to 2"),
        ({"eta": True}, "eta is True"),
        ({"rate": "fast"}, "rate is 'fast'"),
        ({"colour": 1}, "expected one or more of eta, noise, rate"),
        ({}, "expected one or more of"),
        ([1], "expected one or more of"),
    ],
)
def test_what_cannot_be_wished_is_refused(tmp_path, what, said):
    with pytest.raises(DataError, match=said.replace("(", r"\(")):
        wish(tmp_path, what)
    assert not list(tmp_path.iterdir())


def test_a_long_demo_keeps_a_short_account():
    account = Account(DEPTH, [])
    for i in range(5_000):
        account.see(i, 0.0)
        account.behave(Habits(eta=round(i % 20 / 10, 1)))
    shown = [each["shown"] for each in account.quality]
    assert len(shown) <= 600
    assert shown == sorted(shown)
    assert shown[0] == 0
    assert shown[-1] == 4_999
    assert len(account.truths) <= 41


def test_users_leave_with_whoever_started_them(tmp_path, monkeypatch):
    parents = iter([1, 1, 2])
    monkeypatch.setattr("os.getppid", lambda: next(parents))
    crowd = SimpleNamespace(shown=np.ones(2), frozen=np.ones(2), search=lambda *_: None)
    users = Users(crowd, Account(DEPTH, []), tmp_path, change=0)
    users.live(None)
    assert users._account.searches == 125  # a quarter of a second at 500 a second
