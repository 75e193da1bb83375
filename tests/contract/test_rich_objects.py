"""What every object promises that shows itself in a notebook: a card, and mostly a picture.

A new rich object is tested by being named here.
"""

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from inspect import isclass

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dualrank as dr
from dualrank.clicks.models.comparison import ClickModelComparison, Score
from dualrank.data.click_log import Column
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.scaling import Scaler
from dualrank.decisions.counterfactual import Estimate
from dualrank.decisions.preference import Comparison, Preference, Wins
from dualrank.decisions.support import Support
from dualrank.diagnostics.point import Point
from dualrank.errors import SettingsError
from dualrank.propensity.swap_plan import PlannedDesign
from dualrank.report import Cell, Row, Table

HOSTILE = "<script>alert('1')</script>&\"\x1b[31m\u202e$x^$"
VOID = {"br", "hr", "img"}
ASKED_FOR = ("Model", "Propensity", "ClickLog", "Diagnosis", "Estimates", "ClickModelComparison")
CARDS_ALONE = ("Judgements", "Dataset", "Table")


def propensity():
    curve = np.array([1.0, 0.6, 0.3])
    return dr.Propensity(
        *(curve, HOSTILE, 900, 0.8 * curve, np.array([1.0, 0.7, np.inf])),
        {"context": HOSTILE, "contexts": {HOSTILE: {"examination": [1.0, 0.5, 0.2]}}},
        np.array([50, 40, 30]),
    )


def click_log():
    lists = dr.RankedLists(np.array([[0, 1, 2], [1, 0, -1]], np.int32), np.zeros(2, np.int32))
    log = dr.ClickLog.from_clicks(
        lists,
        np.array([0, 0, 1]),
        np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]], bool),
        np.array([6, 2, 4]),
        columns={HOSTILE: Column((HOSTILE, "other"), np.array([0, 1, 0], np.int32))},
        events={HOSTILE: np.ones((3, 3))},
    )
    return replace(log, reading=ReadingReport(HOSTILE, 100, 14, 12, 12))


def model():
    features = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    lead = {"gain": 0.03, "error": 0.01, "queries": 60, "clicks": 900}
    history = {"steps": [10, 20], "values": [0.5, 0.6], "best_step": 20, "best_value": 0.6}
    training = {
        "method": HOSTILE,
        "history": history,
        "warnings": [HOSTILE],
        "twin": {"history": history, "why": HOSTILE, "chosen": "dla", "leads": {HOSTILE: lead}},
    }
    scaler = Scaler.fit(features, kind="standard")
    return dr.Model(dr.Linear().build(3), scaler, propensity(), (HOSTILE, "b", "c"), training)


def diagnosis():
    curve = {"examination": np.array([1.0, 0.5]), "low": np.array([1.0, 0.4])}
    curve["high"] = np.array([1.0, 0.6])
    points = (
        Point("curves", "failed", {"harvested": curve}, HOSTILE, HOSTILE),
        Point("traffic", "good", {}, "No client stands out."),
        Point("drift", "not measured", {}, "There are no times."),
    )
    return dr.Diagnosis("use harvested propensities", (HOSTILE,), points, HOSTILE)


def counterfactual():
    def value(metric, estimator, part=""):
        return Estimate(metric, estimator, 0.53, 0.5, 0.03, 0.02, 0.04, part)

    return dr.Counterfactual(
        HOSTILE,
        "logged",
        (
            value("clicks", "doubly-robust"),
            value("dcg", "doubly-robust"),
            value("clicks", HOSTILE),
            value("clicks", "doubly-robust", HOSTILE),
        ),
        Support(HOSTILE, 0.97, 0.96, 5_000.0, 1_200.0, 0.02),
        *(Support("logged", 1.0, 1.0, 5_000.0, 5_000.0, 0.01), {"ips": HOSTILE}),
        *(propensity(), HOSTILE, True, (), {"0.5": 0.01, "1.5": 0.05}, 0.3, 1.0, ()),
        *(10_000, 300, False),
    )


def swap_plan():
    def design(name, sessions, lost):
        return PlannedDesign(
            *(name, "pair-swaps", {"1-2": 0.05}, sessions, None, lost, 2.0, 0.01),
            *(np.array([0.0, 0.1]), lambda n: 0.1 * np.sqrt(sessions / n)),
        )

    designs = (design("first with k", 7e5, 2e3), design("neighbours", np.inf, np.inf))
    curve = np.array([1.0, 0.6])
    return dr.SwapPlan(
        *(0.1, 0.05, curve, "harvested", np.inf, 0.0, 3_000, 0.8, None, designs, HOSTILE)
    )


def judgements():
    table = pa.table(
        {
            "query_id": [HOSTILE],
            "doc_id": [HOSTILE],
            "relevance": [0.5],
            "low": [0.4],
            "high": [0.6],
            "sessions": [20],
            "grade": [2],
        }
    )
    return dr.Judgements(table, HOSTILE, 5, 3)


