"""The tables beside Table 3: methods by sessions per list, and queries asked most and least."""

from dualrank.report import Results, Run
from dualrank.reproduce.findings import findings
from dualrank.reproduce.table_3 import (
    ClickModels,
    crossings,
    head_and_tail_table,
    sessions_table,
)


def run(method, seed, value, **extra):
    return Run(method=method, seed=seed, metrics={"ndcg@10": value}, seconds=1.0, **extra)


VALUES = {
    "dla": {2: 0.6, 50: 0.7},
    "click-model-ubm": {2: 0.5, 50: 0.8},
    "naive": {2: 0.1, 50: 0.1},
    "click-model-pbm": {2: 0.9, 50: 0.9},
}
BY_SESSIONS = Results(
    experiment="click-models-by-sessions",
    settings={},
    runs=[
        run(name, seed, value + seed * 0.02, sessions_per_list=number)
        for name, values in VALUES.items()
        for number, value in values.items()
        for seed in (0, 1)
    ],
    significance={
        "by_sessions_per_list": {
            "50": {
                "alpha": 0.05,
                "p_values": {"naive": {"ndcg@10": 0.01}, "click-model-ubm": {"ndcg@10": 0.3}},
                "difference": {"naive": {"ndcg@10": -0.6}, "click-model-ubm": {"ndcg@10": 0.1}},
            }
        }
    },
)


def test_a_column_per_number_of_sessions_with_marks_of_its_own_test():
    lines = sessions_table(BY_SESSIONS).markdown().splitlines()
    assert lines[0] == "| Method | 2 sessions | 50 sessions |"
    assert "| DNN with DLA | 0.610 ± 0.014 | 0.710 ± 0.014 |" in lines
    assert "| DNN, NoCorrect | 0.110 ± 0.014 | 0.110 ± 0.014⁻ |" in lines
    assert "| DNN, UBM | 0.510 ± 0.014 | 0.810 ± 0.014 |" in lines


def test_where_methods_cross_dual_learning_is_said():
    assert set(crossings(BY_SESSIONS)) == {
        "DNN, UBM is above DLA at 50 sessions per list, else below.",
        "DNN, NoCorrect is below DLA at every number of sessions per list.",
        "DNN, PBM is above DLA at every number of sessions per list.",
    }
    without = BY_SESSIONS.model_copy(
        update={"runs": [r for r in BY_SESSIONS.runs if r.method != "dla"]}
    )
    assert crossings(without) == []


def test_head_and_tail_stand_side_by_side():
    parts = {"head": {"ndcg@10": 0.8}, "tail": {"ndcg@10": 0.6}}
    results = Results(
        experiment="click-models",
        settings={},
        runs=[run("dla", 0, 0.7, **parts), run("initial", 0, 0.5)],
    )
    table = head_and_tail_table(results, ["ndcg@10"])
    assert table.markdown().splitlines() == [
        "| Method | Head nDCG@10 | Tail nDCG@10 |",
        "|---|---:|---:|",
        "| DNN with DLA | 0.800 | 0.600 |",
    ]
    assert (
        head_and_tail_table(Results(experiment="x", settings={}, runs=[run("dla", 0, 0.7)])) is None
    )


def test_one_page_holds_table_3_head_and_tail_and_the_crossing(tmp_path):
    parts = {"head": dict.fromkeys(("map", "ndcg@10", "err@10"), 0.8)}
    parts["tail"] = parts["head"]
    runs = [run(name, 0, values[50], **parts) for name, values in VALUES.items()]
    table = Results(experiment="click-models", settings={"users": "mixed"}, runs=runs)
    sheet = ClickModels().sheet({"results": table, "by-sessions": BY_SESSIONS})
    files = {path.name for path in sheet.write(tmp_path)}
    assert {"report.html", "head-and-tail.md", "by-sessions.md"} <= files
    assert "figure-sessions-ndcg10.svg" in files
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Head and tail</h2>" in page
    assert "DNN, UBM is above DLA at 50 sessions per list, else below." in page
    assert "simulated, by users of the kind mixed" in page


def test_the_verdict_names_the_best_click_model():
    runs = [run(name, 0, values[50]) for name, values in VALUES.items()]
    sentences = findings(Results(experiment="click-models", settings={}, runs=runs))
    expected = (
        "0.200 nDCG@10 below the same network trained on the relevance of PBM, the best of 2 "
    )
    assert any(expected in sentence for sentence in sentences)
