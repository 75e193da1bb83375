"""The noun: relative to the first position, through JSON and back."""

import json

import numpy as np
import pytest

from dualrank.errors import DataError
from dualrank.propensity.propensity import Propensity


def test_examination_is_relative_to_the_first_position():
    propensity = Propensity.of([0.68, 0.34, 0.17])
    assert propensity.examination.tolist() == [1, 0.5, 0.25]
    assert propensity.weights.tolist() == [1, 2, 4]
    assert propensity.depth == 3
    assert (propensity.method, propensity.sessions) == ("given", 0)


def test_everything_survives_json(tmp_path):
    propensity = Propensity(
        np.array([1.0, 0.1 + 0.2]),
        "randomisation",
        2_000_000,
        low=np.array([1.0, 0.29]),
        high=np.array([1.0, 0.31]),
        details={"note": "ρ"},
    )
    propensity.write(tmp_path / "propensity.json")
    found = Propensity.read(tmp_path / "propensity.json")
    assert found.examination.tolist() == propensity.examination.tolist()
    assert (found.low.tolist(), found.high.tolist()) == ([1.0, 0.29], [1.0, 0.31])
    assert (found.method, found.sessions) == ("randomisation", 2_000_000)
    assert found.details == {"note": "ρ"}


def test_the_file_has_the_keys_of_the_contract(tmp_path):
    Propensity.of([1.0, 0.5], "dual learning", 7).write(tmp_path / "p.json")
    content = json.loads((tmp_path / "p.json").read_text())
    assert content == {
        "method": "dual learning",
        "sessions": 7,
        "examination": [1.0, 0.5],
        "low": None,
        "high": None,
    }


def test_a_file_written_by_hand_needs_only_examination(tmp_path):
    (tmp_path / "p.json").write_text('{"examination": [0.8, 0.4]}')
    assert Propensity.read(str(tmp_path / "p.json")).examination.tolist() == [1, 0.5]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "must be one number per position"),
        ([[1.0, 0.5]], "must be one number per position"),
        ([1.0, 0.0], "examination of position 2 is 0; it must be above 0 and finite"),
        ([1.0, -0.5], "examination of position 2 is -0.5; it must be above 0 and finite"),
        ([np.nan, 1.0], "examination of position 1 is nan; it must be above 0 and finite"),
        ([1.0, np.inf], "examination of position 2 is inf; it must be above 0 and finite"),
    ],
)
def test_impossible_examination_is_refused(values, sentence):
    with pytest.raises(DataError, match=sentence):
        Propensity.of(values)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "a propensity file has a list named examination"),
        ("{}", "a propensity file has a list named examination"),
        ('{"examination": "all"}', "could not convert"),
        ('{"examination": [1, null]}', "examination"),
        ('{"examination": [1, 0]}', "position 2 is 0"),
        ('{"examination": {"1": 1}}', ""),
        ('{"examination": [1], "low": "x"}', "could not convert"),
        ('{"examination": [1], "sessions": "many"}', "many"),
        ('{"examination": [1, 0.5], "low": [1]}', "an interval is given for 1 positions"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, content, sentence):
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(DataError) as caught:
        Propensity.read(tmp_path / "p.json")
    assert "p.json: " in str(caught.value)
    assert sentence in str(caught.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.json: cannot be read: No such file"):
        Propensity.read(tmp_path / "nowhere.json")


def test_intervals_are_read_on_the_scale_of_the_examination(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"examination": [0.5, 0.25], "low": [0.5, 0.2], "high": [0.5, 0.3]}')
    read = Propensity.read(path)
    assert read.examination.tolist() == pytest.approx([1, 0.5])
    assert read.low.tolist() == pytest.approx([1, 0.4])
    assert read.high.tolist() == pytest.approx([1, 0.6])


def test_curves_by_context_are_propensities(tmp_path):
    path = tmp_path / "p.json"
    curves = '"contexts": {"phone": {"sessions": 7, "examination": [2.0, 1.0]}}'
    path.write_text('{"examination": [1, 0.6], "context": "device", ' + curves + "}")
    read = Propensity.read(path)
    assert read.context == "device"
    assert read.by_context["phone"].examination.tolist() == [1.0, 0.5]
    assert read.by_context["phone"].sessions == 7
    read.write(path)
    assert Propensity.read(path).by_context.keys() == {"phone"}


@pytest.mark.parametrize("contexts", ['["phone"]', '{"phone": {"sessions": 7}}', '{"phone": 3}'])
def test_contexts_without_curves_are_refused(tmp_path, contexts):
    path = tmp_path / "p.json"
    path.write_text('{"examination": [1, 0.6], "context": "device", "contexts": ' + contexts + "}")
    with pytest.raises(DataError, match="not a propensity file"):
        Propensity.read(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"examination": [1, 1e999]}', "1e999 is larger than any float"),
        ('{"examination": [1, ' + "9" * 400 + "]}", "has more than 64 bits"),
        ('{"examination": [1, 0.5], "sessions": 1e300}', r"can be counted; not 1e\+300"),
        (
            '{"examination": [1, 0.5], "sessions": -3}',
            "sessions are 0 or more, and can be counted; not -3",
        ),
        ('{"examination": [1, 0.5], "sessions": "many"}', "sessions are a whole number"),
        ('{"examination": [1, 0.5], "support": [3, -1]}', "can be counted; not -1"),
        ('{"examination": [1, 0.5], "support": [3]}', "support is given for 1 positions"),
        ('{"examination": [1, 0.5], "low": [1, -2], "high": [1, 1]}', "low of position 2 is -2"),
        ('{"examination": [1, 0.5], "low": [1, 0.9], "high": [1, 0.2]}', "position 2 is above"),
        ('{"examination": [1e-320, 1.0]}', "position 2 is inf times that of the first"),
        ('{"examination": [1e300, 1e-300]}', "position 2 is 0 times that of the first"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_numbers_that_no_estimate_can_have_are_refused(tmp_path, content, sentence):
    path = tmp_path / "p.json"
    path.write_text(content)
    with pytest.raises(DataError, match=sentence) as told:
        Propensity.read(path)
    assert str(told.value).startswith(str(path))
