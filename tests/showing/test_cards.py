"""Cards say what the object holds, whatever of it is missing."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dualrank as dr
from dualrank.data.scaling import Scaler
from dualrank.showing.card import MOST_ROWS, card, facts, grid, marked, said


def model(propensity=None, **training):
    scaler = Scaler.fit(np.eye(3, dtype=np.float32), kind="standard")
    return dr.Model(dr.Linear().build(3), scaler, propensity, None, training)


def test_of_many_rows_the_first_are_shown_and_the_others_counted():
    html = grid(("a",), [(f"row {number}",) for number in range(MOST_ROWS + 2)])
    assert f"row {MOST_ROWS - 1}<" in html
    assert f"row {MOST_ROWS}<" not in html
    assert "and 2 more rows." in html


def test_what_is_empty_is_left_out():
    assert said("", "") == ""
    assert "nothing" not in facts({"nothing": "", "something": "1"})
    assert card("Title") == card("Title", ("", ""))


def test_a_status_is_said_in_words_and_not_by_its_colour_alone():
    assert marked("failed", "failed").endswith("failed")
    assert marked("good", "<b>") != marked("failed", "<b>")
    assert "<b>" not in marked("good", "<b>")


def test_the_card_of_a_curve_has_its_numbers():
    curve = dr.Propensity(
        np.array([1.0, 0.5]), "pbm", 1_200, np.array([1.0, 0.4]), np.array([1.0, 0.55])
    )
    html = curve._repr_html_()
    for said_of_it in ("pbm", "1,200 sessions", ".500", "±10%", ">2<"):
        assert said_of_it in html


def test_a_long_curve_says_how_much_of_it_is_not_shown():
    html = dr.Propensity.of(1 / np.arange(1, 31))._repr_html_()
    assert "Positions 11 to 30 are in .examination." in html


def test_the_card_of_a_log_counts_what_happened(log):
    html = log._repr_html_()
    assert f"{log.sessions:,} sessions" in html
    assert f"{int(log.clicks_per_list.sum()):,} clicks" in html


def test_an_empty_log_has_a_card(log):
    nothing = log.take_rows(np.zeros(0, int)).take_lists(np.zeros(0, int))
    assert "0 sessions" in nothing._repr_html_()


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"history": None, "twin": None, "auto": None, "reading": None},
        {"twin": {"why": "nothing was held out"}},
        {"method": 3, "history": "none", "warnings": None},
        {"auto": {"leads": {"dla": {"gain": "much"}}}},
        {"twin": ["not", "a", "comparison"]},
    ],
)
def test_a_model_has_a_card_whatever_its_manifest_says_of_its_training(training):
    assert "3 features" in model(**training)._repr_html_()


def test_the_card_of_a_model_says_whether_the_lead_is_clear():
    def html(gain):
        lead = {"gain": gain, "error": 0.01, "queries": 60, "clicks": 900}
        return model(method="dla", twin={"leads": {"dla": lead}})._repr_html_()

    assert ">clear<" in html(0.03)
    assert ">not clear<" in html(0.01)
    assert ">clearly behind<" in html(-0.03)


def test_what_was_refused_is_named_with_its_reason(log):
    estimates = dr.estimate_propensities(log, methods=["click-through", "dla"], resamples=5)
    html = estimates._repr_html_()
    assert "dla: not estimated, it needs the features of the documents." in html
    assert "No method found a curve." in replace(estimates, found={})._repr_html_()


def test_judgements_count_their_grades_and_show_the_first():
    columns = {"query_id": ["q"] * 7, "doc_id": list("abcdefg"), "relevance": [0.5] * 7}
    columns |= {"low": [0.4] * 7, "high": [0.6] * 7, "sessions": [20] * 7, "grade": [2] * 6 + [0]}
    html = dr.Judgements(pa.table(columns), "clicks", 3, 4)._repr_html_()
    assert "by corrected click-through" in html
    assert [f">{count}<" in html for count in (1, 0, 6)] == [True, True, True]
    assert "and 2 more pairs in .table." in html
    assert "4 pairs with too few sessions left out." in html
