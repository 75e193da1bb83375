"""Scaling is learned on training data, drops what is constant there, and survives JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dualrank.data import scaling
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError, SettingsError


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    matrix = np.exp(rng.normal(size=(1_000, 6)) * 3).astype(np.float32)
    matrix[:, 1] = 4.25
    matrix[:, 3] *= -1
    matrix[:, 4] = 1e7 + rng.integers(0, 3, 1_000)
    return matrix


def test_standard_gives_zero_mean_and_unit_variance(features):
    scaler = Scaler.fit(features, kind="standard")
    scaled = scaler.transform(features).astype(np.float64)
    assert scaled.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-6)
    assert scaled.std(axis=0) == pytest.approx(np.ones(5), abs=1e-6)


def test_minmax_spans_zero_to_one(features):
    scaled = Scaler.fit(features, kind="minmax").transform(features)
    assert scaled.min(axis=0).tolist() == [0] * 5
    assert scaled.max(axis=0).tolist() == [1] * 5


def test_log_is_the_signed_logarithm_then_standard(features):
    scaled = Scaler.fit(features, kind="log").transform(features)
    varying = features[:, [0, 2, 3, 4, 5]].astype(np.float64)
    logarithm = np.sign(varying) * np.log1p(np.abs(varying))
    expected = (logarithm - logarithm.mean(axis=0)) / logarithm.std(axis=0)
    assert scaled == pytest.approx(expected, abs=1e-5)


def test_none_only_drops_constant_columns(features):
    scaled = Scaler.fit(features, kind="none").transform(features)
    assert np.array_equal(scaled, features[:, [0, 2, 3, 4, 5]])


@pytest.mark.parametrize("kind", scaling.KINDS)
def test_the_result_is_a_new_contiguous_float32_matrix(features, kind):
    scaler = Scaler.fit(features, kind=kind)
    before = features.copy()
    scaled = scaler.transform(features)
    assert scaled.dtype == np.float32
    assert scaled.flags.c_contiguous
    assert scaled.flags.writeable
    assert not np.shares_memory(scaled, features)
    assert np.array_equal(features, before)
    assert (scaler.input_count, scaler.output_count) == (6, 5)


@pytest.mark.parametrize("kind", scaling.KINDS)
def test_blocks_do_not_change_the_result(features, kind, monkeypatch):
    whole = Scaler.fit(features, kind=kind).transform(features)
    monkeypatch.setattr(scaling, "BLOCK_VALUES", 100)
    assert Scaler.fit(features, kind=kind).transform(features) == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("kind", scaling.KINDS)
def test_test_data_do_not_change_what_was_learned(features, kind):
    scaler = Scaler.fit(features[:500], kind=kind)
    alone = scaler.transform(features[500:501])
    together = scaler.transform(features[500:])
    assert np.array_equal(alone[0], together[0])


def test_a_column_that_is_constant_only_in_training_is_dropped():
    scaler = Scaler.fit(np.array([[1.0, 5.0], [2.0, 5.0]]), kind="none")
    assert scaler.transform(np.array([[3.0, 99.0]])).tolist() == [[3.0]]


def test_constant_means_exactly_equal():
    almost = np.array([[1.0, 1.0], [1.0, np.nextafter(np.float32(1), np.float32(2))]], np.float32)
    scaler = Scaler.fit(almost, kind="standard")
    assert scaler.kept.tolist() == [1]
    assert scaler.transform(almost).tolist() == [[-1.0], [1.0]]


VALUES = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHAPES = st.tuples(st.integers(2, 6), st.integers(1, 4))


@settings(max_examples=100, deadline=None)
@given(arrays.arrays(np.float32, SHAPES, elements=VALUES), st.sampled_from(scaling.KINDS))
def test_whatever_is_finite_stays_finite(matrix, kind):
    if (matrix == matrix[0]).all():
        return
    scaler = Scaler.fit(matrix, kind=kind)
    extreme = np.full((1, matrix.shape[1]), np.finfo(np.float32).max, np.float32)
    for features in (matrix, extreme, -extreme):
        assert np.isfinite(scaler.transform(features)).all()


@pytest.mark.parametrize("kind", scaling.KINDS)
def test_json_keeps_everything(features, kind):
    scaler = Scaler.fit(features, kind=kind)
    again = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    assert again.to_dict() == scaler.to_dict()
    assert np.array_equal(again.transform(features), scaler.transform(features))


def sentence_of(error, action):
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


def test_what_is_wrong_is_said_in_one_sentence(features):
    scaler = Scaler.fit(features)
    assert sentence_of(DataError, lambda: scaler.transform(features[:, :4])) == (
        "the data have 4 features; the scaling was learned on 6"
    )
    assert sentence_of(DataError, lambda: Scaler.fit(np.ones((3, 2)))) == (
        "each of the 2 features is constant in training; expected at least one that varies"
    )
    assert sentence_of(DataError, lambda: Scaler.fit(np.ones((0, 2)))) == (
        "the features have shape (0, 2); "
        "expected a matrix with at least one document and one feature"
    )
    assert sentence_of(DataError, lambda: Scaler.fit(np.array([[1, 2], [1, np.nan]]))) == (
        "feature 2 holds nan or infinity; expected numbers"
    )
    assert sentence_of(SettingsError, lambda: Scaler.fit(features, kind="best")) == (
        "the scaling is 'best'; expected one of none, standard, minmax, log"
    )


@pytest.mark.parametrize(
    "change", [{"kept": [0, 9]}, {"kept": [0]}, {"kind": "x"}, {"shift": "?"}, {"scale": None}]
)
def test_a_damaged_description_is_refused(change):
    values = Scaler.fit(np.array([[1.0, 2.0], [2.0, 1.0]])).to_dict() | change
    assert sentence_of(DataError, lambda: Scaler.from_dict(values)).startswith(
        ("the description", "the scaling holds")
    )
