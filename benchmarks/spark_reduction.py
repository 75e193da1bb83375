"""Whether Spark reduces a log to what DuckDB does, row by row.

    python -m benchmarks.spark_reduction LOG.parquet

needs pyspark and Java. `python -m benchmarks.log_reduction LOG.parquet` writes a log of three
million sessions if there is none under this name, `python -m benchmarks.yandex LOG.parquet` a real
one.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import to_table
from dualrank.data.log.spark import read_log_on_spark


def main() -> None:
    """Print what each engine found; exit with 1 if they differ."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.spark_reduction LOG.parquet")
    start = time.perf_counter()
    one = read_log(sys.argv[1])
    print(f"DuckDB {time.perf_counter() - start:6.1f} s   {one}", flush=True)
    session = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    start = time.perf_counter()
    other = read_log_on_spark(sys.argv[1], session=session)
    print(f"Spark  {time.perf_counter() - start:6.1f} s   {other}", flush=True)
    session.stop()
    bare = [to_table(log).replace_schema_metadata(None) for log in (one, other)]
    equal = bare[0].equals(bare[1]) and one.reading == other.reading
    verdict = "equal" if equal else "DIFFERENT"
    print(f"lists, click patterns, counts and the account of the reading: {verdict}")
    sys.exit(not equal)


if __name__ == "__main__":
    main()
