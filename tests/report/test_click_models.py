"""The comparison of click models, as people see it."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from dualrank.clicks.models.comparison import Score
from dualrank.clicks.models.comparison_verdict import comparison_verdict
from dualrank.report import comparison_figure, comparison_table, rank_table
from dualrank.report.theme import svg_file


def score(name, log_likelihood, perplexity, ranks=(1.9, 1.4)):
    return Score(
        name, name, log_likelihood, perplexity, ranks, perplexity - 0.1,
        tuple(None if p is None else p - 0.1 for p in ranks), 7, True, 0.1,
    )  # fmt: skip


SCORES = [
    score("rank-ctr", -3.5, 1.5),
    score("pbm", -3.2, 1.40001, (1.8, 1.3)),
    score("ubm", -3.0, 1.40004, (1.7, 1.35)),
    score("cascade", -50.0, 1.6),
]


def text_of(table):
    console = Console(width=80, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(table.rich(80))
    return captured.get()


def test_the_best_is_bold_and_what_prints_alike_shares_the_place():
    console = Console(width=80, force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(comparison_table(SCORES).rich(80))
    rows = captured.get().splitlines()
    assert [row.count("\x1b[1m") for row in rows[2:]] == [0, 2, 3, 0]


def test_ten_ranks_fit_on_a_terminal_of_eighty_columns():
    ten = [score("document-ctr", -3.0, 1.5, (1.5,) * 10)]
    text = text_of(rank_table(ten, given_clicks=False))
    assert "…" not in text
    assert "@10" in text


def test_per_rank_values_are_those_asked_for():
    assert "1.800" in text_of(rank_table(SCORES, given_clicks=False))
    assert "1.600" in text_of(rank_table(SCORES, given_clicks=True))


def test_the_figure_names_every_model_and_keeps_the_cascade_in_sight():
    svg = svg_file(comparison_figure(SCORES))
    ET.fromstring(svg)
    for name in ("rank-ctr", "pbm", "ubm", "cascade"):
        assert f">{name}<" in svg
    assert ">−50.000<" in svg


@pytest.mark.parametrize("scores", [SCORES[1:2], SCORES[3:]])
def test_a_single_model_is_drawn_without_the_baseline(scores):
    assert "Perplexity" in svg_file(comparison_figure(scores))


def test_a_rank_that_was_never_shown_leaves_a_gap():
    short = [score("pbm", -3.2, 1.4, (1.8, None)), score("rank-ctr", -3.5, 1.5, (1.9, None))]
    assert "–" in text_of(rank_table(short, given_clicks=False))
    svg_file(comparison_figure(short))


def judged(name, likelihood, behind=0.0, error=0.0, **shared):
    return replace(
        score(name, likelihood, 1.4), behind=behind, behind_error=error, shared=dict(**shared)
    )


def test_a_clear_lead_is_a_verdict_with_a_method():
    found = " ".join(comparison_verdict([judged("pbm", -1.2, 0.2, 0.01), judged("dbn", -1.0)]))
    assert found.startswith("dbn predicts held-out sessions best")
    assert "20.0 standard errors, where 2.0 would be clear" in found
    assert "method stopping" in found


def test_what_is_not_clearly_behind_is_said_and_the_simplest_taken():
    scores = [judged("pbm", -1.01, 0.01, 0.01), judged("ubm", -1.0), judged("dbn", -2, 1.0, 0.01)]
    found = " ".join(comparison_verdict(scores))
    assert "ubm comes first, but pbm is not clearly behind" in found
    assert "The simplest of them is pbm. A position is seen or not" in found
    assert "dbn" not in found


@pytest.mark.parametrize(("irrelevant", "trusts"), [([0.4, 0.1], True), ([0.0, 0.0], False)])
def test_a_trust_model_without_trust_is_no_sign_of_it(irrelevant, trusts):
    first = judged("pbm-trust", -1.0, relevant=[0.8, 0.4], irrelevant=irrelevant)
    found = " ".join(comparison_verdict([judged("pbm", -1.2, 0.2, 0.01), first]))
    assert ("method affine" in found) == trusts
    assert ("no more trust in the top than below" in found) != trusts


def test_one_model_is_no_contest():
    assert comparison_verdict([judged("pbm", -1.0)]) == []
