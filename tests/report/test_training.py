"""The page of a training run says what was learned, against what, and from what."""

import numpy as np
import pytest

from dualrank.data.log.reading_report import Problem, ReadingReport
from dualrank.data.scaling import Scaler
from dualrank.diagnostics.diagnosis import Diagnosis
from dualrank.diagnostics.point import Point
from dualrank.learning.model import Model
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import Linear
from dualrank.report import training_sheet, training_verdict, write_training_report
from dualrank.report.training_report import learning_figure

HISTORY = {"steps": [10, 20], "values": [0.5, 0.6], "best_step": 20, "best_value": 0.6}


def twin(gain, error=0.01):
    lead = {"gain": gain, "error": error, "queries": 60, "clicks": 900}
    chosen = "dla" if gain > 2 * error else "naive"
    return {"history": HISTORY, "chosen": chosen, "why": "so it was", "leads": {"dla": lead}}


def make(propensity=None, **training):
    features = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    basics = {
        "method": "dla",
        "ranker": "DNN",
        "version": "0.1.0",
        "validation": 0.1,
        "settings": {"steps": 20, "seed": 4},
        "history": HISTORY,
    }
    scaler = Scaler.fit(features, kind="standard")
    return Model(Linear().build(3), scaler, propensity, None, {**basics, **training})


@pytest.mark.parametrize(
    ("gain", "sentence"),
    [
        (0.05, "dla does better than its naive twin, by 5.0 standard errors over 60 queries."),
        (0.015, "dla is not clearly ahead of its naive twin (ahead of it by 1.5 standard"),
        (-0.015, "dla is not clearly ahead of its naive twin (behind it by 1.5 standard"),
        (-0.05, "The naive twin does better than dla, by 5.0 standard errors over 60 queries: "),
    ],
)
def test_the_verdict_is_what_the_comparison_says(gain, sentence):
    assert training_verdict(make(twin=twin(gain)).training)[0].startswith(sentence)


def test_a_gain_that_was_not_measured_is_called_unproven():
    assert "not compared" in training_verdict(make().training)[0]
    told = {"history": None, "why": "nothing was held out"}
    assert "unproven" in training_verdict(make(twin=told).training)[0]


def test_what_auto_chose_is_told():
    told = {"chosen": "ipw", "why": "it predicts better", "leads": {}}
    found = training_verdict(make(auto=told).training)
    assert found == ["Chosen among the candidates: ipw.", "It predicts better."]


def test_what_auto_is_made_of_is_a_table():
    def lead(gain):
        return {"gain": gain, "error": 0.01, "queries": 60, "clicks": 900}

    told = {
        "chosen": "grounded + naive",
        "why": "it predicts better",
        "leads": {"auto": lead(0.04), "imitation": lead(-0.02), "grounded": lead(0.03)},
        "weights": {"grounded": 0.8, "naive": 0.1},
    }
    model = make(auto=told)
    assert training_verdict(model.training)[0] == "Made of grounded + naive."
    (made,) = (s for s in training_sheet(model).sections if s.title == "What it is made of")
    text = made.table.markdown()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        "| imitation | −2.0 | no |",
        "| naive | 0.0 | yes |",
        "| grounded | 3.0 | yes |",
        "| auto | 4.0 | the sum |",
    ]
    assert "grounded" in str(learning_figure(model.training).axes[0].get_legend().texts[0])


def test_the_page_holds_curve_contexts_learning_and_what_was_dropped(tmp_path):
    reading = ReadingReport(
        "clicks.csv", 100, 20, 18, 9, (Problem("gap", 2, "session 's<1>'"),), bad=2
    )
    propensity = Propensity(
        np.array([1.0, 0.625]),
        "dual learning",
        details={"contexts": {"phone": {"sessions": 1200, "examination": [1.0, 0.375]}}},
    )
    model = make(propensity, twin=twin(0.05), reading=reading.to_dict())
    write_training_report(model, tmp_path / "report.html", command="dualrank train …")
    page = (tmp_path / "report.html").read_text()
    for text in (
        "0.625",
        "phone (1,200 sessions)",
        "0.375",
        "20 sessions, of which 18 were kept",
        "gap in the positions",
        "session &#39;s&lt;1&gt;&#39;",
        "Examination, relative to position 1",
        "Validation (a dot: the ranker that was kept)",
        "dualrank train …",
    ):
        assert text in page
    assert "src=" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_the_diagnosis_of_the_log_stands_on_the_page():
    points = (
        Point("connectivity", "good", {"share": 0.5}, "Positions are connected."),
        Point("curves", "not measured", {}, "No curve <1>.", "Log more."),
    )
    diagnosis = Diagnosis("train, and correct for position", ("It is so.",), points)
    page = training_sheet(make(), diagnosis).html()
    for text in ("Can this log be trusted?", "Train, and correct for position.", "It is so.",
                 "Positions are connected.", "No curve &lt;1&gt;.", "Log more.",
                 "manifest.json and diagnosis.json"):  # fmt: skip
        assert text in page
    assert "dualrank diagnose" not in page
    assert "dualrank diagnose" in training_sheet(make()).html()


def test_the_log_is_known_by_its_name():
    reading = ReadingReport("clicks.parquet", 10, 5, 5, 3, ()).to_dict()
    page = training_sheet(make(data="0123456789abcdef" * 4, reading=reading)).html()
    assert "clicks.parquet" in page
    assert "0123456789abcdef" not in page


def test_a_naive_model_made_in_memory_has_a_page_too():
    page = training_sheet(make(method="naive", history=None)).html()
    assert "made in memory" in page
    assert "<svg" not in page


def test_a_twin_is_recommended_only_where_there_is_one():
    other = make(auto={"chosen": "naive", "why": "so it was", "leads": {}})
    assert "MODEL/twin" in training_sheet(make(), twin=True).html()
    for page in (training_sheet(make()).html(), training_sheet(other, twin=True).html()):
        assert "MODEL/twin" not in page
        assert "evaluate MODEL JUDGED --against OTHER" in page


def test_warnings_and_what_was_measured_stand_on_the_page():
    history = {**HISTORY, "measure": "ndcg@10 of 7 judged queries"}
    model = make(history=history, warnings=["the ranker tells hardly any documents apart"])
    assert training_verdict(model.training)[-1] == (
        "Warning: the ranker tells hardly any documents apart."
    )
    page = training_sheet(model).html()
    assert "Warning: the ranker tells hardly any" in page
    assert "The height is the ndcg@10 of 7 judged queries." in page
