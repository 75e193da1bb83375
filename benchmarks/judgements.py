"""How near judgements from clicks come to true grades, and whether their intervals cover.

Run as `python -m benchmarks.judgements`. Generated queries, three logging rankers that ranked in
turn (Ranking SVMs on the grades of 10, 30 and 100 other queries), users of the paper's simulation,
and users who leave after the first click, where the assumption behind the correction fails. Judged
are pairs with ten sessions or more, by `dualrank judge` in several ways, by clicks over expected
clicks (COEC: clicks / Σ_k n_k CTR_k, as OpenSearch's Search Relevance Workbench offers) and by raw
click-through. Two more tell what makes the difference: corrected click-through with COEC's curve
(CTR_k), and the harvested curve in COEC's formula (clicks / Σ_k n_k e_k, drawn to nothing). Printed
per way:

- Spearman's and Kendall's correlation with the true grades within a query, the mean over queries,
  and Spearman's over all pairs;
- *systems*: ten rankers are ordered by nDCG@10 with the judgements, cut into five grades (what was
  not judged has grade 0), and with the true grades: Kendall's τ of the two orders, and beside it
  that of the same rankers on judged documents only;
- *covered*: how often the 95% interval holds the truth, the probability of a click at the first
  position; of all pairs, of those with fewer than five clicks, and of those with the highest grade.

Settings were chosen on seeds 100 and above (`--first-seed`). Ends with 1 if an interval of
corrected click-through covers less than 90% or more than 99% of all pairs where the assumption
holds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

import dualrank as dr
from dualrank.clicks import CascadeUser, PositionBasedUser, User
from dualrank.data import ClickLog, Dataset, Scaler, Splits, join_lists, top_lists
from dualrank.engines.grades import cut_into_grades
from dualrank.evaluation import Evaluator
from dualrank.propensity import estimate
from dualrank.propensity.pair_counts import PairCounts

DEPTH = 10
LEAST = 10
LOGGERS = (10, 30, 100)
SYSTEMS = (3, 6, 12, 25, 50)
DRAWN, PLAIN = "clicks, COEC's curve", "clicks / examined"
WAYS = ("clicks", "ubm", "dbn:attraction", "COEC", "click-through", DRAWN, PLAIN)
COLUMNS = ("Spearman", "Kendall", "overall", "systems", "judged", "covered", "few", "highest")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """What a way says of the pairs that it judges; the interval where it has one."""

    pairs: NDArray[np.intp]
    relevance: Floats
    low: Floats | None = None
    high: Floats | None = None


def scaled(seed: int) -> Splits:
    """Queries to judge (train), and others to train rankers on (test)."""
    splits = dr.generate_splits("tiny", seed=seed)
    scaler = Scaler.fit(splits.train.features)
    parts = (splits.train, splits.valid, splits.test)
    return Splits(*(replace(part, features=scaler.transform(part.features)) for part in parts))


def scores(
    splits: Splits, queries: int, rng: np.random.Generator, share: float = 1.0
) -> NDArray[np.floating]:
    """A Ranking SVM taught by a few queries, with a share of the features."""
    taught = splits.test.take(np.sort(rng.choice(len(splits.test), queries, replace=False)))
    hidden = rng.random(taught.feature_count) >= share
    features = np.where(hidden, 0, taught.features).astype(np.float32)
    ranker = dr.RankingSVM(C=10.0).fit_grades(replace(taught, features=features))
    return ranker.score(splits.train.features)


def judged_by(way: str, log: ClickLog, counts: PairCounts, data: Dataset) -> Judged:
    """Every pair with enough sessions, by one way."""
    enough = np.flatnonzero(counts.sessions >= LEAST)
    if way == "click-through":
        return Judged(enough, counts.clicks[enough] / counts.sessions[enough])
    if way in ("COEC", PLAIN):
        curve = estimate(log, "click-through" if way == "COEC" else "harvest-all-pairs")
        expected = _expected_clicks(log, curve.examination, len(counts.clicks))
        return Judged(enough, counts.clicks[enough] / expected[enough])
    if way == DRAWN:
        judgements = dr.judge(log, propensity=estimate(log, "click-through"), min_sessions=LEAST)
    else:
        judgements = dr.judge(log, by=way, min_sessions=LEAST)
    table = judgements.table
    index = {pair: number for number, pair in enumerate(data.pairs())}
    names = zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
    relevance, low, high = (table[name].to_numpy() for name in ("relevance", "low", "high"))
    return Judged(np.array([index[pair] for pair in names]), relevance, low, high)


def _expected_clicks(log: ClickLog, rate: Floats, pairs: int) -> Floats:
    """Σ_k n_k rate_k of every pair."""
    mask = log.lists.mask
    expected = log.sessions_per_list[:, None] * rate
    return np.bincount(log.lists.documents[mask], expected[mask], pairs).astype(np.float64)


def measured(judged: Judged, data: Dataset, systems: list[NDArray[np.floating]]) -> list[float]:
    """Correlations with the truth, pair by pair and system by system."""
    queries, truth = data.query_of_document[judged.pairs], data.require_grades()[judged.pairs]
    within = []
    for query in np.unique(queries):
        here = queries == query
        if len(np.unique(truth[here])) > 1 and len(np.unique(judged.relevance[here])) > 1:
            pair = truth[here], judged.relevance[here]
            within.append((spearmanr(*pair)[0], kendalltau(*pair)[0]))
    overall = spearmanr(truth, judged.relevance)[0]
    grades = np.zeros(data.document_count, dtype=np.float32)
    grades[judged.pairs] = cut_into_grades(judged.relevance, queries)
    seen = np.zeros(data.document_count, dtype=bool)
    seen[judged.pairs] = True
    by_clicks = replace(data, grades=grades, max_grade=4.0)
    return [
        *np.mean(within, axis=0).tolist(),
        float(overall),
        same_order(by_clicks, data, systems),
        same_order(by_clicks.keep(seen), data.keep(seen), [s[seen] for s in systems]),
    ]


def same_order(one: Dataset, other: Dataset, systems: list[NDArray[np.floating]]) -> float:
    """Kendall's τ of the systems' nDCG@10 with two kinds of grades."""
    values = [
        [evaluator(each)["ndcg@10"] for each in systems]
        for evaluator in (Evaluator(one, "ndcg@10"), Evaluator(other, "ndcg@10"))
    ]
    return float(kendalltau(*values)[0])


def coverage(judged: Judged, truth: Floats, clicks: Floats, data: Dataset) -> list[float]:
    """How often intervals hold the truth: all pairs, few clicks, the highest grade."""
    if judged.low is None or judged.high is None:
        return [np.nan] * 3
    found = truth[judged.pairs]
    inside = (judged.low <= found) & (found <= judged.high)
    few = clicks[judged.pairs] < 5
    best = data.require_grades()[judged.pairs] == data.max_grade
    return [float(inside.mean()), float(inside[few].mean()), float(inside[best].mean())]


def run(seed: int, user: User, sessions: int) -> dict[str, list[float]]:
    """All ways on one log."""
    splits = scaled(seed)
    data, rng = splits.train, np.random.default_rng([seed, 0x_10D6])
    lists = join_lists([top_lists(data, scores(splits, n, rng), DEPTH) for n in LOGGERS])
    systems = [scores(splits, n, rng, share) for n in SYSTEMS for share in (0.5, 1.0)]
    log = dr.sample_log(data, lists, user, sessions, rng)
    counts = PairCounts.of(log, dr.Propensity.of(np.ones(DEPTH)))
    first = user.examination(1)[0] if isinstance(user, PositionBasedUser) else 1.0
    truth = first * PositionBasedUser().perceived_relevance(data.require_grades(), data.max_grade)
    found = {}
    for way in WAYS:
        judged = judged_by(way, log, counts, data)
        covered = coverage(judged, truth, counts.clicks, data)
        found[way] = [*measured(judged, data, systems), *covered]
    return found


def main() -> int:
    """Print a table for each kind of user and number of sessions."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--first-seed", type=int, default=0)
    options = arguments.parse_args()
    users: dict[str, User] = {"position-based": PositionBasedUser(), "cascade": CascadeUser()}
    failed = False
    for name, user in users.items():
        for sessions in (30_000, 300_000):
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            runs = [run(seed, user, sessions) for seed in seeds]
            print(f"\n{name} users, {sessions} sessions on 600 queries, {len(runs)} seeds")
            print(f"| way | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
            for way in WAYS:
                values = np.array([each[way] for each in runs])
                cells = [
                    "–" if np.isnan(v).any() else f"{v.mean():.3f} ± {v.std(ddof=1):.3f}"
                    for v in values.T
                ]
                print(f"| {way} | {' | '.join(cells)} |", flush=True)
                if way == "clicks" and name == "position-based":
                    failed |= not 0.9 <= values[:, 5].mean() <= 0.99
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
