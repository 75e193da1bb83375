"""`dualrank propensity` as a new user would run it, with good input and with bad."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.generator import generate_splits, with_document_ids
from dualrank.data.interventions import join_lists, shuffle_lists
from dualrank.data.letor.writer import write_letor
from dualrank.data.lists import top_lists
from dualrank.propensity.propensity import Propensity

CLICK_METHODS = [
    "click-through",
    "harvest-pivot",
    "harvest-adjacent",
    "harvest-all-pairs",
    "pbm",
]


@pytest.fixture
def command(command, monkeypatch):
    """In a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    return command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Features, the log of three rankers over them, and one of shuffled lists."""
    here = tmp_path_factory.mktemp("propensity")
    data = with_document_ids(generate_splits("tiny").train)
    write_letor(data, here / "train.txt")
    rng = np.random.default_rng(0)
    user = PositionBasedUser()

    def ranked():
        return top_lists(data, data.grades + 2 * rng.normal(size=data.document_count), 10)

    logs = {
        "three": join_lists([ranked() for _ in range(3)]),
        "one": ranked(),
        "shuffled": shuffle_lists(ranked(), 20, rng),
    }
    for name, lists in logs.items():
        log = sample_log(data, lists, user, 30_000, rng)
        pq.write_table(log.to_table(data), here / f"{name}.parquet")
    return here


def test_estimates_stand_side_by_side_with_reasons_for_those_that_do_not(command, folder):
    code, out, err = command("propensity", folder / "three.parquet")
    assert (code, err.strip()) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["estimator", *map(str, range(1, 11)), "support"]
    starts = [line.split()[0] for line in lines if line and line[0].isalpha()]
    assert starts[1:6] == CLICK_METHODS
    assert "±" in "".join(lines[1:4])
    assert max(map(len, lines[:12])) <= 80
    assert "randomisation: not estimated, lists were not shuffled: the document tells" in out
    assert "pair-swaps: not estimated, no two lists differ by a swap" in out
    assert "dla: not estimated, it needs the features of the documents." in out
    assert "had other queries been asked" in out


def test_each_file_can_train_a_ranker(command, folder, tmp_path):
    code, out, _ = command("propensity", folder / "three.parquet", "--out", tmp_path / "p")
    assert code == 0
    assert "harvest-all-pairs.json" in out
    written = {path.name for path in (tmp_path / "p").iterdir()}
    assert written == {f"{name}.json" for name in CLICK_METHODS} | {"figure-estimates.svg"}
    assert "</svg>" in (tmp_path / "p" / "figure-estimates.svg").read_text()
    given = tmp_path / "p" / "harvest-all-pairs.json"
    assert Propensity.read(given).support.min() > 0
    code, _, err = command(
        "train", folder / "three.parquet", "--features", folder / "train.txt",
        "--out", tmp_path / "model", "--method", "ipw", "--propensity", given,
        "--steps", 20, "--hidden", "8",
    )  # fmt: skip
    assert (code, err.strip()) == (0, "")


def test_with_features_the_learned_ones_are_there_too(command, folder):
    code, out, _ = command(
        "propensity", folder / "one.parquet", "--features", folder / "train.txt",
        "--methods", "regression-em, dla,harvest-pivot", "--steps", 50, "--hidden", "8",
        "--refits", 2, "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    assert set(result["estimates"]) == {"regression-em", "dla"}
    for name, found in result["estimates"].items():
        assert found["method"] == name
        assert found["sessions"] == 30_000
        assert len(found["examination"]) == len(found["low"]) == len(found["support"]) == 10
    assert result["refused"] == {
        "harvest-pivot": "no query–document pair was seen at positions 1 and 2"
    }


def test_shuffled_lists_are_recognised_or_believed(command, folder):
    out = command("propensity", folder / "shuffled.parquet", "--json")[1]
    assert "randomisation" in json.loads(out)["estimates"]
    out = command("propensity", folder / "one.parquet", "--methods", "randomisation", "--json")[1]
    assert "randomisation" in json.loads(out)["estimates"]


def test_a_log_with_names_of_its_own_is_read_as_told(command, folder, tmp_path):
    table = pq.read_table(folder / "three.parquet")
    renamed = table.rename_columns({"doc_id": "item", "clicked": "tapped"})
    pq.write_table(renamed, tmp_path / "own.parquet")
    code, _, err = command("propensity", tmp_path / "own.parquet")
    assert code == 2
    assert "columns 'doc_id', 'clicked' are missing" in err
    words = ("--column", "doc_id=item", "--column", "clicked=tapped", "--json")
    own = command("propensity", tmp_path / "own.parquet", *words)[1]
    assert json.loads(own) == json.loads(
        command("propensity", folder / "three.parquet", words[-1])[1]
    )


def test_sessions_can_be_resampled_instead(command, folder):
    out = command("propensity", folder / "three.parquet", "--over", "sessions")[1]
    assert "had other people asked the same queries" in out


def test_where_everything_is_clicked_nothing_is_estimated(command, folder, tmp_path):
    table = pq.read_table(folder / "three.parquet")
    clicked = table.column_names.index("clicked")
    full = table.set_column(clicked, "clicked", pa.array(np.ones(len(table), dtype=bool)))
    pq.write_table(full, tmp_path / "all.parquet")
    code, _, err = command("propensity", tmp_path / "all.parquet")
    assert code == 2
    assert "every document that the log shows was clicked" in err


def test_one_position_has_nothing_to_compare(command, folder, tmp_path):
    table = pq.read_table(folder / "three.parquet")
    pq.write_table(table.filter(pc.equal(table["position"], 1)), tmp_path / "first.parquet")
    code, _, err = command("propensity", tmp_path / "first.parquet")
    assert code == 2
    assert "one position only" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.parquet"], "nowhere.parquet"),
        (["{}/train.txt"], "train.txt"),
        (["{}/three.parquet", "--methods", "magic"], "there is no estimator 'magic'; there are"),
        (["{}/three.parquet", "--features", "nowhere.txt"], "nowhere.txt"),
        (["{}/three.parquet", "--over", "weeks"], "weeks"),
        (
            ["{}/one.parquet", "--methods", "harvest-adjacent"],
            "harvest-adjacent cannot be estimated: no query–document pair was seen at positions",
        ),
        (["{}/three.parquet", "--methods", "dla"], "dla cannot be estimated: it needs"),
        (
            ["{}/one.parquet", "--features", "{}/train.txt", "--methods", "dla", "--refits", "1"],
            "one refit shows no spread",
        ),
        (["{}/three.parquet", "--hidden", "x"], "--hidden takes whole numbers"),
    ],
)
def test_bad_input_ends_with_one_sentence(command, folder, words, sentence):
    code, out, err = command("propensity", *(word.format(folder) for word in words))
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.skipif("DUALRANK_DATA" not in os.environ, reason="DUALRANK_DATA is not set")
def test_the_adjacent_chain_of_yandex_is_that_of_an_independent_computation(tmp_path):
    """Published with the sample: pairs seen five times at both ranks, weighing the lesser count."""
    import pyarrow as pa
    import zstandard

    from dualrank.data.log.read_log import read_log
    from dualrank.propensity.estimators import estimate

    source = Path(os.environ["DUALRANK_DATA"]) / "yandex_clicks" / "sessions.tsv.zst"
    with zstandard.open(source, "rt") as file:
        next(file)
        pages = [line.split("\t") for line in file]
    page = np.repeat(np.arange(len(pages)), 10)
    table = pa.table(
        {
            "session_id": page,
            "query_id": [pages[i][1] for i in page],
            "doc_id": [name for each in pages for name in each[2].split()],
            "position": np.tile(np.arange(1, 11), len(pages)),
            "clicked": [flag == "1" for each in pages for flag in each[3].split()],
        }
    )
    found = estimate(read_log(table), "harvest-adjacent")
    quick_look = np.array([1.00, 0.71, 0.59, 0.49, 0.39, 0.34, 0.30, 0.25, 0.24, 0.22])
    np.testing.assert_allclose(found.examination, quick_look, atol=0.011)
    assert (found.low <= quick_look + 0.005).all()
    assert (found.high >= quick_look - 0.005).all()
    assert found.details == {"intervals_over": "queries", "groups": 20}
