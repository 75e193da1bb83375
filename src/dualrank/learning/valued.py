"""Learning from weighted events: a propensity from clicks, then a ranker from what they are worth.

Purchases are too few to learn from where people look, and dwell times are no yes or no; but nobody
buys what nobody saw, so that both depend on position as clicks do. So there are two stages. The
method learns from clicks alone, as ever, and what is kept of it is its propensity. Then a ranker
learns from the value of sessions (see `event_values`), each position weighed by the inverse of that
propensity:

    t_i = (Σ_k w_k · amount_k,i) · P(o_1)/P(o_i)

A method that has no propensity leaves values as they are, as `naive` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dualrank.learning.choice import NAIVE
from dualrank.learning.event_values import values_by_row
from dualrank.learning.loop import Progress, Watch, part_of
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.train_one import train_one
from dualrank.learning.whole_source import WholeSource

logger = logging.getLogger(__name__)

Learn = Callable[..., Model]
"""Trains by any method on clicks: `fit`."""


def fit_valued(
    source: WholeSource,
    plan: Plan,
    learn: Learn,
    *,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Model:
    """Train in two stages; the model has the ranker of the second and the propensity of both."""
    assert plan.events is not None, "clicks alone are learned from in one stage"
    values_by_row(source.log, plan.events)
    first: Model | None = None
    propensity = plan.propensity
    if plan.way.name != NAIVE and propensity is None:
        first = learn(
            source,
            None,
            replace(plan, events=None),
            checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-clicks"),
            progress=part_of(progress, 0, 2),
            watch=watch,
        )
        propensity, progress = first.propensity, part_of(progress, 1, 2)
        if propensity is None:
            logger.warning(
                "method %s has no propensity to weigh events by: they are taken as they are",
                plan.way.name,
            )
    second = plan.for_method(NAIVE)
    if propensity is not None:
        second = plan.for_method("ipw", propensity)
        if first is not None:
            # The method may have found by itself which sessions to tell apart.
            second = replace(second, context=propensity.context)
    model = train_one(source, second, checkpoint=checkpoint, progress=progress, watch=watch)
    stages: dict[str, Any] = {
        "propensity": None if first is None else _of_first(first),
        "ranker": {"method": second.way.name, "events": plan.events},
    }
    described = {**model.training, "method": plan.way.name, "stages": stages}
    return replace(model, training=described)


def _of_first(first: Model) -> dict[str, Any]:
    """What the manifest says of the stage that learned from clicks."""
    told = ("reading", "data", "version")
    return {name: value for name, value in first.training.items() if name not in told}
