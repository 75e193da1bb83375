"""Pictures draw the numbers of the object, and its intervals where it has some."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import dualrank as dr
from dualrank.certainty import level_errors
from dualrank.clicks import compare_models
from dualrank.clicks.models.comparison import ClickModelComparison
from dualrank.data.scaling import Scaler
from dualrank.decisions.counterfactual import Estimate
from dualrank.decisions.support import Support
from dualrank.diagnostics.point import SEVERITY, Point
from dualrank.errors import DataError
from dualrank.showing.interval_rows import Interval, draw_intervals
from dualrank.showing.palette import DARK, LIGHT


@pytest.fixture
def ax():
    return Figure().subplots()


CURVE = dr.Propensity(
    np.array([1.0, 0.6, 0.3]), "pbm", 100, np.array([1.0, 0.5, 0.2]), np.array([1.0, 0.7, 0.45])
)


def bars(ax):
    """Vertical intervals: place, low, high."""
    found = [c.get_segments() for c in ax.collections if isinstance(c, LineCollection)]
    return np.array([[s[0][0], s[0][1], s[1][1]] for each in found for s in each])


def rows(ax):
    """Labels of the rows from above, with the interval drawn there."""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    ends = {
        round(float(line.get_ydata()[0])): tuple(line.get_xdata())
        for line in ax.lines
        if len(line.get_xdata()) == 2 and line.get_ydata()[0] == line.get_ydata()[1]
    }
    return [(label, ends.get(y)) for y, label in reversed(list(enumerate(labels)))]


def names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def model(propensity=None, **training):
    scaler = Scaler.fit(np.eye(3, dtype=np.float32), kind="standard")
    return dr.Model(dr.Linear().build(3), scaler, propensity, None, training)


def test_a_curve_is_drawn_with_its_intervals(ax):
    CURVE.plot(ax)
    assert ax.lines[0].get_ydata() == pytest.approx(CURVE.examination)
    assert bars(ax) == pytest.approx(np.c_[[1, 2, 3], CURVE.low, CURVE.high])
    assert names(ax) == ["pbm"]
    assert ax.get_ylim()[0] == 0


def test_a_curve_without_intervals_has_none(ax):
    dr.Propensity.of([1, 0.5]).plot(ax)
    assert len(bars(ax)) == 0


def test_an_interval_without_end_leaves_the_axes_and_does_not_hide_the_curve(ax):
    replace(CURVE, high=np.array([1.0, 0.7, np.inf])).plot(ax)
    assert ax.get_ylim()[1] < 2
    assert bars(ax)[2, 2] > ax.get_ylim()[1]


def test_several_curves_on_one_picture_are_told_apart(ax):
    CURVE.plot(ax)
    replace(CURVE, examination=2 * CURVE.examination).plot(ax=ax, label="again")
    dr.Propensity.of([1, 0.5, 0.4, 0.3]).plot(ax, color="black", label="truth")
    assert names(ax) == ["pbm", "again", "truth"]
    assert len({to_hex(line.get_color()) for line in ax.lines}) == 3
    assert to_hex(ax.lines[2].get_color()) == "#000000"
    assert ax.get_ylim()[1] > 2
    assert list(ax.get_xticks()) == [1, 2, 3, 4]


def test_names_are_not_taken_for_formulas(ax):
    CURVE.plot(ax, label="$x^$ of\x1b[31m")
    ax.figure.canvas.draw()
    assert names(ax) == [r"\$x^\$ of\x1b[31m"]


def test_on_dark_paper_colours_are_the_light_ones():
    dark, light = (Figure(facecolor=paper).subplots() for paper in ("black", "white"))
    for each in (dark, light):
        CURVE.plot(each)
    assert dark.lines[0].get_color() == DARK["purple"]
    assert light.lines[0].get_color() == LIGHT["purple"]


def test_estimates_stand_side_by_side(ax):
    other = replace(CURVE, method="dla", low=None, high=None)
    dr.Estimates({"pbm": CURVE, "dla": other}).plot(ax)
    assert names(ax) == ["pbm", "dla"]
    assert ax.get_yscale() == "log"
    first, second = (line.get_xdata() for line in ax.lines)
    assert (first < second).all()
    assert bars(ax)[:, 1:] == pytest.approx(np.c_[CURVE.low, CURVE.high])


def test_where_no_curve_was_found_there_is_a_sentence_and_no_picture():
    with pytest.raises(DataError, match="no curve was found; pbm were refused"):
        dr.Estimates({}, {"pbm": "too few clicks"}).plot()


def test_a_log_is_drawn_by_what_was_clicked_of_what_was_displayed(ax, log):
    log.plot(ax)
    clicks = log.clicks_per_list.sum(axis=0)
    displays = log.sessions_per_list @ log.lists.mask
    assert ax.lines[0].get_ydata() == pytest.approx(clicks / displays)


def test_a_model_draws_its_curve_and_those_of_its_contexts(ax):
    contexts = {"desk": {"examination": [1.0, 0.9], "sessions": 60}}
    contexts["<phone>"] = {"examination": [1.0, 0.3], "sessions": 40}
    known = dr.Propensity(np.array([1.0, 0.6]), "dla", details={"contexts": contexts})
    model(known).plot(ax)
    assert names(ax) == ["all sessions", "desk (60 sessions)", "<phone> (40 sessions)"]
    assert ax.lines[2].get_ydata() == pytest.approx([1.0, 0.3])


def test_a_model_without_a_curve_draws_how_it_was_trained(ax):
    history = {"steps": [10, 20], "values": [0.5, 0.6], "best_step": 20, "best_value": 0.6}
    model(method="naive", history=history).plot(ax)
    assert ax.lines[0].get_ydata() == pytest.approx([0.5, 0.6])
    assert model(CURVE, history=history).plot(Figure().subplots()).get_xlabel() == "position"
    steps = model(CURVE, history=history).plot(Figure().subplots(), what="training")
    assert steps.get_xlabel() == "training steps"


def test_a_model_with_nothing_to_draw_says_so():
    with pytest.raises(DataError, match="a model of method naive has no examination to draw"):
        model(method="naive").plot()
    with pytest.raises(DataError, match="keeps no validation curve"):
        model(CURVE).plot(what="training")


def test_every_point_of_a_diagnosis_stands_where_it_came_out(ax):
    points = tuple(Point(status, status, {}, "So it is.") for status in SEVERITY)
    dr.Diagnosis("fit for joint learning", (), points).plot(ax)
    for y, name in enumerate(label.get_text() for label in ax.get_yticklabels()):
        (line,) = [each for each in ax.lines if each.get_ydata()[0] == y]
        assert SEVERITY[line.get_xdata()[0]] == name
    assert ax.get_title(loc="left") == "Fit for joint learning."


def test_a_diagnosis_draws_its_curves_or_says_why_there_are_none(ax):
    curve = {"examination": CURVE.examination, "low": CURVE.low, "high": CURVE.high}
    point = Point("curves", "good", {"raw": curve, "harvested": curve}, "They agree.")
    found = dr.Diagnosis("fit for joint learning", (), (point,))
    found.plot(ax, what="curves")
    assert names(ax) == ["click-through", "harvest-all-pairs"]
    without = replace(found, points=(replace(point, numbers={}, meaning="No clicks."),))
    with pytest.raises(DataError, match="the log allows no curve: No clicks"):
        without.plot(what="curves")


@pytest.mark.parametrize(("gain", "color"), [(0.03, "green"), (0.01, "gray"), (-0.03, "vermilion")])
def test_leads_are_drawn_as_clear_as_the_verdict_calls_them(ax, log, gain, color):
    lead = {"gain": gain, "error": 0.01, "queries": 60, "clicks": 900}
    found = dr.Training(model(method="dla", twin={"leads": {"dla": lead}, "why": "so"}), log)
    found.plot(ax)
    assert rows(ax) == [("dla", pytest.approx((gain - 0.02, gain + 0.02)))]
    assert ax.lines[1].get_color() == LIGHT[color]
    assert found.leads["dla"].is_clear == (color == "green")


def test_a_training_that_was_not_compared_says_so(log):
    with pytest.raises(DataError, match=r"no lead to draw.*This model was not compared"):
        dr.Training(model(method="dla"), log).plot()


@pytest.fixture
def counterfactual():
    def value(difference, metric="clicks", estimator="doubly-robust", part=""):
        ends = difference - 0.01, difference + 0.01
        return Estimate(metric, estimator, 0.5 + difference, 0.5, difference, *ends, part)

    return dr.Counterfactual(
        "new",
        "logged",
        (
            value(0.03),
            value(0.02, "dcg"),
            value(-0.02, estimator="direct"),
            value(0.04, part="head queries"),
        ),
        Support("new", 0.97, 0.96, 5_000.0, 1_200.0, 0.02),
        *(Support("logged", 1.0, 1.0, 5_000.0, 5_000.0, 0.01), {"ips": "too few"}),
        *(CURVE, "given", True, (), {"0.5": 0.01, "1.5": 0.05}, 0.3, 1.0, (), 10_000, 300, False),
    )


@pytest.mark.parametrize(
    ("by", "drawn"),
    [
        ("estimator", {"Doubly robust": 0.03, "Direct": -0.02, "Inverse propensity": None}),
        ("metric", {"Clicks per session": 0.03, "Clicked DCG": 0.02}),
        ("part", {"head queries": 0.04}),
    ],
)
def test_an_estimate_draws_differences_with_their_intervals(ax, counterfactual, by, drawn):
    counterfactual.plot(ax, by=by)
    wanted = [
        (label, value if value is None else pytest.approx((value - 0.01, value + 0.01)))
        for label, value in drawn.items()
    ]
    assert rows(ax) == wanted


def test_an_estimate_without_parts_says_so(counterfactual):
    whole = tuple(each for each in counterfactual.estimates if not each.part)
    with pytest.raises(DataError, match="there is no estimate by part to draw"):
        replace(counterfactual, estimates=whole).plot(by="part")


def test_click_models_are_drawn_by_what_they_are_behind(ax, log):
    found = compare_models(log, 0.3, ["random-ctr", "rank-ctr"])
    best, other = found.ranked
    found.plot(ax)
    half = level_errors(1) * other.behind_error
    assert rows(ax)[0] == (best.model, pytest.approx((0, 0)))
    assert rows(ax)[1] == (other.model, pytest.approx((-other.behind - half, half - other.behind)))
    assert found.verdict[0].startswith(best.model)


def test_a_click_model_far_behind_does_not_hide_the_others(ax, log):
    found = compare_models(log, 0.3, ["random-ctr", "rank-ctr"])
    best, other = found.ranked
    far = replace(other, model="cascade", behind=40.0, log_likelihood=best.log_likelihood - 40)
    ClickModelComparison((best, replace(other, model="near"), far), 10, 10).plot(ax)
    assert ax.get_xlim()[0] > -10


def test_a_share_to_hold_out_is_the_same_as_the_sessions_of_that_share(log):
    from dualrank.clicks.models.comparison import hold_out

    names = ["random-ctr", "rank-ctr"]
    one = compare_models(log, 0.3, names, seed=5)
    other = compare_models(*hold_out(log, 0.3, 5), names)
    assert [s.log_likelihood for s in one] == [s.log_likelihood for s in other]
    assert one.fitted_on + one.judged_on == log.sessions


def test_a_plan_that_costs_nothing_says_so(log):
    plan = dr.plan_swaps(log, precision=0.3)
    free = replace(plan, designs=())
    with pytest.raises(DataError, match="there is no cost to draw"):
        free.plot()


def test_a_row_without_numbers_stands_as_refused(ax):
    draw_intervals(ax, [Interval("known", 0.5, 0.4, 0.6), Interval("not", None)])
    assert rows(ax) == [("known", (0.4, 0.6)), ("not", None)]
    assert [text.get_text() for text in ax.texts] == ["refused", "+0.5000"]
