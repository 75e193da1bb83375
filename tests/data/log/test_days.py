"""Days that were reduced one by one add up to the log of all of them, row by row."""

import json
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.click_log import PERIOD
from dualrank.data.dataset import Dataset
from dualrank.data.log.days import (
    Day,
    LogFolder,
    day_name,
    day_of_log,
    reduced_with,
    refuse_unlike,
)
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import KEY, write_log
from dualrank.errors import DataError, SettingsError

from ...forks import FORKS
from .conftest import COLUMNS, long_table

NAMES = (*COLUMNS, "timestamp", "device", "client_id", "purchase", "dwell_time")
OPTIONS = {
    "contexts": ("device",),
    "event_kinds": ("purchase", "dwell_time"),
    "partial": True,
    "max_clicks": 2,
    "max_bad_share": 1.0,
}


def day_rows(rng, day, stamp=1, most=40):
    """Lists that return, gaps, flaws, contexts, and amounts that are no binary sums."""
    rows = []
    for session in range(rng.integers(1, most)):
        documents = np.roll(["a", "b", "c", "d"], rng.integers(4))[: rng.integers(1, 5)]
        places = np.arange(1, len(documents) + 1)
        if session > 0 and rng.random() < 0.4:
            places = np.sort(rng.choice(np.arange(1, 7), len(documents), replace=False))
        if session > 0 and rng.random() < 0.1:
            places[0] += rng.integers(-2, 3)
        query, client = f"q{rng.integers(3)}", f"c{rng.integers(4)}"
        device = str(rng.choice(["phone", "desk", f"only on {day}"]))
        clicks = rng.random(len(documents)) < 0.3
        # The first session is without a flaw: a day with nothing to keep is refused.
        clicks[1:] &= session > 0
        for place, document, click in zip(places, documents, clicks, strict=True):
            bought = int(rng.random() < 0.2)
            # A column of nothing but None would have no type.
            none = session > 0 and rng.random() < 0.5
            seconds = None if none else round(float(rng.exponential(20)), 6)
            shown = (f"{day}/{session}", query, str(document), int(place), int(click))
            rows.append((*shown, stamp, device, client, bought, seconds))
    return rows


def random_days(rng):
    """Up to four days, called after the number that is their time."""
    stamps = sorted(rng.choice(np.arange(1, 10), rng.integers(1, 5), replace=False))
    return {str(stamp): day_rows(rng, str(stamp), int(stamp)) for stamp in stamps}


def dated(count, seed=0):
    """Days that are called by dates."""
    rng = np.random.default_rng(seed)
    return {name: day_rows(rng, name) for name in (f"2026-11-{d:02}" for d in range(1, count + 1))}


def reduced_whole(days, **options):
    rows = [row for name in days for row in days[name]]
    return read_log(long_table(rows, NAMES), **{**OPTIONS, **options})


def add_days(root, days, **options):
    folder, how = LogFolder(root), LogOptions(**{**OPTIONS, **options, "periods": 0})
    for name, rows in days.items():
        with folder.held():
            folder.refuse(name, how, ())
            folder.add(name, read_log(long_table(rows, NAMES), options=how), how, ())
    return folder


