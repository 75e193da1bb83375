"""Dual learning as an estimator of examination: train, and keep the curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from dualrank.certainty import LEVEL
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import SettingsError
from dualrank.learning.fit import fit
from dualrank.learning.loop import part_of
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.ranker import RankerSettings
from dualrank.settings import TrainingSettings


def estimate_by_dual_learning(
    log: ClickLog,
    dataset: Dataset,
    *,
    ranker: RankerSettings | None = None,
    settings: TrainingSettings | None = None,
    refits: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Propensity:
    """The examination that the Dual Learning Algorithm learns beside its ranker.

    An interval needs training again on resampled queries, and with another seed; `refits` says how
    often. With none there is no interval. With r of them it is

        log ê_k ± t(0.975, r − 1) · sd over refits,

    which holds the noise of queries, clicks and training, but not what dual learning gets wrong
    where its features miss what the logging ranker knew: no resample shows that.
    """
    settings = settings or TrainingSettings()
    check_refits(refits)

    def curve(part: ClickLog, number: int) -> Propensity:
        model = fit(
            part,
            dataset,
            method="dla",
            ranker=ranker or DNN(),
            validation=0,
            settings=replace(settings, seed=settings.seed + number),
            progress=part_of(progress, number, 1 + refits),
        )
        if model.propensity is None:
            raise AssertionError("dual learning has a propensity")
        return model.propensity

    found = curve(log, 0)
    shown = log.lists.mask[log.list_of]
    support = (log.counts @ shown).astype(np.int64)
    found = replace(found, method="dla", sessions=log.sessions, support=support)
    if not refits:
        return found
    rng = np.random.default_rng([settings.seed, 0x_D0A1])
    others = [
        np.log(curve(_resampled(log, rng), number).examination) for number in range(1, refits + 1)
    ]
    spread = student.ppf(1 - LEVEL / 2, refits - 1) * np.std(others, axis=0, ddof=1)
    return replace(
        found,
        low=found.examination * np.exp(-spread),
        high=found.examination * np.exp(spread),
        details={**found.details, "intervals_over": "queries", "refits": refits},
    )


def check_refits(refits: int) -> None:
    """Refuse a number of refits that shows no spread."""
    if refits == 1:
        raise SettingsError("one refit shows no spread; take 0, or 2 and more")


def _resampled(log: ClickLog, rng: np.random.Generator) -> ClickLog:
    """The log had its queries been drawn again, with replacement."""
    asked, query = np.unique(log.lists.queries[log.list_of], return_inverse=True)
    drawn = rng.multinomial(len(asked), np.full(len(asked), 1 / len(asked)))
    counts = log.counts * drawn[query]
    part = replace(log, counts=counts)
    return part.take_rows(np.flatnonzero(counts))
