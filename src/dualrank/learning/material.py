"""What a training learns from: a source, wherever it lies, and the labels that are made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.corrections.correction import Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.learning.event_values import values_by_list
from dualrank.learning.feedback import (
    CorrectedClicks,
    EstimatedRelevance,
    Feedback,
    ValuedClicks,
    WholeFeedback,
)
from dualrank.learning.logging_scores import Ground
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.sharded.mapped_feedback import require_drawn
from dualrank.learning.sharded.sharded_source import ShardedSource
from dualrank.learning.validation import OnGrades, OnHeldOutClicks, OnLikelihood, Validation
from dualrank.learning.whole_source import LabelSource, WholeSource, check_source

Logged = WholeSource | ShardedSource
"""A log, wherever it lies."""
Source = LabelSource | Logged


def source_of(
    given: ClickLog | Feedback | ShardedLog | Source, dataset: Dataset | None, plan: Plan
) -> Source:
    """What a plan trains on, checked; a source is one already."""
    if isinstance(given, Source):
        return given
    if isinstance(given, ShardedLog):
        require_drawn(plan)
        return ShardedSource.of(given, plan.held_out, plan.settings.seed)
    assert dataset is not None
    if isinstance(given, ClickLog):
        return WholeSource.of(given, dataset, plan)
    check_source(given, dataset)
    return LabelSource(given, dataset)


@dataclass(frozen=True, eq=False)
class Material:
    """The labels of one training.

    `relevance` stands in the place of clicks where a method extracts it, and lists stand on the
    `ground`.
    """

    source: Source
    plan: Plan
    relevance: NDArray[np.float32] | None = None
    ground: Ground | None = None

    @classmethod
    def of(cls, source: Source, plan: Plan, ground: Model | None) -> Material:
        """Take from a source what a plan learns from."""
        relevance = None
        if plan.way.extract is not None and isinstance(source, WholeSource):
            log, relevance = plan.way.extract(source.log, plan)
            source = WholeSource.of(log, source.dataset, plan)
        some = source.sample
        below = None if ground is None else Ground.of(ground, some.lists, some.dataset)
        return cls(source, plan, relevance, below)

    def feedback(self, correction: Correction, scaler: Scaler) -> Feedback:
        """What the loop draws from; of shards, with features that are scaled as they come."""
        return self.source.feedback(self, correction, scaler)

    def validation(
        self, features: NDArray[np.float32], scaler: Scaler, correction: Correction
    ) -> Validation | None:
        """What keeps the best ranker: judged queries, or clicks that were held out."""
        judged, settings = self.plan.validation, self.plan.settings
        held_out = self.source.sample.held_out
        if isinstance(judged, Dataset):
            return OnGrades(scaler.transform(judged.features), judged, settings.metric)
        if held_out is None:
            return None
        if correction.is_likelihood or self.relevance is not None:
            return OnLikelihood(features, self.labels(held_out, correction), correction)
        corrected = correction.labels(held_out)
        if self.plan.events is not None:
            sessions = np.maximum(held_out.sessions_per_list, 1)[:, None]
            values = values_by_list(held_out, self.plan.events) / sessions
            believed, limit = correction.propensity, settings.max_weight
            return OnHeldOutClicks(features, held_out, believed, limit, values)
        if corrected is not None:
            return OnHeldOutClicks(features, held_out, lambda: None, labels=corrected)
        return OnHeldOutClicks(features, held_out, correction.propensity, settings.max_weight)

    def under(self, log: ClickLog | None) -> NDArray[np.float32] | None:
        """What the lists of a log stand on, if anything."""
        if self.ground is None or log is None:
            return None
        return self.ground.under(log.lists, self.source.sample.dataset)

    def labels(self, log: ClickLog, correction: Correction) -> WholeFeedback:
        """Clicks, or what stands for them."""
        if self.plan.events is not None:
            return ValuedClicks(log, self.plan.events, self.plan.context)
        corrected = correction.labels(log)
        if corrected is not None:
            return CorrectedClicks(log, corrected)
        if self.relevance is not None:
            return EstimatedRelevance(log, self.relevance)
        dataset, context = self.source.sample.dataset, self.plan.context
        return self.plan.way.feedback(log, dataset, context, self.under(log))
