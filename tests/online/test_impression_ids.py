import pytest

from dualrank.errors import CheckpointError
from dualrank.online.events.impression_ids import ImpressionIds, key_in


@pytest.fixture
def ids():
    return ImpressionIds(b"k" * 32)


def test_ids_are_known_by_whoever_has_the_key(ids):
    made = {ids.new() for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(ImpressionIds(b"k" * 32).is_ours(each) for each in made)
    assert not any(ImpressionIds(b"K" * 32).is_ours(each) for each in made)


def test_an_id_that_differs_in_any_letter_is_forged(ids):
    made = ids.new()
    for place in range(len(made)):
        other = "A" if made[place] != "A" else "B"
        assert not ids.is_ours(made[:place] + other + made[place + 1 :])


@pytest.mark.parametrize(
    "text", ["", "x", "A" * 31, "A" * 33, "é" * 32, " " * 32, "\0" * 32, "A" * 31 + "\n", "../" * 8]
)
def test_whatever_else_is_sent_is_no_id(ids, text):
    assert not ids.is_ours(text)
    assert not ids.is_ours(ids.new() + text[:1] + "=")


def test_the_key_is_made_once_and_nobody_else_may_read_it(tmp_path):
    key = key_in(tmp_path / "models")
    assert len(key) == 32
    assert key_in(tmp_path / "models") == key
    assert (tmp_path / "models" / "secret").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["secret"]


@pytest.mark.parametrize("text", [b"", b"abcd\n", b"no key", b"\xff\xfe"])
def test_a_damaged_key_is_refused(tmp_path, text):
    (tmp_path / "secret").write_bytes(text)
    with pytest.raises(CheckpointError, match="secret: "):
        key_in(tmp_path)
