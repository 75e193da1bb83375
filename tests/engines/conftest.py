"""Models to export: trees that LightGBM grew or that are made up, and networks with any weights."""

from dataclasses import fields

import lightgbm
import numpy as np
import pytest
import torch

from dualrank.data.scaling import Scaler
from dualrank.learning.model import Model
from dualrank.rankers.forest import LEAF, Forest
from dualrank.rankers.trees import TreeRanker


def named(row):
    """Return the features of a document by name."""
    return {f"f{i + 1}": value for i, value in enumerate(row)}


def stored(forest, inputs):
    """A ranker of trees that has learned already."""
    ranker = TreeRanker(inputs)
    ranker.load_tensors(
        {each.name: torch.from_numpy(getattr(forest, each.name)) for each in fields(forest)}
    )
    return ranker


def float32_at_most(value):
    """The largest float32 that is not above a double."""
    near = np.float32(np.clip(value, -np.finfo(np.float32).max, np.finfo(np.float32).max))
    return near if float(near) <= value else np.nextafter(near, np.float32(-np.inf))


def as_forest(nodes, roots):
    """Nodes as (feature, threshold, left, right, missing goes left, value)."""
    kinds = (np.int32, np.float32, np.int32, np.int32, np.bool_, np.float32)
    parts = zip(*nodes, strict=True)
    arrays = [np.array(part, kind) for part, kind in zip(parts, kinds, strict=True)]
    return Forest(*arrays, np.array(roots, np.int32))


def forest_of(booster):
    """LightGBM's trees as plain arrays."""
    nodes, roots = [], []

    def add(node):
        place = len(nodes)
        nodes.append(None)
        if "leaf_value" in node:
            nodes[place] = (LEAF, 0.0, 0, 0, False, node["leaf_value"])
            return place
        threshold = float32_at_most(node["threshold"])
        missing_left = (
            node["default_left"] if node["missing_type"] == "NaN" else bool(threshold >= 0)
        )
        left, right = add(node["left_child"]), add(node["right_child"])
        nodes[place] = (node["split_feature"], threshold, left, right, missing_left, 0.0)
        return place

    for tree in booster.dump_model()["tree_info"]:
        roots.append(add(tree["tree_structure"]))
    return as_forest(nodes, roots)


def random_forest(inputs, rng, *, trees=30, depth=5, missing="own"):
    """Trees with any thresholds, the awkward ones among them, and one that is only a leaf."""
    awkward = [0.0, 1e-35, -1e-35, 1e-6, -1e-6, 0.1, -0.1, -0.25, 8.0, -8.0, 16.5, 1e6, -1e30]
    nodes, roots = [], []

    def add(level):
        place = len(nodes)
        nodes.append((LEAF, 0.0, 0, 0, False, rng.normal()))
        if level and rng.random() < 0.9:
            threshold = np.float32(rng.choice(awkward) if rng.random() < 0.3 else rng.normal())
            left, right = add(level - 1), add(level - 1)
            goes = bool(rng.random() < 0.5) if missing == "own" else bool(threshold >= 0)
            nodes[place] = (int(rng.integers(inputs)), threshold, left, right, goes, 0.0)
        return place

    roots = [add(depth) for _ in range(trees)] + [add(0)]
    return as_forest(nodes, roots)


def grown_forest(inputs, rng, *, missing="own"):
    """Trees that LightGBM grows on features with zeros, and with gaps if they go their own way."""
    x = rng.normal(size=(1_000, inputs)).astype(np.float32)
    x[rng.random(x.shape) < 0.3] = 0.0
    if missing == "own":
        x[rng.random(x.shape) < 0.2] = np.nan
    y = np.nansum(x[:, :2], axis=1) - np.isnan(x[:, 2]) + rng.normal(size=len(x)) / 2
    options = {"objective": "regression", "num_leaves": 12, "verbose": -1, "num_threads": 1}
    return forest_of(lightgbm.train(options, lightgbm.Dataset(x, y), 20))


@pytest.fixture
def tree_model():
    """A model of trees on some of nine columns; missing values go their own way, or as zeros."""

    def make(how="random", *, missing="own", names=None, seed=0):
        rng = np.random.default_rng(seed)
        kept = np.array([0, 1, 3, 4, 5, 7, 8])
        grow = {"random": random_forest, "grown": grown_forest}[how]
        forest = grow(len(kept), rng, missing=missing)
        nothing = np.zeros(len(kept)), np.ones(len(kept))
        return Model(
            stored(forest, len(kept)),
            Scaler("none", 9, kept, *nothing),
            feature_names=names,
            kind="trees",
        )

    return make


@pytest.fixture
def layer_model(dataset):
    """A linear model or network with random weights on features of very different sizes."""

    def make(ranker, scaling="standard", *, names=None, seed=0):
        rng = np.random.default_rng(seed)
        sizes = 10.0 ** np.arange(-2, dataset.feature_count - 2)
        features = dataset.features * sizes + 30 * sizes
        features = np.insert(features, 2, 7.0, axis=1).astype(np.float32)
        scaler = Scaler.fit(features, kind=scaling)
        built = ranker.build(scaler.output_count, seed=1)
        for tensor in built.tensors().values():
            tensor.copy_(torch.from_numpy(rng.normal(0, 0.3, tensor.shape)))
        return Model(built, scaler, feature_names=names, kind=ranker.kind), features

    return make


@pytest.fixture
def awkward_documents():
    """Documents on and around every threshold of a model, with gaps and with huge values."""

    def draw(model, count=400, seed=0, *, missing=True, above=0.0):
        rng = np.random.default_rng(seed)
        forest = model.ranker.forest()
        x = rng.normal(size=(count, model.scaler.input_count)).astype(np.float32)
        for column in range(len(model.scaler.kept)):
            thresholds = forest.threshold[forest.feature == column]
            if not len(thresholds):
                continue
            on = rng.choice(thresholds, count).astype(np.float32)
            with np.errstate(over="ignore"):
                up = np.nextafter(on + np.float32(above), np.float32(np.inf))
            which = rng.integers(4, size=count)
            target = model.scaler.kept[column]
            on = np.where(np.abs(on) < above, on - np.float32(above), on)
            x[:, target] = np.select([which == 0, which == 1], [on, up], x[:, target])
        x = np.clip(x, -3e38, 3e38)
        x[rng.random(x.shape) < 0.1] = 0.0
        x[rng.random(x.shape) < 0.05] = 1e38
        x[rng.random(x.shape) < 0.05] = -1e38
        if missing:
            x[rng.random(x.shape) < 0.1] = np.nan
        return x

    return draw
