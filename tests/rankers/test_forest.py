import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from dualrank.rankers.forest import LEAF, Forest
from dualrank.rankers.grown_tree import forest_of, rounded_down


def leaf(value):
    return {"leaf_value": value}


def split(feature, threshold, left, right, *, missing="None", default_left=True):
    return {
        "split_feature": feature,
        "threshold": threshold,
        "missing_type": missing,
        "default_left": default_left,
        "left_child": left,
        "right_child": right,
    }


STUMP = split(0, 0.5, leaf(1.0), leaf(2.0))
DEEP = split(
    1, -1.0, leaf(10.0), split(0, 2.0, leaf(20.0), leaf(40.0), missing="NaN", default_left=False)
)


def plainly(node, row):
    """Down a tree as it is told, one document at a time."""
    while "leaf_value" not in node:
        x = float(row[node["split_feature"]])
        if np.isnan(x) and node["missing_type"] == "NaN":
            left = node["default_left"]
        else:
            left = (0.0 if np.isnan(x) else x) <= node["threshold"]
        node = node["left_child" if left else "right_child"]
    return node["leaf_value"]


def test_a_document_goes_left_where_its_feature_is_at_most_the_threshold():
    rows = np.array([[0.4, 0], [0.5, 0], [0.6, 0]], np.float32)
    assert forest_of(STUMP).predict(rows).tolist() == [1, 1, 2]


def test_a_missing_value_goes_where_the_tree_says_or_is_taken_for_0():
    rows = np.array([[np.nan, 0], [0, np.nan], [np.nan, np.nan]], np.float32)
    assert forest_of(STUMP).predict(rows).tolist() == [1, 1, 1]
    assert forest_of(DEEP).predict(rows).tolist() == [40, 20, 40]


rows_of_features = of_numpy.arrays(
    np.float32, (6, 2), elements=st.floats(-3, 3, width=32) | st.just(float("nan"))
)


def trees(depth=3):
    leaves = st.floats(-1, 1, width=32).map(leaf)
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            split,
            st.integers(0, 1),
            st.floats(-2, 2),
            inner,
            inner,
            missing=st.sampled_from(["None", "NaN"]),
            default_left=st.booleans(),
        ),
        max_leaves=8,
    )


@given(st.lists(trees(), max_size=4), rows_of_features)
def test_a_forest_is_the_sum_of_its_trees(structures, rows):
    forest = Forest.together([Forest.empty(), *map(forest_of, structures)])
    expected = [sum(plainly(tree, row) for tree in structures) for row in rows]
    np.testing.assert_allclose(forest.predict(rows), expected, rtol=1e-12, atol=1e-12)
    assert len(forest) == len(structures)
    forest.check(2)
    twice = Forest.together([forest, forest.times(-0.5)])
    np.testing.assert_allclose(twice.predict(rows), forest.predict(rows) / 2, atol=1e-6)


@given(st.lists(trees(), min_size=2, max_size=4), rows_of_features)
def test_some_trees_can_be_added_onto_the_scores_of_others(structures, rows):
    forest = Forest.together([*map(forest_of, structures)])
    scores = forest.predict(rows, slice(1))
    assert forest.predict(rows, slice(1, None), onto=scores) is scores
    np.testing.assert_array_equal(scores, forest.predict(rows))


@given(st.lists(trees(), min_size=1, max_size=3), st.lists(trees(), max_size=3))
def test_a_forest_begins_with_what_others_joined(structures, more):
    first = Forest.together([*map(forest_of, structures)])
    joined = Forest.together([first, *map(forest_of, more)])
    assert joined.begins_with(first)
    assert joined.begins_with(Forest.empty())
    assert not Forest.empty().begins_with(first)
    assert not joined.begins_with(Forest.together([first, forest_of(leaf(2.0))]))


@given(st.floats(-1e30, 1e30), st.floats(-(2.0**99), 2.0**99, width=32))
def test_a_threshold_that_is_rounded_down_sends_every_float32_the_same_way(threshold, x):
    (rounded,) = rounded_down(np.array([threshold]))
    near = [np.float32(threshold), np.nextafter(np.float32(threshold), np.float32(np.inf))]
    for value in (np.float32(x), *near):
        assert (value <= rounded) == (float(value) <= threshold)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"feature": [2, LEAF, LEAF]}, "looks at features beyond the 2 there are"),
        ({"left": [0, 0, 0]}, "has trees with nodes that lead nowhere"),
        ({"right": [3, 0, 0]}, "has trees with nodes that lead nowhere"),
        ({"roots": [3]}, "has trees that begin nowhere"),
        ({"value": [0.0]}, "holds more of one part of its nodes than of another"),
        ({"threshold": [np.nan, 0, 0]}, "holds a threshold that is no finite number"),
        ({"value": [0, np.inf, 0]}, "holds a value that is no finite number"),
    ],
)
def test_nodes_that_lead_nowhere_are_refused(change, sentence):
    stump = forest_of(STUMP)
    parts = {name: getattr(stump, name) for name in stump.__dataclass_fields__}
    changed = {name: np.array(values, parts[name].dtype) for name, values in change.items()}
    with pytest.raises(ValueError, match=sentence):
        Forest(**parts | changed).check(2)


@pytest.mark.parametrize("name", Forest.__dataclass_fields__)
def test_parts_of_another_type_or_shape_are_refused(name):
    """Compiled code would read them as what they are not, or beyond their end."""
    stump = forest_of(STUMP)
    parts = {each: getattr(stump, each) for each in stump.__dataclass_fields__}
    part = parts[name]
    for wrong in (part.astype(np.float64), part[:, None], part[0], part.astype(">i8")):
        with pytest.raises(ValueError, match=f"holds {name} as .* instead of {part.dtype} of 1"):
            Forest(**parts | {name: wrong}).check(2)