def equal(one, other):
    """Every array to the last bit; of the account all but the names and the examples."""
    for name in ("list_of", "clicks", "counts"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert np.array_equal(one.lists.documents, other.lists.documents)
    assert np.array_equal(one.lists.queries, other.lists.queries)
    for name in ("query_ids", "doc_ids", "query_of_document"):
        assert np.array_equal(getattr(one.catalogue, name), getattr(other.catalogue, name))
    assert list(one.columns) == list(other.columns)
    for name, column in one.columns.items():
        assert column.names == other.columns[name].names
        assert np.array_equal(column.codes, other.columns[name].codes)
    assert list(one.events) == list(other.events)
    for kind, amounts in one.events.items():
        assert np.array_equal(amounts, other.events[kind])
    assert account(one.reading) == account(other.reading)


def account(reading):
    problems = tuple(replace(problem, example="") for problem in reading.problems)
    return replace(reading, source="", problems=problems)


@pytest.fixture(scope="module")
def reduced_once(tmp_path_factory):
    """Three days, as they were added."""
    return add_days(tmp_path_factory.mktemp("days"), dated(3)).folder


@pytest.fixture
def folder(tmp_path, reduced_once):
    """A copy of them, to be changed."""
    shutil.copytree(reduced_once, tmp_path / "log")
    return LogFolder(tmp_path / "log")


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(st.integers(0, 2**32))
def test_days_add_up_to_the_reduction_of_all_and_dropping_one_to_that_of_the_rest(
    tmp_path_factory, seed
):
    root, rng = tmp_path_factory.mktemp("days"), np.random.default_rng(seed)
    days = random_days(rng)
    folder = add_days(root / "log", days)
    equal(read_log(root / "log"), reduced_whole(days))
    equal(read_log(str(root / "log" / "*.parquet"), periods=0), reduced_whole(days, periods=0))
    gone = str(rng.choice(list(days)))
    folder.drop([gone])
    left = {name: rows for name, rows in days.items() if name != gone}
    if left:
        equal(read_log(root / "log", periods=2), reduced_whole(left, periods=2))
    else:
        with pytest.raises(DataError, match="no log in this folder"):
            read_log(root / "log")


def test_a_day_is_the_same_file_whenever_it_is_added(tmp_path, folder):
    days = {"2026-11-02": dated(3)["2026-11-02"]}
    one, other = (each.path("2026-11-02") for each in (add_days(tmp_path / "one", days), folder))
    assert one.read_bytes() == other.read_bytes()


def test_periods_begin_with_days_of_about_equally_many_sessions(folder):
    assert read_log(folder.folder, periods=2).columns[PERIOD].names[0] == "2026-11-01"
    assert len(read_log(folder.folder, periods=2).columns[PERIOD].names) == 2
    assert PERIOD not in read_log(folder.folder, periods=1).columns
    assert read_log(folder.folder, periods=100).columns[PERIOD].names == tuple(folder.names)
    assert PERIOD not in read_log(folder.path("2026-11-03")).columns
    some = read_log([folder.path("2026-11-03"), folder.path("2026-11-01")])
    assert some.columns[PERIOD].names == ("2026-11-01", "2026-11-03")


def test_a_log_with_periods_of_its_own_keeps_them(tmp_path):
    rows = {name: [(*row[:6], "old", *row[7:]) for row in rows] for name, rows in dated(2).items()}
    how = LogOptions(contexts=(PERIOD,), periods=0, max_bad_share=1.0, partial=True)
    names = tuple(PERIOD if name == "device" else name for name in NAMES)
    for name, table in rows.items():
        log = read_log(long_table(table, names), options=how)
        LogFolder(tmp_path).add(name, log, how, ())
    assert read_log(tmp_path).columns[PERIOD].names == ("old",)


def test_days_point_to_features_and_are_asked_for_what_they_have(folder):
    pairs = [(f"q{query}", document) for query in range(3) for document in "abcd"]
    data = Dataset.from_arrays(
        np.zeros((12, 1)), [query for query, _ in pairs], doc_ids=[name for _, name in pairs]
    )
    rows = [row for each in dated(3).values() for row in each]
    whole = read_log(long_table(rows, NAMES), data, **OPTIONS, periods=0)
    asked = {"contexts": ["device"], "event_kinds": ["purchase"]}
    added = read_log(folder.folder, data, **asked, periods=0)
    assert np.array_equal(added.lists.documents, whole.lists.documents)
    assert np.array_equal(added.counts, whole.counts)
    for asked in ({"contexts": ["layout"]}, {"event_kinds": ["cart"]}):
        with pytest.raises(DataError, match=r"the log has no (column 'layout'|event 'cart')"):
            read_log(folder.folder, **asked)
    with pytest.raises(SettingsError, match="this log is reduced already"):
        read_log(folder.folder, max_clicks=3)


def test_accounts_are_summed_and_the_first_example_stays(folder):
    whole = read_log(folder.folder).reading
    days = [read_log(folder.path(name)).reading for name in folder.names]
    assert whole.source == str(folder.folder)
    assert whole.rows == sum(day.rows for day in days)
    assert whole.filtered == {"max_clicks": sum(day.filtered["max_clicks"] for day in days)}
    first = next(problem for day in days for problem in day.problems)
    assert first.example in {problem.example for problem in whole.problems}
    assert [client.share_of_clicks for client in whole.clients] == [
        client.clicks / whole.clicks for client in whole.clients
    ]


def test_user_behavior_insights_add_up_day_by_day(tmp_path):
    how = LogOptions(event_kinds=("add_to_cart", "dwell_time"), periods=0)
    records = []
    for number in range(12):
        name = f"u{number}"
        records.append(
            {"query_id": name, "user_query": "ram", "query_response_hit_ids": ["x", "y", "z"]}
        )
        for place, action in ((1 + number % 3, "click"), (1 + number % 2, "add_to_cart")):
            about = {"object": {"object_id": "xyz"[place - 1]}, "position": {"ordinal": place}}
            about["dwell_time"] = 0.1 * number
            records.append({"query_id": name, "action_name": action, "event_attributes": about})

    def read(part, name):
        path = tmp_path / f"{name}.ndjson"
        path.write_text("".join(json.dumps(record) + "\n" for record in part))
        return read_log(path, events=path, options=how)

    folder = LogFolder(tmp_path / "log")
    for day in range(3):
        part = [each for each in records if int(each["query_id"][1:]) % 3 == day]
        folder.add(f"day-{day}", read(part, f"day-{day}"), how, ("click",))
    equal(read_log(folder.folder, periods=0), read(records, "whole"))


def test_sums_of_amounts_do_not_depend_on_where_days_are_cut(tmp_path):
    how = LogOptions(event_kinds=("dwell_time",), periods=0)
    names = (*COLUMNS, "dwell_time")
    rows = [(f"s{i}", "q", "a", 1, 1, 0.1) for i in range(40)]
    one = read_log(long_table(rows[:2], names), options=how)
    for day in range(20):
        LogFolder(tmp_path).add(f"{day:02}", one, how, ())
    assert sum([0.2] * 20) != 4.0
    whole = read_log(long_table(rows, names), options=how)
    assert np.array_equal(read_log(tmp_path, periods=0).events["dwell_time"], [[4.0]])
    assert np.array_equal(whole.events["dwell_time"], [[4.0]])


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"contexts": ()}, "this day has no contexts, and 2026-11-02 has the contexts 'device'"),
        (
            {"event_kinds": ("purchase",)},
            "has the events 'purchase', and 2026-11-02 has the events 'purchase', 'dwell_time'",
        ),
        ({"partial": False}, "has no partial lists, and 2026-11-02 has partial lists"),
        ({"max_clicks": None}, "has no max_clicks, and 2026-11-02 has max_clicks=2"),
        ({"max_clicks": 5}, "has max_clicks=5, and 2026-11-02 has max_clicks=2"),
        ({"max_client_share": 0.5}, "has max_client_share=0.5, and 2026-11-02 has no max_client"),
    ],
)
def test_days_that_count_other_things_are_refused(folder, other, sentence):
    other = LogOptions(**{**OPTIONS, **other})
    with pytest.raises(DataError, match=r"log/2026-11-03\.parquet: this day has") as refused:
        folder.refuse("2026-11-03", other, (), force=True)
    assert sentence in str(refused.value)
    assert str(refused.value).endswith("are reduced with the same options")
    changed_note(folder.path("2026-11-03"), reduced_with=reduced_with(other, ()))
    with pytest.raises(DataError) as refused:
        read_log(folder.folder)
    assert sentence in str(refused.value)


