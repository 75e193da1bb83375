"""Documents that try a model, and what counts as a difference."""

import numpy as np
import pytest

from dualrank.engines.parity import Sample, difference, draw_sample
from dualrank.rankers.network import DNN


def test_trees_are_tried_on_their_thresholds_with_gaps_and_far_values(tree_model):
    model = tree_model()
    sample = draw_sample(model)
    assert len(sample) == 1_000
    forest, kept = model.ranker.forest(), model.scaler.kept
    for column in range(len(kept)):
        thresholds = forest.threshold[forest.feature == column]
        values = sample.features[:, kept[column]]
        assert np.isin(values, thresholds).mean() > 0.1
        assert np.isin(values, np.nextafter(thresholds, np.float32(np.inf))).mean() > 0.1
    assert 0.03 < np.isnan(sample.features).mean() < 0.08
    assert (np.abs(sample.features[sample.extreme]) > 1e38).any(axis=1).mean() > 0.9
    assert np.array_equal(draw_sample(model).features, sample.features, equal_nan=True)


def test_networks_are_tried_on_numbers_alone(layer_model):
    model, features = layer_model(DNN((4,)))
    sample = draw_sample(model, features)
    assert np.isfinite(sample.features).all()
    assert np.isfinite(model.predict(sample.features)).all()
    ordinary = sample.features[~sample.extreme]
    assert (ordinary[:, None] == features[None]).all(axis=2).any(axis=1).all()
    assert 0.2 < sample.extreme.mean() < 0.3


def test_all_documents_that_are_given_are_taken_up_to_ten_thousand(layer_model):
    model, features = layer_model(DNN((4,)))
    assert len(draw_sample(model, np.resize(features, (3_000, 6)))) == 3_000
    assert len(draw_sample(model, np.resize(features, (20_000, 6)))) == 10_000


def test_differences_are_relative_to_scores_of_the_same_kind():
    sample = Sample(np.zeros((4, 1), np.float32), np.array([False, False, True, True]))
    expected = np.array([3.0, 0.0, 3e6, 0.0])
    for row, size in enumerate((3.0, np.sqrt(4.5), 3e6, np.sqrt(4.5) * 1e6)):
        found = expected.copy()
        found[row] += 0.3
        assert difference(sample, found, expected) == pytest.approx(0.3 / size)
    found[0] = np.nan
    assert difference(sample, found, expected) == np.inf
