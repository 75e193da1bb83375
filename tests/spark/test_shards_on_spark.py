"""Shards that Spark writes are those of DuckDB, byte by byte, whatever becomes of an executor."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.log.spark import SparkEngine
from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.shards_on_spark import reduce_to_shards_on_spark
from dualrank.errors import DataError

from ..data.log.conftest import dirty
from ..data.shards.conftest import OPTIONS
from ..data.shards.conftest import files as files
from ..waiting import wait_until

DIRTY = {"contexts": ["device"], "max_bad_share": 1.0, "max_clicks": 2, "max_client_share": 0.2}


def contents(folder):
    """Every file of a folder, by its name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def assert_equal(one, other):
    assert list(contents(one)) == list(contents(other))
    different = [name for name, data in contents(one).items() if data != contents(other)[name]]
    assert not different


def test_every_file_is_that_of_duckdb(spark, files, tmp_path):
    given = (files / "log.parquet", 4, files / "features.parquet")
    log, shards, features = given
    reduce_to_shards(log, tmp_path / "one", shards, features, **OPTIONS)
    reduce_to_shards_on_spark(log, tmp_path / "two", shards, features, session=spark, **OPTIONS)
    assert_equal(tmp_path / "one", tmp_path / "two")


def test_a_dirty_log_without_features(spark, tmp_path):
    pq.write_table(dirty(), tmp_path / "log.parquet")
    reduce_to_shards(tmp_path / "log.parquet", tmp_path / "one", 3, **DIRTY)
    found = reduce_to_shards_on_spark(
        tmp_path / "log.parquet", tmp_path / "two", 3, session=spark, **DIRTY
    )
    assert len(found.reading.problems) > 6
    assert_equal(tmp_path / "one", tmp_path / "two")


def test_features_that_spark_cannot_read_are_named(spark, files, tmp_path):
    with pytest.raises(DataError, match=r"none\.parquet: Spark cannot read it"):
        reduce_to_shards_on_spark(
            files / "log.parquet", tmp_path / "log", 2, tmp_path / "none.parquet", session=spark
        )
    assert not (tmp_path / "log" / "shards.json").exists()


@pytest.mark.parametrize("given", ["{}/*.parquet", "file://{}"])
def test_row_numbers_of_every_file_are_features_nowhere(spark, files, tmp_path, given, caplog):
    table, names = pq.read_table(files / "features.parquet"), ["index"]
    if "*" in given:  # where Spark alone sees the files, nobody knows what pandas says of them
        names.append("line")
    (tmp_path / "f").mkdir()
    for number, part in enumerate((table.slice(0, 200), table.slice(200))):
        for name in names:
            part = part.append_column(name, pa.array(range(len(part)), pa.int64()))
        note = {b"pandas": json.dumps({"index_columns": ["line"]}).encode()}
        pq.write_table(part.replace_schema_metadata(note), tmp_path / "f" / f"{number}.parquet")
    log = files / "log.parquet"
    reduce_to_shards(log, tmp_path / "one", 2, tmp_path / "f", **OPTIONS)
    features = given.format(tmp_path / "f")
    reduce_to_shards_on_spark(log, tmp_path / "two", 2, features, session=spark, **OPTIONS)
    assert caplog.text.count("left out") == 2
    assert_equal(tmp_path / "one", tmp_path / "two")


def executors():
    """The processes of the executors of this process."""
    parents, lines = {}, {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                parents[int(process.name)] = int(
                    (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
                )
                lines[int(process.name)] = (process / "cmdline").read_bytes()
            except OSError:
                continue

    def is_mine(number):
        while number in parents and number != os.getpid():
            number = parents[number]
        return number == os.getpid()

    return [
        number
        for number, line in lines.items()
        if b"CoarseGrainedExecutorBackend" in line and is_mine(number)
    ]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
@pytest.mark.parametrize("table", ["displayed", "pairs"])
def test_a_killed_executor_changes_nothing(spark, files, tmp_path, monkeypatch, table):
    killed = []
    keep = SparkEngine.keep

    def kill_and_keep(self, name, query, by=None):
        if name == table:
            # What it keeps of earlier tables is lost, and so is what it does at this moment.
            victim = wait_until(executors)[0]
            threading.Timer(0.1, os.kill, (victim, signal.SIGKILL)).start()
            killed.append(victim)
        keep(self, name, query, by)

    monkeypatch.setattr(SparkEngine, "keep", kill_and_keep)
    given = {"session": spark, **OPTIONS}
    log, features = files / "log.parquet", files / "features.parquet"
    reduce_to_shards_on_spark(log, tmp_path / "two", 4, features, **given)
    assert killed
    wait_until(lambda: killed[0] not in executors())
    reduce_to_shards(log, tmp_path / "one", 4, features, **OPTIONS)
    assert_equal(tmp_path / "one", tmp_path / "two")
    # The next test is to have two of them again.
    wait_until(lambda: len(executors()) >= 2)


def test_the_command_line_on_a_spark_of_its_own(spark, files, tmp_path):
    command = [sys.executable, "-m", "dualrank", "reduce", "log.parquet", "--shards", "4"]
    command += ["--features", "features.parquet", "--json"]
    for kind in OPTIONS["contexts"]:
        command += ["--context", kind]
    command += ["--event", "cart", "--periods", "2"]
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_GATEWAY_PORT"}
    for out, more in (("one", []), ("two", ["--engine", "spark", "--master", "local[2]"])):
        done = subprocess.run(
            [*command, "--out", str(tmp_path / out), *more],
            cwd=files,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["shards"] == 4
    assert_equal(tmp_path / "one", tmp_path / "two")
