"""Files that are either whole or not there."""

import errno
import hashlib
import os
import secrets

import pytest

from dualrank.storage import atomic_file, sha256_of_file, write_text


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
