"""What trees cost: a step of ours beside a tree of LightGBM's and of XGBoost's own.

    python -m benchmarks.trees [--train | --impressions ROUNDS]

In one thread and in turn, so that a busy machine slows all alike:

- *a step* of ours, which grows two trees on half of the lists each, by naive training, by dual
  learning and by likelihood, against LightGBM's `lambdarank`: two of its trees on the same rows,
  with as many leaves and as little shrinkage (the limit is 1.3), and one on all of them; and
  against two trees that LightGBM grows on the same slopes, since what a tree costs depends on its
  shape. Once on 8,000 lists of generated data, where every document stands in one list, and once
  on a log of the paper's size (3,268,177 sessions on 71,106 lists, 33 features), where it stands in
  three or four. There our trees have one row for a document, whatever lists it stands in;
  `lambdarank` has as many, if it is to know the lists, and is shown with one as well;
- one tree of XGBoost's grown on the same slopes, against one of LightGBM's.

With `--train` dual learning on the log of the paper's size from beginning to end, with the peak of
memory; with `--impressions` so many trees of `lambdarank` on one row per impression, as a log lies
in files.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import lightgbm
import numpy as np
import torch
import xgboost

import dualrank as dr
from benchmarks.log_reduction import paper_log
from benchmarks.timing import seconds
from dualrank.corrections import Correction, DualLearning, Naive
from dualrank.corrections.likelihood import Likelihood
from dualrank.data.click_log import ClickLog
from dualrank.learning import LoggedClicks, Loop
from dualrank.rankers.grown_tree import FIXED, Grower
from dualrank.rankers.trees import TreeRanker

TREES = dr.Trees(feature_share=1.0, shrinkage=0.0, least_evidence=1e-3)
SETTINGS = dr.TrainingSettings(device="cpu")
ROUNDS, LIMIT = 15, 1.3
LAMBDARANK = {
    "objective": "lambdarank",
    "num_leaves": TREES.leaves,
    "learning_rate": 0.05,
    "num_threads": 1,
    "force_col_wise": True,
    "verbosity": -1,
}


def loop_of(log: ClickLog, data: dr.Dataset, correction: Correction) -> Loop:
    """A training by a correction, before its first step."""
    ranker = TREES.build(data.feature_count)
    return Loop(ranker, torch.from_numpy(data.features), LoggedClicks(log), correction, SETTINGS)


def lambdarank(log: ClickLog, data: dr.Dataset, *, by_list: bool = True) -> Callable[[], object]:
    """One tree of LightGBM's own, on the places of lists, or on the documents of queries."""
    clicks = log.clicks_per_list
    lists = np.flatnonzero(clicks.any(axis=1))
    shown, clicked = log.lists.documents[lists], clicks[lists] > 0
    mask = shown >= 0
    rows, labels, groups = shown[mask], clicked[mask].astype(int), mask.sum(axis=1)
    if not by_list:
        rows, row_of = np.unique(rows, return_inverse=True)
        labels = np.bincount(row_of, labels).clip(max=1).astype(int)
        groups = np.unique(data.query_of_document[rows], return_counts=True)[1]
    dataset = lightgbm.Dataset(data.features[rows], labels, group=groups, params=LAMBDARANK)
    booster = lightgbm.Booster(LAMBDARANK, dataset.construct())
    return booster.update


def same_slopes(loop: Loop) -> Callable[[], object]:
    """A tree for each half, by LightGBM alone, on the slopes of the next step of a training."""
    ranker, shown = loop.ranker, loop._shown(loop._draw())
    signal = loop.correction.signal(ranker.score(shown), shown)
    slope, curvature = (each.numpy() for each in ranker.evidence(shown, signal))
    settings = {**FIXED, **TREES.growing(0.05), "num_threads": 1}
    growing = []
    assert isinstance(ranker, TreeRanker)
    for half in ranker._halves:
        rows = lightgbm.Dataset(half.features, params=settings).construct()
        growing.append(
            partial(
                lightgbm.Booster(settings, rows).update,
                fobj=lambda *_, r=half.rows: (slope[r], curvature[r]),
            )
        )
    return lambda: [each() for each in growing]


