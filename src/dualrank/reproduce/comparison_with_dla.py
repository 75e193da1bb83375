"""Is a method really better or worse than dual learning, or than another?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.certainty import LEVEL
from dualrank.reproduce.experiment import Trained

REFERENCE = "dla"
ALPHA = LEVEL
PERMUTATIONS = 100_000


def compare_with_dla(trained: Sequence[Trained], *, pool: bool) -> dict[str, Any]:
    """Every method against dual learning."""
    return compare_with(REFERENCE, trained, pool=pool)


def compare_with(
    reference: str,
    trained: Sequence[Trained],
    *,
    pool: bool,
    permutations: int = PERMUTATIONS,
) -> dict[str, Any]:
    """Fisher's randomisation test of every method against one of them, over queries.

    `pool` joins the queries of all seeds, for data in which every seed has its own (new
    generated data, folds). Without it the seeds share their queries, and a query counts once, with
    its mean over the seeds. The test is about queries: it says whether these trained rankers differ
    on queries like these, not how much another training run would differ; the spread over seeds
    shows that. Seeds with which one of the two did not run take no part.
    """
    methods = list(dict.fromkeys(result.run.method for result in trained))
    if reference not in methods:
        return {}
    of = {
        method: {each.run.seed: each.per_query for each in trained if each.run.method == method}
        for method in methods
    }
    tests = {}
    for method in methods:
        seeds = [seed for seed in of[method] if seed in of[reference]]
        if method != reference and seeds:
            ours, theirs = (_joined(of[name], seeds, pool) for name in (method, reference))
            tests[method] = {
                metric: dr.fisher_test(ours[metric], theirs[metric], permutations=permutations)
                for metric in ours
            }
    whole = _joined(of[reference], list(of[reference]), pool)
    return {
        "reference": reference,
        "test": "fisher",
        "alpha": ALPHA,
        "permutations": permutations,
        "queries": len(next(iter(whole.values()))),
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


def _joined(
    of_seeds: Mapping[int, dict[str, NDArray[np.float64]]], seeds: Sequence[int], pool: bool
) -> dict[str, NDArray[np.float64]]:
    join = np.concatenate if pool else lambda parts: np.mean(parts, axis=0)
    return {
        metric: join([of_seeds[seed][metric] for seed in seeds]) for metric in of_seeds[seeds[0]]
    }
