"""Is a method really better or worse than dual learning?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.evaluation.significance import fisher_test
from dualrank.reproduce.tasks import Trained

REFERENCE = "dla"
ALPHA = 0.05
PERMUTATIONS = 100_000


def compare_with_reference(trained: Sequence[Trained], *, pool: bool) -> dict[str, Any]:
    """Fisher's randomisation test of every method against dual learning, over queries.

    `pool` takes the queries of all seeds together, for data in which every seed has its own (new
    generated data, folds). Without it the seeds share their queries, and a query counts once, with
    its mean over the seeds. The test is about queries: it says whether these trained rankers differ
    on queries like these, not how much another training run would differ; the spread over seeds
    shows that.
    """
    methods = list(dict.fromkeys(result.run.method for result in trained))
    if REFERENCE not in methods:
        return {}
    values = {method: _per_query(trained, method, pool) for method in methods}
    p_values: dict[str, dict[str, float]] = {}
    differences: dict[str, dict[str, float]] = {}
    for method in methods:
        if method == REFERENCE:
            continue
        tests = {
            metric: fisher_test(ours, values[REFERENCE][metric], permutations=PERMUTATIONS)
            for metric, ours in values[method].items()
        }
        p_values[method] = {metric: test.p_value for metric, test in tests.items()}
        differences[method] = {metric: test.difference for metric, test in tests.items()}
    return {
        "reference": REFERENCE,
        "test": "fisher",
        "alpha": ALPHA,
        "permutations": PERMUTATIONS,
        "queries": len(next(iter(values[REFERENCE].values()))),
        "p_values": p_values,
        "difference": differences,
    }


def _per_query(
    trained: Sequence[Trained], method: str, pool: bool
) -> dict[str, NDArray[np.float64]]:
    of_method = [result.per_query for result in trained if result.run.method == method]
    join = np.concatenate if pool else lambda parts: np.mean(parts, axis=0)
    return {metric: join([values[metric] for values in of_method]) for metric in of_method[0]}
