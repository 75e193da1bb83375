"""A small log in shards, and a training on it."""

import numpy as np

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.splitting import write_shards
from dualrank.learning.fit import fit
from dualrank.learning.sharded.sharded_source import ShardedSource
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

QUERIES, CANDIDATES, DEPTH = 60, 7, 5
NAMES = ("desktop", "phone", "tablet")


def write_problem(folder, shards=3, seed=0, features=True, clicked=1.0):
    """Two lists a query, some short, some without a click; not every query was displayed.

    Those after the share that is `clicked` were passed over by everybody.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES * CANDIDATES, 4)).astype(np.float32)
    queries = np.array([f"query {number}" for number in range(QUERIES)])
    data = Dataset(
        X,
        np.arange(0, len(X) + 1, CANDIDATES),
        queries,
        doc_ids=np.array([f"doc {row}" for row in range(len(X))]),
    )
    shown = np.repeat(np.arange(QUERIES - 4, dtype=np.int32), 2)
    documents = shown[:, None] * CANDIDATES + np.argsort(
        rng.random((len(shown), CANDIDATES)) - 0.3 * X[:, 0].reshape(QUERIES, -1)[shown]
    )
    documents = documents[:, :DEPTH].astype(np.int32)
    documents[np.arange(DEPTH) >= rng.integers(2, DEPTH + 1, len(shown))[:, None]] = -1
    lists = RankedLists(documents, shown)
    list_of = np.repeat(np.arange(len(shown)), 12)
    chance = np.exp(0.8 * X[:, 0])[documents] * lists.mask / np.arange(2, DEPTH + 2)
    clicks = rng.random((len(list_of), DEPTH)) < chance[list_of]
    clicks[(rng.random(len(shown)) < 0.2)[list_of]] = False
    clicks[int(len(clicks) * clicked) :] = False
    log = ClickLog.from_clicks(
        lists,
        list_of,
        clicks,
        rng.integers(1, 9, len(list_of)),
        columns={"device": Column(NAMES, rng.integers(3, size=len(list_of)).astype(np.int32))},
        catalogue=Catalogue(queries, data.doc_ids, data.query_of_document),
    )
    account = ReadingReport("problem", log.sessions * DEPTH, log.sessions, log.sessions, 1)
    log = ClickLog(**{**vars(log), "reading": account})
    return write_shards(log, folder, shards, data if features else None)


def joined(sharded):
    """All shards as one log and one data set, in the order in which they are drawn from."""
    first_list = first_document = first_query = 0
    logs, data = [], []
    for shard in sharded.shards:
        log = shard.log
        lists = log.lists.documents
        logs.append(
            (
                np.where(lists < 0, -1, lists + first_document),
                log.lists.queries + first_query,
                log.list_of + first_list,
                log.clicks,
                log.counts,
                log.columns["device"].codes,
            )
        )
        data.append((shard.dataset.features, shard.dataset.lengths))
        first_list += shard.lists
        first_document += shard.documents
        first_query += shard.queries
    documents, queries, list_of, clicks, counts, codes = map(
        np.concatenate, zip(*logs, strict=True)
    )
    features, lengths = map(np.concatenate, zip(*data, strict=True))
    whole = ClickLog(
        RankedLists(documents.astype(np.int32), queries.astype(np.int32)),
        list_of,
        clicks,
        counts,
        {"device": Column(NAMES, codes)},
    )
    names = np.arange(len(lengths)).astype(str)
    return whole, Dataset(features, np.append(0, np.cumsum(lengths)), names)


SETTINGS = {
    "ranker": DNN((3,)),
    "settings": TrainingSettings(
        steps=60,
        batch_size=33,
        checkpoint_every=1_000,
        validate_every=20,
        normalisation="clicks",
        device="cpu",
    ),
}


def learn(folder, steps, checkpoint=None, progress=None):
    """The scores of all documents, and the curve."""
    sharded = ShardedLog.open(folder / "log")
    model = fit(sharded, steps=steps, checkpoint=checkpoint, progress=progress, **SETTINGS)
    data = joined(sharded)[1]
    return {"scores": model.predict(data), "examination": model.propensity.examination}


def sampled(folder):
    """What every worker holds in memory."""
    source = ShardedSource.of(ShardedLog.open(folder / "log"), 0.2, 3)
    sample, scaler = source.sample, source.scaler("standard")
    return {
        "documents": sample.log.lists.documents,
        "counts": sample.log.counts,
        "codes": sample.log.columns["device"].codes,
        "features": sample.dataset.features,
        "held_out": sample.held_out.lists.documents,
        "shift": scaler.shift,
        "scale": scaler.scale,
        "devices": source.sessions_by("device"),
    }
