import errno
import os

import pytest

from dualrank.errors import DataError
from dualrank.pages.stream import map_stream


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order_with_their_items(jobs):
    items = [-3, 2, -1, 0, 5, -9]
    assert list(map_stream(abs, items, jobs=jobs)) == [(item, abs(item)) for item in items]


@pytest.mark.parametrize("items", [[], [4]])
def test_one_item_or_none_needs_no_process(items):
    assert [result for _, result in map_stream(str, items, jobs=2)] == list(map(str, items))


def test_a_stream_is_not_read_far_ahead():
    read = []

    def stream():
        for item in range(100):
            read.append(item)
            yield item

    results = map_stream(abs, stream(), jobs=2)
    next(results)
    results.close()
    assert len(read) < 20


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_work_is_raised_here(jobs):
    with pytest.raises(ValueError, match="invalid literal"):
        list(map_stream(int, ["1", "x", "3"], jobs=jobs))


def test_a_process_that_dies_is_an_error_with_a_reason():
    with pytest.raises(DataError, match="was killed"):
        list(map_stream(os._exit, [1, 2, 3, 4], jobs=2))


def test_too_few_open_files_for_processes_is_an_error_with_a_way_out(monkeypatch):
    def refuse(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", refuse)
    with pytest.raises(DataError, match=r"cannot be started \(Too many open files\); jobs=1"):
        list(map_stream(abs, [1, 2, 3], jobs=2))
    assert len(list(map_stream(abs, [1, 2, 3], jobs=1))) == 3
