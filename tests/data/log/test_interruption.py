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

from .conftest import long_table

ENDLESS = "SELECT count(*) AS n FROM range(1000000000) a, range(1000) b WHERE hash(a, b) % 7 = 3"
SLOW_REDUCTION = f"""
import dualrank.data.log.read_log as read_log
from dualrank.cli.app import main
read_log.reduce_log = lambda engine, *_: engine.keep("sessions", {ENDLESS!r})
main()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def reducing(tmp_path, folder):
    """`dualrank reduce` in the midst of a query."""
    log = tmp_path / "log.csv"
    log.write_text("session_id,query_id,doc_id,position,clicked\ns,q,d,1,0\n")
    command = [sys.executable, "-c", SLOW_REDUCTION, "reduce", str(log), "--out", "out.parquet"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, text=True
    )
    deadline = time.monotonic() + 60
    while not list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_ends_like_all_others(reducing, folder, number, code):
    reducing.send_signal(number)
    _, said = reducing.communicate(timeout=20)
    assert reducing.returncode == code
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1
    assert list(folder.iterdir()) == []


def test_what_a_killed_command_left_is_removed_by_the_next(reducing, folder, monkeypatch):
    with ScratchFolder():
        assert len(list(folder.iterdir())) == 2, "what is in use stays"
    reducing.kill()
    reducing.wait()
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
    with DuckDBEngine() as engine:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            engine.fetch(ENDLESS)
        assert time.monotonic() - start < 10
        assert engine.rows("SELECT 1") == [(1,)]
    assert list(folder.iterdir()) == []


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
