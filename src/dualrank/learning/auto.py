"""Which correction, if any: candidates are trained, and clicks that none was trained on decide.

Where the logging ranker was strong, or features miss part of relevance, the learned propensities
are confounded; where sessions are few, large weights amplify noise. So `auto` trains the naive
ranker and one ranker per correction that the log allows, and takes the correction with the largest
lead over the naive ranker, provided that the lead is clear (see `choice`); without one it stays
naive. (The step at which each candidate was best is chosen by the same clicks, which flatters all
of them alike.)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.evaluation.click_check import hold_out
from dualrank.learning.choice import NAIVE, choose
from dualrank.learning.loop import Progress, Watch, part_of
from dualrank.learning.methods import METHODS
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.train_one import train_one
from dualrank.propensity.estimators import estimate
from dualrank.propensity.propensity import Propensity

# A harvested weight that may as well be twice as large or half of it corrects nothing.
WIDEST_INTERVAL = 4.0


def candidates(log: ClickLog, plan: Plan) -> tuple[dict[str, Plan], str | None]:
    """The plans among which `auto` chooses on this log, and why there is no harvested curve."""
    plans = {NAIVE: plan.for_method(NAIVE)}
    rest, _ = hold_out(log, plan.held_out, plan.settings.seed)
    harvested = harvested_propensity(rest, plan.settings.seed)
    if isinstance(harvested, Propensity):
        common = replace(plan, context=None, position_model=None)
        plans["ipw"] = common.for_method("ipw", harvested)
    if not (plan.ranker.makes.at_once and METHODS["dla"].correction.learns):
        plans["dla"] = plan.for_method("dla")
    return plans, None if isinstance(harvested, Propensity) else harvested


def fit_best(
    log: ClickLog,
    dataset: Dataset,
    plan: Plan,
    *,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[Model, dict[str, Model]]:
    """Train the candidates: the one that is chosen, and all of them by their methods."""
    plans, not_harvested = candidates(log, plan)
    models = {}
    for number, (name, candidate) in enumerate(plans.items()):
        models[name] = train_one(
            log,
            dataset,
            candidate,
            checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{name}"),
            progress=part_of(progress, number, len(plans)),
            watch=watch,
        )
    choice = choose(models, log, dataset, plan)
    chosen, why = models[choice.chosen], choice.to_dict()
    if not_harvested is not None:
        why["not_harvested"] = not_harvested
    training = {**chosen.training, "method": "auto", "auto": why}
    return replace(chosen, training=training), models


def harvested_propensity(log: ClickLog, seed: int = 0) -> Propensity | str:
    """The harvested curve, if it covers every position and is sharp enough; else why not."""
    try:
        curve = estimate(log, "harvest-all-pairs", seed=seed)
    except DataError as error:
        return str(error)
    if curve.depth < log.lists.depth:
        return str(curve.details.get("ends", f"the curve ends at position {curve.depth}"))
    if curve.low is None or curve.high is None:
        return "the harvested curve has no intervals"
    widths = curve.high / curve.low
    widest = int(np.argmax(widths))
    if not widths[widest] <= WIDEST_INTERVAL:
        return (
            f"the harvested examination of position {widest + 1} is known only between "
            f"{curve.low[widest]:.2g} and {curve.high[widest]:.2g}"
        )
    return curve
