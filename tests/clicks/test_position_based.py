"""The paper's user, by hand."""

import numpy as np
import pytest

from dualrank.clicks.position_based import EYE_TRACKING, PositionBasedUser
from dualrank.errors import DataError, SettingsError


def test_examination_is_that_of_the_eye_tracking_study():
    assert EYE_TRACKING == (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
    assert PositionBasedUser().examination(10).tolist() == list(EYE_TRACKING)
    assert PositionBasedUser().examination(3).tolist() == [0.68, 0.61, 0.48]


@pytest.mark.parametrize(("eta", "third"), [(0, 1.0), (0.5, 0.48**0.5), (1, 0.48), (2, 0.2304)])
def test_severity_is_the_exponent_of_examination(eta, third):
    assert PositionBasedUser(eta=eta).examination(10)[2] == pytest.approx(third, abs=1e-12)


@pytest.mark.parametrize(
    ("grade", "relevance"),
    [
        (0, 0.1),
        (1, 0.1 + 0.9 * 1 / 15),
        (2, 0.1 + 0.9 * 3 / 15),
        (3, 0.1 + 0.9 * 7 / 15),
        (4, 1.0),
    ],
)
def test_perceived_relevance_is_the_gain_with_noise(grade, relevance):
    user = PositionBasedUser(epsilon=0.1)
    assert user.perceived_relevance(np.array([grade]), 4)[0] == pytest.approx(relevance, abs=1e-12)


def test_without_noise_grade_zero_is_never_clicked():
    assert PositionBasedUser(epsilon=0).perceived_relevance(np.array([0.0]), 4)[0] == 0


def test_a_click_is_examination_and_relevance():
    user = PositionBasedUser(eta=1, epsilon=0.1)
    grades = np.array([[4.0, 0.0, 2.0]])
    found = user.click_probabilities(grades, np.ones((1, 3), bool), 4)
    np.testing.assert_allclose(found, [[0.68, 0.61 * 0.1, 0.48 * 0.28]], atol=1e-12)


def test_padding_is_never_clicked():
    mask = np.array([[True, False]])
    assert PositionBasedUser().click_probabilities(np.array([[4.0, 4.0]]), mask, 4)[0, 1] == 0


def test_the_highest_grade_of_the_data_counts_not_that_of_the_list():
    user = PositionBasedUser(epsilon=0)
    assert user.perceived_relevance(np.array([1.0]), 1)[0] == 1
    assert user.perceived_relevance(np.array([1.0]), 2)[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"eta": -0.5}, "eta is the severity of the bias, 0 or more, not -0.5"),
        ({"eta": float("nan")}, "eta is the severity of the bias, 0 or more, not nan"),
        ({"epsilon": 1.5}, "epsilon is a probability, not 1.5"),
        ({"epsilon": -0.1}, "epsilon is a probability, not -0.1"),
    ],
)
def test_impossible_users_are_refused(options, sentence):
    with pytest.raises(SettingsError) as caught:
        PositionBasedUser(**options)
    assert str(caught.value) == sentence


def test_positions_beyond_the_curve_are_refused():
    with pytest.raises(SettingsError, match="known for 10 positions, not 11"):
        PositionBasedUser().examination(11)


def test_grades_that_are_all_zero_are_refused():
    with pytest.raises(DataError, match="all grades are 0"):
        PositionBasedUser().perceived_relevance(np.zeros(3), 0)
