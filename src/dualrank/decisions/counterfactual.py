"""What a new ranking would have earned on the logged queries: all that was found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dualrank.decisions.curve_checks import Contradiction
from dualrank.decisions.estimate_rows import By, counterfactual_card, draw_differences, rows_by
from dualrank.decisions.estimates_of_value import DOUBLY_ROBUST
from dualrank.decisions.moves import Move
from dualrank.decisions.support import Support
from dualrank.diagnostics.point import plain
from dualrank.errors import DataError
from dualrank.propensity.propensity import Propensity
from dualrank.showing.interval_rows import axes_of_rows
from dualrank.showing.visible import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.decisions.verdict_of_estimate import Verdict


@dataclass(frozen=True)
class Estimate:
    """What both rankings earn per session by one estimator, and the difference with its interval.

    `part` names the sessions that are meant, where they are not all.
    """

    metric: str
    estimator: str
    new: float
    old: float
    difference: float
    low: float
    high: float
    part: str = ""

    @property
    def sign(self) -> int:
        """1 where the new ranking is surely better, −1 where it is surely worse, else 0."""
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """What a new ranking would have earned against another one, on the queries of a log.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> curve = dr.Propensity(dr.PositionBasedUser().examination(10), method="known")
    >>> best = data.train.grades  # scores of a ranker that knows what is relevant
    >>> answer = dr.estimate(log, best, data.train, propensity=curve, resamples=100)
    >>> answer.new, answer.old, answer.queries
    ('the new ranking', 'logged', 600)
    >>> answer.estimates[0].low > 0  # surely better than what was displayed
    True
    """

    new: str
    old: str
    estimates: tuple[Estimate, ...]
    support: Support
    """Of the new ranking."""
    support_of_old: Support
    refused: dict[str, str]
    """Estimators that the log does not allow, and why."""
    curve: Propensity
    curve_source: str
    curve_is_counted: bool
    """Whether the intervals hold what is not known of the curve."""
    contradicted: tuple[Contradiction, ...]
    otherwise: dict[str, float]
    """The difference in clicks, had examination fallen off half, or one and a half times, as fast
    (the curve to the power of 0.5 and 1.5)."""
    mended: float
    """ω: how far clicks had to mend the model of relevance."""
    disagreement: float
    """By how many standard errors the model and inverse propensity differ."""
    moves: tuple[Move, ...]
    sessions: int
    queries: int
    clicks_depend: bool
    """Whether users read from the top and stop after a click, so that no curve explains them."""
    events: dict[str, float] | None = None
    """What kinds of events count for, where more than clicks do."""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        verdict = self.verdict
        return f"Counterfactual({verdict.decision}: {one_line(verdict.sentences[0], 200)})"

    def _repr_html_(self) -> str:
        """A card for notebooks: the verdict, and the difference by estimator, metric and part."""
        return counterfactual_card(self, tuple(self.verdict.sentences))

    def plot(self, ax: Axes | None = None, by: By = "estimator") -> Axes:
        """Draw the differences with their intervals against zero.

        `by` the estimators of clicks, every "metric", or every "part" of the traffic. What the log
        does not allow stands as refused. Needs matplotlib.
        """
        rows = rows_by(self, by)
        if not any(each is not None for _, each in rows):
            raise DataError(f"there is no estimate by {by} to draw")
        ax = axes_of_rows(ax, len(rows))
        draw_differences(ax, self, by)
        return ax

    @property
    def verdict(self) -> Verdict:
        """Whether the new ranking is better, and why, in sentences."""
        from dualrank.decisions.verdict_of_estimate import verdict_of

        return verdict_of(self)

    @property
    def least_support(self) -> Support:
        """Of the ranking that the log knows less of: a difference is as sure as that one."""
        return min(self.support, self.support_of_old, key=lambda each: each.examined)

    @property
    def unit(self) -> str:
        """What a ranking earns in a session."""
        return "clicks" if self.events is None else "value"

    def __getitem__(self, which: str | tuple[str, str]) -> Estimate:
        """The estimate of a metric by an estimator, or by the doubly robust one."""
        metric, estimator = (which, DOUBLY_ROBUST) if isinstance(which, str) else which
        for each in self.estimates:
            if (each.metric, each.estimator, each.part) == (metric, estimator, ""):
                return each
        raise KeyError(which)

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """The main estimate for parts of the sessions."""
        return tuple(each for each in self.estimates if each.part)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON, the verdict first."""
        verdict = self.verdict
        values: dict[str, Any] = plain(
            {
                "verdict": verdict.decision,
                "sentences": verdict.sentences,
                **{name: value for name, value in vars(self).items() if name != "curve"},
                "estimates": [asdict(each) for each in self.estimates],
                "support": asdict(self.support),
                "support_of_old": asdict(self.support_of_old),
                "contradicted": [asdict(each) for each in self.contradicted],
                "moves": [asdict(each) for each in self.moves],
                "curve": json.loads(self.curve.to_json()),
            }
        )
        return values

    def to_json(self) -> str:
        """The text of `estimate.json`."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
