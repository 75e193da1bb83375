"""Interleaved sessions with a preference that is known."""

import numpy as np
import pyarrow as pa
import pytest

from dualrank.decisions.interleaving_lists import build_lists

EXAMINED = np.array([0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
DAY = 86_400


@pytest.fixture(scope="session")
def runs():
    """Two arms that rank eight documents of forty queries; d0 to d3 are good, and new knows it."""
    found = {"old": {}, "new": {}}
    for query in range(40):
        rng = np.random.default_rng(query)
        good, all_of_them = rng.permutation(4), rng.permutation(8)
        found["new"][f"q{query}"] = [f"d{d}" for d in [*good, *(4 + rng.permutation(4))]]
        found["old"][f"q{query}"] = [f"d{d}" for d in all_of_them]
    return found


@pytest.fixture(scope="session")
def lists(runs):
    return build_lists(runs, depth=6, per_query=8, seed=3)


def is_good(document):
    return int(document[1:]) < 4


@pytest.fixture(scope="session")
def sessions():
    """Make the rows of a log: lists are drawn, and users click what is good (or anything)."""

    def make(lists, count, *, seed=0, likes=is_good, days=10):
        rng = np.random.default_rng(seed)
        rows = []
        names = list(lists.lists)
        for session in range(count):
            query = names[rng.integers(len(names))]
            drawn = lists.lists[query]
            number = rng.choice(len(drawn), p=[each.probability for each in drawn])
            each = drawn[number]
            for place, document in enumerate(each.documents):
                chance = EXAMINED[place] * (0.6 if likes(document) else 0.1)
                rows.append(
                    {
                        "session_id": f"s{session}",
                        "query_id": query,
                        "doc_id": document,
                        "position": place + 1,
                        "clicked": bool(rng.random() < chance),
                        "arm": each.arms[place],
                        "credit": each.credits[place],
                        "interleaving": int(number) + 1,
                        "timestamp": float(session * days * DAY // count),
                    }
                )
        return pa.Table.from_pylist(rows)

    return make


@pytest.fixture(scope="session")
def log(lists, sessions):
    """A log in which new is better."""
    return sessions(lists, 1_200)
