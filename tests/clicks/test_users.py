"""Users of all kinds: what each promises, and files that describe them."""

import json

import numpy as np
import pytest

from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import USERS, make_user, read_user
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import DataError, SettingsError

GRADES = np.array([[4.0, 0.0, 2.0, 4.0], [0.0, 1.0, 3.0, 0.0]])
MASK = np.array([[True] * 4, [True, True, True, False]])
SESSIONS = 30_000


def sessions_of(name, row=0, **habits):
    pages = make_user(name, **habits).browse(GRADES, MASK, 4)
    return pages.take(np.full(SESSIONS, row)).sample(np.random.default_rng(0))


@pytest.mark.parametrize("name", USERS)
def test_padding_is_never_clicked_and_all_else_sometimes(name):
    clicks = sessions_of(name, row=1)
    assert not clicks[:, 3].any()
    assert clicks[:, :3].any(axis=0).all()


@pytest.mark.parametrize("name", USERS)
def test_clicks_follow_the_marginal_probabilities(name):
    expected = make_user(name).browse(GRADES, MASK, 4).marginal()[0]
    clicks = sessions_of(name).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) / SESSIONS)
    assert (np.abs(clicks - expected) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("name", USERS)
def test_better_documents_are_clicked_more(name):
    """The same place, another grade: only the second rank differs."""
    better = np.array([[0.0, 4.0]]), np.array([[0.0, 1.0]])
    high, low = (make_user(name).browse(g, np.ones((1, 2), bool), 4).marginal() for g in better)
    assert high[0, 1] > low[0, 1]


def test_a_cascade_ends_with_the_first_click():
    clicks = sessions_of("cascade")
    assert clicks.sum(axis=1).max() == 1
    assert clicks[:, 0].all()  # grade 4 is always attractive


def test_the_dependent_click_user_goes_on_with_lambda():
    clicks = sessions_of("dcm", epsilon=0.0, continuation=[0.3] * 4)
    went_on = clicks[:, 3].mean()  # 4, 0, 2, 4: the last is clicked by whoever reaches it
    expected = 0.3 * (0.8 + 0.2 * 0.3)
    assert went_on == pytest.approx(expected, abs=4.5 * np.sqrt(0.25 / SESSIONS))


def test_satisfaction_ends_a_session():
    assert sessions_of("dbn", satisfaction=1.0)[:, 1:].sum() == 0
    assert sessions_of("sdbn", satisfaction=0.0)[:, 3].all()


def test_the_browsing_user_looks_below_a_click():
    habits = {"epsilon": 1.0, "examination": [[1.0], [1.0, 0.0], [0.5, 0.0, 0.0], [0.0] * 4]}
    clicks = sessions_of("ubm", **habits)
    assert clicks[:, :2].all()
    assert clicks[:, 2].mean() == pytest.approx(0.5, abs=4.5 * 0.5 / np.sqrt(SESSIONS))
    assert not clicks[:, 3].any()


def test_trust_gives_irrelevant_documents_clicks_on_top():
    """Grade 0 at both places: examination alone cannot explain the difference."""
    pages = make_user("pbm-trust", eta=0.0).browse(np.zeros((1, 2)), np.ones((1, 2), bool), 4)
    np.testing.assert_allclose(pages.marginal()[0], [0.65, 0.325])


def test_any_user_makes_a_log():
    data = Dataset.from_arrays(np.zeros((4, 1)), [1, 1, 2, 2], [0, 2, 1, 0], max_grade=2)
    lists = top_lists(data, np.arange(4.0), 2)
    for name in USERS:
        assert sample_log(data, lists, make_user(name), 500, 0).sessions == 500


def test_a_file_holds_what_differs_from_the_default(tmp_path):
    path = tmp_path / "user.json"
    path.write_text(json.dumps({"model": "dcm", "continuation": [0.5, 0.4]}))
    assert read_user(path) == make_user("dcm", continuation=(0.5, 0.4))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", "a user file names its model"),
        ('{"epsilon": 0.1}', "a user file names its model"),
        ('{"model": "psychic"}', "unknown user 'psychic'; known are pbm, pbm-trust"),
        ('{"model": "dbn", "eta": 1}', "user dbn has no 'eta'; it has epsilon, satisfaction"),
        ('{"model": "sdbn", "continuation": 0.5}', "user sdbn has no 'continuation'"),
        ('{"model": "dbn", "epsilon": 2}', "epsilon is a probability, not 2"),
        ('{"model": "dbn", "epsilon": null}', "user dbn: a habit is of the wrong kind"),
        ('{"model": "dcm", "continuation": 0.5}', "user dcm: a habit is of the wrong kind"),
        ('{"model": "dcm", "continuation": [1.5]}', "continuation is a probability, not 1.5"),
        ('{"model": "ubm", "examination": [[1], [1]]}', "1 distances at rank 2; there are 2"),
        ('{"model": "pbm-trust", "eta": -1}', "eta is the severity of the bias"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(tmp_path, content, sentence):
    path = tmp_path / "user.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read_user(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_user(tmp_path / "nobody.json")


def test_lists_deeper_than_the_habits_are_refused():
    with pytest.raises(SettingsError, match="continuation is known for 2 positions, not 4"):
        make_user("dcm", continuation=[0.5, 0.5]).browse(GRADES, MASK, 4)
