"""Purchases, carts and dwell times: kept apart from clicks, and summed without losing any."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import KEY, to_table, write_log
from dualrank.errors import DataError, SettingsError

from .conftest import COLUMNS, long_table

NAMES = (*COLUMNS, "device", "purchase", "dwell_time")


def random_rows(seed=0, sessions=300):
    """Sessions on a few lists, with purchases and seconds that need not follow clicks."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(sessions):
        query = int(rng.integers(4))
        documents = np.roll(["a", "b", "c"], rng.integers(3))[: 2 + query % 2]
        device = str(rng.choice(["phone", "desk"]))
        for place, document in enumerate(documents, 1):
            seconds = None if rng.random() < 0.6 else round(float(rng.exponential(20)), 3)
            click, bought = int(rng.random() < 0.4), int(rng.random() < 0.2)
            rows.append(
                (f"s{session}", f"q{query}", str(document), place, click, device, bought, seconds)
            )
    return rows


def plainly(rows, column):
    """The sums by device, query, document and position, in plain Python."""
    sums = Counter()
    for row in rows:
        if row[column]:
            sums[row[5], row[1], row[2], row[3]] += row[column]
    return {key: pytest.approx(value, abs=1e-4) for key, value in sums.items()}


def sums_of(log, kind):
    found = Counter()
    for row, place in zip(*np.nonzero(log.event(kind)), strict=True):
        device = log.column("device")
        document = log.lists.documents[log.list_of[row], place]
        query = log.catalogue.query_ids[log.lists.queries[log.list_of[row]]]
        name = log.catalogue.doc_ids[document]
        where = (device.names[device.codes[row]], str(query), str(name), int(place) + 1)
        found[where] += log.event(kind)[row, place]
    return dict(found)


@pytest.fixture(scope="module")
def rows():
    return random_rows()


def read(rows, **options):
    return read_log(
        long_table(rows, NAMES),
        contexts=["device"],
        event_kinds=["purchase", "dwell_time"],
        **options,
    )


def test_amounts_are_summed_by_list_pattern_context_and_position(rows):
    log = read(rows)
    assert sums_of(log, "purchase") == plainly(rows, 6)
    assert sums_of(log, "dwell_time") == plainly(rows, 7)
    without = read_log(long_table(rows, NAMES), contexts=["device"])
    assert np.array_equal(log.clicks, without.clicks)
    assert np.array_equal(log.counts, without.counts)
    assert without.events == {}


def test_the_order_of_rows_changes_no_bit(rows):
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    one, other = read(rows), read(shuffled)
    assert all(np.array_equal(one.event(kind), other.event(kind)) for kind in one.events)


def test_events_stay_right_through_cutting_and_joining(rows):
    log = read(rows)
    parts = log.split("device")
    for kind in log.events:
        assert sum(p.event(kind).sum() for p in parts.values()) == pytest.approx(
            log.event(kind).sum()
        )
    again = ClickLog.from_clicks(log.lists, log.list_of, log.clicks, log.counts, events=log.events)
    assert len(again.counts) < len(log.counts)
    assert again.event("purchase").sum() == log.event("purchase").sum()
    pairs = log.catalogue.pairs()
    data = Dataset.from_arrays(
        np.zeros((len(pairs), 1)),
        [query for query, _ in reversed(pairs)],
        doc_ids=[document for _, document in reversed(pairs)],
    )
    assert sums_of(
        read_log(long_table(rows, NAMES), data, contexts=["device"], event_kinds=["purchase"]),
        "purchase",
    ) == plainly(rows, 6)


def test_a_saved_log_keeps_its_events_and_old_files_are_read(tmp_path, rows):
    log = read(rows)
    write_log(log, tmp_path / "reduced.parquet")
    again = read_log(tmp_path / "reduced.parquet", event_kinds=["purchase"])
    assert list(again.events) == ["purchase", "dwell_time"]
    assert all(np.array_equal(again.event(kind), log.event(kind)) for kind in log.events)
    with pytest.raises(DataError, match=r"no event 'cart' besides clicks; it has purchase, dwell"):
        read_log(tmp_path / "reduced.parquet", event_kinds=["cart"])

    table = to_table(read_log(long_table(rows, NAMES)))
    assert "events" not in {f.name for f in table.schema.field("happened").type.value_type}
    note = json.loads(table.schema.metadata[KEY])
    del note["events"], note["digest"]
    old = tmp_path / "old.parquet"
    pa.parquet.write_table(table.replace_schema_metadata({KEY: json.dumps(note)}), old)
    assert read_log(old).events == {}


