"""What several points need to know of a log, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dualrank.certainty import ALARM, alarm_errors
from dualrank.clicks.dependence import Dependence
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.log_parts import LogParts
from dualrank.diagnostics.feature_worth import FeatureWorth, feature_worth
from dualrank.diagnostics.trained_pair import TrainedPair, train_pair
from dualrank.errors import DataError
from dualrank.propensity.estimators import Estimator, estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.grouped_parts import Grouped, grouped_clicks
from dualrank.propensity.propensity import Propensity
from dualrank.propensity.swap_plan import SwapPlan
from dualrank.propensity.swap_planning import plan_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class LogFacts:
    """A log, the features of its documents where there are any, and what is derived from both.

    `given` are rankers that were trained on it already; without them two small ones are trained,
    and `progress` hears of it. Where `log` is what fits into memory of a log in shards, `whole` is
    all of it, of which sums are taken one shard after the other; where only a sample of the queries
    is at hand, it is `sampled_of` so many sessions.
    """

    log: ClickLog
    dataset: Dataset | None = None
    seed: int = 0
    progress: Progress | None = None
    given: TrainedPair | None = None
    whole: LogParts | None = None
    sampled_of: int | None = None

    @cached_property
    def parts(self) -> LogParts:
        """All sessions there are, for sums that add up."""
        return LogParts.of(self.log) if self.whole is None else self.whole

    @property
    def sessions(self) -> int:
        """How many there are in all, whether they can be looked at or not."""
        return self.parts.sessions if self.sampled_of is None else self.sampled_of

    @cached_property
    def counted(self) -> Grouped:
        """All sessions there are, cut into groups that can be resampled, for sums that add up."""
        return self.grouped if self.whole is None else grouped_clicks(self.whole, seed=self.seed)

    @cached_property
    def grouped(self) -> GroupedClicks:
        """The log in memory cut into groups of queries (or sessions) that can be resampled."""
        return GroupedClicks.of(self.log, seed=self.seed)

    @cached_property
    def compares(self) -> bool:
        """Whether any list shows two documents, of which one could be preferred."""
        return bool((self.log.lists.mask.sum(axis=1) > 1).any())

    @cached_property
    def dependence(self) -> Dependence:
        """Whether the clicks of a session depend on each other."""
        return Dependence.of(self.parts)

    @cached_property
    def raw(self) -> Propensity | str:
        """Click-through by position, or why there is no such curve."""
        return _curve(self.counted, "click-through")

    @cached_property
    def harvested(self) -> Propensity | str:
        """Examination from documents that were seen at several positions, or why there is none."""
        return _curve(self.counted, "harvest-all-pairs")

    @cached_property
    def trained(self) -> TrainedPair | str:
        """A naive ranker and one with dual learning, or why there are none to compare."""
        pair = self.given
        try:
            if pair is None:
                if self.dataset is None:
                    return "no features were given"
                pair = train_pair(self.log, self.dataset, self.seed, self.progress)
            _ = pair.lead
        except DataError as error:
            return str(error)
        return pair

    @cached_property
    def worth(self) -> FeatureWorth | None:
        """What single features say about clicks, where there are any that can be tested."""
        return None if self.dataset is None else feature_worth(self.log, self.dataset)

    @cached_property
    def features_tell(self) -> bool:
        """Whether some feature, or a ranker of all, tells which documents are clicked."""
        if self.worth is not None and self.worth.p_value < ALARM:
            return True
        # Two rankers were tried.
        pair = self.trained
        return not isinstance(pair, str) and pair.beyond_position.in_errors > alarm_errors(2)

    @cached_property
    def learned(self) -> Propensity | str:
        """Examination as dual learning sees it, or why there is none."""
        if isinstance(self.trained, str):
            return self.trained
        return _curve(self.grouped, self.trained.examination)

    @cached_property
    def believed(self) -> Propensity | None:
        """The best curve that reaches the last position: harvested, learned, or raw."""
        for curve in (self.harvested, self.learned, self.raw):
            if isinstance(curve, Propensity) and curve.depth == self.log.lists.depth:
                return curve
        return None

    def plan_swaps(self) -> SwapPlan | None:
        """How swaps would tell the curve; nothing where the log has too few clicks to plan them."""
        harvested, times = self.harvested, self.sessions / self.log.sessions
        if self.whole is not None:
            # Intervals of all shards say nothing of how queries differ in some of them.
            harvested = _curve(self.grouped, "harvest-all-pairs")
        try:
            return plan_of(self.log, self.grouped, harvested, times=times)
        except DataError:
            return None


def _curve(grouped: Grouped, method: str | Estimator) -> Propensity | str:
    try:
        return estimate(grouped, method)
    except DataError as error:
        return str(error)
