"""What runs beside a session leaves it as it was: alive, with its views, settings and cache."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.saved import to_table
from dualrank.data.log.spark import SparkEngine, read_log_on_spark
from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.shards_on_spark import reduce_to_shards_on_spark
from dualrank.errors import SettingsError

from ..data.log.conftest import long_table
from ..learning.test_rank_features import NAMES

ROWS = [(s, f"q{s % 2}", f"d{p}", p, int(p == s % 3)) for s in range(6) for p in (1, 2, 3)]
ZONE, SHUFFLED = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log, and features of its documents."""
    root = tmp_path_factory.mktemp("files")
    table = long_table(ROWS)
    pq.write_table(table, root / "log.parquet")
    pairs = sorted({(query, document) for _, query, document, _, _ in ROWS})
    ids = dict(zip(("query_id", "doc_id"), map(list, zip(*pairs, strict=True)), strict=True))
    values = {name: [0.5 * row for row in range(len(pairs))] for name in NAMES}
    pq.write_table(pa.table({**ids, **values}), root / "features.parquet")
    return root


def rows_of(log):
    return to_table(log).replace_schema_metadata(None)


@pytest.fixture
def changed(spark):
    """Settings that a user has made, and that are forgotten afterwards."""
    before = {name: spark.conf.get(name) for name in (ZONE, SHUFFLED)}
    spark.conf.set(ZONE, "Asia/Tokyo")
    spark.conf.set("the.key.of.a.storage", "secret")
    yield
    spark.conf.unset("the.key.of.a.storage")
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_session_that_is_there_is_used_and_lives_on(spark, files):
    def opened(master=None):
        with SparkEngine.on(None, master) as engine:
            engine.open(str(files / "log.parquet"))
            return engine.table("log").count()

    assert opened() == len(ROWS)
    assert spark.range(3).count() == 3
    # The session is said to be active in the thread that began it alone.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(opened, spark.conf.get("spark.master")).result() == len(ROWS)
    assert spark.range(3).count() == 3


def test_another_master_than_that_of_the_session_is_refused(spark, files):
    for session in (spark, None):
        with pytest.raises(
            SettingsError, match=r"already, on local-cluster.*master='yarn' changes"
        ):
            read_log_on_spark(files / "log.parquet", session=session, master="yarn")


def test_a_session_that_was_stopped_is_refused(files):
    class Stopped:
        @property
        def conf(self):
            raise RuntimeError("it was stopped")

    with pytest.raises(SettingsError, match=r"session cannot be used \(it was stopped\)"):
        read_log_on_spark(files / "log.parquet", session=Stopped())


def test_views_settings_and_cache_of_the_user_stay(spark, changed, files, tmp_path):
    mine = ("log", "rows", "sessions", "features", "documents")
    for name in mine:
        spark.range(7).createOrReplaceTempView(name)
    spark.catalog.cacheTable("sessions")
    # Its text is read again wherever it is asked for, and means the user's own `sessions`.
    spark.read.parquet(str(files / "log.parquet")).createOrReplaceTempView("mine")
    spark.sql(
        "CREATE TEMPORARY VIEW my_log AS SELECT * FROM mine WHERE 7 = (SELECT count(*) FROM log)"
    )
    try:
        views = {table.name for table in spark.catalog.listTables()}
        settings = spark.conf.getAll
        features = files / "features.parquet"
        out = tmp_path / "log"
        found = reduce_to_shards_on_spark("my_log", out, 2, features, session=spark)
        expected = reduce_to_shards(files / "log.parquet", tmp_path / "one", 2, features)
        assert rows_of(found.read()).equals(rows_of(expected.read()))
        assert {table.name for table in spark.catalog.listTables()} == views
        assert [spark.table(name).count() for name in mine] == [7] * len(mine)
        assert spark.conf.getAll == settings
        assert spark.catalog.isCached("sessions")
        assert spark.sparkContext._jsc.getPersistentRDDs().size() == 1
        frame = spark.sparkContext.parallelize([(1,)]).toDF(["x"])
        assert frame.sparkSession is spark
    finally:
        spark.catalog.uncacheTable("sessions")
        for name in (*mine, "mine", "my_log"):
            spark.catalog.dropTempView(name)


def test_what_the_user_has_set_holds_and_the_rest_is_chosen(spark, changed, files):
    spark.conf.set(SHUFFLED, "3")
    with SparkEngine.on(spark, None) as engine:
        engine.open_log(str(files / "log.parquet"), LogOptions())
        assert engine.session.conf.get(SHUFFLED) == "3"
        assert engine.session.conf.get("the.key.of.a.storage") == "secret"
    spark.conf.unset(SHUFFLED)
    with SparkEngine.on(spark, None) as engine:
        engine.open_log(str(files / "log.parquet"), LogOptions())
        chosen = int(engine.session.conf.get(SHUFFLED))
    assert chosen == 2 * spark.sparkContext.defaultParallelism < int(spark.conf.get(SHUFFLED))


def test_times_without_a_zone_are_in_utc_wherever_the_session_is(spark, changed):
    with SparkEngine.on(spark, None) as engine:
        seconds = engine.seconds("'1970-01-01 01:00:00'", "text")
        assert engine.fetch(f"SELECT {seconds} AS seconds").to_pylist() == [{"seconds": 3600.0}]


@pytest.mark.parametrize("name", ["log", "rows", "sessions"])
def test_a_view_of_the_user_is_read_whatever_it_is_called(spark, files, name):
    spark.read.parquet(str(files / "log.parquet")).createOrReplaceTempView("mine")
    spark.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM mine")
    try:
        with SparkEngine.on(spark, None) as engine:
            engine.open_log(name, LogOptions())
            engine.view("rows", "SELECT doc_id, 'FROM log' AS text FROM log")
            engine.keep("sessions", "SELECT doc_id AS `FROM rows`, text FROM rows")
            found = engine.fetch(
                "SELECT DISTINCT text, `FROM rows` AS id FROM sessions ORDER BY id"
            )
        assert found.to_pydict() == {"text": ["FROM log"] * 3, "id": ["d1", "d2", "d3"]}
        assert spark.table(name).count() == len(ROWS)
    finally:
        spark.catalog.dropTempView(name)
        spark.catalog.dropTempView("mine")