def click_models():
    def score(name, likelihood, behind=0.0, error=0.0):
        numbers = (1.4, (1.8, 1.3), 1.3, (1.7, 1.2), 7, True, 0.1, behind, error)
        return Score(name, name, likelihood, *numbers)

    scores = (score(HOSTILE, -3.0), score("pbm", -3.2, 0.2, 0.01), score("cascade", -50, 47, 1))
    return ClickModelComparison(scores, 900, 300)


def interleaving():
    wins = Wins(10, 5, 3, 0.2)
    tests = (wins, wins, 0.01, 1_000, True, 0.01, 0.09, ())
    told = Preference(HOSTILE, "b", 900, 0.05, 0.4, 0.02, 0.08, 0.05, HOSTILE, None, None, *tests)
    few = Preference(HOSTILE, "c", 30, 0.05, 0.4, None, None, 0.05, None, None, None, *tests)
    return Comparison((HOSTILE, "b", "c"), 930, 60, (told, few), notes=(HOSTILE,))


def table():
    row = Row(HOSTILE, (Cell(0.5, best=True, mark="+"), HOSTILE), strong=True)
    return Table((HOSTILE, "words"), (row,), HOSTILE, words=("words",), remark=HOSTILE)


MADE = {
    "Propensity": propensity,
    "ClickLog": click_log,
    "Model": model,
    "Diagnosis": diagnosis,
    "Estimates": lambda: dr.Estimates({HOSTILE: propensity()}, {HOSTILE: HOSTILE}),
    "Counterfactual": counterfactual,
    "SwapPlan": swap_plan,
    "Training": lambda: dr.Training(model(), click_log(), None, diagnosis()),
    "ClickModelComparison": click_models,
    "Comparison": interleaving,
    "Judgements": judgements,
    "Dataset": lambda: replace(
        dr.Dataset.from_arrays([[1.0]], qid=[1]), feature_names=(HOSTILE,), source=HOSTILE
    ),
    "Table": table,
}
DRAWN = [name for name in MADE if name not in CARDS_ALONE]


class Balanced(HTMLParser):
    """Every element is closed where it was opened, and is one that says or lays something out."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "span", "table", "thead", "tbody", "tr", "th", "td", "b"}
        assert {name for name, _ in attrs} <= {"style", "aria-hidden"}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(html):
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser.text


@pytest.fixture(autouse=True)
def _no_figures_stay():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("name", MADE)
def test_a_card_is_well_formed_and_names_are_text(name):
    html = MADE[name]()._repr_html_()
    text = read(html)
    assert "<script>alert" in text
    assert not {"\x1b", "\u202e"} & set(html)


@pytest.mark.parametrize("name", MADE)
def test_the_line_of_a_terminal_is_one_line_and_obeys_nothing(name):
    if name == "Table":
        pytest.skip("a table prints itself with rich")
    line = repr(MADE[name]())
    assert line.startswith(f"{name}(")
    assert len(line) < 700
    assert not {"\x1b", "\n", "\u202e"} & set(line)


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_comes_on_the_axes_that_are_given_and_nowhere_else(name):
    before, ax = dict(mpl.rcParams), Figure().subplots()
    assert MADE[name]().plot(ax=ax) is ax
    ax.figure.canvas.draw()
    assert pyplot.get_fignums() == []
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("name", DRAWN)
def test_without_axes_there_is_one_new_figure_that_a_notebook_shows(name):
    ax = MADE[name]().plot()
    assert isinstance(ax, Axes)
    assert pyplot.get_fignums() == [ax.figure.number]
    assert ax.get_title(loc="left")


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_the_extra_is_named_and_the_card_still_there(name, monkeypatch):
    shown = MADE[name]()
    for module in [each for each in sys.modules if each.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingsError, match=r"charts need packages .*: pip install matplotlib"):
        shown.plot()
    assert shown._repr_html_()


def test_what_was_asked_for_has_both():
    for name in ASKED_FOR:
        assert name in DRAWN


def test_every_public_noun_that_shows_itself_is_named_here():
    # Of its own: what scikit-learn gives to every estimator is not ours.
    own = {name: vars(getattr(dr, name)) for name in dr.__all__ if isclass(getattr(dr, name))}
    rich = {name for name, has in own.items() if "_repr_html_" in has}
    drawn = {name for name, has in own.items() if "plot" in has}
    assert rich <= set(MADE)
    assert drawn <= set(DRAWN)
    assert {"Training", "Counterfactual", "SwapPlan", "Judgements"} <= rich


def test_nothing_that_shows_itself_loads_matplotlib_before_it_draws():
    code = "import sys, dualrank as dr; dr.Propensity.of([1, 0.5])._repr_html_(); "
    code += "sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
