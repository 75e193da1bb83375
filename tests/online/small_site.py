"""A small site: queries, users who click what is shown, segments of their sessions."""

import time
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dualrank as dr
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.online.events.segments import Segments

QUERIES, DOCUMENTS, DEPTH = 240, 8, 6
TRUTH = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20]) / 0.68


def make_data(seed=0):
    """Two features tell relevance, two do not."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(QUERIES * DOCUMENTS, 4)).astype(np.float32)
    worth = features[:, 0] + 0.7 * features[:, 1] + 0.4 * rng.normal(size=len(features))
    grades = np.digitize(worth, [-0.5, 0.3, 1.0, 1.8])
    queries = np.repeat(np.arange(QUERIES), DOCUMENTS)
    names = [f"d{i}" for i in range(len(features))]
    return Dataset.from_arrays(features, queries, grades, doc_ids=names)


def relevance(data):
    """The chance of a click on what is examined."""
    return 0.1 + 0.9 * (2.0 ** data.require_grades() - 1) / 15


def sessions(data, scores, count, rng, eta=1.0, *, invert=False, client=None):
    """Sessions on the top of a ranking, as a segment holds them."""
    lists = top_lists(data, scores, DEPTH)
    chosen = rng.integers(len(lists), size=count)
    shown = lists.documents[chosen]
    chance = relevance(data)[shown]
    if invert:
        chance = 1.05 - chance
    clicked = rng.random(shown.shape) < chance * (TRUTH * 0.68) ** eta
    return as_segment(data, lists.queries[chosen], shown, clicked, client)


def as_segment(data, queries, shown, clicked, client=None):
    """Rows of a segment."""
    count, depth = shown.shape
    session, prefix = np.repeat(np.arange(count), depth), uuid4().hex[:12]
    columns = {
        "session_id": np.array([f"{prefix}-{i}" for i in range(count)])[session],
        "query_id": data.query_ids[queries][session],
        "doc_id": data.ids_of_documents()[shown.reshape(-1)],
        "position": np.tile(np.arange(1, depth + 1, dtype=np.int32), count),
        "clicked": clicked.reshape(-1),
        "timestamp": np.full(count * depth, time.time()),
    }
    if client is not None:
        columns["client_id"] = np.asarray(client)[session]
    return pa.table(columns)


class Events(Segments):
    """A folder of events to which whole segments are written."""

    def add(self, table, features=None):
        """Close one more."""
        number = max(self.closed(), default=0) + 1
        self.clicks(number).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self.clicks(number))
        if features is not None:
            self.features_place(number).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(features, self.features_place(number))
        return number


def feature_rows(data, features=None):
    """The features of all documents, as segments hold them."""
    values = data.features if features is None else features
    return pa.table(
        {
            "query_id": np.repeat(data.query_ids, data.lengths),
            "doc_id": data.ids_of_documents(),
            "features": pa.array(list(values)),
        }
    )


def first_model(data, seed=0, *, invert=False, steps=150):
    """A model of a small log of a mixed ranking."""
    rng = np.random.default_rng(seed)
    luck = rng.normal(size=data.document_count) + 0.5 * data.features[:, 0]
    log = dr.ClickLog.read(sessions(data, luck, 4_000, rng, invert=invert), data)
    return dr.fit(
        log, data, method="likelihood", ranker=dr.DNN((8,)), steps=steps, validation=0, seed=seed
    )
