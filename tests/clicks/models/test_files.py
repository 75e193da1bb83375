"""A click model on disk is what was written, or a sentence says what is wrong with it."""

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.models.registry import MODELS, click_model, load_click_model
from dualrank.errors import DataError


@pytest.fixture
def log(known_model, rotated_lists):
    return known_model("dbn", 8).sample(rotated_lists(2), 2_000, 0)


@pytest.fixture
def saved(log, tmp_path):
    path = tmp_path / "model.json"
    click_model("pbm").fit(log).save(path)
    return path


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_every_model_comes_back_from_its_file(name, suffix, log, tmp_path):
    model = click_model(name).fit(log)
    model.save(tmp_path / f"model.{suffix}")
    again = load_click_model(tmp_path / f"model.{suffix}")
    np.testing.assert_array_equal(
        again.click_probabilities(log.lists), model.click_probabilities(log.lists)
    )


def test_another_number_in_a_file_is_found_by_its_digest(saved, log, tmp_path):
    content = json.loads(saved.read_text())
    content["pairs"]["attraction"][2] += 1e-9
    saved.write_text(json.dumps(content))
    with pytest.raises(DataError, match="damaged: its digest is not that of what it says"):
        load_click_model(saved)
    path = tmp_path / "model.parquet"
    click_model("pbm").fit(log).save(path)
    table = pq.read_table(path)
    changed = pa.array(np.where(np.arange(len(table)) == 1, 7, table["observations"].to_numpy()))
    column = table.column_names.index("observations")
    pq.write_table(table.set_column(column, "observations", changed), path)
    with pytest.raises(DataError, match="damaged"):
        load_click_model(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c["pairs"]["attraction"].__setitem__(0, -7.5), "attraction is -7.5 somewhere"),
        (lambda c: c["pairs"]["attraction_low"].__setitem__(0, 1.0), "outside of its interval"),
        (lambda c: c["pairs"]["attraction"].__setitem__(0, None), "attraction is missing in 1"),
        (lambda c: c["pairs"]["observations"].__setitem__(0, -5), "was observed -5 times"),
        (lambda c: c["pairs"]["observations"].__setitem__(0, 2.5), "not a click model"),
        (lambda c: c["pairs"]["document"].__setitem__(0, 1), "stands there twice"),
        (lambda c: c["pairs"]["document"].__setitem__(0, -1), "numbers from 0"),
        (lambda c: c["pairs"]["document"].__setitem__(0, 2**60), "numbers from 0"),
        (lambda c: c["shared"]["examination"].__setitem__(0, 3.0), "examination is 3 somewhere"),
        (lambda c: c["shared"]["examination"].pop(), "examination has 3 values for 4 ranks"),
        (lambda c: c["unseen"].update(attraction=2.0), "attraction is 2 somewhere"),
        (lambda c: c.update(depth=10**9), "examination has 4 values"),
        (lambda c: c.update(sessions=-1), "sessions is -1"),
        (lambda c: c.update(model="ubm"), "not the parameters of ubm"),
        (lambda c: c.update(model="dbn"), "not the parameters of dbn"),
    ],
)
def test_what_no_fitted_model_can_be_is_refused(saved, change, sentence):
    content = json.loads(saved.read_text())
    del content["digest"]  # as in files of earlier versions
    saved.write_text(json.dumps(content))
    load_click_model(saved)
    change(content)
    saved.write_text(json.dumps(content))
    with pytest.raises(DataError, match=sentence) as told:
        load_click_model(saved)
    assert str(told.value).startswith(str(saved))


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_damaged_files_are_refused_or_mean_the_same(suffix, log, tmp_path):
    path, rng = tmp_path / f"model.{suffix}", random.Random(0)
    model = click_model("pbm").fit(log)
    model.save(path)
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
        if damaged:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            again = load_click_model(path)
        except DataError:
            continue
        assert again.relevance().equals(model.relevance())


def test_more_sessions_than_can_be_added_up_are_refused(log):
    many = type(log)(log.lists, log.list_of, log.clicks, log.counts << 55)
    with pytest.raises(DataError, match="its counts are damaged"):
        click_model("pbm").fit(many)
