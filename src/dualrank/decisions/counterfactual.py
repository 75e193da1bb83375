"""`estimate`: what a new ranker would have earned on the logged queries, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import LEVEL
from dualrank.clicks.models.counting import require_countable, require_skips
from dualrank.corrections.click_regression import regress_clicks
from dualrank.corrections.correction import curves_by_context
from dualrank.data.click_log import PERIOD, ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.inputs import log_and_dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log.log_options import CLICK
from dualrank.decisions.click_metrics import CLICKS, LINEAR, METRICS
from dualrank.decisions.curve_checks import Contradiction, contradictions
from dualrank.decisions.curve_choice import Curve, choose_curve
from dualrank.decisions.estimates_of_value import (
    AFFINE,
    DIRECT,
    DOUBLY_ROBUST,
    IPS,
    Robust,
    Values,
    doubly_robust,
)
from dualrank.decisions.given_rankings import LOGGED, Given, scores_of, unseen_queries
from dualrank.decisions.group_sums import Target
from dualrank.decisions.judging import Judged, Judging, renumbered
from dualrank.decisions.logged_pairs import PositionEffect, Traffic
from dualrank.decisions.moves import Move, largest_moves
from dualrank.decisions.rankings import Ranking
from dualrank.decisions.support import Support
from dualrank.diagnostics.point import plain
from dualrank.diagnostics.trust_by_features import slope_along_the_list
from dualrank.errors import DataError, SettingsError
from dualrank.learning.event_values import event_weights
from dualrank.propensity.propensity import Propensity

RESAMPLES = 1_000
FEWEST_QUERIES = 10
MOST_PARTS = 12
NEEDS_DISPLAY = (IPS, "self-normalised", "clipped", AFFINE)
STEP = 0.02
"""How far a logarithm of the curve is moved to see what hangs on it."""

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


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
    """What a new ranking would have earned against another one, on the queries of a log."""

    new: str
    old: str
    estimates: tuple[Estimate, ...]
    support: Support
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
    notes: tuple[str, ...] = ()

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
        from dualrank.decisions.verdict_of_estimate import verdict_of

        verdict = verdict_of(self)
        values: dict[str, Any] = plain(
            {
                "verdict": verdict.decision,
                "sentences": verdict.sentences,
                **{name: value for name, value in vars(self).items() if name != "curve"},
                "estimates": [asdict(each) for each in self.estimates],
                "support": asdict(self.support),
                "contradicted": [asdict(each) for each in self.contradicted],
                "moves": [asdict(each) for each in self.moves],
                "curve": json.loads(self.curve.to_json()),
            }
        )
        return values

    def to_json(self) -> str:
        """The text of `estimate.json`."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def estimate(
    log: ClickLog | Any,
    model: Any,
    features: Dataset | Any,
    *,
    against: Any = LOGGED,
    propensity: Propensity | str | Path | None = None,
    events: Mapping[str, float] | None = None,
    only_displayed: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Counterfactual:
    """What `model` would have earned on the queries of a log, compared with what `against` would.

    Both are models, their directories, run files of any engine, or scores of all documents;
    `against` may be "logged": what the log displayed. `propensity` is a curve, a file of one,
    "harvested" from documents that the log shows at several positions, or "dla", the one that the
    model learned (or that is learned for the purpose); without it the log decides. `events` weigh
    kinds of events beside clicks. With `only_displayed` a ranking orders those documents alone that
    the log displayed for the query, as a re-ranker does.

    Intervals are over queries. See `decisions.estimates_of_value` for the estimators.
    """
    weights = event_weights(events)
    if resamples < 2:
        raise SettingsError(f"resamples={resamples}: an interval needs two or more")
    log, dataset = log_and_dataset(log, features)
    assert dataset is not None
    _check(log, dataset)
    new = scores_of(model, dataset, "the new ranking")
    if new.scores is None:
        raise SettingsError("the new ranking is what was logged: there is nothing to estimate")
    old = scores_of(against, dataset, "the old ranking")
    if new.name == old.name:
        old = replace(old, name=f"{old.name} (old)")
    log, notes = unseen_queries(log, dataset, (new, old))
    log = log.take_lists(np.flatnonzero(log.sessions_per_list))
    _check_queries(log)
    curve = choose_curve(propensity, log, dataset, new.model, seed, progress)
    work = _Work(log, dataset, new, old, curve, weights, only_displayed, seed, tuple(notes))
    return work.result(resamples, progress)


def _check(log: ClickLog, dataset: Dataset) -> None:
    require_countable(log)
    require_skips(log)
    if log.lists.documents.max(initial=-1) >= dataset.document_count:
        raise DataError(
            f"the log shows documents that {dataset.source} does not have; give the features of "
            "all that was displayed"
        )
    if not log.clicks.any():
        raise DataError(f"none of the {log.sessions} sessions has a click: nothing can be told")


def _check_queries(log: ClickLog) -> None:
    queries = len(np.unique(log.lists.queries[log.list_of]))
    if queries < FEWEST_QUERIES:
        raise DataError(
            f"there are clicks on {queries} queries to judge by; intervals over queries need "
            f"{FEWEST_QUERIES} at least"
        )


