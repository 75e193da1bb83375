"""What diagnose says of simulated users whose habits are known, over several seeds.

Run as `python -m benchmarks.diagnosed_users`. Every log has 150,000 sessions on the lists of four
noisy rankers over 400 queries. Printed are mean and standard deviation over seeds, and how often
the point warned or failed.
"""

from __future__ import annotations

import numpy as np

from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import USERS, make_user
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists
from dualrank.data.lists import RankedLists, top_lists
from dualrank.diagnostics.click_dependence import click_dependence
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.trust import trust

QUERIES, RANKERS, SESSIONS, SEEDS = 400, 4, 150_000, 5


def stage(seed: int) -> tuple[Dataset, RankedLists]:
    """Judged queries, and the lists that four noisy rankers show for them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(12, 18, QUERIES)
    grades = rng.choice(5, counts.sum(), p=[0.45, 0.25, 0.15, 0.10, 0.05])
    features = np.zeros((counts.sum(), 1), dtype=np.float32)
    data = Dataset.from_arrays(features, np.repeat(np.arange(QUERIES), counts), grades, max_grade=4)
    scores = grades + rng.normal(size=(RANKERS, len(grades)))
    return data, join_lists([top_lists(data, each) for each in scores])


def main() -> None:
    """Print one user per line."""
    print(f"{'user':<10}{'after the first':>18}{'further down':>16}{'warned':>8}", end="")
    print(f"{'advantage of the top':>26}{'warned':>8}")
    for name in USERS:
        rows, warned = [], np.zeros(2, dtype=int)
        for seed in range(SEEDS):
            data, lists = stage(seed)
            facts = LogFacts(sample_log(data, lists, make_user(name), SESSIONS, seed))
            clicks, top = click_dependence(facts), trust(facts)
            ratios = [clicks.numbers[key]["ratio"] for key in ("after_the_first", "further_down")]
            rows.append([*ratios, top.numbers["advantage"]])
            warned += [point.status in ("warning", "failed") for point in (clicks, top)]
        first, further, advantage = (
            f"{mean:.2f} ± {spread:.2f}"
            for mean, spread in zip(np.mean(rows, axis=0), np.std(rows, axis=0), strict=True)
        )
        print(f"{name:<10}{first:>18}{further:>16}{warned[0]:>6}/{SEEDS}", end="")
        print(f"{advantage:>26}{warned[1]:>6}/{SEEDS}", flush=True)


if __name__ == "__main__":
    main()
