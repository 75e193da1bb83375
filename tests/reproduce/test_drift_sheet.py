"""The report of drift says what the streams say."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.report import PropensityResult, Results, Run
from dualrank.reproduce.drift import MOMENTS, Drift, Severity, Streams, moments_table, verdict

SEVERITY = Severity()


def run(method, seed, error):
    """A method that is off by `error` at position 10 on the plateau and right elsewhere."""
    moments = (np.arange(MOMENTS) + 1) / MOMENTS
    etas = [SEVERITY.at(moment - 0.5 / MOMENTS) for moment in moments]
    curves = np.array([PositionBasedUser(eta=eta).examination(10) for eta in etas])
    curves /= curves[:, :1]
    curves[(moments > 0.4) & (moments <= 0.7), 9] /= 1 + error
    record = {
        "moment": moments.tolist(),
        "eta": etas,
        "examination": [None] * MOMENTS if method == "naive" else curves.tolist(),
        "ndcg@10": (0.7 + 0.01 * seed - 0.02 * (moments > 0.4)).tolist(),
    }
    propensity = None if method == "naive" else PropensityResult(examination=curves[27].tolist())
    return Run(
        method=method,
        seed=seed,
        metrics={"ndcg@10": 0.68, "map": 0.8},
        propensity=propensity,
        seconds=3.0,
        drift=record,
    )


@pytest.fixture
def drift():
    errors = {"dla": 0.05, "naive": 0.0, "randlist": 4.0}
    return Results(
        experiment="drift",
        settings={"sessions": 1_000_000},
        runs=[run(m, seed, error * (1 + seed)) for m, error in errors.items() for seed in (0, 1)],
    )


def test_errors_are_relative_to_the_true_weights(drift):
    found = Streams.of_methods(drift)
    assert found["naive"].errors is None
    errors = found["dla"].errors
    assert errors.shape == (2, MOMENTS, 10)
    assert errors[0, 19].tolist() == pytest.approx([0] * 9 + [0.05])
    assert errors[1, 19].max() == pytest.approx(0.1)
    assert errors[:, :16].max() < 1e-9


def test_the_verdict_gives_mean_and_worst_seed(drift):
    sentences = verdict(Streams.of_methods(drift), SEVERITY)
    assert "from 0.5 to 1.5, DLA's weights are within 7.5% (worst seed 10.0%)" in sentences[0]
    assert "the weights of RandList are within 600.0% (worst seed 800.0%)" in sentences[1]
    assert "DNN, NoCorrect: nDCG@10 0.705 before the jump, 0.685 a tenth" in " ".join(sentences)


def test_the_table_has_a_row_per_moment(drift):
    lines = moments_table(Streams.of_methods(drift), SEVERITY).markdown().splitlines()
    assert len(lines) == 8
    assert lines[3].startswith("| a tenth of the training later | 0.685 ± 0.007 |")
    assert "| 7.5 ± 3.5 % | 600.0 ± 282.8 % |" in lines[3]


def test_files_and_page_hold_the_figures(drift, tmp_path):
    names = {path.name for path in Drift().sheet({"results": drift}).write(tmp_path)}
    assert {f"figure-drift-{what}.svg" for what in ("weight", "error", "quality")} <= names
    page = (tmp_path / "report.html").read_text()
    assert "while users change" in page
    assert "Largest error of a weight" in page
    assert "a tenth of the training later" in (tmp_path / "table.md").read_text()


def test_methods_that_believe_nothing_have_no_curve_of_weights(drift, tmp_path):
    naive = drift.model_copy(update={"runs": drift.of("naive")})
    names = {path.name for path in Drift().sheet({"results": naive}).write(tmp_path)}
    assert "figure-drift-quality.svg" in names
    assert "figure-drift-weight.svg" not in names
