"""From a plan to a trained model: the pieces are put together, and the loop runs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.corrections.correction import Basis, Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation.click_check import hold_out
from dualrank.learning.feedback import (
    CorrectedClicks,
    EstimatedRelevance,
    Feedback,
    WholeFeedback,
)
from dualrank.learning.logging_scores import Ground
from dualrank.learning.loop import Loop, Progress, Watch, part_of
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.validation import OnGrades, OnHeldOutClicks, OnLikelihood, Validation
from dualrank.rankers.ranker import Ranker
from dualrank.version import __version__


def train_one(
    source: ClickLog | Feedback,
    dataset: Dataset,
    plan: Plan,
    *,
    start: Model | None = None,
    ground: Model | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Model:
    """Train by one method; what is held out of a log keeps the best ranker.

    With `start`, its scaling, ranker and examination are where the training begins. `ground` is the
    model that a method with a ground stands on; it is trained first where it is not given.
    """
    if plan.way.ground is None:
        ground = None
    elif ground is None:
        ground = train_one(
            source,
            dataset,
            plan.for_method(plan.way.ground),
            checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{plan.way.ground}"),
            progress=part_of(progress, 0, 2),
            watch=watch,
        )
        progress = part_of(progress, 1, 2)
    settings = plan.settings
    kind = plan.scaling if plan.ranker.makes.scaled else "none"
    scaler = Scaler.fit(dataset.features, kind=kind) if start is None else start.scaler
    features = scaler.transform(dataset.features)
    described: dict[str, Any] = {**plan.describe(), "scaling": scaler.kind, "version": __version__}
    log = held_out = relevance = None
    labels = _Labels(dataset, plan)
    if isinstance(source, ClickLog):
        described["data"] = fingerprint(source, dataset, plan.context)
        described["reading"] = None if source.reading is None else source.reading.to_dict()
        log = source
        if plan.way.extract is not None:
            log, relevance = plan.way.extract(log, plan)
        below = None if ground is None else Ground.of(ground, log.lists, dataset)
        labels = _Labels(dataset, plan, relevance, below)
        log, held_out = hold_out(log, plan.held_out, settings.seed)
    elif plan.held_out or plan.way.needs_log or checkpoint is not None:
        raise SettingsError(
            f"{type(source).__name__} is no click log: nothing can be held out or extracted from "
            "it, and no checkpoint holds its state; give judged queries, or validation=0"
        )
    basis = Basis(
        source.lists.depth,
        settings,
        log,
        plan.propensity,
        plan.position_model,
        plan.context,
        plan.loss,
        features,
        None if log is None else labels.ground_of(log),
    )
    correction = plan.way.correction.build(basis)
    feedback = source if log is None else labels.of(log, correction)
    assert not isinstance(feedback, ClickLog)
    ranker = plan.ranker.build(scaler.output_count, settings.seed)
    if start is not None:
        described["start"] = _go_on(start, plan, ranker, correction)
    loop = Loop(
        ranker,
        torch.from_numpy(features),
        feedback,
        correction,
        settings,
        validation=_validation(plan, features, scaler, held_out, labels, correction),
    )
    loop.name = plan.way.name
    history = loop.run(
        checkpoint=checkpoint, identity=_identity(described), progress=progress, watch=watch
    )
    learned = correction.propensity()
    if learned is not None and plan.propensity is None and log is not None:
        learned = replace(learned, sessions=log.sessions)
    described |= {"device": str(loop.device), "history": asdict(history), **ranker.outcome()}
    if labels.ground is not None:
        worth = correction.worth_of_ground()
        ranker = ranker.plus(labels.ground.model.ranker, worth / labels.ground.scale)
        described["worth_of_ground"] = worth
    return Model(ranker, scaler, learned, dataset.feature_names, described, plan.ranker.kind)


@dataclass(frozen=True, eq=False)
class _Labels:
    """What is learned from, of a log or a part of it."""

    dataset: Dataset
    plan: Plan
    relevance: NDArray[np.float32] | None = None
    ground: Ground | None = None

    def of(self, log: ClickLog, correction: Correction) -> WholeFeedback:
        """Clicks, or what stands for them."""
        corrected = correction.labels(log)
        if corrected is not None:
            return CorrectedClicks(log, corrected)
        if self.relevance is not None:
            return EstimatedRelevance(log, self.relevance)
        return self.plan.way.feedback(log, self.dataset, self.plan.context, self.ground_of(log))

    def ground_of(self, log: ClickLog) -> NDArray[np.float32] | None:
        """What the lists stand on, if anything."""
        return None if self.ground is None else self.ground.under(log.lists, self.dataset)


def _go_on(start: Model, plan: Plan, ranker: Ranker, correction: Correction) -> str:
    """Give both pieces what a model has learned, and name that by a digest."""
    if plan.ranker.kind != start.kind:
        raise SettingsError(f"a {start.kind} model is no start for a {plan.ranker.kind} ranker")
    try:
        ranker.load_tensors(start.ranker.tensors())
    except (KeyError, ValueError) as error:
        raise SettingsError(f"the model is no start for this ranker: it {error}") from error
    if start.propensity is not None:
        correction.believe(start.propensity)
    digest = hashlib.sha256()
    for tensor in ranker.tensors().values():
        digest.update(tensor.numpy().data)
    return digest.hexdigest()


def fingerprint(log: ClickLog, dataset: Dataset, context: str | None = None) -> str:
    """A digest of what a model is trained on."""
    digest = hashlib.sha256()
    if context is not None:
        column = log.column(context)
        digest.update(repr(column.names).encode())
        digest.update(np.ascontiguousarray(column.codes).data)
    for array in (log.lists.documents, log.list_of, log.clicks, log.counts, dataset.offsets):
        digest.update(np.ascontiguousarray(array).data)
    digest.update(np.ascontiguousarray(dataset.features).data)
    return digest.hexdigest()


def check_source(source: ClickLog | Feedback, dataset: Dataset) -> None:
    """Refuse what nothing can be learned from."""
    if isinstance(source, ClickLog) and not source.clicks.any():
        raise DataError(
            f"none of the {source.sessions} sessions has a click: there is nothing to learn from"
        )
    if source.lists.documents.max() >= dataset.document_count:
        raise DataError("the log shows documents that this data set does not have")


def _identity(described: dict[str, Any]) -> dict[str, Any]:
    """What makes a run this run: all but where it is computed, by whom, and how it was read."""
    identity = {k: v for k, v in described.items() if k not in ("version", "reading")}
    settings = {k: v for k, v in described["settings"].items() if k != "device"}
    return {**identity, "settings": settings}


def _validation(
    plan: Plan,
    features: NDArray[np.float32],
    scaler: Scaler,
    held_out: ClickLog | None,
    labels: _Labels,
    correction: Correction,
) -> Validation | None:
    if isinstance(plan.validation, Dataset):
        scaled = scaler.transform(plan.validation.features)
        return OnGrades(scaled, plan.validation, plan.settings.metric)
    if held_out is None:
        return None
    if correction.is_likelihood or labels.relevance is not None:
        return OnLikelihood(features, labels.of(held_out, correction), correction)
    corrected = correction.labels(held_out)
    if corrected is not None:
        return OnHeldOutClicks(features, held_out, lambda: None, labels=corrected)
    limit = plan.settings.max_weight
    return OnHeldOutClicks(features, held_out, correction.propensity, limit)
