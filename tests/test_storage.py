"""Files that are either whole or not there."""

import errno
import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dualrank.errors import DataError, SettingsError
from dualrank.storage import (
    LOCK,
    atomic_file,
    read_json,
    sha256_of_file,
    whole_folder,
    write_text,
    writing_alone,
)


@pytest.fixture
def umask():
    """Sets the umask for a test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, umask, mask, mode):
    umask(mask)
    write_text(tmp_path / "file", "text")
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_the_file_appears_only_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with atomic_file(path) as file:
        file.write(b"af")
        file.flush()
        assert path.read_bytes() == b"before"
        file.write(b"ter")
    assert path.read_bytes() == b"after"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_stood_there_stands_when_writing_fails(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def write_and_fail():
        with atomic_file(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_nothing_appears_when_the_first_writing_fails(tmp_path):
    def write_and_fail():
        with atomic_file(tmp_path / "file") as file:
            file.write(b"half")
            raise ValueError

    with pytest.raises(ValueError):
        write_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_missing_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "file", "text")
    assert (tmp_path / "a" / "b" / "file").read_text() == "text"


def test_text_is_utf8_with_its_own_line_ends(tmp_path):
    write_text(tmp_path / "file", "ρ^η\n")
    assert (tmp_path / "file").read_bytes() == "ρ^η\n".encode()


@pytest.mark.parametrize("durable", [True, False])
def test_durable_files_wait_for_the_disk(tmp_path, monkeypatch, durable):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with atomic_file(tmp_path / "file", durable=durable) as file:
        file.write(b"bytes")
    assert len(synced) == durable


def test_the_digest_is_the_sha256_of_the_bytes(tmp_path):
    content = bytes(range(256)) * 5_000
    (tmp_path / "file").write_bytes(content)
    assert sha256_of_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_errors_name_the_path_that_was_given(tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("text")
    with pytest.raises(IsADirectoryError) as refused:
        write_text(folder, "text")
    assert (refused.value.filename, refused.value.filename2) == (str(folder), None)
    with pytest.raises(NotADirectoryError) as refused:
        write_text(file / "x.json", "text")
    assert refused.value.filename == str(file)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_a_place_where_nothing_can_be_written_is_named_as_it_was_given(tmp_path, monkeypatch):
    def refuse(*_words, **_more):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(temporary))

    monkeypatch.setattr(secrets, "token_hex", lambda _bytes: "0")
    temporary = tmp_path / ".file.0"
    monkeypatch.setattr(type(temporary), "open", refuse)
    with pytest.raises(PermissionError) as refused:
        write_text(tmp_path / "file", "text")
    assert refused.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_full_disk_is_named_by_the_file_that_was_to_be_written(tmp_path, number):
    path = tmp_path / "file"
    with pytest.raises(OSError, match="file") as caught, atomic_file(path):
        raise OSError(number, os.strerror(number))
    assert (caught.value.errno, caught.value.filename) == (number, str(path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xff\xfe", "utf-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' * 200_000, "nested too deeply"),
        (b"NaN", "NaN is no number"),
        (b"[-Infinity]", "-Infinity is no number"),
        (b"[1e999]", "1e999 is larger than any float"),
        (b"[" + b"9" * 50_000 + b"]", "has more than 64 bits"),
        (b"[18446744073709551616]", "has more than 64 bits"),
        (b'{"a": 1, "a": 2}', "names 'a' twice"),
        (
            json.dumps(dict.fromkeys(map(str, range(200_000)), 1))[:-1].encode() + b', "7": 2}',
            "'7' twice",
        ),
        (b"{", "not JSON"),
    ],
)
def test_json_that_no_array_can_hold_is_refused_in_one_sentence(tmp_path, text, reason):
    path = tmp_path / "file.json"
    path.write_bytes(text)
    with pytest.raises(DataError, match=reason) as told:
        read_json(path)
    assert str(told.value).startswith(str(path))
    assert len(str(told.value)) < 400


def test_only_regular_files_of_a_sane_size_are_read(tmp_path):
    pipe, long = tmp_path / "pipe", tmp_path / "long"
    os.mkfifo(pipe)
    long.write_bytes(b"1" * 100)
    for path, reason in (
        (pipe, "not a regular file"),
        (tmp_path, "directory"),
        (tmp_path / "none", "No such file"),
        (Path("/dev/zero"), "not a regular file"),
    ):
        with pytest.raises(DataError, match=reason):
            read_json(path)
    with pytest.raises(DataError, match="100 bytes, more than the 99"):
        read_json(long, most=99)


def test_names_do_not_lead_out_of_a_folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "own").write_text("1")
    (folder / "link").symlink_to("own")
    (tmp_path / "other").write_text("2")
    (folder / "out").symlink_to(tmp_path / "other")
    assert read_json(folder / "own", within=folder) == 1
    assert read_json(folder / "link", within=folder) == 1
    for name in ("out", "../other", str(tmp_path / "other")):
        with pytest.raises(DataError, match="leads out of"):
            read_json(folder / name, within=folder)


def test_a_directory_has_one_writer(tmp_path):
    folder = tmp_path / "a" / "b"
    with writing_alone(folder):
        with (
            pytest.raises(SettingsError, match=f"process {os.getpid()} is writing here"),
            writing_alone(folder),
        ):
            pass
        (folder / "file").write_text("")
    assert [entry.name for entry in folder.iterdir()] == ["file"]
    with writing_alone(folder):
        pass
    assert [entry.name for entry in folder.iterdir()] == ["file"]


def test_a_directory_that_nothing_was_written_into_is_removed(tmp_path):
    with pytest.raises(ValueError, match="refused"), writing_alone(tmp_path / "a" / "b"):
        raise ValueError("refused")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_holds_nothing(tmp_path):
    code = (
        "import os, sys, pathlib; from dualrank.storage import writing_alone\n"
        "with writing_alone(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert [entry.name for entry in tmp_path.iterdir()] == [LOCK]
    with writing_alone(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    assert list(tmp_path.iterdir()) == []


def write_folder(path, text):
    with whole_folder(path) as new:
        (new / "file").write_text(text)


KILLED = """
import os, signal
from pathlib import Path
from dualrank.storage import whole_folder
rename, calls = os.rename, []
def killed(*paths):
    calls.append(paths)
    if len(calls) == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*paths)
os.rename = killed
with whole_folder(Path({path!r})) as new:
    (new / "file").write_text("killed")
"""


@pytest.mark.parametrize("at", [1, 2])
def test_a_killed_writer_of_a_folder_leaves_nothing_that_stays(tmp_path, at):
    write_folder(tmp_path / "run", "first")
    code = KILLED.format(at=at, path=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "run").exists() == (at == 1)
    # Whoever fails next has put back what stood there.
    with suppress(ValueError), whole_folder(tmp_path / "run"):
        assert (tmp_path / "run" / "file").read_text() == "first"
        raise ValueError
    assert (tmp_path / "run" / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    write_folder(tmp_path / "run", "second")
    assert (tmp_path / "run" / "file").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_is_written_by_one_at_a_time(tmp_path):
    with whole_folder(tmp_path / "run") as new:
        (new / "file").write_text("first")
        with pytest.raises(SettingsError, match=rf"{tmp_path}/run: process {os.getpid()} is writ"):
            write_folder(tmp_path / "run", "second")
    assert (tmp_path / "run" / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folders_made_for_a_folder_that_failed_are_removed(tmp_path):
    with suppress(KeyboardInterrupt), whole_folder(tmp_path / "a" / "run"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
