"""How long an estimate takes on a log of the paper's size: python -m benchmarks.estimate_speed.

3 million sessions on 71,106 lists of ten, 1,000 resamples, against what was logged.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import dualrank as dr
from dualrank.data import Dataset
from dualrank.decisions import estimate

FEATURES = 64


def main() -> None:
    """Time one estimate with a given curve, and one with a harvested one."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=3_000_000)
    options.add_argument("--lists", type=int, default=71_106)
    given = options.parse_args()
    rng = np.random.default_rng(0)
    queries = given.lists // 2
    features = rng.standard_normal((queries * 10, FEATURES), dtype=np.float32)
    grades = np.clip(np.round(features[:, :4].sum(axis=1) + 1), 0, 4)
    data = Dataset.from_arrays(features, np.repeat(np.arange(queries), 10), grades)
    # Two rankings of each query, so that positions are connected.
    scores = features[:, :2].sum(axis=1)
    lists = [
        dr.top_lists(data, scores + noise * rng.standard_normal(len(scores)))
        for noise in (0.0, 0.5)
    ]
    both = dr.RankedLists(
        np.concatenate([each.documents for each in lists]),
        np.concatenate([each.queries for each in lists]),
    )
    user = dr.PositionBasedUser()
    log = dr.sample_log(data, both, user, given.sessions, seed=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{log}; {before:.2f} GiB before")
    new = features[:, :3].sum(axis=1)
    curve = dr.Propensity.of(user.examination(10))
    for name, propensity in (("a given curve", curve), ("a harvested curve", "harvested")):
        start, cpu = time.perf_counter(), time.process_time()
        found = estimate(log, new, data, propensity=propensity)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name}: {time.perf_counter() - start:.1f} s "
            f"({time.process_time() - cpu:.1f} s of processor), peak {peak:.2f} GiB; "
            f"{found['clicks'].difference:+.4f} "
            f"({found['clicks'].low:+.4f} to {found['clicks'].high:+.4f})"
        )


if __name__ == "__main__":
    main()
