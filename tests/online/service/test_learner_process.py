"""The learner as a child: started again, ended with its parent, logged as the server."""

import json
import subprocess
import sys
import threading

from dualrank.online.service import learner_process
from dualrank.online.service.learner_process import LearnerProcess
from dualrank.online.service.serving import learner_words

from ...forks import start_fork
from ...waiting import wait_until


def test_a_learner_that_ends_is_started_again_until_stopped(caplog, monkeypatch):
    monkeypatch.setattr(learner_process, "LOOK_EVERY", 0.02)
    starts = []
    learner = LearnerProcess(["--version"], lambda: starts.append(1), pause=0.05)
    learner.start()
    wait_until(lambda: len(starts) >= 3)
    learner.stop()
    wait_until(lambda: "learner" not in [thread.name for thread in threading.enumerate()])
    assert learner.pid is None
    assert "the learner ended with 0" in caplog.text


PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", CHILD, str(os.getpid())])
time.sleep(600)
"""
CHILD = """
import sys, time
from dualrank.online.service import learner_process
learner_process._end_with(int(sys.argv[1]))
print("running", flush=True)
time.sleep(600)
"""


def test_a_learner_does_not_outlive_a_server_that_was_killed():
    code = f"CHILD = {CHILD!r}\n{PARENT}"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "running\n"
    parent.kill()
    assert parent.communicate() == ("", None)  # the pipe is closed when the child has ended


LEARNER = """
import os, runpy, sys
sys.argv.insert(1, str(os.getppid()))
sys.modules.pop("dualrank.online.service.learner_process")
runpy.run_module("dualrank.online.service.learner_process", run_name="__main__")
"""


def test_what_a_learner_says_at_its_end_is_a_line_of_the_log(tmp_path):
    files = {"output": tmp_path / "output", "errors": tmp_path / "errors"}
    learner = start_fork(LEARNER, "learn", tmp_path, "--events", tmp_path, **files)
    learner.join()
    assert (learner.exitcode, files["output"].read_text()) == (2, "")
    (said,) = (json.loads(line) for line in files["errors"].read_text().splitlines())
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
