"""A Spark of two executors, each a process of its own, for what `make test-spark` runs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ASKED = "DUALRANK_TEST_SPARK"
MASTER = "local-cluster[2,1,1024]"
"""Two workers with one core and 1024 MB each."""


def why_not():
    """Why tests of Spark are not run, if they are not."""
    if ASKED not in os.environ:
        return "Spark is tested by `make test-spark`"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java"
    return None


def pytest_collection_modifyitems(items):
    reason = why_not()
    for item in items:
        if reason is not None and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on two executors, which are started once for all tests."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    # Executors are started from here, and with this Python.
    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    work = tmp_path_factory.mktemp("spark")
    # Compiled quickly rather than well: no test runs for long.
    quick = "-XX:TieredStopAtLevel=1"
    settings = {
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.executor.memory": "1024m",
        "spark.local.dir": str(work / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ["SPARK_WORKER_DIR"] = str(work / "workers")
    builder = SparkSession.builder.master(MASTER).appName("tests of dualrank")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
