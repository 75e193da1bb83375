"""A log under study: what several points need, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.diagnostics.trained_pair import Twins, train_twins
from dualrank.errors import DataError
from dualrank.propensity.bootstrap import with_intervals
from dualrank.propensity.click_through import click_through
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest
from dualrank.propensity.propensity import Propensity

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Study:
    """A log, the features of its documents where there are any, and what is derived from both."""

    log: ClickLog
    dataset: Dataset | None = None
    seed: int = 0
    progress: Progress | None = None
    """Told about the training of rankers, which is what takes time."""

    @cached_property
    def grouped(self) -> GroupedClicks:
        """The log cut into groups of queries (or sessions) that can be resampled."""
        return GroupedClicks.of(self.log, seed=self.seed)

    @cached_property
    def raw(self) -> Propensity | str:
        """Click-through by position, or why there is no such curve."""
        return self._curve(lambda: with_intervals(click_through(self.grouped), self.grouped))

    @cached_property
    def harvested(self) -> Propensity | str:
        """Examination from documents that were seen at several positions, or why there is none."""
        return self._curve(lambda: with_intervals(harvest(self.grouped), self.grouped))

    @cached_property
    def twins(self) -> Twins | str:
        """A naive ranker and one with dual learning, or why there are none."""
        if self.dataset is None:
            return "no features were given"
        try:
            return train_twins(self.log, self.dataset, self.seed, self.progress)
        except DataError as error:
            return str(error)

    @cached_property
    def learned(self) -> Propensity | str:
        """Examination as dual learning sees it, or why there is none."""
        if isinstance(self.twins, str):
            return self.twins
        twins = self.twins
        return self._curve(lambda: with_intervals(twins.examination(self.grouped), self.grouped))

    @cached_property
    def believed(self) -> Propensity | None:
        """The best curve that reaches the last position: harvested, learned, or raw."""
        for curve in (self.harvested, self.learned, self.raw):
            if isinstance(curve, Propensity) and curve.depth == self.log.lists.depth:
                return curve
        return None

    @staticmethod
    def _curve(estimate: Callable[[], Propensity]) -> Propensity | str:
        try:
            return estimate()
        except DataError as error:
            return str(error)