def steps(log: ClickLog, data: dr.Dataset, *, documents: bool) -> bool:
    """A step against trees."""
    odd = log.lists.queries % 2 == 1
    halves = [lambdarank(log.take_lists(np.flatnonzero(half)), data) for half in (odd, ~odd)]
    theirs: dict[str, Callable[[], object]] = {
        "two trees on half of the lists each": lambda: [each() for each in halves],
        "one tree on all lists": lambdarank(log, data),
    }
    if documents:
        theirs["one tree on all documents"] = lambdarank(log, data, by_list=False)
    print(f"{log.lists.mask.sum():,} places of {len(log.lists):,} lists", flush=True)
    depth, holds = log.lists.depth, True
    for name, correction in (
        ("naive training", Naive()),
        ("dual learning", DualLearning(depth, SETTINGS)),
        ("likelihood", Likelihood(depth, SETTINGS)),
    ):
        loop = loop_of(log, data, correction)
        for _ in range(3):
            loop.step()
        others = {**theirs, "two trees on the same slopes, by LightGBM alone": same_slopes(loop)}
        times = [[seconds(each) for each in (loop.step, *others.values())] for _ in range(ROUNDS)]
        for what, taken in zip(others, np.transpose(times)[1:], strict=True):
            ratio = float(np.median(np.transpose(times)[0] / taken))
            limit = ""
            if what.startswith("two trees on half"):
                holds &= ratio <= LIMIT
                limit = f", limit {LIMIT}: {'holds' if ratio <= LIMIT else 'FAILS'}"
            print(f"  a step of {name} takes {ratio:.2f} of {what}{limit}", flush=True)
    return holds


def generated() -> tuple[dr.Dataset, ClickLog]:
    """8,000 lists of ten, as many as the preset `laptop` has queries."""
    data = dr.generate_splits("laptop").train
    lists = dr.top_lists(data, data.features[:, 0])
    return data, dr.sample_log(data, lists, dr.PositionBasedUser(), 500_000, 0)


def libraries(log: ClickLog, data: dr.Dataset) -> None:
    """One tree on the same slopes, by either library."""
    rows = np.unique(log.lists.documents[log.lists.mask])
    features = data.features[rows]
    rng = np.random.default_rng(0)
    slope = (features[:, 0] + rng.normal(size=len(rows))).astype(np.float32)
    curvature = np.ones(len(rows), np.float32)
    grower = Grower(features, replace(TREES, shrinkage=1.0).growing(0.05), 1)
    matrix = xgboost.QuantileDMatrix(features, nthread=1)
    settings = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": TREES.leaves,
        "eta": 0.05,
        "lambda": 1.0,
        "min_child_weight": TREES.least_evidence,
        "base_score": 0.0,
        "nthread": 1,
    }
    booster = xgboost.Booster(settings, [matrix])

    def by_xgboost() -> None:
        booster.boost(matrix, booster.num_boosted_rounds(), grad=slope, hess=curvature)

    ratios = [
        seconds(by_xgboost) / seconds(lambda: grower.grow(slope, curvature, 0))
        for _ in range(ROUNDS)
    ]
    print(f"a tree of XGBoost's takes {np.median(ratios):.2f} of one of LightGBM's", flush=True)


def memory() -> float:
    """The peak of this process, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def train(log: ClickLog, data: dr.Dataset) -> None:
    """Dual learning from beginning to end."""
    before, start = memory(), time.perf_counter()
    model = dr.fit(log, data, method="dla", ranker=dr.Trees(), device="cpu")
    print(
        f"300 steps of dual learning took {time.perf_counter() - start:.0f} s, with "
        f"{model.training['history']['best_step']} kept; the peak of memory went from "
        f"{before:.1f} to {memory():.1f} GB",
        flush=True,
    )


def impressions(log: ClickLog, data: dr.Dataset, rounds: int) -> None:
    """`lambdarank` on single impressions."""
    before = memory()
    session = np.repeat(np.arange(len(log.counts)), log.counts)
    shown = log.lists.documents[log.list_of[session]]
    mask = shown >= 0
    start = time.perf_counter()
    dataset = lightgbm.Dataset(
        data.features[shown[mask]],
        log.clicks[session][mask].astype(np.int8),
        group=mask.sum(axis=1),
        position=np.nonzero(mask)[1],
        params=LAMBDARANK,
    ).construct()
    made = time.perf_counter() - start
    booster = lightgbm.Booster(LAMBDARANK, dataset)
    taken = seconds(lambda: [booster.update() for _ in range(rounds)])
    print(
        f"{mask.sum():,} impressions: LightGBM took {made:.0f} s to cut features into bins and "
        f"{taken / rounds:.1f} s for each of {rounds} trees; the peak of memory went from "
        f"{before:.1f} to {memory():.1f} GB",
        flush=True,
    )


def main() -> int:
    """Print what was asked for; 1 if a limit fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--impressions", type=int, metavar="ROUNDS")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.train or asked.impressions:
        data, log = paper_log()
        if asked.train:
            train(log, data)
        else:
            impressions(log, data, asked.impressions)
        return 0
    data, log = generated()
    holds = steps(log, data, documents=False)
    data, log = paper_log()
    holds &= steps(log, data, documents=True)
    libraries(log, data)
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
