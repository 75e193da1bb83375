from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import dualrank.report
from dualrank.report.curves import propensity_curves
from dualrank.report.drawing import _apart
from dualrank.report.figures import (
    learning_curve_figure,
    metric_figure,
    propensity_figure,
    sweep_figure,
)
from dualrank.report.results import Results
from dualrank.report.theme import png, svg_file, svg_inline
from dualrank.showing.palette import DARK, LIGHT

FIGURES = [propensity_figure, metric_figure, learning_curve_figure]


def texts(svg: str) -> set[str]:
    return {
        "".join(e.itertext()) for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    }


@pytest.mark.parametrize("draw", FIGURES)
def test_the_same_results_give_the_same_bytes(draw, results):
    assert svg_file(draw(results)) == svg_file(draw(results))


def test_png_is_the_same_every_time(results):
    first = png(propensity_figure(results))
    assert first.startswith(b"\x89PNG")
    assert first == png(propensity_figure(results))


def test_svg_is_well_formed_undated_and_holds_both_palettes(results):
    svg = svg_file(propensity_figure(results))
    ET.fromstring(svg)
    assert "<metadata" not in svg
    assert "prefers-color-scheme:dark" in svg
    for palette in (LIGHT, DARK):
        assert palette["blue"] in svg
    assert {"true", "learned (DLA)", "measured (RandList)", "position"} <= texts(svg)


@pytest.mark.parametrize("draw", FIGURES)
def test_every_colour_belongs_to_the_palette(draw, results):
    inline = svg_inline(draw(results), "x", "a label")
    assert "#" not in inline.replace('"#x-', "").replace("(#x-", "")
    assert "var(--ink)" in inline


def test_metric_figure_names_every_method_and_value(results):
    found = texts(svg_file(metric_figure(results)))
    assert {"DNN with DLA", "Ranking SVM, NoCorrect", "Oracle DNN", "0.722", "0.738"} <= found


def test_weights_that_span_orders_of_magnitude_get_a_logarithmic_scale(results):
    for run in results.of("dla"):
        run.propensity.examination[-1] = 0.001
    assert "Inverse propensity weight (log scale)" in texts(svg_file(propensity_figure(results)))


def test_what_the_svm_shares_with_randlist_is_drawn_once(results):
    assert list(propensity_curves(results)) == ["dla", "randlist"]


def test_one_seed_takes_the_interval_that_the_run_states(make):
    results = make(seeds=1)
    mean = np.array(results.of("dla")[0].propensity.examination)
    _, low, high = propensity_curves(results)["dla"]
    np.testing.assert_array_equal(low, high)
    results.of("dla")[0].propensity.low = (mean - 0.1).tolist()
    results.of("dla")[0].propensity.high = (mean + 0.1).tolist()
    _, low, high = propensity_curves(results)["dla"]
    np.testing.assert_allclose(high - low, 0.2)
    assert propensity_figure(results) is not None


def test_sweep_figure_draws_a_line_per_method(sweep):
    found = texts(svg_file(sweep_figure(sweep, "eta", "ndcg@10")))
    assert {"DNN with DLA", "DNN, RandList", "DNN, NoCorrect", "η", "1.5"} <= found
    found = texts(svg_file(sweep_figure(sweep, "eta", "mse")))
    assert {"DNN with DLA", "DNN, RandList", "0.01", "1,000"} <= found
    assert "DNN, NoCorrect" not in found


def test_what_cannot_be_drawn_is_none(results, sweep):
    assert sweep_figure(results, "eta", "ndcg@10") is None
    assert propensity_figure(sweep) is None
    assert metric_figure(sweep) is None
    empty = Results(experiment="demo", settings={}, runs=[])
    assert all(draw(empty) is None for draw in FIGURES)
    assert sweep_figure(empty, "eta", "ndcg@10") is None
    for run in results.runs:
        run.propensity = None
        run.__pydantic_extra__.clear()
    assert propensity_figure(results) is None
    assert learning_curve_figure(results) is None


def test_dollar_signs_are_not_mathematics(make):
    results = make(ndcg={"dla": 0.7, "$x_{$": 0.6})
    assert "$x_{$" in texts(svg_file(metric_figure(results)))


def test_labels_move_apart_as_little_as_needed():
    places = np.array([0.0, 1.0, 2.0, 50.0])
    moved = _apart(places, 10.0)
    assert (np.diff(moved) >= 10 - 1e-9).all()
    assert moved[3] == 50.0
    assert moved[:3].mean() == pytest.approx(places[:3].mean())


def test_importing_the_report_does_not_import_matplotlib():
    code = (
        "import sys, dualrank.report.sheet, dualrank.report.console;"
        "sys.exit(any(m.split('.')[0] in ('matplotlib', 'jinja2') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_file_hides_a_name_of_the_surface():
    files = {path.stem for path in Path(dualrank.report.__file__).parent.glob("*.py")}
    assert not files & set(dualrank.report.__all__)
