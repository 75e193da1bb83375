"""Generated data: from its seeds alone, with the shape that the specification gives them."""

import hashlib

import numpy as np
import pytest

from dualrank.data.generator import (
    GRADE_SHARES,
    PRESETS,
    Preset,
    World,
    generate_splits,
    with_document_ids,
)
from dualrank.errors import SettingsError

SMALL = Preset(features=8, train=40, valid=10, test=20)


def digest(data):
    together = hashlib.sha256()
    for array in (data.features, data.offsets, data.grades):
        together.update(np.ascontiguousarray(array).tobytes())
    return together.hexdigest()


@pytest.fixture(scope="module")
def world():
    return World(20, seed=0)


@pytest.fixture(scope="module")
def data(world):
    return world.generate(3_000, seed=1)


def test_the_same_seeds_give_the_same_bytes(world):
    again = World(20, seed=0)
    assert digest(world.generate(50, seed=7)) == digest(again.generate(50, seed=7))


def test_another_seed_gives_other_data_of_the_same_world(world):
    assert digest(world.generate(50, seed=7)) != digest(world.generate(50, seed=8))


def test_another_world_gives_other_data_from_the_same_seed(world):
    assert digest(world.generate(50, seed=7)) != digest(World(20, seed=1).generate(50, seed=7))


def test_what_was_generated_before_does_not_matter(world):
    expected = digest(world.generate(50, seed=7))
    world.generate(10, seed=3)
    assert digest(world.generate(50, seed=7)) == expected


def test_data_of_one_world_share_their_teacher(world):
    """A linear fit to one data set explains another of its world, and not one of another world."""

    def standardised(data):
        return data.features - data.features.mean(0), data.grades - data.grades.mean()

    X, y = standardised(world.generate(400, seed=1))
    w = np.linalg.lstsq(X, y, rcond=None)[0]

    def correlation(data):
        X, y = standardised(data)
        return np.corrcoef(X @ w, y)[0, 1]

    assert correlation(world.generate(400, seed=2)) > 0.15
    others = [abs(correlation(World(20, seed=s).generate(400, seed=2))) for s in (1, 2)]
    assert max(others) < correlation(world.generate(400, seed=2))


def test_grades_have_the_shares_of_the_yahoo_set(data):
    """Documents of a query share its bias, so the error is that of clusters: per query, the sum of
    (indicator − share) is one draw. The thresholds come from 2,000 calibration queries, whose error
    adds, scaled by √(3000/2000).
    """
    query = data.query_of_document
    for grade, share in enumerate(GRADE_SHARES):
        excess = np.bincount(query, (data.grades == grade) - share, len(data))
        error = excess.std() * np.sqrt(len(data)) / data.document_count
        error *= np.sqrt(1 + len(data) / 2_000)
        assert abs((data.grades == grade).mean() - share) < 4 * error
        assert error < 0.02
    assert set(np.unique(data.grades)) == {0, 1, 2, 3, 4}
    assert data.max_grade == 4


def test_queries_have_four_to_120_documents_24_on_average(data):
    lengths = data.lengths
    assert lengths.min() >= 4
    assert lengths.max() <= 120
    # A gamma variable of shape 2 and mean 20 has the standard deviation 20/√2.
    assert abs(lengths.mean() - 24) < 4 * 20 / np.sqrt(2) / np.sqrt(len(data))


def test_features_lie_between_zero_and_one_and_spread_over_it(data):
    assert data.features.dtype == np.float32
    assert data.features.min() >= 0
    assert data.features.max() <= 1
    assert (data.features.std(axis=0) > 0.1).all()


def test_a_tenth_of_the_features_is_constant_within_a_query(data):
    starts = data.offsets[:-1]
    within = np.maximum.reduceat(data.features, starts) - np.minimum.reduceat(data.features, starts)
    assert (within.max(axis=0) == 0).sum() == 2


def test_no_single_feature_gives_relevance_away(data):
    correlations = [np.corrcoef(column, data.grades)[0, 1] for column in data.features.T]
    assert np.abs(correlations).max() < 0.5
    assert np.abs(correlations).max() > 0.05


def test_blocks_do_not_show(world):
    data = world.generate(600, seed=5)
    assert len(data) == 600
    assert data.offsets[-1] == data.document_count == len(data.grades)
    assert data.query_ids.tolist() == [str(i) for i in range(1, 601)]


def test_splits_have_the_sizes_of_their_preset_and_differ():
    splits = generate_splits(SMALL, seed=3)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (40, 10, 20)
    assert {d.feature_count for d in (splits.train, splits.valid, splits.test)} == {8}
    first = {digest(d.take(range(10))) for d in (splits.train, splits.valid, splits.test)}
    assert len(first) == 3
    assert digest(generate_splits(SMALL, seed=3).test) == digest(splits.test)
    assert digest(generate_splits(SMALL, seed=4).test) != digest(splits.test)


def test_the_presets_are_those_of_the_specification():
    assert PRESETS["laptop"] == Preset(features=64, train=8_000, valid=800, test=2_000)
    assert PRESETS["full"] == Preset(features=700, train=20_000, valid=3_000, test=7_000)


def test_documents_can_be_named_after_their_queries(world):
    named = with_document_ids(world.generate(3, seed=0))
    assert len(set(named.doc_ids)) == named.document_count
    assert named.doc_ids[0] == "1-1"
    assert named.doc_ids[named.offsets[1]] == "2-1"


def test_what_cannot_be_generated_is_refused(world):
    with pytest.raises(SettingsError, match="unknown preset 'huge'; known are tiny, laptop, full"):
        generate_splits("huge")
    with pytest.raises(SettingsError, match="at least 4 features, not 3"):
        World(3)
    with pytest.raises(SettingsError, match="at least one query must be generated, not 0"):
        world.generate(0, seed=0)
    with pytest.raises(SettingsError, match="seed"):
        generate_splits(SMALL, seed=-1)
    with pytest.raises(SettingsError, match="seed"):
        generate_splits(SMALL, world=-1)
