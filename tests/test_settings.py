"""Settings are checked once, with a sentence that names the knob and the value."""

import numpy as np
import pytest

from dualrank.errors import SettingsError
from dualrank.settings import TrainingSettings


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"batch_size": -1}, "batch_size must be at least 1, not -1"),
        ({"validate_every": 0}, "validate_every must be at least 1, not 0"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1, not 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, not 0.0"),
        ({"learning_rate": float("inf")}, "learning_rate must be a number above 0, not inf"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0, not nan"),
        ({"propensity_rate": -1.0}, "propensity_rate must be a number above 0, not -1.0"),
        ({"gradient_clip": 0.0}, "gradient_clip must be a number above 0, not 0.0"),
        ({"max_weight": 0.5}, "max_weight must be at least 1, not 0.5"),
        ({"weight_decay": -0.1}, "weight_decay must be 0 or more, not -0.1"),
        ({"optimizer": "adam"}, "optimizer is one of sgd, adagrad, not 'adam'"),
        ({"schedule": "cosine"}, "schedule is one of linear, constant, not 'cosine'"),
        ({"normalisation": "lists"}, "normalisation is one of sessions, clicks, not 'lists'"),
        ({"seed": -1}, "seed must be 0 or more, not -1"),
    ],
)
def test_a_setting_out_of_its_range_is_refused(change, sentence):
    with pytest.raises(SettingsError) as caught:
        TrainingSettings(**change)
    assert str(caught.value) == sentence


def test_the_bounds_themselves_are_allowed():
    bounds = {"steps": 1, "batch_size": 1, "max_weight": 1.0, "weight_decay": 0.0, "seed": 0}
    settings = TrainingSettings(**bounds)
    assert {name: getattr(settings, name) for name in bounds} == bounds


def test_an_unknown_metric_is_refused_before_training():
    with pytest.raises(SettingsError, match="unknown metric 'ndgc'"):
        TrainingSettings(metric="ndgc")


def test_what_was_left_open_is_what_suits_and_what_was_asked_for_stays():
    suits = {"learning_rate": 0.6, "weight_decay": 1e-3}
    open_ = TrainingSettings()
    assert (open_.rate, open_.decay) == (0.2, 0.0)
    suited = open_.suited(suits)
    assert (suited.rate, suited.decay) == (0.6, 1e-3)
    asked = TrainingSettings(learning_rate=0.05, weight_decay=0.0).suited(suits)
    assert (asked.rate, asked.decay) == (0.05, 0.0)
    usual = open_.suited({})
    assert (usual.learning_rate, usual.weight_decay) == (0.2, 0.0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"steps": "100"}, "steps is a whole number, not '100'"),
        ({"batch_size": 2.5}, "batch_size is a whole number, not 2.5"),
        ({"learning_rate": "fast"}, "learning_rate is a number, not 'fast'"),
    ],
)
def test_a_value_that_is_no_number_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(SettingsError) as caught:
        TrainingSettings(**given)
    assert str(caught.value) == sentence


def test_numbers_of_numpy_become_plain_ones():
    settings = TrainingSettings(steps=np.int64(5), learning_rate=np.float64(0.1))
    assert type(settings.steps) is int
    assert type(settings.learning_rate) is float
