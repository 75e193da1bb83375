"""Mapped arrays hold no file open, are given back with the last array, and fit their files."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dualrank.data.feature_batches import ShardedFeatures
from dualrank.data.log_parts import LogParts
from dualrank.data.shards.mapped_arrays import map_array, write_array
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError

linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")


def maps(folder):
    return Path("/proc/self/maps").read_text().count(str(folder))


def open_files():
    return len(os.listdir("/proc/self/fd"))


@linux
def test_a_map_needs_no_open_file_and_is_given_back(tmp_path):
    written = np.arange(12, dtype=np.float32).reshape(4, 3)
    write_array(tmp_path / "a.npy", written)
    before = open_files()
    array = map_array(tmp_path / "a.npy", np.float32, (4, 3))
    row = array[2]
    assert open_files() == before
    assert maps(tmp_path) == 1
    assert array.tolist() == written.tolist()
    assert not array.flags.writeable
    assert not array.flags.owndata
    del array
    assert maps(tmp_path) == 1
    assert row.tolist() == [6, 7, 8]
    del row
    assert maps(tmp_path) == 0


@linux
def test_what_only_passes_through_shards_leaves_none_of_them_mapped(sharded):
    log = ShardedLog.open(sharded.folder)
    LogParts.of(log)
    assert sum(len(batch.queries) for batch in ShardedFeatures(log, count=3).batches()) == 390
    assert maps(sharded.folder) == 0


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_an_array_of_nothing_is_mapped(tmp_path, shape):
    write_array(tmp_path / "a.npy", np.empty(shape, np.int64))
    assert map_array(tmp_path / "a.npy", np.int64, shape).shape == shape


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes() + b"\0"),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: np.save(path, np.zeros((3, 4), np.float32)),
    ],
)
def test_a_file_that_is_another_is_refused(tmp_path, change):
    path = tmp_path / "a.npy"
    write_array(path, np.zeros((4, 3), np.float32))
    change(path)
    with pytest.raises(DataError, match=r"a\.npy: not the array that was written \("):
        map_array(path, np.float32, (4, 3))


def test_a_name_may_hold_any_bytes(tmp_path):
    path = tmp_path / os.fsdecode(b"a\xff.npy")
    try:
        write_array(path, np.arange(3))
    except OSError:
        pytest.skip("this file system has no such names")
    assert map_array(path, np.int64, (3,)).tolist() == [0, 1, 2]


SCARCE = """
import resource
from pathlib import Path
from dualrank.data.shards.mapped_arrays import map_array
from dualrank.errors import DataError
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
try:
    map_array(Path({path!r}), "int64", (3,))
except DataError as error:
    print(error)
"""


@linux
def test_a_limit_of_the_system_is_not_blamed_on_the_file(tmp_path):
    write_array(tmp_path / "a.npy", np.arange(3))
    code = SCARCE.format(path=str(tmp_path / "a.npy"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "a.npy: cannot be mapped beside all others (" in done.stdout, done
    assert os.strerror(errno.EMFILE) in done.stdout
    assert "raise the limit (ulimit -n, or vm.max_map_count), start more workers" in done.stdout
