"""A small clean log that tests bend, and a dirty one."""

import numpy as np
import pyarrow as pa
import pytest

COLUMNS = ("session_id", "query_id", "doc_id", "position", "clicked")


def long_table(rows, names=COLUMNS):
    """Rows as an Arrow table."""
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in names]
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})


def dirty(sessions=300, seed=0):
    """Sessions over a few lists, one in ten of them broken in some way."""
    luck = np.random.default_rng(seed)
    rows = []
    for session in range(sessions):
        query = f"q{luck.integers(3)}"
        documents = luck.permutation(5)[: luck.integers(1, 5)]
        for place, document in enumerate(documents, 1):
            row = [f"s{session}", query, f"d{document}", float(place), int(luck.random() < 0.3)]
            if luck.random() < 0.1:
                row[luck.integers(5)] = None
            elif luck.random() < 0.1:
                row[3] = float(luck.choice([0, 1, 2, 2.5, 7, 5000]))
            rows.append((*row, str(session % 7), 1e9 + session, luck.choice(["desk", "phone"])))
            if luck.random() < 0.05:
                rows.append(rows[-1])
    names = ("session_id", "query_id", "doc_id", "position", "clicked")
    return long_table(rows, (*names, "client_id", "timestamp", "device"))


@pytest.fixture
def clean():
    """Three sessions on two lists of two queries."""
    return [
        ("s1", "q1", "a", 1, 0),
        ("s1", "q1", "b", 2, 1),
        ("s2", "q2", "c", 1, 0),
        ("s3", "q1", "a", 1, 0),
        ("s3", "q1", "b", 2, 1),
    ]
