"""What the library calls a setting is said as the option that was typed."""

import subprocess
import sys

import pytest

from dualrank.cli.wording import in_options

OPTIONS = ["max-bad-share", "first-position", "validation", "memory", "features", "column", "out"]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("raise max_bad_share to leave them out", "raise --max-bad-share to leave them out"),
        ("set first_position to 0.", "set --first-position to 0."),
        ("give validation=0 or judged queries", "give --validation 0 or judged queries"),
        ("give more, such as memory='4GB'", "give more, such as --memory 4GB"),
        ("give also features=, out=", "give also --features, --out"),
        ("as columns={'doc_id': 'NAME'}", "as --column doc_id=NAME"),
        ("this one has columns={", "this one has columns={"),
        ("documents have no features", "documents have no features"),
        ("column 'max_bad_share' is missing", "column 'max_bad_share' is missing"),
        ("logs/max_bad_share.parquet: empty", "logs/max_bad_share.parquet: empty"),
        ("max_bad_share.csv: empty", "max_bad_share.csv: empty"),
        ("--first-position is 0 or 1", "--first-position is 0 or 1"),
        ("periods=0 reads it", "periods=0 reads it"),
    ],
)
def test_settings_are_said_as_options_and_nothing_else_is(sentence, said):
    assert in_options(sentence, OPTIONS) == said


def test_a_command_speaks_of_its_options(tmp_path):
    (tmp_path / "log.csv").write_text("session_id,query_id,doc_id,position,clicked\ns,q,d,0,0\n")
    words = ["reduce", tmp_path / "log.csv", "--out", tmp_path / "r.parquet"]
    code = "from dualrank.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "for a log that counts from 0 set --first-position to 0" in done.stderr
    assert "or raise --max-bad-share to leave them out" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schedule", "fast"), "'--schedule': 'fast' is not one of 'linear', 'constant'"),
        (("--activation", "gelu"), "'--activation': 'gelu' is not one of 'elu', 'relu'"),
        (("--steps", "many"), "'--steps': expected a whole number; see"),
        (("--learning-rate", "much"), "'--learning-rate': expected a number; see"),
        (("--min-sessions", "0"), "'--min-sessions': expected 1 or more; see"),
    ],
)
def test_wrong_values_are_told_without_the_words_of_the_parser(command, words, said):
    code, _, err = command("train", "log.csv", "--features", "f.txt", "--out", "m", *words)
    assert code == 2
    assert said in err
