"""The curve that estimates stand on, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import NORMAL_95
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError, SettingsError
from dualrank.learning.dual_estimate import estimate_by_dual_learning
from dualrank.learning.model import Model
from dualrank.propensity.bootstrap import resampled_curves, with_intervals
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest
from dualrank.propensity.propensity import Propensity
from dualrank.sentences import shortened
from dualrank.settings import TrainingSettings

HARVESTED, LEARNED = "harvested", "dla"
LARGEST_ERROR = 2.0
"""A logarithm that is less sure than this is as good as not known."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """A propensity, where it is from, and the covariance of its logarithms by position."""

    propensity: Propensity
    source: str
    covariance: Floats | None = None
    """None where nothing says how sure the curve is."""


def choose_curve(
    given: Propensity | str | Path | None,
    log: ClickLog,
    dataset: Dataset,
    model: Model | None,
    seed: int,
    progress: Any = None,
) -> Curve:
    """The curve that is asked for; without one, harvested where the log allows, or the model's."""
    if isinstance(given, Propensity):
        return _known(given, "given")
    if given == HARVESTED:
        return harvested(log, seed)
    if given == LEARNED:
        if model is not None and model.propensity is not None:
            return _known(model.propensity, "learned with the new ranker")
        settings = TrainingSettings(seed=seed)
        found = estimate_by_dual_learning(log, dataset, settings=settings, progress=progress)
        return _known(found, "learned by dual learning")
    if given is not None:
        return _known(Propensity.read(given), f"from {Path(given).name}")
    try:
        found_here = harvested(log, seed)
        if found_here.propensity.depth == log.lists.depth:
            return found_here
        why = str(found_here.propensity.details.get("ends", "it ends too early"))
    except DataError as error:
        why = str(error)
    if model is None or model.propensity is None:
        raise DataError(
            f"no curve can be harvested from the log ({why}) and the new ranker brings none: give "
            f"propensity={LEARNED} to learn one, or a file of a curve"
        )
    return _known(model.propensity, "learned with the new ranker")


def require_known(given: Propensity | str | Path | None) -> None:
    """Refuse the name of a curve that is neither a file nor a way to one."""
    if given is None or isinstance(given, Propensity) or given in (HARVESTED, LEARNED):
        return
    if not Path(given).exists():
        raise SettingsError(
            f"propensity={shortened(str(given))} is neither a file nor one of {HARVESTED}, "
            f"{LEARNED}"
        )


def harvested(log: ClickLog, seed: int) -> Curve:
    """The curve of documents that the log shows at several positions."""
    grouped = GroupedClicks.of(log, seed=seed)
    evidence = harvest(grouped)
    found = with_intervals(evidence, grouped, seed=seed)
    curves = resampled_curves(evidence, seed=seed)[:, : found.depth]
    with np.errstate(invalid="ignore"):
        curves = curves - curves[:, :1]
    curves = curves[np.isfinite(curves).all(axis=1)]
    if len(curves) < 2:
        return _known(found, HARVESTED)
    covariance = np.atleast_2d(np.cov(curves, rowvar=False))
    return Curve(found, HARVESTED, covariance)


def _known(found: Propensity, source: str) -> Curve:
    """A curve whose intervals, if it has any, are taken to be independent by position."""
    if found.low is None or found.high is None:
        return Curve(found, source)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = (np.log(found.high) - np.log(found.low)) / (2 * NORMAL_95)
    errors = np.where(np.isfinite(errors), np.minimum(errors, LARGEST_ERROR), LARGEST_ERROR)
    return Curve(found, source, np.diag(errors**2))
