"""The learner as a child: started again, ended with its parent, logged as the server."""

import json
import os
import signal
import subprocess
import sys
import time

from dualrank.online.service.learner_process import LearnerProcess
from dualrank.online.service.serving import learner_words


def wait_until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_learner_that_ends_is_started_again_until_stopped(caplog):
    starts = []
    learner = LearnerProcess(["--version"], lambda: starts.append(time.monotonic()), pause=0.05)
    learner.start()
    wait_until(lambda: len(starts) >= 3)
    learner.stop()
    assert learner.pid is None
    assert "the learner ended with 0" in caplog.text
    after = len(starts)
    time.sleep(0.3)
    assert len(starts) == after


PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", CHILD, str(os.getpid())])
time.sleep(60)
"""
CHILD = """
import os, sys, time
from dualrank.online.service import learner_process
learner_process._end_with(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_a_learner_does_not_outlive_a_server_that_was_killed():
    code = f"CHILD = {CHILD!r}\n{PARENT}"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()

    def gone():
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        # Whoever takes orphans in may not have asked for its end yet.
        with open(f"/proc/{child}/stat") as file:
            return file.read().split()[2] == "Z"

    wait_until(gone)


def test_what_a_learner_says_at_its_end_is_a_line_of_the_log(tmp_path):
    command = [sys.executable, "-m", "dualrank.online.service.learner_process", str(os.getpid())]
    words = ["learn", str(tmp_path), "--events", str(tmp_path)]
    found = subprocess.run([*command, *words], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (2, "")
    (said,) = (json.loads(line) for line in found.stderr.splitlines())
    assert said["level"] == "warning"
    assert said["message"].startswith(f"{tmp_path}: no folder of versions")


def test_the_words_of_the_learner_name_what_it_follows(tmp_path):
    learning = {"half_life": 5000.0, "held_out": 0.2}
    words = learner_words(tmp_path / "models", "events", tmp_path / "features.parquet", 3, learning)
    assert words[:2] == ["learn", str(tmp_path / "models")]
    assert words[words.index("--events") + 1] == "events"
    assert words[words.index("--seed") + 1] == "3"
    assert words[words.index("--half-life") + 1] == "5000.0"
    assert words[words.index("--held-out") + 1] == "0.2"
    assert words[words.index("--features") + 1].endswith("features.parquet")
