"""Is a method really better or worse than dual learning?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.reproduce.experiment import Trained

REFERENCE = "dla"
ALPHA = 0.05
PERMUTATIONS = 100_000


def compare_with_dla(trained: Sequence[Trained], *, pool: bool) -> dict[str, Any]:
    """Fisher's randomisation test of every method against dual learning, over queries.

    `pool` joins the queries of all seeds, for data in which every seed has its own (new
    generated data, folds). Without it the seeds share their queries, and a query counts once, with
    its mean over the seeds. The test is about queries: it says whether these trained rankers differ
    on queries like these, not how much another training run would differ; the spread over seeds
    shows that.
    """
    methods = list(dict.fromkeys(result.run.method for result in trained))
    if REFERENCE not in methods:
        return {}
    values = {method: _per_query(trained, method, pool) for method in methods}
    tests = {
        method: {
            metric: dr.fisher_test(ours, values[REFERENCE][metric], permutations=PERMUTATIONS)
            for metric, ours in values[method].items()
        }
        for method in methods
        if method != REFERENCE
    }
    return {
        "reference": REFERENCE,
        "test": "fisher",
        "alpha": ALPHA,
        "permutations": PERMUTATIONS,
        "queries": len(next(iter(values[REFERENCE].values()))),
        "p_values": {
            method: {metric: test.p_value for metric, test in of_method.items()}
            for method, of_method in tests.items()
        },
        "difference": {
            method: {metric: test.difference for metric, test in of_method.items()}
            for method, of_method in tests.items()
        },
    }


def compare_at_each(
    trained: Sequence[Trained], swept: str, values: Iterable[float], *, pool: bool
) -> dict[str, Any]:
    """The test at every value of a swept setting, by that value."""
    return {
        f"{value:g}": compare_with_dla(
            [each for each in trained if getattr(each.run, swept, None) == value], pool=pool
        )
        for value in values
    }


def _per_query(
    trained: Sequence[Trained], method: str, pool: bool
) -> dict[str, NDArray[np.float64]]:
    of_method = [result.per_query for result in trained if result.run.method == method]
    join = np.concatenate if pool else lambda parts: np.mean(parts, axis=0)
    return {metric: join([values[metric] for values in of_method]) for metric in of_method[0]}
