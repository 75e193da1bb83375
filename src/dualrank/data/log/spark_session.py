"""A Spark session of dualrank's own: started for it, or beside the one that you work in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dualrank.errors import SettingsError
from dualrank.extras import require
from dualrank.sentences import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def own_session(
    yours: SparkSession | None, master: str | None, name: str, *, quiet: bool = False
) -> Iterator[SparkSession]:
    """A session in which views and settings can be made that nobody else sees.

    It stands beside yours, given or already there in this process; otherwise Spark is started for
    work of this `name`, without messages of its own where it is to be `quiet`, and stopped again.
    """
    if yours is None:
        yours = _running()
    own = _start(master, name, quiet=quiet) if yours is None else _beside(yours, master)
    try:
        # Times without a zone are in UTC, as DuckDB takes them.
        own.conf.set("spark.sql.session.timeZone", "UTC")
        yield own
    finally:
        if yours is None:
            own.stop()


def _running() -> SparkSession | None:
    """The session that there is in this process, if there is one."""
    sessions = require("spark", "pyspark.sql").SparkSession
    found: SparkSession | None = sessions.getActiveSession()
    if found is None and require("spark", "pyspark").SparkContext._active_spark_context is not None:
        # It is that of another thread; without settings, nothing is started or changed.
        found = sessions.builder.getOrCreate()
    return found


def _beside(session: SparkSession, master: str | None) -> SparkSession:
    """A session whose views and settings begin as those of another, and are its own.

    Unlike those of `newSession`, which begin empty: a view of the user can be read, and what the
    user has set (the keys of a storage, a current database) holds. The cache is that of both.
    """
    try:
        runs = session.conf.get("spark.master")
        own = _cloned(session)
    except Exception as error:
        raise SettingsError(f"the Spark session cannot be used ({reason_of(error)})") from error
    if master not in (None, runs):
        raise SettingsError(
            f"there is a Spark session already, on {runs}, where master={master!r} changes "
            "nothing; leave it out, or stop that session"
        )
    return own


def _cloned(session: SparkSession) -> SparkSession:
    # Every Spark can clone a session; of Python's, those of Spark Connect alone pass it on.
    if hasattr(session, "cloneSession"):
        return session.cloneSession()
    rdd = require("spark", "pyspark").RDD
    to_frame = rdd.toDF
    try:
        return type(session)(session.sparkContext, session._jsparkSession.cloneSession())
    finally:
        # Every new session has RDDs become frames of its own; those of the user are not.
        rdd.toDF = to_frame


def _start(master: str | None, name: str, *, quiet: bool) -> SparkSession:
    """A session for work of this name, on a master or wherever Spark is set up to run."""
    builder = require("spark", "pyspark.sql").SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            # Its executors are here, and should have what is installed here.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise SettingsError(f"Spark does not start ({reason_of(error)})") from error
    if quiet:
        session.sparkContext.setLogLevel("FATAL")
    return session


@contextmanager
def unlogged() -> Iterator[None]:
    """Without the pages that pyspark itself logs of errors in queries."""
    kind = require("spark", "pyspark.logger").PySparkLogger
    loggers = [kind.getLogger(f"{of}QueryContextLogger") for of in ("SQL", "DataFrame")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
