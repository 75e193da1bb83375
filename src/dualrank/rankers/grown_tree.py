"""One tree on given slopes and curvatures, grown by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.extras import require
from dualrank.rankers.forest import LEAF, Forest

# Trees are to be the same whenever and wherever they are grown from the same numbers.
FIXED = {
    "objective": "none",
    "metric": "none",
    "verbosity": -1,
    "deterministic": True,
    "force_col_wise": True,
    "min_data_in_leaf": 1,
    "feature_pre_filter": False,
    "boost_from_average": False,
}


class Grower:
    """Grows trees on the rows of a matrix, whose features are cut into bins once.

    A tree depends on its arguments alone: each is taken back out of the booster, which leaves the
    scores of its rows at 0, and draws its features from a seed of its own. Where all rows are
    alike, a tree is a leaf.
    """

    def __init__(
        self, features: NDArray[np.float32], settings: Mapping[str, Any], threads: int
    ) -> None:
        lightgbm = require("trees", "lightgbm")
        self._booster, self._seed = None, -1
        if features.size == 0:
            return
        settings = {**FIXED, **settings, "num_threads": threads}
        rows = lightgbm.Dataset(features, params=settings).construct()
        # LightGBM alone knows which features vary for it: it takes tiny numbers for 0, and looks at
        # a sample of many rows. A feature that does not vary has no bins, and without any that does
        # it grows no tree but fails.
        if any(rows.feature_num_bin(column) for column in range(features.shape[1])):
            self._booster = lightgbm.Booster(settings, rows)
            # The first slopes that a booster is given make it draw features once more; on slopes
            # of 0 it grows a leaf, which stays.
            nothing = np.zeros(len(features), np.float32)
            self._booster.update(fobj=lambda scores, rows: (nothing, nothing + 1))

    def grow(
        self, slope: NDArray[np.float32], curvature: NDArray[np.float32], seed: int
    ) -> tuple[Forest, NDArray[np.float32]]:
        """The tree that follows the slope down, and what it gives for every row."""
        nothing = forest_of({"leaf_value": 0.0}), np.zeros(len(slope), np.float32)
        if self._booster is None:
            return nothing
        self._draw_features_from(seed)
        self._booster.update(fobj=lambda scores, rows: (slope, curvature))
        if self._booster.num_trees() == 1:
            return nothing
        outputs: list[NDArray[np.float32]] = []

        def listen(scores: NDArray[np.float64], rows: object) -> tuple[str, float, bool]:
            outputs.append(scores.astype(np.float32))
            return "", 0.0, True

        self._booster.eval_train(listen)
        (tree,) = self._booster.dump_model(start_iteration=1)["tree_info"]
        self._booster.rollback_one_iter()
        return forest_of(tree["tree_structure"]), outputs[0]

    def _draw_features_from(self, seed: int) -> None:
        assert self._booster is not None
        # LightGBM begins anew with a seed only where it differs from the last.
        if seed == self._seed:
            self._booster.reset_parameter({"feature_fraction_seed": seed + 1})
        self._booster.reset_parameter({"feature_fraction_seed": seed})
        self._seed = seed


def forest_of(structure: Mapping[str, Any]) -> Forest:
    """A tree as LightGBM tells it, as a forest of one.

    LightGBM takes a missing value for 0 where none was missing in training.
    """
    nodes: list[tuple[int, float, int, int, bool, float]] = []

    def add(node: Mapping[str, Any]) -> int:
        number = len(nodes)
        if "split_feature" not in node:
            nodes.append((LEAF, 0.0, 0, 0, False, float(node["leaf_value"])))
            return number
        nodes.append((LEAF, 0.0, 0, 0, False, 0.0))
        threshold = float(node["threshold"])
        missing_left = bool(node["default_left"])
        if node["missing_type"] != "NaN":
            missing_left = threshold >= 0
        left, right = add(node["left_child"]), add(node["right_child"])
        nodes[number] = (node["split_feature"], threshold, left, right, missing_left, 0.0)
        return number

    add(structure)
    feature, threshold, left, right, missing_left, value = (
        np.array(part) for part in zip(*nodes, strict=True)
    )
    return Forest(
        feature.astype(np.int32),
        rounded_down(threshold),
        left.astype(np.int32),
        right.astype(np.int32),
        missing_left.astype(np.bool_),
        value.astype(np.float32),
        np.zeros(1, np.int32),
    )


def rounded_down(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest finite float32 that is at most each number: the same ones are at most both."""
    largest = np.finfo(np.float32).max
    rounded = np.clip(numbers, -largest, largest).astype(np.float32)
    return np.where(rounded > numbers, np.nextafter(rounded, np.float32(-np.inf)), rounded)
