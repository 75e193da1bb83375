"""The cache spares the second parsing and never gives what the file no longer holds."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from dualrank.data.letor import parser, reader
from dualrank.data.letor.cache import FORMAT, LetorCache
from dualrank.data.letor.reader import read_letor
from dualrank.errors import DataError
from dualrank.storage import sha256_of_file

from ...forks import FORKS
from ...waiting import wait_until

TEXT = "2 qid:7 1:0.5 2:1 # docid = A\n0 qid:7 1:0.25 2:3\n1 qid:8 2:4\n"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file that was written a while ago, and a user's cache directory apart from it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "train.txt"
    path.write_text(TEXT)
    make_old(path)
    return path


@pytest.fixture
def parsings(monkeypatch):
    """A list that grows with every parsing."""
    calls = []
    parse = parser.parse_letor

    def counted(*arguments, **options):
        calls.append(1)
        return parse(*arguments, **options)

    monkeypatch.setattr(parser, "parse_letor", counted)
    return calls


def make_old(path, seconds=100):
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def assert_equals_text(data):
    assert data.features.tolist() == [[0.5, 1], [0.25, 3], [0, 4]]
    assert data.grades.tolist() == [2, 0, 1]
    assert data.query_ids.tolist() == ["7", "8"]
    assert data.doc_ids.tolist() == ["A", "", ""]
    assert data.max_grade == 2


def beside(path):
    return path.with_name(path.name + ".dualrank-cache")


def arrays(path):
    (directory,) = [entry for entry in beside(path).iterdir() if entry.is_dir()]
    return directory


def test_the_second_reading_does_not_parse(source, parsings):
    assert_equals_text(read_letor(source))
    assert beside(source).is_dir()
    assert_equals_text(read_letor(source))
    assert len(parsings) == 1


def test_the_second_reading_does_not_import_numba(source):
    read_letor(source)
    program = (
        "import sys; from dualrank.data.letor.reader import read_letor; "
        f"read_letor({str(source)!r}); assert 'numba' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_without_cache_nothing_is_left_on_disk(source, parsings):
    for _ in range(2):
        assert_equals_text(read_letor(source, cache=False))
    assert len(parsings) == 2
    assert list(source.parent.iterdir()) == [source]


def test_a_touched_file_is_compared_by_content_once(source, parsings, monkeypatch):
    monkeypatch.setattr("dualrank.data.letor.source.COARSEST_CLOCK_NS", 0)
    read_letor(source)
    make_old(source, 50)
    assert_equals_text(read_letor(source))
    monkeypatch.setattr("dualrank.data.letor.cache.sha256_of_file", None)
    assert_equals_text(read_letor(source))
    assert len(parsings) == 1


def test_a_change_is_noticed_even_at_the_same_size(source, parsings):
    read_letor(source)
    source.write_text(TEXT.replace("0.25", "0.75"))
    assert read_letor(source).features[1, 0] == 0.75
    assert len(parsings) == 2
    assert len(list(beside(source).iterdir())) == 2


def test_a_change_within_one_tick_of_the_clock_is_noticed(source):
    moment = time.time_ns()
    for value in ("0.25", "0.75"):
        source.write_text(TEXT.replace("0.25", value))
        os.utime(source, ns=(moment, moment))
        assert read_letor(source).features[1, 0] == float(value)


def test_a_file_that_settles_while_it_is_read_is_cached(source, parsings, monkeypatch):
    times = iter([source.stat().st_ctime_ns])  # at first; from then on, the real time of tomorrow
    tomorrow = SimpleNamespace(time_ns=lambda: next(times, time.time_ns() + 86_400 * 10**9))
    monkeypatch.setattr("dualrank.data.letor.source.time", tomorrow)
    for _ in range(2):
        assert_equals_text(read_letor(source))
    assert len(parsings) == 1


def test_other_arguments_have_another_cache(source, parsings):
    for _ in range(2):
        assert read_letor(source).feature_count == 2
        assert read_letor(source, features=5).feature_count == 5
        assert read_letor(source, max_grade=4).max_grade == 4
        assert read_letor(source, max_grade=np.float32(4)).max_grade == 4
        assert read_letor(source, missing_above=3).features.max() == 3
    assert len(parsings) == 4


DAMAGES = {
    "manifest is cut": lambda path: cut(next(beside(path).glob("*.json"))),
    "manifest is other json": lambda path: next(beside(path).glob("*.json")).write_text("[1, 2]"),
    "features are cut": lambda path: cut(arrays(path) / "features.npy"),
    "features are missing": lambda path: (arrays(path) / "features.npy").unlink(),
    "grades are written over": lambda path: np.save(arrays(path) / "grades.npy", np.ones(3)),
    "grades are pickled": lambda path: write_object_array(arrays(path) / "grades.npy"),
    "ids are garbage": lambda path: (arrays(path) / "query_ids.npy").write_bytes(b"garbage" * 30),
    "ids are missing": lambda path: (arrays(path) / "doc_ids.npy").unlink(),
}


def write_object_array(path):
    """An .npy file that asks its reader to unpickle what follows; no pickle is made for it."""
    with path.open("wb") as file:
        header = {"descr": "|O", "fortran_order": False, "shape": (1,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"\x80\x04}\x94.")


def cut(path):
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(source, parsings, damage):
    read_letor(source)
    DAMAGES[damage](source)
    assert_equals_text(read_letor(source))
    assert_equals_text(read_letor(source))
    assert len(parsings) == 2


NO_TEXT = np.full((2, 5), 0x110000, np.uint32).view("<U5")[:, 0]
"""Ids of characters that there are not, which Python does not even compare."""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("grades.npy", np.array([1, 1], np.float32)),
        ("grades.npy", np.array([np.nan] * 3, np.float32)),
        ("grades.npy", np.array([-1] * 3, np.float32)),
        ("query_ids.npy", NO_TEXT),
        ("query_ids.npy", np.array([b"1", b"2"])),
    ],
)
def test_arrays_that_no_text_gives_are_made_anew(source, parsings, name, values):
    """Even where somebody has written down that they are the right ones."""
    assert len(read_letor(source).features) == 3
    file = arrays(source) / name
    before = np.load(file)

    def forge(array):
        np.save(file, array)
        manifest = next(beside(source).glob("*.json"))
        content = json.loads(manifest.read_text())
        stat = file.stat()
        state = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        content["files"][name] = [*state, sha256_of_file(file)]
        manifest.write_text(json.dumps(content))

    forge(before)
    read_letor(source)
    assert len(parsings) == 1  # so the forgery is believed
    forge(values)
    assert_equals_text(read_letor(source))
    assert len(parsings) == 2


def test_a_cache_of_another_format_is_made_anew(source, parsings):
    read_letor(source)
    manifest = next(beside(source).glob("*.json"))
    manifest.write_text(manifest.read_text().replace(f'"format": {FORMAT}', '"format": 0'))
    assert_equals_text(read_letor(source))
    assert len(parsings) == 2


def test_what_a_killed_process_left_is_ignored_and_later_removed(source):
    read_letor(source)
    left = beside(source) / arrays(source).name.replace(arrays(source).name[-8:], "deadbeef")
    left.mkdir()
    (left / "features.npy").write_bytes(b"half")
    make_old(left, 100_000)
    assert_equals_text(read_letor(source))
    source.write_text(TEXT + "\n")
    assert_equals_text(read_letor(source))
    assert not left.exists()


def test_a_folder_that_cannot_be_written_sends_the_cache_to_the_users(source, parsings, tmp_path):
    beside(source).write_text("a file where the cache folder would be")
    for _ in range(2):
        assert_equals_text(read_letor(source))
    assert len(parsings) == 1
    assert (tmp_path / "user-cache" / "dualrank").is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into any folder")
def test_a_read_only_folder_sends_the_cache_to_the_users(source, parsings):
    source.parent.chmod(0o500)
    for _ in range(2):
        assert_equals_text(read_letor(source))
    source.parent.chmod(0o700)
    assert len(parsings) == 1
    assert not beside(source).exists()


def test_where_no_cache_can_be_written_reading_still_works(source, parsings, tmp_path):
    beside(source).write_text("")
    (tmp_path / "user-cache").write_text("")
    for _ in range(2):
        assert_equals_text(read_letor(source))
    assert len(parsings) == 2


def test_a_path_chooses_the_cache_directory(source, parsings, tmp_path):
    other = source.parent / "other" / source.name
    other.parent.mkdir()
    other.write_text("1 qid:1 1:1\n")
    for _ in range(2):
        assert_equals_text(read_letor(source, cache=tmp_path / "mine"))
        assert len(read_letor(other, cache=tmp_path / "mine").features) == 1
    assert len(parsings) == 2
    assert not beside(source).exists()


def test_a_chosen_cache_directory_that_cannot_be_written_is_named(source, tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(DataError, match=r"/mine/train.txt-\w+: the cache cannot be written"):
        read_letor(source, cache=tmp_path / "mine")


def test_a_full_disk_is_said_in_one_sentence(source, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dualrank.data.letor.arrays.MatrixFile.append", full)
    with pytest.raises(DataError, match=r"train.txt: .* \(No space left on device\)$"):
        read_letor(source)
    assert list(source.parent.iterdir()) == [source]


def test_a_cache_that_cannot_be_finished_does_not_spoil_the_reading(source, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dualrank.data.letor.cache.atomic_file", full)
    assert_equals_text(read_letor(source))
    assert list(source.parent.iterdir()) == [source]


def test_a_file_that_changes_while_it_is_read_is_not_cached(source, monkeypatch):
    parse = reader.open_arrays

    def change(*arguments):
        source.write_text(TEXT)
        return parse(*arguments)

    monkeypatch.setattr(reader, "open_arrays", change)
    assert_equals_text(read_letor(source))
    assert list(source.parent.iterdir()) == [source]


def test_a_file_replaced_after_it_was_opened_is_not_taken_for_the_new_one(source, monkeypatch):
    new_directory = LetorCache.new_directory

    def replace_source(cache):
        other = source.with_name("other.txt")
        other.write_text(TEXT.replace("0.25", "0.75"))
        make_old(other, 50)
        os.replace(other, source)
        return new_directory(cache)

    monkeypatch.setattr(LetorCache, "new_directory", replace_source)
    assert_equals_text(read_letor(source))
    assert read_letor(source).features[1, 0] == 0.75


def test_arrays_stay_valid_when_the_cache_is_replaced(source):
    data = read_letor(source)
    source.write_text(TEXT.replace("0.25", "0.75"))
    read_letor(source)
    assert_equals_text(data)


def read_and_append(source):
    for _ in range(5):
        assert read_letor(source).features[:, 0].sum(dtype=float) == 12_497_500
        with source.open("a") as file:
            file.write("\n")


def test_processes_that_read_at_once_all_end_well(source):
    source.write_text("".join(f"1 qid:{i} 1:{i} 2:0.5\n" for i in range(5_000)))
    processes = [FORKS.Process(target=read_and_append, args=(source,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert read_letor(source).features.shape == (5_000, 2)


def test_a_change_is_noticed_when_size_and_time_are_set_back(source, monkeypatch):
    monkeypatch.setattr("dualrank.data.letor.source.COARSEST_CLOCK_NS", 0)
    before = source.stat()
    wait_until(lambda: time.time_ns() > before.st_ctime_ns)
    read_letor(source)

    def change():
        source.write_text(TEXT.replace("0.25", "0.75"))
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        return source.stat().st_ctime_ns != before.st_ctime_ns

    wait_until(change)
    assert read_letor(source).features[1, 0] == 0.75


def test_arrays_that_changed_at_the_same_size_and_time_are_parsed_anew(source, parsings):
    read_letor(source)
    for name in ("features.npy", "grades.npy", "offsets.npy", "query_ids.npy", "doc_ids.npy"):
        file = arrays(source) / name
        about, content = file.stat(), bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert_equals_text(read_letor(source))
    assert len(parsings) == 6


def test_a_copied_cache_is_compared_by_content(source, parsings, tmp_path):
    read_letor(source)
    shutil.copytree(source.parent, tmp_path / "copy")
    assert_equals_text(read_letor(tmp_path / "copy" / source.name))
    assert len(parsings) == 1


def test_links_and_pipes_in_a_cache_are_not_followed(source, parsings, tmp_path):
    read_letor(source)
    file = arrays(source) / "grades.npy"
    file.rename(tmp_path / "elsewhere.npy")
    file.symlink_to(tmp_path / "elsewhere.npy")
    assert_equals_text(read_letor(source))
    directory = arrays(source)
    directory.rename(tmp_path / directory.name)
    directory.symlink_to(tmp_path / directory.name)
    assert_equals_text(read_letor(source))
    directory.unlink()
    manifest = next(beside(source).glob("*.json"))
    manifest.unlink()
    os.mkfifo(manifest)
    assert_equals_text(read_letor(source))
    assert len(parsings) == 4


def test_a_manifest_names_only_directories_of_its_own(source, parsings, tmp_path):
    read_letor(source)
    directory = arrays(source)
    manifest = next(beside(source).glob("*.json"))
    for name in ("..", "/", "", "other", 7, None, [1], str(tmp_path / directory.name)):
        content = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(content | {"directory": name}))
        assert_equals_text(read_letor(source))


def test_mutated_manifests_are_as_none(source):
    read_letor(source)
    manifest = next(beside(source).glob("*.json"))
    rng = np.random.default_rng(3)
    whole = np.frombuffer(manifest.read_bytes(), np.uint8)
    texts = [b"[" * 100_000, b"9" * 5000, b'{"format": 3, "source": {}}', b"null", b"\xff"]
    for _ in range(60):
        content = whole.copy()
        content[rng.integers(len(content), size=3)] = rng.integers(256, size=3)
        texts.append(content.tobytes()[: rng.integers(1, 2 * len(content))])
    for text in texts:
        manifest.write_bytes(text)
        assert_equals_text(read_letor(source))


def test_without_a_place_for_a_cache_that_is_said_once(source, parsings, caplog, monkeypatch):
    monkeypatch.setattr(reader, "_warned", False)
    beside(source).write_text("a file")
    (source.parent.parent / "user-cache").write_text("another")
    for _ in range(2):
        assert_equals_text(read_letor(source))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("LETOR text is parsed at every reading, for no cache can be kept (")
    assert f"{beside(source)}: Not a directory; " in said
    assert len(parsings) == 2


def test_a_file_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.data.letor.source.UNPACKED_UNASKED", 1 << 20)
    path = tmp_path / "bomb.txt"
    line = b"1 qid:1 1:0\n"
    for content in (
        gzip.compress(line * 200_000),
        pa.compress(line * 200_000, "zstd").to_pybytes(),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match="unpack to more than 200 times their size"):
            read_letor(path)
        assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_index_does_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(parser, "MATRIX_UNASKED", 1 << 16)
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 1:0.5\n" * 50 + "1 qid:1 1:0.5 90000:1\n" + "1 qid:1 1:0.5\n" * 50)
    with pytest.raises(DataError, match="with feature 90000 the first"):
        read_letor(path)
    assert list(tmp_path.iterdir()) == [path]
    assert read_letor(path, features=90_000).feature_count == 90_000


def test_text_can_come_through_a_pipe(tmp_path, parsings):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for _ in range(2):
        writing = threading.Thread(target=path.write_text, args=(TEXT,))
        writing.start()
        assert_equals_text(read_letor(path))
        writing.join()
    assert len(parsings) == 2