def test_a_day_with_many_values_of_an_option_is_refused_in_a_short_sentence(tmp_path):
    many = {"max_client_share": [0.5] * 500}
    days = [Day(tmp_path / "1", "1", many, 1, 1), Day(tmp_path / "2", "2", {}, 1, 1)]
    with pytest.raises(DataError, match=r"the max_client_share 0\.5, .*\(500 in all\)") as refused:
        refuse_unlike(days)
    assert len(str(refused.value).replace(str(tmp_path), "")) < 400


def test_clicks_of_other_actions_do_not_add_up(folder):
    with pytest.raises(DataError, match="has the actions 'buy', and 2026-11-03 has the actions"):
        folder.refuse("2026-11-04", LogOptions(**OPTIONS), ("buy",))


def test_a_day_counts_once(folder):
    with pytest.raises(SettingsError, match="the day 2026-11-02 is there already; give force=True"):
        folder.refuse("2026-11-02", LogOptions(**OPTIONS), ())
    folder.refuse("2026-11-02", LogOptions(**OPTIONS), (), force=True)
    (folder.folder / "backup").mkdir()
    shutil.copy(folder.path("2026-11-02"), folder.folder / "backup")
    with pytest.raises(DataError, match=r"the day 2026-11-02 is also in .*; give one of them"):
        read_log(folder.folder)
    shutil.move(folder.folder / "backup" / "2026-11-02.parquet", folder.path("copy"))
    with pytest.raises(DataError, match="the day 2026-11-02 is also in"):
        read_log(folder.folder)
    with pytest.raises(DataError, match=r"copy\.parquet: this is the day 2026-11-02; the file of"):
        folder.refuse("2026-11-05", LogOptions(**OPTIONS), ())


