"""Every command reads the folder of a service while it runs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dualrank.cli.app import app
from dualrank.data.features import read_features
from dualrank.data.log.read_log import read_log
from dualrank.online.events.event_store import EventStore
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


def test_a_command_reads_the_segments(events, tmp_path):
    out = tmp_path / "log.parquet"
    words = ["reduce", str(events), "--event", "purchase", "--out", str(out), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sessions"] == 900
    assert read_log(out).events["purchase"].sum() > 0


def test_a_log_is_joined_to_the_features_that_requests_brought(events):
    found = read_features(events / "_features")
    assert found.features.shape == (100, 3)
    log = read_log(events, found, contexts=["version", "swapped"])
    assert log.sessions == 900
    assert log.clicks.sum() > 300
