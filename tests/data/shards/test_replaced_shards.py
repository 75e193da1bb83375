"""A log in shards takes the place of an earlier one whole, or not at all."""

import errno
import os
import shutil
import signal

import pytest

from dualrank.cli.outputs import NewLog
from dualrank.data.log.read_log import read_log
from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.shard_writing import new_shards
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.data.shards.splitting import write_shards
from dualrank.errors import DataError, SettingsError

from ...forks import FORKS
from .conftest import OPTIONS, files_of


def test_a_log_in_shards_takes_the_place_of_an_earlier_one_and_of_nothing_else(files, sharded):
    (sharded.folder / "notes.txt").write_text("mine")
    (sharded.folder / ".dualrank-unfinished").mkdir()
    reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    (sharded.folder / "10115").mkdir()
    (sharded.folder / "10115" / "streets.csv").write_text("mine")
    (sharded.folder / ".unfinished").mkdir()
    reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    found = sorted(path.name for path in sharded.folder.iterdir())
    assert found == [".unfinished", "00000", "00001", "10115", "notes.txt", "shards.json"]


@pytest.mark.parametrize("is_shard", [True, False])
def test_what_stands_where_a_shard_would_be_is_not_replaced(files, sharded, tmp_path, is_shard):
    out = sharded.folder if is_shard else tmp_path / "other"
    (out / "00001").mkdir(parents=True, exist_ok=True)
    (out / "00001" / "diary.txt").write_text("mine")
    with pytest.raises(SettingsError, match="00001: stands where a shard would be written"):
        reduce_to_shards(files / "log.parquet", out, 2)
    assert (out / "00001" / "diary.txt").read_text() == "mine"
    assert is_sharded(out) == is_shard


def test_a_log_of_which_a_shard_is_missing_is_reduced_again(files, sharded):
    shutil.rmtree(sharded.folder / "00002")
    shutil.rmtree(sharded.folder / "00000")
    args = files / "log.parquet", sharded.folder, 4, files / "features.parquet"
    assert files_of(reduce_to_shards(*args, **OPTIONS)) == files_of(sharded)
    # A log of more shards leaves none of them behind.
    reduce_to_shards(files / "log.parquet", sharded.folder, 1)
    assert sorted(path.name for path in sharded.folder.iterdir()) == ["00000", "shards.json"]


def test_a_full_disk_leaves_the_log_as_it_was(files, sharded, monkeypatch):
    calls = []

    def full_after_ten(number):
        calls.append(number)
        if len(calls) > 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dualrank.storage.os.fsync", full_after_ten)
    with pytest.raises(OSError, match="No space left on device"):
        reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    assert ShardedLog.open(sharded.folder).digest == sharded.digest
    assert not (sharded.folder / ".dualrank-unfinished").exists()


def write_log_of(folder, shards, text):
    for number in range(shards):
        (folder / f"0000{number}").mkdir(parents=True)
        (folder / f"0000{number}" / "log.parquet").write_text(text)
    (folder / "shards.json").write_text(text)


def contents(folder):
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("problem", [KeyboardInterrupt, PermissionError])
@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupt_while_logs_are_exchanged_leaves_the_earlier_one(
    tmp_path, monkeypatch, problem, at, late
):
    write_log_of(tmp_path, 4, "old")
    before, renamed, rename = contents(tmp_path), [], os.rename

    def interrupted(source, target):
        renamed.append(source)
        now = len(renamed) == at + 1
        if now and not late:
            raise problem
        rename(source, target)
        if now:
            raise problem

    def exchange():
        with new_shards(tmp_path, 2) as new:
            write_log_of(new, 2, "new")

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(problem):
        exchange()
    assert contents(tmp_path) == before
    exchange()
    assert set(contents(tmp_path).values()) == {"new"}
    assert len(contents(tmp_path)) == 3


def test_an_interrupt_while_the_earlier_log_is_deleted_leaves_the_new_one(
    files, sharded, monkeypatch
):
    remove, calls = shutil.rmtree, []

    def interrupted(path, **options):
        calls.append(path)
        if len(calls) == 2:  # the first removes what an earlier writer left
            raise KeyboardInterrupt
        remove(path, **options)

    monkeypatch.setattr("dualrank.data.shards.shard_writing.shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    assert len(ShardedLog.open(sharded.folder).shards) == 2
    monkeypatch.undo()
    reduce_to_shards(files / "log.parquet", sharded.folder, 1)
    assert not (sharded.folder / ".dualrank-unfinished").exists()


def write_and_die(folder, at):
    """Replace a log, and die at the rename of this number."""
    rename, calls = os.rename, []

    def rename_or_die(*paths):
        calls.append(paths)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*paths)

    log = ShardedLog.open(folder).read()
    os.rename = rename_or_die
    write_shards(log, folder, 2)


@pytest.mark.parametrize(("at", "is_whole"), [(1, True), (3, False)])
def test_a_killed_writer_leaves_the_log_or_none(files, sharded, at, is_whole):
    killed = FORKS.Process(target=write_and_die, args=(sharded.folder, at))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert is_sharded(sharded.folder) == is_whole
    if is_whole:
        assert ShardedLog.open(sharded.folder).digest == sharded.digest
    assert NewLog().refuses(sharded.folder) is None
    reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    found = sorted(path.name for path in sharded.folder.iterdir())
    assert found == ["00000", "00001", "shards.json"]


def test_a_folder_that_a_killed_writer_left_is_no_log(sharded):
    (sharded.folder / "shards.json").unlink()
    with pytest.raises(DataError, match="a reduced log among 4 files"):
        read_log(sharded.folder)
