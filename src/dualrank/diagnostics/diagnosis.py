"""`diagnose`: is this log good enough, and for what?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from dualrank.clicks.models.counting import require_skips
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.log_parts import parts_and_dataset
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.whole_shards import BUDGET, ShardSample, sample_shards
from dualrank.diagnostics.agreement import curves
from dualrank.diagnostics.click_dependence import click_dependence
from dualrank.diagnostics.confounding import confounding
from dualrank.diagnostics.connectivity import connectivity
from dualrank.diagnostics.diagnosis_card import curves_of, diagnosis_card, draw_points
from dualrank.diagnostics.facts import LogFacts, Progress
from dualrank.diagnostics.joint_learning import joint_learning
from dualrank.diagnostics.leakage import leakage
from dualrank.diagnostics.logging_ranker import logging_ranker
from dualrank.diagnostics.point import Point, plain
from dualrank.diagnostics.sample import sample
from dualrank.diagnostics.stability import drift
from dualrank.diagnostics.telling_features import telling_features
from dualrank.diagnostics.traffic import traffic
from dualrank.diagnostics.trained_pair import TrainedPair
from dualrank.diagnostics.trust import trust
from dualrank.diagnostics.verdict import SWAPS, Verdict, judge
from dualrank.errors import DataError
from dualrank.propensity.curve_drawing import draw_side_by_side
from dualrank.sentences import listed
from dualrank.showing.axes import SIZE, axes_for, height_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS: tuple[Callable[[LogFacts], Point], ...] = (
    connectivity,
    curves,
    telling_features,
    logging_ranker,
    leakage,
    joint_learning,
    confounding,
    click_dependence,
    trust,
    sample,
    drift,
    traffic,
)
ADDED_UP = "connectivity, independent clicks, sample and traffic"
"""The points that are sums over all shards."""
# Training takes as long as this many other points.
TRAINING = 30


@dataclass(frozen=True)
class Diagnosis:
    """Every point, and the verdict that they lead to."""

    verdict: Verdict
    reasons: tuple[str, ...]
    points: tuple[Point, ...]
    looked_at: str | None = None
    """Of a log in shards that does not fit into memory, how much of it which points saw."""

    def __repr__(self) -> str:
        failed = f", failed: {listed(self.failed)}" if self.failed else ""
        return f"Diagnosis({self.verdict}, {len(self.points)} points{failed})"

    def _repr_html_(self) -> str:
        """A card for notebooks: the verdict, why, and what was found of every point."""
        return diagnosis_card(self)

    def plot(self, ax: Axes | None = None, what: Literal["points", "curves"] = "points") -> Axes:
        """Draw how every point came out, or the examination `curves` that the log allows.

        Curves have 95% intervals, and raw click-through beside them. Needs matplotlib.

        >>> from matplotlib.figure import Figure
        >>> point = Point("traffic", "good", {}, "No client stands out.")
        >>> ax = Diagnosis("fit for joint learning", (), (point,)).plot(Figure().subplots())
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['traffic']
        """
        if what == "points":
            ax = axes_for(ax, height=height_of_rows(len(self.points)))
            draw_points(ax, self)
            return ax
        curves = curves_of(self)
        if not curves:
            raise DataError("the log allows no curve: " + self["curves"].meaning)
        ax = axes_for(ax, height=1.25 * SIZE[1])
        draw_side_by_side(ax, curves)
        return ax

    def __getitem__(self, name: str) -> Point:
        """A point by its name."""
        return next(point for point in self.points if point.name == name)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the points that failed."""
        return tuple(point.name for point in self.points if point.status == "failed")

    @property
    def is_fit(self) -> bool:
        """Whether nothing failed, and some correction is supported."""
        return not self.failed and self.verdict != SWAPS

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON, which has neither nan nor infinity."""
        values: dict[str, Any] = plain(asdict(self))
        return values

    def to_json(self) -> str:
        """The text of `diagnosis.json`."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def diagnose(
    log: ClickLog | ShardedLog | Any,
    dataset: Dataset | Any | None = None,
    *,
    trained: TrainedPair | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    budget: int = BUDGET,
    sampled_of: int | None = None,
) -> Diagnosis:
    """Ask every question of a log; with the features of its documents, also those about learning.

    Both may be files or data frames.
    A log in shards has its features beside it. Points that add up count all of it, shard by shard;
    the others look at as many whole shards as fit into `budget` bytes, which are a random sample of
    the queries, and `looked_at` of the result says at how many. A log that is such a sample itself
    is `sampled_of` so many sessions.
    These compare two rankers: those that were `trained` on the log already, or else two small ones
    that are trained for the purpose. `progress` hears what is done and how much there is.
    """
    parts, dataset = parts_and_dataset(log, dataset)
    if parts.depth < 2:
        raise DataError("the lists show one position only; there is no position bias to correct")
    require_skips(parts)
    some = None if parts.sharded is None else sample_shards(parts.sharded, budget)
    log, dataset = (parts.read(), dataset) if some is None else (some.log, some.dataset)
    if dataset is not None and log.lists.documents.max() >= dataset.document_count:
        raise DataError(
            f"the log shows document {log.lists.documents.max()}, but there are features of "
            f"{dataset.document_count}; give the data set with which the log was read"
        )
    if dataset is not None:
        dataset = dataset.filled()
    trains = dataset is not None and trained is None
    total = len(POINTS) + (TRAINING if trains else 0)
    done = 0

    def training(step: int, steps: int) -> None:
        nonlocal done
        if progress and step == steps:
            done += TRAINING
        elif progress:
            progress(done + TRAINING * step // steps, total)

    sampled = some is not None and not some.is_whole
    whole = parts if sampled else None
    facts = LogFacts(log, dataset, seed, training, trained, whole, sampled_of)
    points = []
    for ask in POINTS:
        points.append(ask(facts))
        done += 1
        if progress:
            progress(done, total)
    judgement = judge({point.name: point for point in points}, facts.plan_swaps)
    looked_at = None
    if some is not None and not some.is_whole:
        looked_at = _looked_at(some)
    elif sampled_of is not None:
        looked_at = (
            f"Looked at {log.sessions:,} of {sampled_of:,} sessions, those of a random sample of "
            "the queries; `dualrank diagnose` counts all of them."
        )
    return Diagnosis(judgement.verdict, judgement.reasons, tuple(points), looked_at)


def _looked_at(some: ShardSample) -> str:
    found = f"{some.sentence[0].upper()}{some.sentence[1:]}"
    return (
        f"{found}, a random sample of the queries; {ADDED_UP}, and the raw and harvested curves, "
        "count all of them."
    )