def test_other_logs_in_the_folder_are_not_added_up(folder, clean):
    write_log(read_log(long_table(clean)), folder.path("other"))
    with pytest.raises(DataError, match=r"is a reduced log among 4 files; .*reduce --append"):
        read_log(folder.folder)
    with pytest.raises(DataError, match=r"other\.parquet: not a day of a log; days are added to"):
        folder.refuse("2026-11-04", LogOptions(**OPTIONS), ())
    pq.write_table(long_table(clean), folder.path("other"))
    with pytest.raises(DataError, match="is a reduced log among 4 files"):
        read_log(folder.folder)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "_x", "-x", "a b", "day=", "x\n", "é", "x" * 101, "a\\b"]
)
def test_a_day_is_no_path(name):
    with pytest.raises(SettingsError, match="names no day; expected up to 100 letters"):
        day_name(name)


@pytest.mark.parametrize(
    ("log", "day"),
    [
        ("clicks/2026-11-02.parquet", "2026-11-02"),
        ("20261102.csv.gz", "20261102"),
        ("2026-11-02/", "2026-11-02"),
        ("2026-11-02T13.jsonl", "2026-11-02T13"),
        ("clicks/day=monday", "monday"),
        ("day=monday.parquet", "monday"),
    ],
)
def test_a_log_may_be_called_after_its_day(log, day):
    assert day_of_log(log) == day


@pytest.mark.parametrize(
    "log", ["clicks.parquet", "2026/", "2026-11-*.csv", "../", "a-2026-11-02.csv"]
)
def test_other_logs_are_not_taken_for_a_day(log):
    with pytest.raises(SettingsError, match="not called after a day; name it, such as day=2026"):
        day_of_log(log)


def test_a_damaged_day_is_named_and_can_be_replaced_or_dropped(folder):
    damaged = folder.path("2026-11-02")
    whole = damaged.read_bytes()
    for content, what in (
        (whole[: len(whole) // 2], "not a readable Parquet file"),
        (whole[:40] + bytes(40) + whole[80:], "damaged: not a reduced log"),
        (b"", "2026-11-02.parquet: not a readable Parquet file"),
    ):
        damaged.write_bytes(content)
        with pytest.raises(DataError, match=what) as refused:
            read_log(folder.folder)
        assert str(damaged) in str(refused.value)
    with pytest.raises(DataError, match=r"2026-11-02\.parquet: not a readable Parquet file"):
        folder.refuse("2026-11-04", LogOptions(**OPTIONS), ())
    folder.refuse("2026-11-02", LogOptions(**OPTIONS), (), force=True)
    folder.drop(["2026-11-02"])
    assert read_log(folder.folder, periods=9).columns[PERIOD].names == ("2026-11-01", "2026-11-03")


def changed_note(path, **changes):
    """The same rows beside another note, without a digest: as an attacker would write it."""
    table = pq.read_table(path)
    note = {**json.loads(table.schema.metadata[KEY]), **changes}
    del note["digest"]
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(note)}), path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"day": "../x"}, "it does not tell which day it is"),
        ({"day": 5}, "damaged"),
        ({"reduced_with": None}, "it does not tell which day it is"),
        ({"reading": None}, "damaged"),
        ({"columns": {"device": ["x"]}}, "a value of device is not among those that it has"),
        ({"columns": {}}, "do not add up"),
        ({"events": []}, "do not add up"),
    ],
)
def test_a_day_with_a_forged_note_is_refused(folder, changes, sentence):
    changed_note(folder.path("2026-11-02"), **changes)
    with pytest.raises(DataError, match=sentence):
        read_log(folder.folder)


def add(folder, log, how, writer=pq.ParquetWriter.write_table):
    pq.ParquetWriter.write_table = writer
    with folder.held():
        folder.add("2026-11-04", log, how, ())


def write_and_die(*given, write=pq.ParquetWriter.write_table):
    write(*given)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_the_folder_as_it_was(folder):
    before, names = read_log(folder.folder), folder.names
    how = LogOptions(**OPTIONS, periods=0)
    log = read_log(long_table(dated(4)["2026-11-04"], NAMES), options=how)

    killed = FORKS.Process(target=add, args=(folder, log, how, write_and_die))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    left = {path.name for path in folder.folder.iterdir()}
    assert len(left) == 5, "three days, a lock of nobody, and a file that nobody reads"
    equal(read_log(folder.folder), before)
    with folder.held():
        assert folder.names == names
    assert len(list(folder.folder.iterdir())) == 3
    add(folder, log, how)
    assert folder.names == [*names, "2026-11-04"]


def test_one_process_at_a_time_adds(folder):
    with (
        folder.held(),
        pytest.raises(SettingsError, match=f"process {os.getpid()} is writing here"),
        LogFolder(folder.folder).held(),
    ):
        pass


def test_nothing_is_left_where_nothing_was_added(tmp_path):
    with pytest.raises(SettingsError, match="no"), LogFolder(tmp_path / "new").held():
        raise SettingsError("no")
    assert not (tmp_path / "new").exists()
