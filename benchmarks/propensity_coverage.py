"""How often the 95% intervals of each estimator hold the true examination.

    python -m benchmarks.propensity_coverage [--seeds 60] [--trained-seeds 20] [--only NAME,NAME]

Every setting is a log of simulated users whose examination is known. First those in which an
estimator's assumptions hold, in which between 90% and 99% of the intervals must cover the truth;
then some in which they do not, or not quite, which show what happens. The first position is 1 by
definition and is not counted. Exits with 1 where a coverage that must hold does not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists, shuffle_lists, swap_with_first
from dualrank.data.lists import RankedLists, top_lists
from dualrank.learning.dual_estimate import estimate_by_dual_learning
from dualrank.learning.regression_em import estimate_by_regression_em
from dualrank.propensity.estimators import estimate
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Linear
from dualrank.settings import TrainingSettings

USER = PositionBasedUser()
PURE = PositionBasedUser(epsilon=0)
TRUTH = USER.examination(10) / USER.examination(1)
HARVESTS = ("harvest-pivot", "harvest-adjacent", "harvest-all-pairs", "pbm")

Log = tuple[ClickLog, Dataset]


def judged(rng: np.random.Generator, queries: int, shortest: int = 12) -> Dataset:
    """Queries with grades; features are not used."""
    counts = rng.integers(shortest, 18, queries)
    grades = rng.choice(5, counts.sum(), p=[0.45, 0.25, 0.15, 0.10, 0.05])
    qid = np.repeat(np.arange(queries), counts)
    return Dataset.from_arrays(np.zeros((len(qid), 1)), qid, grades, max_grade=4)


def ranked(rng: np.random.Generator, data: Dataset) -> RankedLists:
    """The ten best by a ranker that sees grades through noise."""
    return top_lists(data, data.require_grades() + rng.normal(size=data.document_count), 10)


def several_rankers(
    seed: int, queries: int = 200, sessions: int = 100_000, shortest: int = 12
) -> Log:
    """Three rankers, each shown equally often."""
    rng = np.random.default_rng(seed)
    data = judged(rng, queries, shortest)
    lists = join_lists([ranked(rng, data) for _ in range(3)])
    return sample_log(data, lists, USER, sessions, rng), data


def unequal_queries(seed: int) -> Log:
    """Twenty queries, the r-th asked in proportion to r^−1.5: as much as four equal ones."""
    rng = np.random.default_rng(seed)
    data = judged(rng, 20)
    lists = join_lists([ranked(rng, data) for _ in range(3)])
    times = np.maximum(200 / (1 + lists.queries) ** 1.5, 1).astype(int)
    shown = np.repeat(np.arange(len(lists)), times)
    often = RankedLists(lists.documents[shown], lists.queries[shown])
    return sample_log(data, often, USER, 40_000, rng), data


def swapped(seed: int) -> Log:
    """One ranker, its first result exchanged with each of the others."""
    rng = np.random.default_rng(seed)
    data = judged(rng, 200)
    return sample_log(data, swap_with_first(ranked(rng, data)), USER, 100_000, rng), data


def shuffled(seed: int, shortest: int = 12) -> Log:
    """One ranker, its lists shuffled."""
    rng = np.random.default_rng(seed)
    data = judged(rng, 200, shortest)
    return sample_log(data, shuffle_lists(ranked(rng, data), 100, rng), USER, 50_000, rng), data


def explained(
    seed: int,
    relevance: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    logger: float = 0.0,
    hidden: int = 0,
) -> Log:
    """One list per query, of a logger that knows relevance to a degree; features explain it."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(300 * 12, 6))
    truth = relevance(features)
    qid = np.repeat(np.arange(300), 12)
    data = Dataset.from_arrays(features, qid, np.log2(1 + 15 * truth), max_grade=4)
    utility = np.log(truth / truth.std())
    lists = top_lists(data, logger * utility / utility.std() + rng.normal(size=len(qid)), 10)
    log = sample_log(data, lists, PURE, 60_000, rng)
    return log, Dataset.from_arrays(features[:, hidden:], qid)


SLOPES = np.array([0.9, -0.6, 0.4, 0.3, 0.2, 0.8])


def logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """σ(w·x − 1)."""
    return expit(x @ SLOPES - 1)


