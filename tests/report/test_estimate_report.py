"""The page of an estimate: the verdict on top, nothing hidden, and names as text."""

import re
import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from dualrank.decisions.counterfactual import Counterfactual, Estimate
from dualrank.decisions.curve_checks import Contradiction
from dualrank.decisions.estimate_words import ends_kept
from dualrank.decisions.moves import Move, Placed
from dualrank.decisions.support import Support
from dualrank.propensity.propensity import Propensity
from dualrank.report.estimate_report import estimate_sheet, write_estimate
from dualrank.report.interval_figure import interval_figure
from dualrank.showing.interval_rows import Interval

HOSTILE = "<script>alert(1)</script>[red]\x1b[31m\u202e$x^$|a\nb"


def value(difference, metric="clicks", estimator="doubly-robust", part="", half=0.01):
    low, high = difference - half, difference + half
    return Estimate(metric, estimator, 0.5 + difference, 0.5, difference, low, high, part)


def move(query, gain):
    new = (Placed("d1", 40, 3.0, 0.2), Placed(HOSTILE * 5, 0, 0.0, 0.1), Placed("d3", 9, 1.0, 0.1))
    return Move(query, 1_234, gain, new, (Placed("d9", 7, 0.0, 0.05),))


@pytest.fixture
def found():
    """An estimate of everything, with hostile names."""
    metrics = ("clicks", "dcg", "precision@1", "first-click")
    others = ("direct", "ips", "self-normalised", "clipped")
    return Counterfactual(
        new="new.run",
        old="logged",
        estimates=(
            *(value(0.03, metric) for metric in metrics),
            *(value(-0.02, "clicks", name) for name in others),
            value(0.02, "clicks", "affine"),
            value(0.04, part="head queries"),
            value(0.0, part=f"device={HOSTILE}"),
        ),
        support=Support("new.run", 0.97, 0.96, 5_000.0, 1_200.0, 0.02),
        support_of_old=Support("logged", 1.0, 1.0, 5_000.0, 5_000.0, 0.01),
        refused={},
        curve=Propensity.of(1 / np.arange(1, 6)),
        curve_source="harvested",
        curve_is_counted=True,
        contradicted=(),
        otherwise={"0.5": 0.01, "1.5": 0.05},
        mended=0.3,
        disagreement=1.0,
        moves=(move("q1", 0.5), move(HOSTILE, -0.25)),
        sessions=10_000,
        queries=300,
        clicks_depend=False,
    )


def words_of(sheet):
    """The words of a page; figures, which take their time, are left out."""
    sections = tuple(replace(each, exhibits=()) for each in sheet.sections)
    page = replace(sheet, sections=sections).html()
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_the_verdict_stands_before_every_number(found):
    text = words_of(estimate_sheet(found))
    # Users trust the top: what is left of the difference without that leads.
    verdict = "new.run is better than logged: +0.0200 clicks per session"
    assert text.index(verdict) < text.index("Doubly robust")
    assert "Another estimator says the opposite" in text


@pytest.mark.parametrize("without_trust", [-0.02, 0.0])
def test_what_trust_may_explain_decides_nothing(found, without_trust):
    kept = tuple(each for each in found.estimates if each.estimator != "affine")
    affine = value(without_trust, "clicks", "affine")
    told = replace(found, estimates=(*kept, affine)).verdict
    assert told.decision == "cannot tell"
    first = told.sentences[0]
    assert first.index(f"{without_trust:+.4f} clicks") < first.index("as they seem to")
    assert first.index("as they seem to") < first.index("+0.0300 clicks per session")
    assert "interleaving" in told.sentences[1]
    # Where no trust is found, the doubly robust estimate decides alone.
    assert replace(found, estimates=kept).verdict.decision == "better"


def test_every_estimator_is_drawn_tabulated_and_explained(found):
    page = estimate_sheet(found).html()
    for label in ("Doubly robust", "Direct", "Inverse propensity", "Clipped", "Affine"):
        # A row of the table, a row of the figure, and what it assumes.
        assert page.count(f">{label}<") >= 3


def test_a_refused_estimator_is_named_with_its_reason(found):
    why = "31% of what new.run shows, as far as it would be looked at, was never displayed"
    kept = tuple(each for each in found.estimates if each.estimator in ("doubly-robust", "direct"))
    refused = dict.fromkeys(("ips", "clipped"), why)
    support = replace(found.support, examined=0.69)
    text = words_of(
        estimate_sheet(replace(found, estimates=kept, refused=refused, support=support))
    )
    assert f"Refused: Inverse propensity, Clipped. {why}." in text
    assert "All that would be examined failed" in text
    assert text.count(" refused ") == 2
    assert "Affine" not in text


