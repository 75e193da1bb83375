"""Every command reads the folder of a service while it runs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dualrank.cli.app import app
from dualrank.online.event_store import EventStore
from dualrank.online.records import Event, Impression

from .stores import collector_of, record, rows_of


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Lists in two orders, clicked by users who look at the first places."""
    folder = tmp_path_factory.mktemp("service") / "events"
    rng = np.random.default_rng(5)
    features = rng.normal(size=(20, 5, 3)).astype(np.float32)
    with EventStore(folder, wait=0.0) as store:
        collector = collector_of(store, most=300)
        happened = []
        for number in range(900):
            query = number % 20
            order = np.argsort(-features[query, :, 0] + rng.normal(size=5))
            store.show(
                Impression(
                    f"i{number}",
                    0.0,
                    f"q{query}",
                    tuple(f"d{each}" for each in order),
                    1,
                    client=f"c{number % 50}",
                    features=rows_of(features[query, order]),
                )
            )
            for place, each in enumerate(order):
                if rng.random() < (0.5 + 0.3 * np.tanh(features[query, each, 1])) / (place + 1):
                    happened.append(Event(f"e{each}", f"i{number}", f"d{each}"))
                    if rng.random() < 0.2:
                        happened.append(Event(f"b{each}", f"i{number}", f"d{each}", "purchase"))
        record(store, *happened)
        assert collector.collect() == [1, 2, 3]
        yield folder


def _run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def test_reduce_and_diagnose_read_the_segments(events, tmp_path):
    out = tmp_path / "log.parquet"
    said = _run("reduce", events, "--event", "purchase", "--out", out, "--json")
    assert json.loads(said.stdout)["sessions"] == 900
    _run("diagnose", events, "--json")


def test_train_reads_the_features_that_requests_brought(events, tmp_path):
    _run(
        *("train", events, "--features", events / "_features", "--out", tmp_path / "model"),
        *("--ranker", "linear", "--steps", 20, "--json"),
    )
    assert (tmp_path / "model" / "manifest.json").exists()
