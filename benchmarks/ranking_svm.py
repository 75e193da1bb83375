"""How long the Ranking SVM takes to its optimum, and how that depends on C.

    python -m benchmarks.ranking_svm [--full]

Lists of ten documents with position-biased clicks on noisy grades: 8,000 lists of 64 features,
with `--full` also 20,000 lists of 700. One thread. The rival is liblinear on the explicit
differences, at a size where these fit.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from dualrank.data.lists import RankedLists
from dualrank.rankers.pairs import Pairs, preference_pairs_from_clicks
from dualrank.rankers.ranking_svm import RankingSVM, SVMSolution

RHO = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
DEPTH = len(RHO)


def biased_lists(
    lists: int, features: int, sessions: int, seed: int = 0
) -> tuple[NDArray[np.float32], RankedLists, NDArray[np.int64]]:
    """Features, displayed lists and click counts of a noisy linear world with ten factors."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(lists, DEPTH, 10)).astype(np.float32)
    truth, shift = rng.normal(size=(2, 10)) / np.sqrt(10)
    utility = factors @ truth + 1.3 * rng.normal(size=(lists, DEPTH))
    grades = np.digitize(utility, np.quantile(utility, [0.26, 0.62, 0.90, 0.98]))
    order = np.argsort(-(factors @ (truth + shift)), axis=1)
    shown = (order + DEPTH * np.arange(lists)[:, None]).astype(np.int32)
    relevance = 0.1 + 0.9 * (2.0 ** np.take_along_axis(grades, order, axis=1) - 1) / 15
    clicks = rng.binomial(sessions, RHO * relevance)
    mixing = rng.normal(size=(10, features)).astype(np.float32) / 3
    X = factors.reshape(-1, 10) @ mixing
    X += 0.7 * rng.standard_normal(X.shape, dtype=np.float32)
    X = np.reciprocal(1 + np.exp(-1.5 * X))
    return X, RankedLists(shown, np.arange(lists, dtype=np.int32)), clicks


def timed_fit(X: NDArray[np.float32], pairs: Pairs, C: float) -> tuple[float, SVMSolution]:
    """Seconds and result of one fit to the default tolerance."""
    start = time.perf_counter()
    found = RankingSVM(C).solve(X, pairs)
    return time.perf_counter() - start, found


def liblinear_seconds(X: NDArray[np.float32], pairs: Pairs, C: float, objective: float) -> float:
    """The time of liblinear's first power-of-two iteration count within 1e-4 of `objective`."""
    difference = X[pairs.better].astype(np.float64) - X[pairs.worse]
    side = np.where(np.arange(len(pairs)) % 2, 1, -1)
    bound = C / pairs.normaliser * pairs.weight
    for iterations in 2 ** np.arange(1, 14):
        rival = LinearSVC(
            loss="hinge", dual=True, fit_intercept=False, C=1.0, tol=1e-12, max_iter=iterations
        )
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rival.fit(side[:, None] * difference, side, sample_weight=bound)
        seconds = time.perf_counter() - start
        w = rival.coef_[0]
        reached = 0.5 * w @ w + bound @ np.maximum(0, 1 - difference @ w)
        if reached <= objective * (1 + 1e-4):
            break
    return seconds


def main() -> None:
    """Print one line per size, sessions and C."""
    X, lists, clicks = biased_lists(50, 4, 100)
    timed_fit(X, preference_pairs_from_clicks(lists, clicks), 1.0)  # compiles

    X, lists, clicks = biased_lists(1000, 64, 250)
    pairs = preference_pairs_from_clicks(lists, clicks, clicks * RHO[0] / RHO)
    seconds, found = timed_fit(X, pairs, 100.0)
    rival = liblinear_seconds(X, pairs, 100.0, found.objective)
    print(f"1,000 lists: {seconds:.3f} s, liblinear {rival:.3f} s, {rival / seconds:.0f} times")

    sizes = [(8_000, 64, 250), (8_000, 64, 1)]
    if "--full" in sys.argv[1:]:
        sizes += [(20_000, 700, 100), (20_000, 700, 1)]
    for count, features, sessions in sizes:
        X, lists, clicks = biased_lists(count, features, sessions)
        start = time.perf_counter()
        pairs = preference_pairs_from_clicks(lists, clicks, clicks * RHO[0] / RHO)
        making = time.perf_counter() - start
        print(
            f"{count:,} lists × {features} features, {sessions} sessions each: "
            f"{len(pairs):,} pairs in {making:.2f} s"
        )
        for C in (20.0, 100.0, 200.0, 1000.0):
            seconds, found = timed_fit(X, pairs, C)
            print(
                f"  C = {C:5g}: {seconds:6.2f} s, {found.epochs:3d} epochs, "
                f"gap {found.duality_gap:.0e}"
            )


if __name__ == "__main__":
    main()