def test_what_the_log_displayed_is_said_of_the_ranking_that_it_is_of(found):
    less = Support("old.run", 0.67, 0.62, 5_000.0, 80.0, 0.03)
    doubted = replace(found, old="old.run", support_of_old=less)
    text = words_of(estimate_sheet(doubted))
    for number in (
        "What new.run puts first the log has displayed, at some position, in 97% of sessions; what "
        "old.run puts first, in 67%",
        "96% of it was displayed under new.run, 62% under old.run",
        "tell as much as 1,200 of one weight would about new.run, as 80 about old.run",
        "carry 2.0% of the weight of inverse propensity under new.run, 3.0% under old.run",
    ):
        assert number in text
    # The ranking that is known less of decides, and is the one that is named.
    assert "Cannot tell: 38% of what old.run shows" in text
    assert "All that would be examined failed" in text
    assert "First results warning" in text
    told = doubted.to_dict()
    assert told["support"]["ranking"] == "new.run"
    assert told["support_of_old"]["top"] == 0.67


def test_what_the_curve_decides_is_said(found):
    text = words_of(estimate_sheet(found))
    assert "The log says nothing against it." in text
    assert "The sign stays" in text
    against = (
        Contradiction("documents shown at several positions", 4, 1.8, 1.4, 2.3),
        Contradiction("features", 7, 0.5, 0.4, 0.6),
    )
    doubted = replace(found, contradicted=against, otherwise={"0.5": -0.01, "1.5": 0.05})
    text = words_of(estimate_sheet(doubted))
    assert "Where the sign changes, the verdict hangs on the curve." in text
    assert "position 4 is examined 1.80 times" in text
    assert "At position 7 there are 0.50 times" in text
    unsure = replace(found, curve_is_counted=False)
    assert "nothing says how sure it is" in words_of(estimate_sheet(unsure))


def test_queries_stand_with_their_documents_under_both(found):
    text = words_of(estimate_sheet(found))
    gain, lose = text.index("Queries that gain most"), text.index("Queries that lose most")
    assert gain < text.index("q1 1,234 +0.500 d1 (40 displayed, 3 clicked) d9 (7 displayed") < lose
    assert "(never displayed)" in text
    assert "−0.250" in text[lose:]
    still = estimate_sheet(replace(found, moves=found.moves[:1]))
    assert "Queries that lose most" not in [section.title for section in still.sections]


def test_sentences_are_in_the_words_of_the_reader(found):
    lost = replace(found, support=replace(found.support, examined=0.5))
    assert "only_displayed=True" in estimate_sheet(lost).verdict[1]
    typed = estimate_sheet(lost, typed=lambda text: text.replace("only_displayed=True", "typed"))
    assert "only_displayed" not in words_of(typed)


def test_weighed_events_are_values(found):
    linear = tuple(each for each in found.estimates if each.metric != "first-click")
    weighed = replace(found, estimates=linear, events={"purchase": 5.0})
    text = words_of(estimate_sheet(weighed))
    assert "Difference in value per session" in text
    assert "purchase 5" in text


def test_names_are_text_in_the_page_in_tables_and_in_figures(found, tmp_path):
    hostile = replace(
        found, new=HOSTILE, refused={"ips": f"because of {HOSTILE}"}, notes=(HOSTILE,)
    )
    one = {"examination": [1.0, 0.5, 0.2, 0.2, 0.1], "sessions": 9}
    details = {"context": "device", "contexts": {HOSTILE: one}}
    hostile = replace(hostile, curve=replace(found.curve, details=details))
    written = write_estimate(hostile, estimate_sheet(hostile, command=HOSTILE), tmp_path / "d")
    for path in written:
        text = path.read_text()
        if path.suffix != ".json":
            assert "<script>alert" not in text, path
        controls = [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
        assert not controls, path
    page = (tmp_path / "d" / "report.html").read_text()
    assert "\u202e" not in page
    # An id of two hundred characters does not stand there whole.
    assert HOSTILE.replace("<", "&lt;") * 2 not in page


def test_long_names_keep_both_ends():
    assert ends_kept("https://example.org/" + "x" * 100 + "/the-end.html") == (
        "https://example.org/xxxxx…x/the-end.html"
    )


def test_intervals_tell_sides_apart_without_colour():
    sides = [Interval("a", 1, 0.5, 1.5), Interval("b", -1, -2, -0.5), Interval("c", 0, -1, 1)]
    assert len({each.look for each in sides}) == 3
    assert len({marker for _, marker in (each.look for each in sides)}) == 3
    figure = interval_figure([*sides, Interval("d")], "Difference")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["d", "c", "b", "a"]
    assert interval_figure([Interval("d")], "Difference") is None
