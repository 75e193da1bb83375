"""Who watches sees long work, its rate and the time it still takes; nobody else sees anything."""

import inspect
import os
import re
from contextlib import contextmanager

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import dualrank as dr
from dualrank import notebook_bar
from dualrank.learning.rank_features import rank_features
from dualrank.learning.update import update_model
from dualrank.notebook_bar import NotebookBar
from dualrank.pace import Pace
from dualrank.progress import current_bars, no_bar, show_progress, shows_progress


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_rate_and_remaining_time_follow_from_what_is_done(clock):
    pace = Pace(clock)
    assert pace.in_words() == "0.0 s so far"
    clock.now += 4
    pace.report(1_000, 5_000)
    assert pace.in_words() == "20% (1,000 of 5,000), 250/s, 4.0 s so far, about 16 s left"


def test_what_was_done_before_an_interruption_is_no_speed(clock):
    pace = Pace(clock)
    clock.now += 1
    pace.report(900, 1_000)
    clock.now += 10
    pace.report(910, 1_000)
    assert pace.in_words() == "91% (910 of 1,000), 1.0/s, 11 s so far, about 1 min 30 s left"


def test_a_second_part_that_counts_anew_has_a_speed_of_its_own(clock):
    pace = Pace(clock)
    pace.report(0, 10)
    clock.now += 1
    pace.report(10, 10)
    pace.report(0, 60)
    clock.now += 5
    pace.report(10, 60)
    assert "2.0/s" in pace.in_words()
    assert "about 25 s left" in pace.in_words()


@contextmanager
def remembered(work, told):
    told.append(work)
    yield lambda done, total: told.append((done, total))
    told.append("end")


@shows_progress("counting")
def count(n, *, progress=None):
    for done in range(n):
        if progress:
            progress(done + 1, n)
    return n


@shows_progress("waiting")
def wait():
    return count(1)


def test_marked_work_is_heard_by_who_watches():
    told = []
    with show_progress(lambda work: remembered(work, told)):
        assert count(2) == 2
        assert told == ["counting", (1, 2), (2, 2), "end"]
        told.clear()
        wait()
        assert told == ["waiting", "counting", (1, 1), "end", "end"]


def test_who_gives_progress_of_his_own_has_it():
    told, own = [], []
    with show_progress(lambda work: remembered(work, told)):
        count(1, progress=lambda done, total: own.append(done))
    assert (told, own) == ([], [1])


def test_a_program_is_told_nothing(capsys):
    assert current_bars() is no_bar
    assert count(3) == 3
    with show_progress(None):
        count(3)
    assert capsys.readouterr() == ("", "")


def test_a_mark_changes_neither_name_nor_signature_nor_words():
    assert list(inspect.signature(dr.fit).parameters)[:3] == ["source", "dataset", "plan"]
    assert dr.fit.__name__ == "fit"
    assert dr.fit.__doc__.startswith("Train a ranker from clicks.")


LONG = (
    *(dr.fit, dr.diagnose, dr.estimate, dr.estimate_propensities, dr.plan_swaps, dr.read_log),
    *(dr.read_letor, dr.read_features, dr.load_public, dr.generate_splits, dr.sample_log),
    *(dr.judge, dr.export, dr.fisher_test, dr.ClickModel.fit, update_model, rank_features),
)


@pytest.mark.parametrize("function", LONG, ids=lambda function: function.__qualname__)
def test_what_may_take_long_shows_itself(function):
    begun = []

    def watched(work):
        begun.append(work)
        raise InterruptedError

    with show_progress(watched), pytest.raises(InterruptedError):
        function()
    assert len(begun) == 1


def test_training_from_files_shows_its_stages(log, dataset, tmp_path):
    told = []
    with show_progress(lambda work: remembered(work, told)):
        dr.train(log, dataset, tmp_path, method="naive", steps=20, diagnosis=False)
    assert told[0] == "training"
    assert told[-2:] == [(20, 20), "end"]


@pytest.fixture
def place(clock):
    """A bar under a cell, and all that was displayed there."""
    shown = []
    return NotebookBar(lambda html, plain: shown.append((html, plain)), clock), shown


