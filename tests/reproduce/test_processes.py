"""Tasks over several processes: every result once, progress from all, failures not hidden."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dualrank.errors import DataError
from dualrank.reproduce.processes import map_tasks

from ..waiting import wait_until


def double(task, progress):
    progress(1, 2)
    if task < 0:
        raise DataError(f"{task} is negative")
    progress(2, 2)
    return 2 * task


def test_one_process_yields_every_result_with_progress():
    heard = []
    results = dict(map_tasks(double, [3, 5], report=lambda *what: heard.append(what)))
    assert results == {0: 6, 1: 10}
    assert heard == [(0, 1, 2), (0, 2, 2), (1, 1, 2), (1, 2, 2)]


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


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_however_it_is_ended_no_worker_stays_behind(tmp_path, how):
    script = tmp_path / "endless.py"
    script.write_text(
        "import sys, time\n"
        "from dualrank.cli import app\n"
        "from dualrank.reproduce.processes import map_tasks\n"
        "def wait(task, progress):\n"
        "    print('working', flush=True)\n"
        "    time.sleep(600)\n"
        "@app.app.command()\n"
        "def endless():\n"
        "    list(map_tasks(wait, [1, 2], jobs=2))\n"
        "if __name__ == '__main__':\n"
        "    app.main()\n"
    )
    with subprocess.Popen(
        [sys.executable, script, "endless"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert [process.stdout.readline() for _ in range(2)] == [b"working\n"] * 2
            workers = descendants(process.pid)
            assert len(workers) >= 2
            process.send_signal(how)
            # The pipes close when the last of them has gone.
            _, err = process.communicate()
        finally:
            process.kill()
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
    assert process.returncode == codes[how]
    if how == signal.SIGTERM:
        assert err == b"dualrank: asked to stop\n"
    # Python's own resource tracker goes when it finds that the others have gone.
    wait_until(lambda: not any(map(alive, workers)))


def descendants(pid):
    """The children of a process, and theirs."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [*children, *(each for child in children for each in descendants(child))]


def alive(pid):
    """Whether a process runs; one that nobody has waited for does not."""
    status = Path(f"/proc/{pid}/status")
    try:
        return "State:\tZ" not in status.read_text()
    except OSError:
        return False