@dataclass(frozen=True, eq=False)
class _Work:
    log: ClickLog
    dataset: Dataset
    new: Given
    old: Given
    curve: Curve
    events: dict[str, float] | None
    only_displayed: bool
    seed: int
    notes: tuple[str, ...]

    def result(self, resamples: int, progress: Progress | None) -> Counterfactual:
        log, notes = self._to_depth()
        context = self.curve.propensity.context
        if context is not None and context not in log.columns:
            raise DataError(
                f"the curve differs by {context}, which the log does not have; read the log with "
                f"contexts=[{context!r}]"
            )
        names = None if context is None else log.column(context).names
        curves = curves_by_context(self.curve.propensity, log.lists.depth, names)
        effect = PositionEffect.of_curves(curves)
        judging, kept = self._judging(log, context)
        groups = judging.setting.groups.count
        rng = np.random.default_rng([self.seed, 0x_B007])
        drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=resamples)
        draws = np.concatenate([np.ones((1, groups)), drawn])
        basis = judging.basis(effect)
        judged = judging.judge(effect, draws, basis)
        robust = [doubly_robust(each[DIRECT], each["filled"]) for each in judged.values]
        once = draws[:1]
        steps = self._steps(len(curves[0]))
        total = len(steps) + 4

        def done(step: int) -> None:
            if progress:
                progress(step, total)

        done(1)
        errors = {}
        for number, (k, _) in enumerate(steps):
            moved = curves.copy()
            moved[:, k] *= np.exp(STEP)
            there = judging.judge(PositionEffect.of_curves(moved), once, basis)
            errors[k] = (_gaps(there, robust) - _gaps(judged, robust)) / STEP
            done(number + 2)
        quantile = float(student.ppf(1 - LEVEL / 2, max(groups - 1, 1)))
        support = Support.of(judging.rankings[0], judged.pairs, judging.traffic, effect)
        refused = self._refused(support)
        estimates = []
        for t, target in enumerate(judging.targets):
            found: dict[str, Values] = {DOUBLY_ROBUST: robust[t].values, **judged.values[t]}
            found.pop("filled")
            for e, (name, values) in enumerate(found.items()):
                if name in refused or (target.part and name != DOUBLY_ROBUST):
                    continue
                by_curve = np.array([errors[k][t, e] for k, _ in steps])
                half = quantile * np.sqrt(values.error**2 + self._variance(by_curve, steps))
                estimates.append(_estimate(target, name, values, half))
        otherwise = {}
        for power in (0.5, 1.5):
            there = judging.judge(PositionEffect.of_curves(curves**power), once, basis)
            otherwise[f"{power:g}"] = float(_gaps(there, robust)[0, 0])
        done(total - 2)
        estimates += self._affine(judging, judged, draws, basis, quantile, refused)
        against = contradictions(judging, self.curve, effect)
        done(total - 1)
        return Counterfactual(
            self.new.name,
            self.old.name,
            tuple(estimates),
            support,
            refused,
            self.curve.propensity,
            self.curve.source,
            self.curve.covariance is not None,
            tuple(against),
            otherwise,
            robust[0].share,
            robust[0].disagreement,
            largest_moves(judging, judged, effect, self.dataset.catalogue, kept),
            log.sessions,
            len(np.unique(log.lists.queries)),
            (*self.notes, *notes),
        )

    def _to_depth(self) -> tuple[ClickLog, list[str]]:
        """The log to where the curve ends."""
        log, depth = self.log, self.curve.propensity.depth
        if depth >= log.lists.depth:
            return log, []
        if depth < 2:
            raise DataError(
                f"the curve knows {depth} position only, of {log.lists.depth} that the log shows"
            )
        why = self.curve.propensity.details.get("ends")
        note = f"Only the first {depth} of {log.lists.depth} positions are judged: the curve ends"
        lists = RankedLists(log.lists.documents[:, :depth], log.lists.queries)
        events = {kind: amounts[:, :depth] for kind, amounts in log.events.items()}
        cut = replace(log, lists=lists, clicks=log.clicks[:, :depth], events=events)
        return cut, [f"{note} there{f' ({why})' if why else ''}."]

    def _judging(self, log: ClickLog, context: str | None) -> tuple[Judging, NDArray[np.int64]]:
        documents = self.dataset.document_count
        displayed = np.zeros(documents, dtype=bool)
        displayed[log.lists.documents[log.lists.mask]] = True
        candidates = displayed if self.only_displayed else np.ones(documents, dtype=bool)
        rankings = []
        for given in (self.new, self.old):
            if given.scores is None:
                rankings.append(Ranking.as_logged(log))
            else:
                values = (given.name, given.scores, self.dataset, log, candidates)
                rankings.append(Ranking.by_scores(*values))
        query_of = self.dataset.query_of_document
        small, both, kept = renumbered(log, (rankings[0], rankings[1]), query_of)
        amounts, squares = _amounts(small, self.events)
        traffic = Traffic.of(small, context)
        targets = [Target(name, traffic) for name in (LINEAR if self.events else METRICS)]
        targets += [Target(CLICKS, part, name) for name, part in _parts(small, context)]
        judging = Judging(
            small,
            amounts,
            squares,
            both,
            tuple(targets),
            query_of[kept].astype(np.int64),
            self.dataset.filled().features[kept],
            traffic,
            self.seed,
        )
        return judging, kept

    def _steps(self, depth: int) -> list[tuple[int, float]]:
        """Positions whose examination is not sure, and how unsure."""
        covariance = self.curve.covariance
        if covariance is None:
            return []
        errors = np.sqrt(np.diag(covariance))[:depth]
        return [(k, float(errors[k])) for k in range(1, depth) if errors[k] > 0]

    def _variance(self, slopes: Floats, steps: list[tuple[int, float]]) -> float:
        """What the curve's errors add to the variance of a difference with these slopes."""
        if not steps or self.curve.covariance is None:
            return 0.0
        rows = [k for k, _ in steps]
        return float(slopes @ self.curve.covariance[np.ix_(rows, rows)] @ slopes)

    def _refused(self, support: Support) -> dict[str, str]:
        if support.is_enough:
            return {}
        why = (
            f"{support.missing:.0%} of what {self.new.name} shows, as far as it would be looked "
            "at, was never displayed: no click can tell what it would earn"
        )
        return dict.fromkeys(NEEDS_DISPLAY, why)

    def _affine(
        self,
        judging: Judging,
        judged: Judged,
        draws: Floats,
        basis: Any,
        quantile: float,
        refused: dict[str, str],
    ) -> list[Estimate]:
        """Inverse propensity with what trust in the top adds taken off, where trust is found."""
        if AFFINE in refused or self.events is not None:
            return []
        slope = slope_along_the_list(judging.log, judged.model)
        if slope is None or not slope.growth > quantile * slope.error:
            return []
        found = regress_clicks(judging.log, basis.values[:, 1:], seed=self.seed)
        effect = PositionEffect(
            np.broadcast_to(found.slopes, (judging.traffic.of_lists.shape[1], len(found.slopes))),
            np.broadcast_to(found.offsets, (judging.traffic.of_lists.shape[1], len(found.offsets))),
        )
        there = judging.judge(effect, draws, basis)
        estimates = []
        for t, target in enumerate(judging.targets):
            if not target.part:
                values = there.values[t][IPS]
                estimates.append(_estimate(target, AFFINE, values, quantile * values.error))
        return estimates


