"""Small worlds in which every parameter is known."""

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from dualrank.clicks.models.fitted import Fitted
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.models.registry import MODELS
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING, RankedLists

DEPTH = 4


def _rotated_lists(queries: int, *, ragged: bool = False) -> RankedLists:
    """Every query shows its documents in every rotation, so that documents connect the ranks."""
    rows, owners = [], []
    for q in range(queries):
        length = DEPTH - q % 3 if ragged else DEPTH
        own = np.arange(length) + q * DEPTH
        for shift in range(length):
            padding = [PADDING] * (DEPTH - length)
            rows.append(np.concatenate([np.roll(own, shift), padding]))
            owners.append(q)
    return RankedLists(np.array(rows, dtype=np.int32), np.array(owners, dtype=np.int32))


def _parameter(values):
    values = np.asarray(values, dtype=np.float64)
    return PairParameter(values, np.zeros_like(values), np.ones_like(values), 0.5)


def _known_model(name, pairs, seed=0):
    """A model of this kind with drawn parameters, as if it had been fitted."""
    rng, depth = np.random.default_rng(seed), DEPTH
    attraction = rng.uniform(0.1, 0.9, pairs)
    examination = np.minimum(np.linspace(1.0, 0.4, depth), 1.0)
    by_last_click = np.zeros((depth, depth + 1))
    for rank in range(depth):
        by_last_click[rank, : rank + 1] = rng.uniform(0.3, 0.9, rank + 1)
    by_last_click[0, 0] = 1.0
    shared = {
        "random-ctr": {"rate": np.full(depth, 0.3)},
        "rank-ctr": {"rate": np.linspace(0.6, 0.2, depth)},
        "pbm": {"examination": examination},
        "pbm-trust": {
            "relevant": np.linspace(1.0, 0.5, depth),
            "irrelevant": np.linspace(0.4, 0.0, depth),
        },
        "ubm": {"examination": by_last_click},
        "dcm": {"continuation": np.linspace(0.8, 0.5, depth)},
        "ccm": {
            "after_skip": np.array([0.9]),
            "after_irrelevant_click": np.array([0.8]),
            "after_relevant_click": np.array([0.4]),
        },
        "sdbn": {"continuation": np.array([1.0])},
        "dbn": {"continuation": np.array([0.85])},
    }.get(name, {})
    of_pairs = {"attraction": _parameter(attraction)}
    if name in ("dbn", "sdbn"):
        of_pairs["satisfaction"] = _parameter(rng.uniform(0.2, 0.8, pairs))
    model = MODELS[name]()
    model.fitted = Fitted(of_pairs, shared, np.ones(pairs, dtype=np.int64), 1, depth)
    return model


def _with_values(model, **values):
    """The same model with some pair parameters replaced."""
    pairs = dict(model.fitted.pairs)
    for name, new in values.items():
        pairs[name] = _parameter(new)
    model.fitted = replace(model.fitted, pairs=pairs)
    return model


@pytest.fixture(scope="session")
def rotated_lists():
    return _rotated_lists


@pytest.fixture(scope="session")
def known_model():
    return _known_model


@pytest.fixture(scope="session")
def with_values():
    return _with_values


@pytest.fixture(scope="session")
def yandex():
    """Real result pages of Yandex, split as in the file."""
    folder = os.environ.get("DUALRANK_DATA")
    if folder is None:
        pytest.skip("DUALRANK_DATA is not set: it names the folder that holds yandex_clicks/")
    path = Path(folder) / "yandex_clicks" / "sessions.tsv.zst"
    with path.open("rb") as file:
        text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")
        rows = [line.rstrip("\n").split("\t") for line in text][1:]
    sessions = np.repeat(np.arange(len(rows)), 10)
    table = pa.table(
        {
            "session_id": sessions,
            "query_id": np.array([row[1] for row in rows])[sessions],
            "doc_id": [document for row in rows for document in row[2].split()],
            "position": np.tile(np.arange(1, 11), len(rows)),
            "clicked": [click == "1" for row in rows for click in row[3].split()],
            "split": np.array([row[0] for row in rows])[sessions],
        }
    )
    log = ClickLog.from_frame(table, contexts=["split"])
    split = log.column("split")
    return {
        name: log.take_rows(np.flatnonzero(split.codes == code))
        for code, name in enumerate(split.names)
    }
