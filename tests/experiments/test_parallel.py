"""Tasks over several processes: every result once, progress from all, failures not hidden."""

import pytest
import torch

from dualrank.errors import DataError
from dualrank.experiments.parallel import map_tasks


def double(task, progress):
    progress(1, 2)
    if task < 0:
        raise DataError(f"{task} is negative")
    progress(2, 2)
    return 2 * task


def test_one_process_yields_every_result_with_progress():
    told = []
    results = dict(map_tasks(double, [3, 5], report=lambda *what: told.append(what)))
    assert results == {0: 6, 1: 10}
    assert told == [(0, 1, 2), (0, 2, 2), (1, 1, 2), (1, 2, 2)]


def test_one_process_uses_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        threads = [t for _, t in map_tasks(lambda task, progress: torch.get_num_threads(), [1, 2])]
        assert threads == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_no_tasks_give_no_results():
    assert list(map_tasks(double, [], jobs=2)) == []


def test_an_error_of_a_task_is_that_of_the_whole():
    with pytest.raises(DataError, match="-1 is negative"):
        list(map_tasks(double, [1, -1, 2]))
