"""The way from a log and two rankers to every estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import LEVEL, alarm_errors
from dualrank.clicks.dependence import Dependence
from dualrank.corrections.click_regression import regress_clicks
from dualrank.corrections.correction import curves_by_context
from dualrank.data.click_log import PERIOD, ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log.log_options import CLICK
from dualrank.decisions.click_metrics import CLICKS, LINEAR, METRICS
from dualrank.decisions.counterfactual import Counterfactual, Estimate
from dualrank.decisions.curve_checks import contradictions
from dualrank.decisions.curve_choice import Curve
from dualrank.decisions.estimates_of_value import (
    AFFINE,
    DIRECT,
    DOUBLY_ROBUST,
    FILLED,
    IPS,
    Robust,
    Values,
    doubly_robust,
)
from dualrank.decisions.given_rankings import Given
from dualrank.decisions.group_sums import Groups, Target
from dualrank.decisions.judging import Judged, Judging, renumbered
from dualrank.decisions.logged_pairs import PositionEffect, Traffic
from dualrank.decisions.moves import largest_moves
from dualrank.decisions.rankings import Ranking
from dualrank.decisions.relevance_model import FOLDS
from dualrank.decisions.support import Support
from dualrank.diagnostics.trust_by_features import slope_along_the_list
from dualrank.errors import DataError

RESAMPLES = 1_000
MOST_GROUPS = 1_000
FEWEST_QUERIES = 10
MOST_PARTS = 12
NEEDS_DISPLAY = (IPS, "self-normalised", "clipped", AFFINE)
STEP = 0.02
"""How far a logarithm of the curve is moved to see what hangs on it."""

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Work:
    """A log, two rankers and a curve, with all that was asked for."""

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
        """Every estimate, and what speaks for and against it."""
        log, notes = self._to_depth()
        context = self.curve.propensity.context
        if context is not None and context not in log.columns:
            raise DataError(
                f"the curve differs by {context}, which the log does not have; read the log with "
                f"contexts=[{context!r}]"
            )
        names = None if context is None else log.column(context).names
        relative = curves_by_context(self.curve.propensity, log.lists.depth, names)
        effect = PositionEffect.of_curves(relative).with_levels(log, context)
        curves = effect.slopes
        judging, kept = self._judging(log, context)
        groups = judging.groups.count
        rng = np.random.default_rng([self.seed, 0x_B007])
        drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=resamples)
        draws = np.concatenate([np.ones((1, groups)), drawn])
        basis = judging.basis(effect)
        judged = judging.judge(effect, draws, basis)
        robust = [doubly_robust(each[DIRECT], each[FILLED]) for each in judged.values]
        once = np.ones((1, FOLDS))
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
            there = judging.by_folds.judge(PositionEffect.of_curves(moved), once, basis)
            errors[k] = (_gaps(there, robust) - _gaps(judged, robust)) / STEP
            done(number + 2)
        quantile = float(student.ppf(1 - LEVEL / 2, max(min(groups, resamples) - 1, 1)))
        support, of_old = (
            Support.of(ranking, judged.pairs, judging.traffic, effect)
            for ranking in judging.rankings
        )
        refused = self._refused(min(support, of_old, key=lambda each: each.examined))
        estimates = []
        for t, target in enumerate(judging.targets):
            found: dict[str, Values] = {DOUBLY_ROBUST: robust[t].values, **judged.values[t]}
            found.pop(FILLED)
            for e, (name, values) in enumerate(found.items()):
                if name in refused or (target.part and name != DOUBLY_ROBUST):
                    continue
                by_curve = np.array([errors[k][t, e] for k, _ in steps])
                half = quantile * np.sqrt(values.error**2 + self._variance(by_curve, steps))
                estimates.append(_estimate(target, name, values, half))
        otherwise = {}
        for power in (0.5, 1.5):
            there = judging.by_folds.judge(
                PositionEffect.of_curves(relative**power).with_levels(log, context), once, basis
            )
            otherwise[f"{power:g}"] = float(_gaps(there, robust)[0, 0])
        done(total - 2)
        estimates += self._affine(judging, judged, draws, basis, quantile, refused)
        against = contradictions(judging, self.curve, effect)
        habits = Dependence.of(log)
        done(total - 1)
        return Counterfactual(
            self.new.name,
            self.old.name,
            tuple(estimates),
            support,
            of_old,
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
            habits.ends_sessions or habits.reads_from_the_top,
            self.events,
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
        groups = Groups.of(log.lists.queries, MOST_GROUPS, self.seed)
        small, both, kept = renumbered(log, (rankings[0], rankings[1]), query_of, groups)
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
            replace(self.dataset, features=self.dataset.features[kept]).filled().features,
            traffic,
            groups,
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
            f"{support.missing:.0%} of what {support.ranking} shows, as far as it would be looked "
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
        if slope is None or not slope.growth > alarm_errors() * slope.error:
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
        filled = gaps.pop(FILLED)
        robustly = (1 - mixed.share) * gaps[DIRECT] + mixed.share * filled
        rows.append([robustly, *gaps.values()])
    return np.array(rows)


def _amounts(log: ClickLog, weights: Mapping[str, float] | None) -> tuple[Floats, float]:
    """What the sessions of each list are worth at every position, and the sum of squares."""
    clicks: Floats = log.clicks.astype(np.float64) * log.counts[:, None]
    values: Floats = clicks
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
