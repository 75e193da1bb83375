"""Metrics against pytrec_eval, and Fisher's test against a loop over permutations.

Run as `python -m benchmarks.evaluation`. Every figure is a ratio of two times taken in turn in
the same run on one thread, and the median of such pairs: it says the same on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytrec_eval
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.timing import seconds
from dualrank.data.dataset import Dataset
from dualrank.evaluation.evaluator import Evaluator, evaluate
from dualrank.evaluation.significance import fisher_test

QUERIES, DOCUMENTS = 6_900, 24
PERMUTATIONS = 100_000
PEER_MEASURES = {"map", "ndcg_cut.1,3,5,10"}


def compare(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    limit: float,
    share: float = 1.0,
    repetitions: int = 15,
) -> bool:
    """Print how many times faster `ours` is; `theirs` does only a `share` of its work."""
    ours(), theirs()
    pairs = np.array([(seconds(ours), seconds(theirs) / share) for _ in range(repetitions)])
    ratios = pairs[:, 1] / pairs[:, 0]
    ratio = float(np.median(ratios))
    low, high = np.quantile(ratios, [0.25, 0.75])
    here, there = np.median(pairs, axis=0)
    print(
        f"{name:<52}{here * 1e3:8.1f} ms{there * 1e3:10.1f} ms{ratio:7.1f} × "
        f"(quartiles {low:.1f} to {high:.1f})   at least {limit:g} ×: "
        f"{'holds' if ratio >= limit else 'FAILS'}"
    )
    return ratio >= limit


def judged_rankings() -> tuple[Dataset, NDArray[np.float64]]:
    """A test set of the size of Yahoo! LETOR set 1, and scores for it."""
    rng = np.random.default_rng(0)
    n = QUERIES * DOCUMENTS
    data = Dataset.from_arrays(
        np.zeros((n, 1), dtype=np.float32),
        qid=np.repeat(np.arange(QUERIES), DOCUMENTS),
        grades=rng.choice(5, n, p=[0.26, 0.36, 0.28, 0.08, 0.02]),
    )
    return data, rng.normal(size=n)


def peer_evaluation(data: Dataset, scores: NDArray[np.float64]) -> Callable[[], object]:
    """pytrec_eval with its dictionaries and its evaluator already built."""
    gains = (2 ** data.require_grades() - 1).astype(int).tolist()
    values = scores.tolist()
    qrels, run = {}, {}
    for q in range(len(data)):
        rows = range(data.offsets[q], data.offsets[q + 1])
        qrels[str(q)] = {f"d{row}": gains[row] for row in rows}
        run[str(q)] = {f"d{row}": values[row] for row in rows}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, PEER_MEASURES)
    return lambda: evaluator.evaluate(run)


def permutation_loop(differences: NDArray[np.float64], permutations: int) -> float:
    """Fisher's test as a loop over permutations, in the fastest of the usual ways to write it.

    With signs s = 2c − 1 for fair coins c, Σ s·d = 2 Σ c·d − Σ d.
    """
    rng = np.random.default_rng(0)
    total = differences.sum()
    reached = 0
    for _ in range(permutations):
        coins = rng.integers(0, 2, len(differences), dtype=bool)
        reached += abs(2 * (differences @ coins) - total) >= abs(total)
    return (reached + 1) / (permutations + 1)


def main() -> bool:
    """Print every comparison; true if all limits hold."""
    data, scores = judged_rankings()
    evaluator = Evaluator(data)
    peer = peer_evaluation(data, scores)
    a, b = np.random.default_rng(1).random((2, QUERIES))
    print(
        f"{QUERIES} queries × {DOCUMENTS} documents; Table 2's metrics: map, and ndcg and err at "
        f"1, 3, 5, 10 (pytrec_eval: without err)\n{'':<52}{'ours':>11}{'theirs':>13}"
    )
    with threadpool_limits(1):
        results = [
            compare(
                "metrics from scores, preparation included",
                lambda: evaluate(scores, data),
                peer,
                limit=3,
            ),
            compare(
                "metrics from scores, data set prepared",
                lambda: evaluator(scores),
                peer,
                limit=3,
            ),
            compare(
                f"Fisher's test, {PERMUTATIONS} permutations",
                lambda: fisher_test(a, b, permutations=PERMUTATIONS),
                lambda: permutation_loop(a - b, PERMUTATIONS // 100),
                limit=10,
                share=1 / 100,
            ),
        ]
    return all(results)


if __name__ == "__main__":
    sys.exit(not main())
