"""Runs summarised into curves: a mean with its edges over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualrank.report.labels import extra, ordered_methods, swept_setting
from dualrank.report.results import Results, Run

# The mean, its lower and its upper edge; both edges are the mean where there is one seed only.
Curve = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def propensity_curves(results: Results) -> dict[str, Curve]:
    """Each method's examination curve with its lower and upper edge.

    The edges come from the seeds, or, with one seed, from the interval that the run states. A
    curve that repeats another one (the Ranking SVM uses what RandList measured) is left out, and
    so is everything where a setting is swept, as there is not one curve then.
    """
    if swept_setting(results) is not None:
        return {}
    curves: dict[str, Curve] = {}
    names = ordered_methods(results)
    for name in sorted(names, key=lambda name: name.startswith("svm-")):
        found = [run.propensity for run in results.of(name) if run.propensity]
        length = min((len(each.examination) for each in found), default=0)
        if not length or name == "naive":
            continue
        seeds = np.array([each.examination[:length] for each in found])
        if not (np.isfinite(seeds).all() and (seeds > 0).all()):
            continue
        mean, low, high = over_seeds(seeds)
        extras = found[0].model_extra or {}
        stated = all(len(extras.get(edge) or []) == length for edge in ("low", "high"))
        if stated and len(seeds) == 1:
            low, high = np.array(extras["low"], float), np.array(extras["high"], float)
        if not any(_alike(mean, other[0]) for other in curves.values()):
            curves[name] = mean, low, high
    return curves


def true_examination(results: Results) -> NDArray[np.float64] | None:
    """The examination curve that the clicks were made with, where it is known."""
    truth = np.asarray(results.settings.get("true_examination") or [], dtype=float)
    return truth if truth.ndim == 1 and len(truth) and (truth > 0).all() else None


def learning_curve(
    runs: Sequence[Run], metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The steps that all seeds have, and the metric there, seeds by steps."""
    found = []
    for run in runs:
        curve = extra(run, "curve")
        if isinstance(curve, dict) and curve.get("steps") and metric in curve:
            found.append(dict(zip(curve["steps"], curve[metric], strict=False)))
    steps = sorted(set.intersection(*map(set, found))) if found else []
    if len(steps) < 2:
        return None
    values = np.array([[curve[step] for step in steps] for curve in found], dtype=float)
    return np.array(steps, dtype=float), values


def sweep_curve(
    runs: Sequence[Run], x: str, metric: str
) -> tuple[NDArray[np.float64], Curve] | None:
    """A metric against a swept setting: the values of the setting, and the curve over them.

    The metric `"mse"` is the error of the inverse propensity weights; it spans orders of
    magnitude, so its mean and edges are geometric.
    """
    groups: dict[float, list[float]] = {}
    for run in runs:
        at, value = extra(run, x), _value(run, metric)
        if isinstance(at, int | float) and value is not None:
            groups.setdefault(float(at), []).append(value)
    if len(groups) < 2:
        return None
    places = sorted(groups)
    # Seeds that lack a value somewhere would make a ragged matrix, so each place by itself.
    points = [over_seeds(np.array(groups[at]), log=metric == "mse") for at in places]
    mean, low, high = np.array(points).T
    return np.array(places), (mean, low, high)


def over_seeds(seeds: NDArray[np.float64], *, log: bool = False) -> Curve:
    """Mean and edges over the first axis; on a logarithmic scale the geometric ones."""
    if log:
        mean, low, high = over_seeds(np.log(np.maximum(seeds, 1e-12)))
        return np.exp(mean), np.exp(low), np.exp(high)
    mean = seeds.mean(axis=0)
    spread = seeds.std(axis=0, ddof=1) if len(seeds) > 1 else 0.0
    return mean, mean - spread, mean + spread


def inverse(curve: Curve) -> Curve:
    """Examination turned into inverse propensity weights, `P(1)/P(i)`."""
    mean, low, high = curve
    if (low <= 0).any():
        low = high = mean
    return 1 / mean, 1 / high, 1 / low


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, atol=1e-6))


def _value(run: Run, metric: str) -> float | None:
    if metric == "mse":
        return run.propensity.mse if run.propensity else None
    return run.metrics.get(metric)