def exponential(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """min(1, e^{w·x/2 − 2})."""
    return np.minimum(1.0, np.exp(x @ SLOPES / 2 - 2))


def bent(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """σ(|x_1| − x_2 x_3 + x_4/2 − 1)."""
    return expit(np.abs(x[:, 0]) - 0.8 * x[:, 1] * x[:, 2] + 0.5 * x[:, 3] - 1)


@dataclass(frozen=True)
class Setting:
    """A log, the estimators to try on it, and whether their assumptions hold."""

    name: str
    log: Callable[[int], Log]
    methods: tuple[str, ...]
    holds: bool = True
    ranker: DNN | Linear | None = None


SETTINGS = (
    Setting("three rankers", several_rankers, HARVESTS),
    Setting("three rankers, 40 queries", lambda s: several_rankers(s, 40, 40_000), HARVESTS),
    Setting("three rankers, 10 queries", lambda s: several_rankers(s, 10, 40_000), HARVESTS[1:]),
    Setting("three rankers, 20 unequal queries", unequal_queries, HARVESTS[1:]),
    Setting("three rankers, 5 queries", lambda s: several_rankers(s, 5, 40_000), HARVESTS[2:]),
    Setting("three rankers, lists of 4 to 10", lambda s: several_rankers(s, shortest=4), HARVESTS),
    Setting("pair swaps", swapped, ("pair-swaps", "harvest-pivot", "harvest-all-pairs", "pbm")),
    Setting("shuffled", shuffled, ("randomisation", "click-through", *HARVESTS)),
    Setting("shuffled, lists of 4 to 10", lambda s: shuffled(s, 4), ("randomisation",)),
    Setting("random logger, linear", lambda s: explained(s, logistic), ("regression-em",)),
    Setting("good logger, linear", lambda s: explained(s, logistic, 2.0), ("regression-em",)),
    Setting(
        "random logger, bent, DNN", lambda s: explained(s, bent), ("regression-em",),
        ranker=DNN((32, 16)),
    ),
    Setting("random logger, exponential", lambda s: explained(s, exponential), ("dla",)),
    Setting(
        "three rankers, 2,000 queries of 10 sessions",
        lambda s: several_rankers(s, 2_000, 20_000),
        ("harvest-adjacent", "harvest-all-pairs", "pbm"),
        holds=False,
    ),
    Setting(
        "shuffled, lists of 4 to 10", lambda s: shuffled(s, 4), ("click-through",), holds=False
    ),
    Setting("three rankers", several_rankers, ("click-through",), holds=False),
    Setting(
        "good logger, bent, linear", lambda s: explained(s, bent, 2.0), ("regression-em",), False
    ),
    Setting(
        "good logger, bent, DNN", lambda s: explained(s, bent, 2.0), ("regression-em",), False,
        DNN((32, 16)),
    ),
    Setting(
        "good logger, a feature hidden",
        lambda s: explained(s, logistic, 2.0, 1),
        ("regression-em",),
        holds=False,
    ),
)  # fmt: skip


def curve(method: str, log: ClickLog, data: Dataset, ranker: DNN | Linear | None) -> Propensity:
    """One estimate; dual learning is short here, and trained seven times for its interval."""
    if method == "dla":
        settings = TrainingSettings(steps=700)
        return estimate_by_dual_learning(log, data, ranker=Linear(), settings=settings, refits=6)
    if method == "regression-em":
        return estimate_by_regression_em(log, data, ranker=ranker)
    return estimate(log, method)


def main() -> int:
    """Print one line per setting and estimator."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=60)
    arguments.add_argument("--trained-seeds", type=int, default=20, help="of networks and dla")
    arguments.add_argument("--only", default="", help="estimators, or how their names start")
    arguments.add_argument("--setting", default="", help="a part of the names of settings")
    options = arguments.parse_args()
    wanted = tuple(options.only.split(","))
    failed = False
    print(f"{'setting':44} {'estimator':18} covered   error    bias  ends  seconds")
    for setting in SETTINGS:
        if options.setting not in setting.name:
            continue
        methods = [m for m in setting.methods if m.startswith(wanted)]
        trained = setting.ranker is not None or "dla" in methods
        seeds = options.trained_seeds if trained else options.seeds
        covered: dict[str, list[NDArray[np.bool_]]] = {m: [] for m in methods}
        errors: dict[str, list[NDArray[np.float64]]] = {m: [] for m in methods}
        seconds = dict.fromkeys(methods, 0.0)
        for seed in range(seeds if methods else 0):
            log, data = setting.log(seed)
            for method in methods:
                start = time.perf_counter()
                found = curve(method, log, data, setting.ranker)
                seconds[method] += time.perf_counter() - start
                truth = TRUTH[: found.depth]
                assert found.low is not None
                assert found.high is not None
                covered[method].append(((found.low <= truth) & (truth <= found.high))[1:])
                errors[method].append(np.log(found.examination / truth)[1:])
        for method in methods:
            share = np.concatenate(covered[method]).mean()
            error = np.concatenate(errors[method])
            ends = sum(len(e) < len(TRUTH) - 1 for e in errors[method])
            bad = setting.holds and not 0.90 <= share <= 0.99
            failed |= bad
            mark = "!" if bad else ("" if setting.holds else "(not required)")
            print(
                f"{setting.name:44} {method:18} {share:7.1%} {np.sqrt((error**2).mean()):7.3f} "
                f"{error.mean():7.3f} {ends:5d} {seconds[method] / seeds:8.2f} {mark}",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
