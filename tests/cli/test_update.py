"""`dualrank update` as a user types it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import dualrank as dr


@pytest.fixture
def folder(tmp_path, dataset, lists, user, monkeypatch):
    """Two days of clicks, and features."""
    from dualrank.data.generator import with_document_ids

    data = with_document_ids(dataset)
    for day in (1, 2):
        log = dr.sample_log(data, lists, user, 1_500, np.random.default_rng(day))
        pq.write_table(log.to_table(data), tmp_path / f"day-{day}.parquet")
    dr.write_letor(data, tmp_path / "features.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_day_is_added_to_a_model(folder, command):
    words = ("--features", "features.txt", "--ranker", "linear", "--steps", 20, "--no-diagnosis")
    trained = command(
        "train", "day-1.parquet", "--out", "model", *words, "--no-twin", "--method", "dla",
        "--remember",
    )  # fmt: skip
    assert trained[0] == 0, trained
    assert (folder / "model" / "memory.safetensors").exists()
    go_on = ("update", "model", "day-2.parquet", "--features", "features.txt", "--steps", 10)
    code, out, err = command(*go_on, "--out", "second", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["older_sessions"] == found["sessions"] == 1_500
    assert found["settings"]["steps"] == 10
    assert found["lead"]["queries"] >= 2
    code, out, err = command(*go_on, "--out", "second", "--changed", "--half-life", 1_500)
    assert code == 0, err
    assert "beside 750 older ones" in out
    assert "lists are remembered for the next update" in out
    assert not [path for path in folder.iterdir() if path.name.startswith(".second")]
    (folder / "second" / "notes.txt").write_text("prices are missing")
    for more, sentence in (
        (("--out", "second"), "second: the whole folder is replaced, and 'notes.txt' in it is no"),
        (("--out", "model"), "model: this would write over model, which is read"),
        (("--out", "third", "--half-life", 0), "half_life is a number of sessions|--half-life"),
        (("--out", "third", "--method", "pairwise"), "method pairwise does not go on"),
    ):
        code, _, err = command(*go_on, *more)
        assert code == 2
        assert any(part in err for part in sentence.split("|")), err
    assert not (folder / "third").exists()
    assert (folder / "second" / "notes.txt").exists()
