"""How the process of a command ends."""

import signal
import subprocess
import sys

PREPARED = """
import atexit, ctypes, sys, threading, time

libc = ctypes.CDLL(None)
# What a library does whose threads still run when it is torn down.
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
atexit.register(lambda: print("cleaned up"))
threading.Thread(target=lambda: (time.sleep(1), print("a thread ended"))).start()

from dualrank.cli import progress_lines
from dualrank.cli.process import run

progress_lines.FIRST = 1e6  # however slow this machine is
sys.argv = ["dualrank", *sys.argv[1:]]
run()
"""


def ended(*arguments):
    command = [sys.executable, "-c", PREPARED, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_command_ends_past_the_tear_down_of_libraries():
    result = ended("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert "dualrank 0." in result.stdout
    assert "a thread ended\n" in result.stdout
    assert result.stdout.endswith("cleaned up\n")


def test_an_error_ends_with_its_sentence_and_its_code():
    result = ended("train", "no-such-log.parquet", "--out", "m", "--features", "f.parquet")
    assert result.returncode == 2
    assert result.stderr.startswith("dualrank: ")
    assert result.stderr.count("\n") == 1


def test_an_answer_that_nobody_reads_any_more():
    command = [sys.executable, "-m", "dualrank", "--help"]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr


INTERRUPTED = """
import os, signal, sys


class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == "dualrank.cli.app":
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Interrupts())
from dualrank.cli.process import run

run()
"""


def test_an_interrupt_while_a_command_is_loaded_prints_nothing():
    result = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, "", "")
