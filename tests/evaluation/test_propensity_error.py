import numpy as np
import pytest

from dualrank.errors import DataError
from dualrank.evaluation.propensity_error import inverse_propensity_mse

EYE_TRACKING = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])


def test_the_error_is_that_of_the_papers_formula():
    g, rho = [1.0, 0.5, 0.25], [0.9, 0.6, 0.3]
    expected = ((1 - 1) ** 2 + (2 - 1.5) ** 2 + (4 - 3) ** 2) / 3
    assert inverse_propensity_mse(g, rho) == pytest.approx(expected)


def test_only_ratios_to_the_first_position_matter():
    assert inverse_propensity_mse(EYE_TRACKING, EYE_TRACKING) == 0
    scaled = inverse_propensity_mse(EYE_TRACKING / 0.68, EYE_TRACKING)
    assert scaled == pytest.approx(0, abs=1e-24)


def test_no_correction_is_worse_the_stronger_the_bias():
    flat = np.ones(10)
    errors = [inverse_propensity_mse(flat, EYE_TRACKING**eta) for eta in (0, 0.5, 1, 1.5, 2)]
    assert errors[0] == 0
    assert errors == sorted(errors)


@pytest.mark.parametrize(
    ("estimated", "true", "message"),
    [
        (
            [1.0],
            [1.0, 0.5],
            "the estimated examination has 1 positions, the true one 2",
        ),
        (
            [1.0, 0.0],
            [1.0, 0.5],
            "the estimated examination of position 2 is 0; it must be above 0 and finite",
        ),
        (
            [1.0, 0.5],
            [np.nan, 0.5],
            "the true examination of position 1 is nan; it must be above 0 and finite",
        ),
        (
            [],
            [1.0],
            "the estimated examination must be one number per position, not of shape (0,)",
        ),
        (
            [1.0],
            [[1.0]],
            "the true examination must be one number per position, not of shape (1, 1)",
        ),
    ],
)
def test_curves_without_an_inverse_are_named(estimated, true, message):
    with pytest.raises(DataError) as error:
        inverse_propensity_mse(estimated, true)
    assert str(error.value) == message
