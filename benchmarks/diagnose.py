"""A bootstrapped diagnosis of three million sessions, within a minute and 4 GiB.

Run as `python -m benchmarks.diagnose`. The log has 71,106 lists of ten documents (as many as the
queries of Yahoo! LETOR set 1 times three rankers) over two periods; with `--features`, 64 features
as well, and two rankers are trained. Time is that of the processor, over all threads, which says
the same on a busy machine; on two cores it bounds the time of the clock.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from dualrank.data.click_log import PERIOD, ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists
from dualrank.data.lists import top_lists
from dualrank.diagnostics.diagnosis import diagnose

QUERIES, RANKERS, LENGTH, FEATURES = 23_702, 3, 12, 64
SESSIONS = 3_000_000
SECONDS, GIBIBYTES = 60, 4
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])


def make_log() -> tuple[ClickLog, Dataset]:
    """Lists of three rankers that see relevance through noise, and clicks on them."""
    rng = np.random.default_rng(0)
    documents = QUERIES * LENGTH
    features = rng.normal(size=(documents, FEATURES)).astype(np.float32)
    score = features[:, :8].sum(axis=1) / 3
    relevance = 1 / (1 + np.exp(2 - score))
    data = Dataset.from_arrays(features, np.repeat(np.arange(QUERIES), LENGTH))
    lists = join_lists(
        [top_lists(data, score + rng.normal(size=documents)) for _ in range(RANKERS)]
    )
    chosen = rng.integers(len(lists), size=SESSIONS).astype(np.int32)
    clicks = np.empty((SESSIONS, lists.depth), dtype=bool)
    for start in range(0, SESSIONS, 200_000):
        block = slice(start, start + 200_000)
        shown = relevance[lists.documents[chosen[block]]]
        clicks[block] = rng.random(shown.shape) < EXAMINATION * shown
    period = Column(("first", "last"), (np.arange(SESSIONS) % 2).astype(np.int32))
    return ClickLog.from_clicks(lists, chosen, clicks, columns={PERIOD: period}), data


def main() -> bool:
    """Print time and memory; true if both limits hold."""
    log, data = make_log()
    with_features = "--features" in sys.argv[1:]
    print(f"{log}{', with features' if with_features else ''}", flush=True)
    started, of_process = time.perf_counter(), time.process_time()
    found = diagnose(log, data if with_features else None)
    by_clock, by_process = time.perf_counter() - started, time.process_time() - of_process
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    for point in found.points:
        print(f"  {point.status:<13}{point.name}")
    print(f"{found.verdict}")
    print(
        f"{by_process:.1f} s of processor ({by_clock:.1f} s by the clock), at most "
        f"{SECONDS} s: {'holds' if by_process <= SECONDS else 'FAILS'}"
    )
    print(
        f"{memory:.2f} GiB, the making of the log included, at most {GIBIBYTES} GiB: "
        f"{'holds' if memory <= GIBIBYTES else 'FAILS'}"
    )
    return by_process <= SECONDS and memory <= GIBIBYTES


if __name__ == "__main__":
    sys.exit(not main())
