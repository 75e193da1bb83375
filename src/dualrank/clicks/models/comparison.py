"""Which click model predicts clicks best: all fitted on one part of a log, judged on another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dualrank.clicks.models.click_model import ClickModel, Perplexity
from dualrank.clicks.models.counting import Floats
from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.registry import MODELS, click_model
from dualrank.data.click_log import ClickLog
from dualrank.errors import DataError, SettingsError

FEWEST_QUERIES = 20


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


def compare_models(
    train: ClickLog,
    test: ClickLog,
    models: Sequence[str | type[ClickModel]] = tuple(MODELS),
    *,
    prior: Prior | None = None,
    em: EM | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """Fit every model on `train` and judge it on `test`, which may be another log."""
    unfitted = [click_model(model, prior, em) for model in models]
    scores = []
    likelihoods = []
    for done, model in enumerate(unfitted):
        if progress:
            progress(done, len(unfitted))
        started = time.perf_counter()
        climb = model.fit(train).fitted.climb
        seconds = time.perf_counter() - started
        likelihoods.append(model.log_likelihood_of_rows(test))
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
                climb.iterations,
                climb.converged,
                seconds,
                shared={name: v.tolist() for name, v in model.fitted.shared.items()},
            )
        )
    best = likelihoods[max(range(len(scores)), key=lambda i: scores[i].log_likelihood)]
    compared = (_mean_difference(best - each, test) for each in likelihoods)
    return [
        replace(score, behind=behind, behind_error=error)
        for score, (behind, error) in zip(scores, compared, strict=True)
    ]


def _mean_difference(of_rows: Floats, log: ClickLog) -> tuple[float, float]:
    """The mean of a difference per session, and its standard error."""
    counts = log.counts.astype(np.float64)
    total = counts.sum()
    mean = float(counts @ of_rows / total)
    apart = of_rows - mean
    queries, query = np.unique(log.lists.queries[log.list_of], return_inverse=True)
    if len(queries) >= FEWEST_QUERIES:
        sums = np.bincount(query, counts * apart)
        variance = float(sums @ sums) * len(queries) / (len(queries) - 1)
    else:
        variance = float(counts @ apart**2) * total / max(total - 1, 1)
    return mean, float(np.sqrt(variance) / total)


def _values(perplexity: Perplexity) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(p) else float(p) for p in perplexity.per_rank)


def hold_out_value(log: ClickLog, column: str, value: str) -> tuple[ClickLog, ClickLog]:
    """Split sessions by a column: those of other values to fit on, those of `value` to judge by."""
    names, codes = log.column(column).names, log.column(column).codes
    if value not in names or len(names) < 2:
        raise SettingsError(
            f"column {column!r} holds {', '.join(names)}; it must hold {value!r} and another value"
        )
    held = codes == names.index(value)
    return log.take_rows(np.flatnonzero(~held)), log.take_rows(np.flatnonzero(held))


def hold_out(log: ClickLog, share: float, seed: int) -> tuple[ClickLog, ClickLog]:
    """Split sessions at random: those to fit on, and a share to judge by."""
    if not 0 < share < 1:
        raise SettingsError(f"the share of sessions held out is between 0 and 1, not {share}")
    held = np.random.default_rng([seed, 0x_C0DE]).binomial(log.counts, share)
    train, test = (
        replace(log, counts=counts).take_rows(np.flatnonzero(counts))
        for counts in (log.counts - held, held)
    )
    if train.sessions == 0 or test.sessions == 0:
        raise DataError(f"{log.sessions} sessions are too few to hold some out")
    return train, test
