"""Every method is trained on the same log, and judged on whole queries and on what is shown."""

from types import SimpleNamespace

import numpy as np
import pytest

import dualrank as dr
from dualrank.data.dataset import Dataset
from dualrank.errors import SettingsError
from dualrank.learning.methods import METHODS
from dualrank.propensity.propensity import Propensity
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.method_comparison import (
    COMPARED,
    HELD_OUT,
    Methods,
    Scenarios,
    curve_error,
    shown_on_top,
)
from dualrank.reproduce.runner import run
from dualrank.reproduce.scenario_logs import scenario_data
from dualrank.reproduce.scenario_rankers import RANKER

STEPS = 20
SCENARIOS = ("devices", "few-sessions")
FOLDED = {"data": ("mq2008",), "root": "folder"}


@pytest.fixture(scope="module")
def results():
    """All methods on two logs; what diagnose says is tested with the command."""
    said = SimpleNamespace(verdict="fit for joint learning", points=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dr, "diagnose", lambda *log, **options: said)
        asked = Methods(preset="tiny", scenarios=SCENARIOS, seeds=2, steps=STEPS)
        return run(asked).results["results"]


def found(results, method, scenario, seed=1):
    (one,) = [run for run in results.of(method) if (run.scenario, run.seed) == (scenario, seed)]
    return one


def test_methods_that_need_nothing_but_a_log_are_columns():
    assert set(COMPARED) == {"initial", "truth"} | {
        name for name, method in METHODS.items() if not method.needs
    }


def test_every_method_runs_on_every_log_with_every_seed(results):
    by_device = {
        f"{name} by device"
        for name in COMPARED
        if "context" in getattr(METHODS.get("ipw" if name == "truth" else name), "takes", ())
        # Its curves by context would be those of a propensity that is given.
        and name != "doubly-robust"
    }
    assert {"dla by device", "truth by device"} <= by_device
    for seed in (0, 1):
        ran = {
            scenario: [
                run.method for run in results.runs if (run.scenario, run.seed) == (scenario, seed)
            ]
            for scenario in SCENARIOS
        }
        assert sorted(ran["devices"]) == sorted({*COMPARED, *by_device})
        # No list has the ten sessions that a click model wants.
        assert ran["few-sessions"] == [name for name in COMPARED if name != "click-model"]


@pytest.mark.parametrize(("row", "options"), [
    ("naive", {"method": "naive"}),
    ("likelihood by device", {"method": "likelihood", "context": "device"}),
])  # fmt: skip
def test_a_run_is_what_fit_makes_of_the_log(results, row, options):
    data = scenario_data("devices", Collection("tiny"), 1)
    model = dr.fit(
        data.log, data.train, ranker=RANKER, validation=HELD_OUT, steps=STEPS, seed=1, **options
    )
    reached = dr.evaluate(model.predict(data.test), data.test, ["ndcg@10"])["ndcg@10"]
    run = found(results, row, "devices")
    assert run.metrics["ndcg@10"] == reached
    if model.propensity is not None:
        assert run.curve_error == curve_error(model.propensity, data.truth)


def test_auto_says_what_it_took_and_why(results):
    run = found(results, "auto", "few-sessions")
    assert set(run.chosen.split(" + ")) <= METHODS.keys()
    assert run.why
    assert run.verdict == "fit for joint learning"


def test_the_logging_ranker_is_the_same_where_only_its_own_documents_are_ranked(results):
    run = found(results, "initial", "few-sessions")
    assert run.shown == run.metrics
    assert run.seconds == 0


def test_methods_are_tested_against_naive_and_dla_on_each_log(results):
    assert set(results.significance) == set(SCENARIOS)
    for reference in ("naive", "dla"):
        test = results.significance["devices"][reference]
        assert test["queries"] == 2 * 300
        assert set(test["p_values"]["likelihood by device"]) == {"ndcg@10", "shown ndcg@10"}


def test_only_the_shown_documents_change_places():
    rng = np.random.default_rng(0)
    qid = np.repeat([1, 2, 3], (2, 6, 9))
    test = Dataset.from_arrays(rng.random((17, 1)), qid=qid)
    scores, logged = rng.normal(size=17), rng.normal(size=17)
    order = np.argsort(-shown_on_top(scores, logged, test, 4))
    for query in (1, 2, 3):
        documents = np.flatnonzero(qid == query)
        displayed = sorted(documents, key=lambda d: -logged[d])
        expected = sorted(displayed[:4], key=lambda d: -scores[d]) + displayed[4:]
        assert [d for d in order if qid[d] == query] == expected


def test_the_error_of_curves_by_context_is_the_mean_of_theirs():
    def curves(**examination):
        by_name = {name: {"examination": list(values)} for name, values in examination.items()}
        details = {"context": "device", "contexts": by_name}
        return Propensity(np.array([1, 0.5]), "given", details=details)

    truth = curves(phone=(1, 0.25), desktop=(1, 0.5))
    believed = curves(phone=(1, 0.5), desktop=(1, 0.25))
    # Inverse weights 2 for 4 and 4 for 2, each at one of two positions.
    assert curve_error(believed, truth) == 2
    assert curve_error(Propensity.of([1, 0.25]), truth) == 2  # against the common curve


@pytest.mark.parametrize(
    ("change", "words"),
    [({"scenarios": ("weather",)}, "unknown scenario 'weather'; known are random-logger"),
     ({"methods": ("ipw",)}, "unknown method 'ipw'; known are initial, naive"),
     ({"scenarios": ()}, "at least one scenario"),
     ({"methods": ()}, "one method"),
     ({"seeds": 0}, "at least one seed"),
     ({"data": ("weather",), "root": "folder"}, "unknown collection 'weather'"),
     ({"data": ("mq2008",)}, "root='FOLDER'"),
     ({**FOLDED, "seeds": 6}, "test one twice")],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(change, words):
    with pytest.raises(SettingsError, match=words):
        Methods(**change)


def test_public_collections_have_one_log_unless_more_are_asked_for():
    asked = Methods(data=("mq2008", "stanford-web"), root="folder", seeds=1)
    assert [task.setting for task in asked.tasks()] == [
        {"data": "mq2008", "scenario": "initial-ranker"},
        {"data": "stanford-web", "scenario": "initial-ranker"},
    ]
    more = Methods(**FOLDED, seeds=1, scenarios=("cascade", "clickbait"))
    assert len(more.tasks()) == 2


def test_a_task_is_the_same_in_the_company_of_others():
    alone, together = Methods(scenarios=("cascade",), seeds=1), Methods(seeds=2)
    assert repr(alone.tasks()[0]) in {repr(task) for task in together.tasks()}
    assert repr(Methods(methods=("naive",)).tasks()[0]) != repr(together.tasks()[0])


def test_the_scenarios_of_before_are_four_of_the_methods():
    asked = Scenarios(only=("cascade",), seeds=1)
    assert [task.setting["scenario"] for task in asked.tasks()] == ["cascade"]
    assert asked.methods == ("naive", "truth", "dla", "auto")
    with pytest.raises(SettingsError, match="unknown scenario 'weather'"):
        Scenarios(only=("weather",))
