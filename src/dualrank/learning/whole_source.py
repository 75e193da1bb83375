"""What is trained on, where it is in memory: a log, or labels that somebody makes.

`ShardedSource` has the same surface for a log in shards. Who trains asks a source, and need not
know where it lies.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dualrank.clicks.models.counting import require_countable, require_skips
from dualrank.corrections.correction import Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError
from dualrank.evaluation.click_check import hold_out
from dualrank.learning.feedback import Feedback, require_clicks
from dualrank.learning.model import require_values
from dualrank.learning.plan import Plan

if TYPE_CHECKING:
    from dualrank.learning.material import Material


class _InMemory:
    """Documents that are all in memory."""

    dataset: Dataset

    @property
    def sample(self) -> Self:
        """What is looked at: all of it."""
        return self

    def require_values(self, ranker: str, scaling: str) -> None:
        """Refuse missing values, for a ranker of a kind that needs all."""
        require_values(self.dataset.features, self.dataset.feature_names, ranker)

    def scaler(self, kind: str) -> Scaler:
        """The scaling of all documents."""
        return Scaler.fit(self.dataset.features, kind=kind)

    def sessions_by(self, context: str) -> None:
        """Nothing that `rest` does not tell."""


@dataclass(frozen=True, eq=False)
class LabelSource(_InMemory):
    """Labels of lists over the documents of `dataset`; there is no log to hold something out of."""

    labels: Feedback
    dataset: Dataset
    rest: ClassVar[None] = None
    held_out: ClassVar[None] = None
    sessions: ClassVar[int] = 0

    @property
    def lists(self) -> RankedLists:
        """All that can be drawn."""
        return self.labels.lists

    def describe(self, context: str | None) -> dict[str, Any]:
        """Nothing that a manifest could hold."""
        return {}

    def feedback(self, material: Material, correction: Correction, scaler: Scaler) -> Feedback:
        """The labels."""
        return self.labels


@dataclass(frozen=True, eq=False)
class WholeSource(_InMemory):
    """A log whose lists point to the documents of `dataset`; `held_out` is not trained on."""

    log: ClickLog
    dataset: Dataset
    rest: ClickLog
    held_out: ClickLog | None

    @classmethod
    def of(cls, log: ClickLog, dataset: Dataset, plan: Plan) -> WholeSource:
        """Refuse what a plan can learn nothing from, and hold out what it says."""
        check_source(log, dataset)
        if not plan.ranker.makes.takes_missing:
            require_values(dataset.features, dataset.feature_names, plan.ranker.kind)
        return cls(log, dataset, *hold_out(log, plan.held_out, plan.settings.seed))

    @property
    def lists(self) -> RankedLists:
        """All lists of the log."""
        return self.log.lists

    @property
    def sessions(self) -> int:
        """How many are trained on."""
        return self.rest.sessions

    @property
    def clicks(self) -> int:
        """How many are learned from."""
        return int(self.rest.clicks_per_list.sum())

    def describe(self, context: str | None) -> dict[str, Any]:
        """Plain values for the manifest: which data these are, and how they were read."""
        reading = None if self.log.reading is None else self.log.reading.to_dict()
        return {"data": fingerprint(self.log, self.dataset, context), "reading": reading}

    def feedback(self, material: Material, correction: Correction, scaler: Scaler) -> Feedback:
        """Labels of all lists that are trained on, made beforehand."""
        return material.labels(self.rest, correction)


def check_source(source: ClickLog | Feedback, dataset: Dataset) -> None:
    """Refuse what nothing can be learned from."""
    if isinstance(source, ClickLog):
        require_countable(source)
        require_skips(source)
        require_clicks(int(source.clicks.sum()), source.sessions)
    if source.lists.documents.max() >= dataset.document_count:
        raise DataError("the log shows documents that this data set does not have")


def fingerprint(log: ClickLog, dataset: Dataset, context: str | None = None) -> str:
    """A digest of what a model is trained on."""
    digest = hashlib.sha256()
    if context is not None:
        column = log.column(context)
        digest.update(repr(column.names).encode())
        digest.update(np.ascontiguousarray(column.codes).data)
    for array in (log.lists.documents, log.list_of, log.clicks, log.counts, dataset.offsets):
        digest.update(np.ascontiguousarray(array).data)
    for kind, amounts in log.events.items():
        digest.update(kind.encode())
        digest.update(np.ascontiguousarray(amounts).data)
    digest.update(np.ascontiguousarray(dataset.features).data)
    return digest.hexdigest()
