"""What a training learns from: the labels of a source, and the part of a log that is held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.corrections.correction import Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.evaluation.click_check import hold_out
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
from dualrank.learning.sharded.mapped_feedback import mapped_feedback
from dualrank.learning.sharded.sharded_source import ShardedSource
from dualrank.learning.validation import OnGrades, OnHeldOutClicks, OnLikelihood, Validation


def split(source: ClickLog | ShardedSource, plan: Plan) -> tuple[ClickLog, ClickLog | None]:
    """What is trained on and what is held out, in memory: of shards, as far as it was sampled."""
    if isinstance(source, ShardedSource):
        return source.sample.rest, source.sample.held_out
    return hold_out(source, plan.held_out, plan.settings.seed)


def looked_at(source: ClickLog | ShardedSource) -> ClickLog:
    """What is known of a log in memory: all of it, or a sample of its shards."""
    return source.sample.log if isinstance(source, ShardedSource) else source


@dataclass(frozen=True, eq=False)
class Material:
    """The labels of one training.

    `log` is the part of a click log that is learned from; there is none where the `source` makes
    labels itself. `relevance` stands in the place of clicks where a method extracts it, and lists
    stand on the `ground`. Of `shards`, which are drawn from, `log` and `held_out` are a sample.
    """

    source: Feedback | None
    dataset: Dataset
    plan: Plan
    log: ClickLog | None = None
    held_out: ClickLog | None = None
    relevance: NDArray[np.float32] | None = None
    ground: Ground | None = None
    shards: ShardedSource | None = None

    @classmethod
    def of(
        cls,
        source: ClickLog | Feedback | ShardedSource,
        dataset: Dataset,
        plan: Plan,
        ground: Model | None,
    ) -> Material:
        """Take a source apart as a plan says."""
        if isinstance(source, ShardedSource):
            below = None if ground is None else Ground.of(ground, source.lists, dataset)
            rest, held_out = split(source, plan)
            return cls(None, dataset, plan, rest, held_out, None, below, source)
        if not isinstance(source, ClickLog):
            return cls(source, dataset, plan)
        log, relevance = source, None
        if plan.way.extract is not None:
            log, relevance = plan.way.extract(log, plan)
        below = None if ground is None else Ground.of(ground, log.lists, dataset)
        rest, held_out = split(log, plan)
        return cls(None, dataset, plan, rest, held_out, relevance, below)

    def feedback(self, correction: Correction, scaler: Scaler) -> Feedback:
        """What the loop draws from; of shards, with features that are scaled as they come."""
        if self.shards is not None:
            return mapped_feedback(self.shards, self.plan, correction, scaler, self.ground)
        if self.log is not None:
            return self._labels(self.log, correction)
        assert self.source is not None
        return self.source

    def validation(
        self, features: NDArray[np.float32], scaler: Scaler, correction: Correction
    ) -> Validation | None:
        """What keeps the best ranker: judged queries, or clicks that were held out."""
        judged, settings = self.plan.validation, self.plan.settings
        if isinstance(judged, Dataset):
            return OnGrades(scaler.transform(judged.features), judged, settings.metric)
        if self.held_out is None:
            return None
        if correction.is_likelihood or self.relevance is not None:
            return OnLikelihood(features, self._labels(self.held_out, correction), correction)
        corrected = correction.labels(self.held_out)
        if self.plan.events is not None:
            sessions = np.maximum(self.held_out.sessions_per_list, 1)[:, None]
            values = values_by_list(self.held_out, self.plan.events) / sessions
            believed, limit = correction.propensity, settings.max_weight
            return OnHeldOutClicks(features, self.held_out, believed, limit, values)
        if corrected is not None:
            return OnHeldOutClicks(features, self.held_out, lambda: None, labels=corrected)
        return OnHeldOutClicks(features, self.held_out, correction.propensity, settings.max_weight)

    def under(self, log: ClickLog | None) -> NDArray[np.float32] | None:
        """What the lists of a log stand on, if anything."""
        if self.ground is None or log is None:
            return None
        return self.ground.under(log.lists, self.dataset)

    def _labels(self, log: ClickLog, correction: Correction) -> WholeFeedback:
        """Clicks, or what stands for them."""
        if self.plan.events is not None:
            return ValuedClicks(log, self.plan.events, self.plan.context)
        corrected = correction.labels(log)
        if corrected is not None:
            return CorrectedClicks(log, corrected)
        if self.relevance is not None:
            return EstimatedRelevance(log, self.relevance)
        return self.plan.way.feedback(log, self.dataset, self.plan.context, self.under(log))
