"""Whether what was written scores as the model does, on documents that try both.

The documents are those that are given, or drawn around the training data. A quarter of them has
one value far outside of it, and where the model is made of trees a quarter has missing values,
and many values lie exactly on a threshold or just above one.

The difference is relative to the model's score, or to the root mean square of the scores around
it where that is larger: a score near zero is a sum of terms that are not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.learning.model import Model
from dualrank.learning.score_checks import hardly_any_differ
from dualrank.rankers.forest import LEAF, Forest

logger = logging.getLogger(__name__)

TOLERANCE = 1e-5
SAMPLE, MOST = 1_000, 10_000
"""How many documents are drawn, and how many are taken of those that are given."""
FAR_FOR_TREES, FAR_FOR_LAYERS = 3e38, 1e4
"""The second in standard deviations: the scores of networks should stay finite."""
MISSING_SHARE = 0.2

Features = NDArray[np.float32]
Scores = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Sample:
    """Documents to compare on; `extreme` says which have a value far outside the training data."""

    features: Features
    extreme: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.features)


def draw_sample(
    model: Model,
    documents: Dataset | Features | None = None,
    *,
    seed: int = 0,
    gap: float = 0.0,
) -> Sample:
    """Documents that try a model, at least a thousand.

    Values near a threshold are at least `gap` away from it; those exactly on it are kept, unless it
    is nearer to 0 than that.
    """
    rng = np.random.default_rng(seed)
    scaler, forest = model.scaler, model.ranker.forest()
    given = documents.features if isinstance(documents, Dataset) else documents
    count = SAMPLE
    if given is not None and len(given):
        count = min(max(len(given), SAMPLE), MOST)
        chosen = np.resize(rng.permutation(len(given)), count)
        features = given[chosen].astype(np.float32)
    elif forest is not None:
        features = rng.normal(size=(count, scaler.input_count)).astype(np.float32)
    else:
        features = _around_training(model, rng, count)
    if forest is not None:
        _onto_thresholds(features, forest, scaler.kept, gap, rng)
        missing = rng.random(features.shape) < MISSING_SHARE
        features[missing & (rng.random((count, 1)) < 1 / 4)] = np.nan
    extreme = rng.random(count) < 1 / 4
    rows = np.flatnonzero(extreme)
    column = rng.integers(len(scaler.kept), size=len(rows))
    far = np.full(len(rows), FAR_FOR_TREES)
    if forest is None and scaler.kind != "log":
        far = FAR_FOR_LAYERS * (np.abs(scaler.shift) + 1 / scaler.scale)[column]
    features[rows, scaler.kept[column]] = far * rng.choice([-1, 1], len(rows))
    return Sample(features, extreme)


def difference(sample: Sample, found: Scores, expected: Scores) -> float:
    """The largest, relative to the scores."""
    largest = 0.0
    for group in (sample.extreme, ~sample.extreme):
        if not group.any():
            continue
        wanted = expected[group].astype(np.float64)
        size = np.maximum(np.abs(wanted), np.sqrt(np.mean(wanted**2)))
        apart = np.abs(found[group] - wanted) / np.where(size > 0, size, 1.0)
        largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max()))
    return largest


def require_parity(path: Path, what: str, sample: Sample, found: Scores, expected: Scores) -> float:
    """The difference, which is at most 1e-5; else nothing should be written."""
    told = hardly_any_differ(expected)
    if told is not None:
        logger.warning("%s: %s", path, told)
    apart = difference(sample, found, expected)
    if not apart <= TOLERANCE:
        raise DataError(
            f"{path}: not written: {what} and the model differ by {apart:.2g} of the score on "
            f"{len(sample)} documents, more than {TOLERANCE:g}"
        )
    return apart


def _around_training(model: Model, rng: np.random.Generator, count: int) -> Features:
    """Documents like those of the training data, as far as the scaling remembers them."""
    scaler = model.scaler
    features = np.zeros((count, scaler.input_count))
    drawn = rng.normal(size=(count, scaler.output_count)) / scaler.scale + scaler.shift
    if scaler.kind == "log":
        drawn = np.sign(drawn) * np.expm1(np.minimum(np.abs(drawn), 80.0))
    features[:, scaler.kept] = drawn
    return features.astype(np.float32)


def _onto_thresholds(
    features: Features,
    forest: Forest,
    kept: NDArray[np.int64],
    gap: float,
    rng: np.random.Generator,
) -> None:
    """Values of features that trees look at: a fourth on a threshold, a fourth just above, some 0.

    Zero is what most documents have in most features, and has thresholds beside it.
    """
    zero, up = np.float32(0), np.float32(np.inf)
    for column in np.unique(forest.feature[forest.feature != LEAF]):
        thresholds = forest.threshold[forest.feature == column]
        near = rng.choice(thresholds, len(features))
        on = np.where(np.abs(near) < gap, near - np.float32(gap), near)
        with np.errstate(over="ignore"):
            above = np.nextafter(near + np.float32(gap), up)
        which, target = rng.integers(8, size=len(features)), kept[column]
        cases = [which < 2, which < 4, which < 5]
        moved = np.select(cases, [on, above, zero], features[:, target])
        features[:, target] = np.clip(moved, -FAR_FOR_TREES, FAR_FOR_TREES)
