"""Which click model predicts clicks best: all fitted on one part of a log, judged on another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dualrank.clicks.models.click_model import ClickModel, Perplexity
from dualrank.clicks.models.comparison_card import comparison_card, draw_scores
from dualrank.clicks.models.comparison_verdict import comparison_verdict
from dualrank.clicks.models.counting import Floats
from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.kept_counts import MOST_BYTES, KeptCounts
from dualrank.clicks.models.registry import MODELS, click_model
from dualrank.data.click_log import ClickLog
from dualrank.data.log_parts import LogPart, LogParts
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import listed
from dualrank.showing.interval_rows import axes_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_QUERIES = 20
HELD_OUT = 0.25
"""The share of sessions to judge by, where no other is asked for."""


@dataclass(frozen=True)
class Score:
    """How well a model predicts held-out sessions.

    `log_likelihood` is natural and per session. `perplexity` is of clicks that are predicted before
    the session begins, `perplexity_given_clicks` of those predicted from the clicks above; a rank
    that was not shown has None. `behind` is how far its log-likelihood is below that of the best
    model, and `behind_error` the standard error of that difference, over queries (over sessions
    where there are fewer than `FEWEST_QUERIES`). `shared` are the parameters of all documents.
    """

    model: str
    title: str
    log_likelihood: float
    perplexity: float
    perplexity_per_rank: tuple[float | None, ...]
    perplexity_given_clicks: float
    perplexity_given_clicks_per_rank: tuple[float | None, ...]
    iterations: int
    converged: bool
    seconds: float
    behind: float = 0.0
    behind_error: float = 0.0
    shared: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class ClickModelComparison(Sequence[Score]):
    """The scores of click models that were fitted and judged on the same sessions.

    `fitted_on` and `judged_on` are how many sessions those were.
    """

    scores: tuple[Score, ...]
    fitted_on: int
    judged_on: int

    def __repr__(self) -> str:
        names = listed(score.model for score in self.ranked)
        return f"ClickModelComparison({names}, best first, on {self.judged_on} sessions)"

    def _repr_html_(self) -> str:
        """A card for notebooks: the verdict, and every model's scores, best first."""
        return comparison_card(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how far every model is behind the best in log-likelihood, with its interval.

        The intervals hold together, so that a model whose interval reaches zero is not clearly
        behind. A model far below the others is drawn at the edge. Needs matplotlib.
        """
        ax = axes_of_rows(ax, len(self))
        draw_scores(ax, self.ranked)
        return ax

    @overload
    def __getitem__(self, index: int) -> Score: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Score, ...]: ...
    def __getitem__(self, index: int | slice) -> Score | tuple[Score, ...]:
        """Scores in the order in which the models were asked for."""
        return self.scores[index]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def ranked(self) -> list[Score]:
        """The scores, best first."""
        return sorted(self.scores, key=lambda score: -score.log_likelihood)

    @property
    def verdict(self) -> list[str]:
        """Which model predicts best, how sure that is, and what to learn with; in sentences."""
        return comparison_verdict(self.scores)


def compare_models(
    train: ClickLog | LogParts,
    test: ClickLog | LogParts | float = HELD_OUT,
    models: Sequence[str | type[ClickModel]] = tuple(MODELS),
    *,
    prior: Prior | None = None,
    em: EM | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ClickModelComparison:
    """Fit every model on `train` and judge it on `test`.

    `test` may be another log, or the share of the sessions of `train` that is held out to judge by,
    drawn by `seed`.

    >>> from dualrank.clicks import PositionBasedUser, sample_log
    >>> from dualrank.data.dataset import Dataset
    >>> from dualrank.data.lists import RankedLists
    >>> data = Dataset.from_arrays([[0.0]] * 2, qid=[1, 1], grades=[1, 0])
    >>> lists = RankedLists(np.array([[0, 1], [1, 0]]), np.array([0, 0]))
    >>> log = sample_log(data, lists, PositionBasedUser(), 2_000)
    >>> compare_models(log, models=["random-ctr", "pbm"])
    ClickModelComparison(pbm, random-ctr, best first, on 496 sessions)
    """
    unfitted = [click_model(model, prior, em) for model in models]
    if isinstance(test, int | float):
        train, test = hold_out(train, test, seed)
    train, test = LogParts.of(train), LogParts.of(test)
    scores = []
    likelihoods = list[Sequence[_OfRows]]()
    for done, model in enumerate(unfitted):
        if progress:
            progress(done, len(unfitted))
        started = time.perf_counter()
        found = model.fit(train).outline
        seconds = time.perf_counter() - started
        likelihoods.append(
            KeptCounts(
                test,
                lambda part, model=model: _OfRows(model.log_likelihood_of_rows(test, part)),  # type: ignore[misc]
                most_bytes=MOST_BYTES // len(unfitted),
            )
        )
        before, given = model.perplexity(test), model.perplexity(test, given_clicks=True)
        scores.append(
            Score(
                model.name,
                model.title,
                model.log_likelihood(test) / test.sessions,
                before.overall,
                _values(before),
                given.overall,
                _values(given),
                found.climb.iterations,
                found.climb.converged,
                seconds,
                shared={name: v.tolist() for name, v in found.shared.items()},
            )
        )
    best = likelihoods[max(range(len(scores)), key=lambda i: scores[i].log_likelihood)]
    compared = (_mean_difference(best, each, test) for each in likelihoods)
    judged = (
        replace(score, behind=behind, behind_error=error)
        for score, (behind, error) in zip(scores, compared, strict=True)
    )
    return ClickModelComparison(tuple(judged), train.sessions, test.sessions)


@dataclass(frozen=True, eq=False)
class _OfRows:
    """A value for every row of a part."""

    values: Floats


def _mean_difference(
    best: Sequence[_OfRows], other: Sequence[_OfRows], log: LogParts
) -> tuple[float, float]:
    """The mean of a difference per session, and its standard error."""
    total = log.sessions
    mean = 0.0
    for one, two, part in zip(best, other, log, strict=True):
        mean += float(part.log.counts @ (one.values - two.values)) / total
    over_queries = over_sessions = 0.0
    queries = 0
    for one, two, part in zip(best, other, log, strict=True):
        clicked = part.log
        apart = one.values - two.values - mean
        names, query = np.unique(clicked.lists.queries[clicked.list_of], return_inverse=True)
        sums = np.bincount(query, clicked.counts * apart)
        over_queries += float(sums @ sums)
        over_sessions += float(clicked.counts @ apart**2)
        queries += len(names)
    if queries >= FEWEST_QUERIES:
        variance = over_queries * queries / (queries - 1)
    else:
        variance = over_sessions * total / max(total - 1, 1)
    return mean, float(np.sqrt(variance) / total)


def _values(perplexity: Perplexity) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(p) else float(p) for p in perplexity.per_rank)


def hold_out_value(log: ClickLog | LogParts, column: str, value: str) -> tuple[LogParts, LogParts]:
    """Split sessions by a column: those of other values to fit on, those of `value` to judge by."""
    parts = LogParts.of(log)
    names = parts.parts[0].log.column(column).names
    if value not in names or len(names) < 2:
        raise SettingsError(
            f"column {column!r} holds {', '.join(names)}; it must hold {value!r} and another value"
        )
    code = names.index(value)

    def rows(held: bool) -> Callable[[LogPart], ClickLog]:
        def chosen(part: LogPart) -> ClickLog:
            clicked = part.log
            return clicked.take_rows(np.flatnonzero((clicked.column(column).codes == code) == held))

        return chosen

    train, test = parts.changed(rows(False)), parts.changed(rows(True))
    if train.sessions == 0 or test.sessions == 0:
        who = "every" if train.sessions == 0 else "no"
        raise DataError(f"{who} session has {value!r} in the column {column!r}: nothing to compare")
    return train, test


def hold_out(log: ClickLog | LogParts, share: float, seed: int) -> tuple[LogParts, LogParts]:
    """Split sessions at random: those to fit on, and a share to judge by."""
    if not 0 < share < 1:
        raise SettingsError(f"the share of sessions held out is between 0 and 1, not {share}")

    def sessions(held: bool) -> Callable[[LogPart], ClickLog]:
        def drawn(part: LogPart) -> ClickLog:
            clicked = part.log
            rng = np.random.default_rng([seed, 0x_C0DE, part.number])
            counts = rng.binomial(clicked.counts, share)
            counts = counts if held else clicked.counts - counts
            rows = np.flatnonzero(counts)
            return replace(clicked.take_rows(rows), counts=counts[rows])

        return drawn

    parts = LogParts.of(log)
    train, test = parts.changed(sessions(False)), parts.changed(sessions(True))
    if train.sessions == 0 or test.sessions == 0:
        raise DataError(f"{parts.sessions} sessions are too few to hold some out")
    return train, test
