"""The search over the paper's ranges, on validation data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import dualrank as dr
from dualrank.learning import Progress, part_of
from dualrank.reproduce.experiment import require_known
from dualrank.reproduce.simulation import Simulation
from dualrank.reproduce.table_2_rows import (
    METHODS,
    Hyperparameters,
    Outcome,
    Users,
    measure_by_randomisation,
    run_method,
)

HIDDEN = ((128, 64, 32), (256, 128, 64), (512, 256, 128))
"""Hidden units from 128 to 512, halved from layer to layer."""

LEARNING_RATES = (0.005, 0.01, 0.02, 0.05)
"""The paper's range; the rate that is given is tried too."""

C_VALUES = (20.0, 50.0, 100.0, 200.0)


@dataclass(frozen=True, eq=False)
class Tuned:
    """What the best candidate gave, and the validation value of every one that was tried."""

    chosen: Hyperparameters
    outcome: Outcome
    trials: list[dict[str, Any]]


def candidates(method: str, given: Hyperparameters) -> list[tuple[dict[str, Any], Hyperparameters]]:
    """What to try for a method, each with the values that make it special.

    The propensity rate keeps its ratio to the ranker's rate.
    """
    require_known("method", [method], list(METHODS))
    ranker = METHODS[method].ranker
    if ranker == "svm":
        return [({"C": C}, replace(given, C=C)) for C in C_VALUES]
    if ranker == "initial":
        return [({}, given)]
    ratio = given.training.propensity_rate / given.training.rate
    rates = sorted({*LEARNING_RATES, given.training.rate})
    return [
        (
            {"hidden": list(hidden), "learning_rate": rate},
            replace(given, ranker=dr.DNN(hidden, given.ranker.elu_output)).with_training(
                learning_rate=rate, propensity_rate=ratio * rate
            ),
        )
        for hidden in HIDDEN
        for rate in rates
    ]


def tune(
    method: str,
    simulation: Simulation,
    users: Users,
    given: Hyperparameters,
    progress: Progress | None = None,
) -> Tuned:
    """Train every candidate and keep the one that is best on the validation queries."""
    metric = given.training.metric
    tried = candidates(method, given)
    measured = None
    if METHODS[method].method == "ipw":
        measured = measure_by_randomisation(simulation, users, given)
    best: Tuned | None = None
    trials: list[dict[str, Any]] = []
    for index, (values, candidate) in enumerate(tried):
        part = part_of(progress, index, len(tried))
        outcome = run_method(method, simulation, users, candidate, part, measured=measured)
        value = dr.evaluate(outcome.valid_scores, simulation.valid, [metric])[metric]
        if best is None or value > max(trial[metric] for trial in trials):
            best = Tuned(candidate, outcome, trials)
        trials.append({**values, metric: value})
    assert best is not None
    return best
