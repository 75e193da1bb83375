"""A reduction that is stopped ends at once, says what it must, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.read_log import read_log
from dualrank.data.log.scratch import LOCK, PREFIX, ScratchFolder

from ...waiting import wait_until
from .conftest import long_table

ENDLESS = "SELECT count(*) AS n FROM range(1000000000) a, range(1000) b WHERE hash(a, b) % 7 = 3"
SLOW_REDUCTION = f"""
import pathlib
import dualrank.data.log.read_log as read_log
from dualrank.cli import progress_lines
from dualrank.cli.app import main
progress_lines.FIRST = 1e6  # no line of progress, however slow this machine is
def reduce_for_ever(engine, *_):
    engine._progress = lambda *_: pathlib.Path("running").touch()  # called while a query runs
    engine.keep("sessions", {ENDLESS!r})
read_log.reduce_log = reduce_for_ever
main()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_ends_like_all_others(tmp_path, folder, number, code):
    log = tmp_path / "log.csv"
    log.write_text("session_id,query_id,doc_id,position,clicked\ns,q,d,1,0\n")
    command = [sys.executable, "-c", SLOW_REDUCTION, "reduce", str(log), "--out", "out.parquet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, text=True) as reducing:
        try:
            wait_until(lambda: (tmp_path / "running").exists() or reducing.poll() is not None)
            reducing.send_signal(number)
            _, said = reducing.communicate()
        finally:
            reducing.kill()
    assert reducing.returncode == code
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1
    assert list(folder.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(folder):
    child = os.fork()
    if child == 0:
        try:
            kept = ScratchFolder()
            (kept.path / "spilled").touch()
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            os._exit(1)
    try:
        assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
        with ScratchFolder():
            assert len(list(folder.iterdir())) == 2, "what is in use stays"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    (left,) = folder.iterdir()
    assert left.name.startswith(PREFIX)
    # The clock was set back: what is left seems to be of tomorrow.
    os.utime(left, (time.time() + 86400,) * 2)
    other = folder / f"{PREFIX}of-an-earlier-version"
    other.mkdir()
    (folder / f"{PREFIX}link").symlink_to(other)
    (other / LOCK).symlink_to("/etc/hostname")
    with ScratchFolder() as scratch:
        assert not left.exists()
        assert scratch.path.exists()
        assert other.exists()
    assert not scratch.path.exists()


def test_a_query_is_interrupted_and_the_exception_of_the_handler_goes_on(folder):
    # Progress is reported while the query runs, and for this query for ever.
    with DuckDBEngine(progress=lambda *_: os.kill(os.getpid(), signal.SIGINT)) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.keep("sessions", ENDLESS)
        assert engine.rows("SELECT 1") == [(1,)]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("has_begun", [False, True])
def test_an_interrupt_while_a_query_starts_does_not_wait_for_its_end(monkeypatch, has_begun):
    class Interrupted(threading.Thread):
        def start(self):
            if has_begun:
                super().start()
            raise KeyboardInterrupt

    with DuckDBEngine() as engine:
        monkeypatch.setattr("dualrank.data.log.duckdb_engine.Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.fetch(ENDLESS)
        monkeypatch.undo()
        assert engine.rows("SELECT 1") == [(1,)]


def test_a_reduction_says_how_far_it_is(clean):
    said = []
    read_log(long_table(clean), progress=lambda done, total: said.append((done, total)))
    assert said[-1] == (100, 100)
    assert said == sorted(said)
    assert len(said) > 3


def test_nothing_is_printed_however_long_a_query_takes():
    """DuckDB would show a bar where it believes itself in a terminal."""
    code = (
        "from dualrank.data.log.duckdb_engine import DuckDBEngine\n"
        "with DuckDBEngine() as engine:\n"
        "    found = dict(engine.rows('SELECT name, value FROM duckdb_settings()'))\n"
        "assert found['enable_progress_bar_print'] == 'false', found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
