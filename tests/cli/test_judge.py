"""`dualrank judge`, as a user runs it."""

import json

import numpy as np
import pytest

from dualrank.clicks.sampling import sample_log
from dualrank.data.interventions import shuffle_lists
from dualrank.data.qrels import read_qrels
from dualrank.propensity.propensity import Propensity
from dualrank.storage import write_table


@pytest.fixture
def clicks(dataset, lists, user, tmp_path):
    """A long log on disk, with documents at several positions."""
    rng = np.random.default_rng(4)
    log = sample_log(dataset, shuffle_lists(lists, 3, rng), user, 4_000, rng)
    write_table(tmp_path / "clicks.parquet", log.to_table())
    return tmp_path / "clicks.parquet"


def test_a_log_becomes_qrels(command, clicks, tmp_path):
    out = tmp_path / "j.qrels"
    code, text, _ = command("judge", clicks, "--out", out, "--json")
    assert code == 0
    said = json.loads(text)
    assert len(read_qrels(out)) == said["pairs"] == sum(said["grades"])
    assert said["examination"][0] == 1
    code, text, _ = command("judge", clicks, "--out", out, "--min-sessions", 67, "--force")
    assert code == 0
    assert "with fewer than 67 sessions left out" in text


def test_a_short_curve_is_said_to_end(command, clicks, tmp_path):
    Propensity.of([1.0, 0.8, 0.6]).write(tmp_path / "p.json")
    words = ("judge", clicks, "--out", tmp_path / "j.csv", "--propensity", tmp_path / "p.json")
    code, text, _ = command(*words)
    assert code == 0
    assert "positions from 4 on are not counted" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--out", "j.txt"), "or by --to with one of trec"),
        (("--out", "j.qrels", "--by", "x"), "judged --by clicks or by a click model"),
        (("--out", "j.qrels", "--grades", 1), "from 2 to 31"),
        (("--out", "j.qrels", "--propensity", "none.json"), "cannot be read"),
        (("--out", "j.qrels", "--min-sessions", 99_999), "lower --min-sessions"),
    ],
)
def test_what_goes_wrong_is_one_sentence(command, clicks, words, sentence):
    code, out, err = command("judge", clicks, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