def test_a_log_written_out_again_adds_up_to_the_same(rows):
    log = read(rows)
    table = log.to_table()
    assert set(table["purchase"].to_pylist()) == {0.0, 1.0}
    again = read_log(table, contexts=["device"], event_kinds=["purchase", "dwell_time"])
    assert np.array_equal(again.event("purchase"), log.event("purchase"))
    assert np.allclose(again.event("dwell_time"), log.event("dwell_time"), atol=1e-3)


@pytest.mark.parametrize("form", ["text", "boolean", "renamed"])
def test_an_event_may_be_text_or_true_or_have_another_name(tmp_path, clean, form):
    if form == "text":
        values, name = ["", "1", "0", "0.0", "true"], "purchase"
    elif form == "boolean":
        values, name = [None, True, False, False, True], "purchase"
    else:
        values, name = [None, 1, 0, 0, 1], "bought"
    source = long_table(clean).append_column(name, pa.array(values))
    if form == "text":
        pyarrow.csv.write_csv(source, tmp_path / "log.csv")
        source = tmp_path / "log.csv"
    columns = {"purchase": "bought"} if form == "renamed" else {}
    log = read_log(source, event_kinds=["purchase"], columns=columns)
    assert log.event("purchase").tolist() == [[0, 2], [0, 0]]


def test_a_repeated_row_counts_once_and_dropped_sessions_not_at_all(clean):
    rows = [(*row, 3.0 if row[2] == "b" else None) for row in clean]
    rows += [rows[1], ("s4", "q1", "a", 1, 0, 1.0), ("s4", "q1", "b", 3, 0, 7.0)]
    table = long_table(rows, (*COLUMNS, "cart"))
    log = read_log(table, event_kinds=["cart"], max_bad_share=0.5)
    assert log.event("cart").sum() == 6


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_what_is_no_amount_is_refused_with_its_session(clean, value):
    table = long_table(
        [(*row, value if row[0] == "s2" else 0.0) for row in clean], (*COLUMNS, "purchase")
    )
    with pytest.raises(DataError, match=r"session 's2' has '-?\w+(\.0)?' as the amount of the eve"):
        read_log(table, event_kinds=["purchase"])


def test_text_that_is_no_number_is_refused(clean):
    table = long_table(
        [(*row, "yes" if row[0] == "s3" else "0") for row in clean], (*COLUMNS, "purchase")
    )
    with pytest.raises(DataError, match="session 's3' has 'yes' as the amount"):
        read_log(table, event_kinds=["purchase"])


def test_a_column_that_is_not_there_or_means_something_else_is_named(clean):
    with pytest.raises(DataError, match=r"no column 'cart' of events; the log has session_id, que"):
        read_log(long_table(clean), event_kinds=["cart"])
    with pytest.raises(DataError, match=r"no column 'basket' \(as cart\) of events"):
        read_log(long_table(clean), event_kinds=["cart"], columns={"cart": "basket"})
    with pytest.raises(SettingsError, match="'position' is what a log's own column means"):
        read_log(long_table(clean), event_kinds=["position"])
    with pytest.raises(SettingsError, match="the event 'purchase=5' is no name such as purchase"):
        read_log(long_table(clean), event_kinds=["purchase=5"])


def test_a_log_knows_its_events_from_the_start():
    lists = RankedLists(np.array([[0, 1]], np.int32), np.zeros(1, np.int32))
    clicks = np.array([[True, False], [True, False], [False, False]])
    bought = np.array([[0.5, 0], [1, 0], [0, 2]])
    log = ClickLog.from_clicks(lists, np.zeros(3, int), clicks, events={"purchase": bought})
    assert log.counts.tolist() == [1, 2]
    assert log.event("purchase").tolist() == [[0, 2], [1.5, 0]]
    assert log.take_rows(np.array([1])).event("purchase").tolist() == [[1.5, 0]]


def test_periods_and_filters_take_their_events_along(rows):
    table = long_table(rows, NAMES)
    times = [float(row[0][1:]) for row in rows]
    table = table.append_column("timestamp", pa.array(times))
    log = read_log(table, event_kinds=["purchase"], max_clicks=1)
    clicks = Counter()
    for row in rows:
        clicks[row[0]] += row[4]
    kept = sorted({float(row[0][1:]) for row in rows if clicks[row[0]] <= 1})
    assert log.sessions == len(kept)
    for number, part in enumerate(log.split("period").values()):
        assert part.event("purchase").sum() == sum(
            row[6]
            for row in rows
            if clicks[row[0]] <= 1 and _period(float(row[0][1:]), log, kept) == number
        )


def _period(time, log, kept):
    """Periods follow each other in time, so that their sizes tell where they end."""
    sizes = np.bincount(log.column("period").codes, log.counts)
    return int(np.searchsorted(np.cumsum(sizes), kept.index(time), side="right"))