def _estimate(target: Target, name: str, values: Values, half: float) -> Estimate:
    new, old = values.points
    gap = new - old
    low, high = float(gap - half), float(gap + half)
    return Estimate(target.metric, name, new, old, gap, low, high, target.part)


def _gaps(judged: Judged, robust: list[Robust]) -> Floats:
    """The differences of every target, by the doubly robust estimate and the others."""
    rows = []
    for each, mixed in zip(judged.values, robust, strict=True):
        gaps = {name: float(values.difference[0]) for name, values in each.items()}
        filled = gaps.pop("filled")
        robustly = (1 - mixed.share) * gaps[DIRECT] + mixed.share * filled
        rows.append([robustly, *gaps.values()])
    return np.array(rows)


def _amounts(log: ClickLog, weights: Mapping[str, float] | None) -> tuple[Floats, float]:
    """What the sessions of each list are worth at every position, and the sum of squares."""
    clicks = log.clicks * log.counts[:, None].astype(np.float64)
    values = clicks
    if weights is not None:
        values = weights.get(CLICK, 0.0) * clicks
        for kind, weight in weights.items():
            if kind != CLICK:
                values = values + weight * log.event(kind)
    squares = float((values**2 / np.maximum(log.counts, 1)[:, None]).sum())
    by_list = [np.bincount(log.list_of, each, len(log.lists)) for each in values.T]
    return np.stack(by_list, axis=1), squares


def _parts(log: ClickLog, context: str | None) -> list[tuple[str, Traffic]]:
    """Queries by how often they are asked, a third of the sessions each, and every context."""
    of_query = np.bincount(log.lists.queries[log.list_of], log.counts)
    order = np.argsort(-of_query, kind="stable")
    share = np.cumsum(of_query[order]) / of_query.sum()
    third = np.empty(len(of_query), dtype=np.int64)
    third[order] = np.minimum((share - of_query[order] / of_query.sum()) * 3, 2).astype(np.int64)
    of_row = third[log.lists.queries[log.list_of]]
    chosen = [(f"{name} queries", of_row == i) for i, name in enumerate(("head", "middle", "tail"))]
    for column_name, column in log.columns.items():
        if column_name == PERIOD:
            continue
        sessions = np.bincount(column.codes, log.counts, len(column.names))
        for code in np.argsort(-sessions, kind="stable")[:MOST_PARTS]:
            chosen.append((f"{column_name}={column.names[code]}", column.codes == code))
    return [
        (name, Traffic.of(log, context, rows))
        for name, rows in chosen
        if len(np.unique(log.lists.queries[log.list_of[rows]])) >= FEWEST_QUERIES
    ]