def test_a_notebook_shows_what_takes_longer_than_two_seconds(place, clock):
    bar, shown = place
    with bar.part("reading <log>") as heard:
        heard(1, 100)
        clock.now += 1.9
        bar.look()
        assert shown == []
        clock.now += 1.1
        heard(31, 100)
        bar.look()
        html, plain = shown[-1]
        assert plain == "reading <log>: 31% (31 of 100), 10/s, 3.0 s so far, about 6.9 s left"
        assert 'value="0.3100"' in html
        assert "reading &lt;log&gt;" in html
    bar.clear()
    assert shown[-1] == ("", "")


def test_quick_work_leaves_nothing_to_be_emptied(place, clock):
    bar, shown = place
    with bar.part("reading"):
        clock.now += 1
        bar.look()
    bar.clear()
    assert shown == []


def test_the_innermost_work_that_lasts_and_is_counted_is_shown(place, clock):
    bar, shown = place
    with bar.part("diagnosing"):
        clock.now += 3
        with bar.part("reading") as heard:
            heard(0, 8)
            bar.look()
            assert shown[-1][1] == "diagnosing: 3.0 s so far"
            clock.now += 2
            heard(2, 8)
            with bar.part("sorting"):
                clock.now += 2
                bar.look()
            assert shown[-1][1].startswith("reading: 25% (2 of 8), ")
        bar.look()
        assert shown[-1][1] == "diagnosing: 7.0 s so far"


class Watched(NotebookClient):
    """It notes what was displayed."""

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.displayed.append(msg["content"]["data"]["text/plain"])
        return super().process_message(msg, cell, cell_index)


CELLS = (
    """
import threading
from dualrank import notebook_bar
from dualrank.progress import shows_progress
notebook_bar.PATIENCE = notebook_bar.EVERY = 0.01
display, was_shown = notebook_bar._display, threading.Event()

def display_and_note():
    show = display()
    return lambda html, plain: (show(html, plain), "left" in plain and was_shown.set())

notebook_bar._display = display_and_note

@shows_progress("counting")
def count(fails=False, *, progress=None):
    if progress:
        was_shown.clear()
        progress(0, 20)
        progress(5, 20)
        was_shown.wait()
    if fails:
        raise ValueError("gone")
""",
    "print('before'); count(); 'after'",
    "count(fails=True)",
)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Return what two notebooks displayed and stored: with a person, and without."""
    found = {}
    folder = str(tmp_path_factory.mktemp("kernel"))
    settings = {"timeout": 240, "startup_timeout": 240, "kernel_name": "python3"}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = Watched(notebook, **settings)
    with client.setup_kernel(env=os.environ | {"IPYTHONDIR": folder}):
        client.execute_cell(notebook.cells[0], 0)
        for person in (False, True):
            client.kc.allow_stdin = person
            client.displayed = []
            client.execute_cell(notebook.cells[1], 1)
            client.displayed.append("|")
            with pytest.raises(CellExecutionError, match="gone"):
                client.execute_cell(notebook.cells[2], 2)
            stored = [dict(output) for output in notebook.cells[1].outputs]
            found[person] = client.displayed, stored
    return found


def test_a_notebook_gets_its_bar_and_it_is_emptied_also_when_the_call_fails(executed):
    displayed, stored = executed[True]
    for shown in "\n".join(displayed).split("|"):
        lines = shown.strip("\n").split("\n")
        assert all(line.startswith("counting: ") for line in lines)
        assert re.search(r": 25% \(5 of 20\), [\d.,]+/(s|min), .* so far, about .* left", shown)
    assert displayed[displayed.index("|") - 1] == displayed[-1] == ""
    kinds = [output["output_type"] for output in stored]
    assert kinds == ["stream", "display_data", "execute_result"]
    assert set(stored[1]["data"].values()) == {""}


def test_a_notebook_that_a_program_executes_has_no_bar(executed):
    displayed, stored = executed[False]
    assert displayed == ["|"]
    assert [output["output_type"] for output in stored] == ["stream", "execute_result"]


def test_without_ipython_nobody_watches():
    assert not notebook_bar.is_watched()
