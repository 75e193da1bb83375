"""`Model.update`: a model goes on from new clicks, with what it remembers of older ones.

Nothing is trained anew: ranker, belief about position and optimisers go on from where they were,
on new lists and remembered ones in proportion to their sessions, in the one training loop
(`loop.py`). The cost is that of the new clicks: as many steps as so many passes over them would
have, whatever was before; the steps draw new and remembered lists alike.

Where users have changed their habits (`changed`), older clicks still tell which documents are
relevant, but no longer how far users read. All remembered lists are then settled: each keeps the
examination that was believed of it, and says nothing about position from then on.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.inputs import log_and_dataset
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError, DualrankError, SettingsError
from dualrank.evaluation.click_check import ClickCheck, hold_out
from dualrank.learning.loop import Progress, Watch
from dualrank.learning.memory import LISTS, Memory, memory_rng, remembered
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.score_checks import MOST_LISTS
from dualrank.learning.train_one import train_one
from dualrank.learning.whole_source import LabelSource, check_source, fingerprint
from dualrank.progress import shows_progress
from dualrank.rankers.network import DNN, Linear, Network
from dualrank.rankers.ranker import RankerSettings
from dualrank.sentences import counted, reason_of, shortened
from dualrank.settings import TrainingSettings

logger = logging.getLogger(__name__)

PASSES = 3
"""An update draws so many times as many lists as there are new sessions, unless steps are given.
They are drawn from new and older ones: where older ones are most, so are those that are drawn."""
FASTER = 2.0
"""Times the ranker's rate in training: an update has few steps. Like the passes it was chosen on
worlds that no table shows (`python -m benchmarks.days`)."""
LEAST_STEPS, MOST_STEPS = 100, 3_000
HIGHEST_SHARE = 20.0
"""By how much belief is sped up, at most, where settled lists say nothing about position."""
GOES_ON_AS = {"grounded": "likelihood"}
"""What stood on the logging ranker when it was trained is one ranker since, and goes on alone."""
_OF_ONE_TRAINING = ("steps", "seed", "validate_every", "checkpoint_every", "metric")
_ADVICE = "train again on all days, which `reduce` adds up"


@shows_progress("learning from new clicks")
def update_model(
    model: Model,
    log: ClickLog | Any,
    dataset: Dataset | Any,
    *,
    half_life: float | None = None,
    changed: bool = False,
    memory: int = LISTS,
    validation: float = 0.1,
    progress: Progress | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Model:
    """The model after it has learned from new clicks too.

    `log` and `dataset` are the new clicks, and features of what they displayed. After `half_life`
    new sessions an older one counts half; without it nothing fades. `memory` is how many lists are
    remembered for the next update. `changed` says that users have changed their habits since.

    `options` are settings of the training (`steps`, `learning_rate`, `schedule` …), or another
    `method`, `loss` or `propensity`; what is not given is as the model was trained. The rates fall
    to zero within an update, so that the last curve is nearly the best of the sessions that count;
    `schedule="constant"` keeps them.

    The clicks of a share of the new queries (`validation`) are not learned from now, but compared
    with what the model predicted before and after; they are remembered. What was found stands in
    `training["update"]` of the new model.
    """
    log, dataset = log_and_dataset(log, dataset)
    dataset = dataset.with_features(model.feature_names)
    _check(half_life, memory, validation)
    plan = plan_of(model, **options)
    if dataset.feature_count != model.scaler.input_count:
        raise DataError(
            f"{dataset.source}: {dataset.feature_count} features; the model was trained on "
            f"{model.scaler.input_count}"
        )
    check_source(log, dataset)
    warnings = _warnings(model) if memory else []  # who asks for none knows
    held_out, why_not = None, "nothing was held out"
    rest = log
    if validation:
        try:
            rest, held_out = hold_out(log, validation, plan.settings.seed)
            check_source(rest, dataset)
        except DataError as error:
            rest, held_out, why_not = log, None, str(error)
    older = Memory.empty(dataset.feature_count) if model.memory is None else model.memory
    if changed:
        older = older.settle(model.propensity)
    older = older.faded(log.sessions, half_life)
    both = Memory.of(rest, dataset).joined(older)
    if plan.way.correction.learns and model.propensity is not None:
        # The curve keeps all of its positions, also those that nobody displayed this time.
        both = both.deep(model.propensity.depth)
    settings = _settings(plan, log.sessions, both, rated=options.get("learning_rate") is not None)
    trained = train_one(
        LabelSource(both.feedback(), both.dataset(model.feature_names)),
        replace(plan, settings=settings),
        start=model,
        optimizers=model.optimizers,
        progress=progress,
        watch=watch,
    )
    if held_out is not None:
        both = Memory.of(held_out, dataset).joined(both)
    last = _last(model).get("number")
    number = last + 1 if isinstance(last, int) and last >= 0 else 1
    kept = both.kept(memory, memory_rng(plan.settings.seed, number)) if memory else None
    curve = trained.propensity
    if curve is not None and plan.way.correction.learns:
        curve = replace(curve, sessions=round(both.total))
    updated = replace(trained, propensity=curve, memory=kept)
    numbers = {
        "number": number,
        "method": plan.way.name,
        "sessions": log.sessions,
        "lists": len(log.lists),
        "data": fingerprint(log, dataset),
        "older_sessions": older.total,
        "older_lists": len(older),
        "remembers": 0 if kept is None else len(kept),
        "half_life": half_life,
        "changed": changed,
        "settings": asdict(settings),
        "history": trained.training["history"],
        "moved": _moved(model, updated, log, dataset),
        "weights": _weights(model, updated),
        **_compared(model, updated, held_out, dataset, why_not),
        "warnings": [*warnings, *trained.training.get("warnings", [])],
    }
    for warning in warnings:
        logger.warning("%s", warning)
    return replace(updated, training={**model.training, "update": numbers})


def with_memory(model: Model, log: Any, dataset: Any, memory: int, seed: int) -> Model:
    """The model with a memory of a log."""
    log, dataset = log_and_dataset(log, dataset)
    dataset = dataset.with_features(model.feature_names)
    _check(None, memory, 0.0)
    plan_of(model)
    check_source(log, dataset)
    return replace(model, memory=remembered(log, dataset, memory, seed) if memory else None)


def plan_of(model: Model, **options: Any) -> Plan:
    """How a model goes on: as it was trained, but for the options given."""
    training = model.training
    ranker = _ranker(model)
    options = {name: value for name, value in options.items() if value is not None}
    method = options.pop("method", None) or _method(training)
    if training.get("events") is not None:
        raise SettingsError(
            f"the model was trained on weighted events, and does not go on: {_ADVICE}"
        )
    if training.get("context") is not None:
        raise SettingsError(
            f"the model has a curve for every {shortened(training['context'])}, and does not go "
            f"on: {_ADVICE}"
        )
    plan = Plan(
        method=method,
        ranker=ranker,
        settings=_settings_of(training, same=method == training.get("method")),
        validation=0.0,
        scaling=model.scaler.kind,
        propensity=options.pop("propensity", None) or _given(model, method),
    )
    known = {*(f.name for f in fields(TrainingSettings)), "loss", "position_model"}
    inherited: dict[str, Any] = {
        name: training.get(name)
        for name in ("loss", "position_model")
        if name in plan.way.takes and training.get("method") == plan.way.name
    }
    for name in options.keys() - known:
        raise SettingsError(
            f"an update has no option {name!r}; it has method, propensity, "
            f"{', '.join(sorted(known))}"
        )
    plan = plan.with_options(**{**inherited, **options})
    way = plan.way
    if way.needs_log or not way.correction.remembers or way.name == "auto":
        raise SettingsError(
            f"method {way.name} does not go on from new clicks: {_ADVICE}, or give method="
            "'likelihood', 'dla', 'ipw' or 'naive', which do"
        )
    return plan


def _method(training: Mapping[str, Any]) -> str:
    """By which method a model goes on."""
    method = training.get("method", "dla")
    if method == "auto":
        # A sum of several is one ranker since; what it learned from clicks by position, it goes on
        # to learn by their likelihood.
        choice = training.get("auto", {})
        parts = list(choice.get("weights") or [choice.get("chosen", "likelihood")])
        if parts == ["naive"]:
            return "naive"
        reads = any("stopping" in str(part) for part in parts)
        return "stopping" if reads else "likelihood"
    return str(GOES_ON_AS.get(method, method))


def _ranker(model: Model) -> RankerSettings:
    """Settings of a ranker of the very shape that the model has."""
    ranker = model.ranker
    if not isinstance(ranker, Network) or model.kind not in (DNN.kind, Linear.kind):
        raise SettingsError(
            f"a ranker of kind {model.kind} takes all lists at once, and does not go on from new "
            f"ones: {_ADVICE}"
        )
    if model.kind == Linear.kind:
        return Linear()
    said = model.training.get("ranker_settings")
    precision = said.get("precision", "float32") if isinstance(said, dict) else "float32"
    return DNN(ranker.sizes[1:-1], ranker.elu_output, precision, ranker.activation)  # type: ignore[arg-type]


def _settings_of(training: Mapping[str, Any], *, same: bool) -> TrainingSettings:
    """The settings of a training; rates suit a method, and are left open for another."""
    known = {f.name for f in fields(TrainingSettings)} - {*_OF_ONE_TRAINING}
    if not same:
        known -= {"learning_rate", "weight_decay"}
    said = training.get("settings", {})
    try:
        return TrainingSettings(**{name: said[name] for name in known & said.keys()})
    except (DualrankError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(
            f"the model's manifest does not say how it was trained: {reason_of(error)}"
        ) from error


def _given(model: Model, method: Any) -> Any:
    """The curve of `ipw`, which is not learned."""
    return model.propensity if method == "ipw" else None


def _settings(plan: Plan, sessions: int, both: Memory, *, rated: bool) -> TrainingSettings:
    """The settings of one update.

    Settled lists say nothing about position, so that the slope of what is believed is smaller by
    their share: it is sped up by as much.
    """
    settings = plan.settings
    if settings.steps is None:
        steps = math.ceil(PASSES * sessions / settings.batch_size)
        settings = replace(settings, steps=min(max(steps, LEAST_STEPS), MOST_STEPS))
    if not rated:
        settings = replace(settings, learning_rate=FASTER * plan.suited.rate)
    total, settled = both.total, float(both.sessions[both.are_settled].sum())
    faster = min(total / max(total - settled, 1e-9), HIGHEST_SHARE)
    return replace(settings, propensity_rate=settings.propensity_rate * faster)


def _check(half_life: Any, memory: Any, validation: Any) -> None:
    if half_life is not None and not (_is_number(half_life) and 0 < half_life < math.inf):
        raise SettingsError(f"half_life is a number of sessions above 0, not {half_life!r}")
    if isinstance(memory, bool) or not isinstance(memory, Integral) or memory < 0:
        raise SettingsError(f"memory is a number of lists, 0 or more, not {memory!r}")
    if not _is_number(validation) or not 0 <= validation < 1:
        raise SettingsError(f"validation is a share between 0 and 1, not {validation!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _warnings(model: Model) -> list[str]:
    if model.memory is not None:
        return []
    return [
        "the model remembers nothing of what it was trained on: it goes on from new clicks alone, "
        "and may forget queries that are not among them; train with remember=True to prevent that"
    ]


def _last(model: Model) -> dict[str, Any]:
    found = model.training.get("update")
    return found if isinstance(found, dict) else {}


def _moved(before: Model, after: Model, log: ClickLog, dataset: Dataset) -> float:
    """The share of pairs of documents of one new list that both rankers order differently."""
    step = -(-len(log.lists) // MOST_LISTS)
    documents = log.lists.documents[::step]
    mask = documents >= 0
    rows, row_of = np.unique(documents[mask], return_inverse=True)
    compact = np.full_like(documents, -1)
    compact[mask] = row_of
    lists = RankedLists(compact, log.lists.queries[::step])
    features = dataset.features[rows]
    one, two = (
        lists.gather(model.ranker.predict(model.scaler.transform(features)))
        for model in (before, after)
    )
    turned = pairs = 0
    for place in range(1, mask.shape[1]):
        both = mask[:, place:] & mask[:, :-place]
        signs = [np.sign(scores[:, place:] - scores[:, :-place]) for scores in (one, two)]
        turned += int((both & (signs[0] * signs[1] < 0)).sum())
        pairs += int(both.sum())
    return turned / pairs if pairs else 0.0


def _weights(before: Model, after: Model) -> dict[str, Any] | None:
    """By how much the weight of a click has changed, at the position where it did most."""
    if before.propensity is None or after.propensity is None:
        return None
    depth = min(before.propensity.depth, after.propensity.depth)
    ratio = after.propensity.weights[:depth] / before.propensity.weights[:depth]
    most = int(np.argmax(np.abs(np.log(ratio))))
    return {"position": most + 1, "change": float(ratio[most] - 1)}


def _compared(
    before: Model, after: Model, held_out: ClickLog | None, dataset: Dataset, why_not: str
) -> dict[str, Any]:
    """How much better held-out new clicks are predicted than before, or why that is not known."""
    if held_out is None:
        return {"lead": None, "why_not_compared": why_not}
    try:
        check = ClickCheck(held_out)
    except DataError as error:
        return {"lead": None, "why_not_compared": str(error)}
    queries = np.unique(held_out.lists.queries)
    own = np.isin(dataset.query_of_document, queries)
    some = dataset.take(queries)
    scores = []
    for model in (after, before):
        each = np.zeros(dataset.document_count, np.float32)
        each[own] = model.predict(some)
        scores.append(each)
    lead = check.lead(scores[0], over=scores[1])
    return {"lead": {**asdict(lead), "in_errors": lead.in_errors}}


def said_of(update: Mapping[str, Any]) -> list[str]:
    """What an update came to, in sentences."""
    lines = [
        f"learned from {counted(update['sessions'], 'sessions')} on "
        f"{counted(update['lists'], 'lists')}, beside {update['older_sessions']:,.0f} older ones"
    ]
    lines.append(f"{update['moved']:.1%} of the pairs of documents displayed changed their order")
    if (weights := update["weights"]) is not None:
        lines.append(
            f"the weight of a click changed most at position {weights['position']}: "
            f"{weights['change']:+.1%}"
        )
    lead = update["lead"]
    if lead is None:
        lines.append(f"not compared with the model before: {update['why_not_compared']}")
    else:
        better = "better" if lead["gain"] >= 0 else "worse"
        lines.append(
            f"new clicks of {counted(lead['queries'], 'queries')} that were held out are predicted "
            f"{abs(lead['in_errors']):.1f} standard errors {better} than before"
        )
    return lines
