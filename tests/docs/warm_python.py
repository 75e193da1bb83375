"""A Python process that has imported dualrank already, and forks for every command.

Importing dualrank takes two seconds, a fork some milliseconds. `warm_python` starts the process and
puts commands on PATH (`dualrank`, `python`, `page`) that ask it for a fork: they hand over their
arguments, folder, environment and standard files, and end with the exit code of the fork. When a
command or its fork ends, the other one and all that they started end too; when the tests end, the
process does. Trainings, logs and collections are small in it (`make_small`): what a page prints
runs as it is printed, but at another size.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

STEPS, TREES, UNITS, SESSIONS, PAGES = 8, 5, (16, 8), 4_000, 100
WANTED = (
    *("IPython", "duckdb", "jinja2", "lightgbm", "matplotlib.backends.backend_svg"),
    *("matplotlib.pyplot", "onnxruntime", "pyarrow.acero", "pyarrow.dataset"),
    *("pyarrow.pandas_compat", "run_page", "scipy.stats", "typer._adapters"),
)
"""Modules that commands import late."""
COMMANDS = ("dualrank", "python", "page")
HEADER = 8
ASK = f"""
import json, os, socket, sys
folder, name, *words = sys.argv[1:]
said = json.dumps([name, words, os.getcwd(), dict(os.environ)]).encode()
os.chdir(folder)  # the path of a socket may have about a hundred bytes
asked = socket.socket(socket.AF_UNIX)
asked.connect("socket")
socket.send_fds(asked, [len(said).to_bytes({HEADER}, "big")], [0, 1, 2])
asked.sendall(said)
sys.exit((asked.recv(1) or b"\\x01")[0])
"""


@contextlib.contextmanager
def warm_python(folder: Path) -> Iterator[dict[str, str]]:
    """Start the process; yield an environment in which commands are forks of it."""
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "IPYTHONDIR": str(folder),
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name in COMMANDS:
        asking = shlex.join([sys.executable, "-ISc", ASK, str(folder), name])
        (folder / name).write_text(f'#!/bin/sh\nexec {asking} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    options = {"cwd": folder, "env": environment, "start_new_session": True, **pipes}
    with subprocess.Popen([sys.executable, __file__], **options) as process:
        assert process.stdout.readline() == b"ready\n", "the process that forks did not start"
        yield environment


def make_small() -> None:
    """Make trainings short, networks narrow, and logs and generated collections small."""
    import numpy as np

    import dualrank.clicks.sampling as sampling
    import dualrank.data.generator as generator
    import dualrank.pages.small_web as small_web
    from dualrank.data.dataset import Dataset
    from dualrank.rankers.network import DNN
    from dualrank.settings import TrainingSettings

    suited, sample, take = TrainingSettings.suited, sampling.sample_log, Dataset.take

    def few_steps(self, *suits):
        found = suited(self, *suits)
        return replace(found, steps=min(found.steps, TREES if found.steps <= 300 else STEPS))

    def few_sessions(dataset, lists, user, sessions, *others, **named):
        return sample(dataset, lists, user, min(sessions, SESSIONS), *others, **named)

    def few_queries(self, queries):
        queries = np.asarray(queries, dtype=int)
        is_beyond = queries.max(initial=0) >= len(self)
        return take(self, np.unique(queries % len(self)) if is_beyond else queries)

    TrainingSettings.suited, sampling.sample_log, Dataset.take = (
        few_steps,
        few_sessions,
        few_queries,
    )
    DNN.__init__.__defaults__ = (UNITS, *DNN.__init__.__defaults__[1:])
    DNN.__dataclass_fields__["hidden"].default = UNITS
    generator.CALIBRATION_QUERIES = 200
    for name, preset in generator.PRESETS.items():
        features = min(preset.features, 64)
        generator.PRESETS[name] = generator.Preset(features, train=100, valid=30, test=40)
    defaults = small_web.WebSize.__init__.__defaults__
    small_web.WebSize.__init__.__defaults__ = (PAGES, PAGES // 3, 4, *defaults[3:])


def run_command(name: str, words: list[str]) -> None:
    """Run a command in this process."""
    sys.argv = [name, *words]
    if name == "dualrank":
        from dualrank.cli.process import run

        run()
    elif name == "page":
        import run_page

        run_page.run_page(Path(words[0]))
    else:
        code = sys.stdin.read() if words[0] == "-" else words[1]
        exec(compile(code, "<printed>", "exec"), {"__name__": "__main__"})


def start(asked: socket.socket, others: list[socket.socket]) -> int:
    """Fork for the command that is asked for; return the number of the process."""
    header, files, *_ = socket.recv_fds(asked, HEADER, 3)
    said = b""
    while len(said) < int.from_bytes(header, "big") and (part := asked.recv(1 << 16)):
        said += part
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        for number, file in enumerate(files):
            os.dup2(file, number)
        for each in (asked, *others):
            each.close()
        code = 1
        try:
            name, words, folder, environment = json.loads(said)
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            sys.path[0] = ""
            run_command(name, words)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    for file in files:
        os.close(file)
    return child


def serve() -> None:
    """Answer commands until standard input ends."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("socket")
    listening.listen()
    print("ready", flush=True)
    running: dict[socket.socket, int] = {}
    over = False
    while not over:
        pause = 0.01 if running else None
        readable = select.select([sys.stdin, listening, *running], [], [], pause)[0]
        over = sys.stdin in readable
        for asked, child in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    asked.sendall(bytes([code if code >= 0 else 128 - code]))
            elif over or asked in readable:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            else:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            del running[asked]
            asked.close()
        if listening in readable:
            asked, _ = listening.accept()
            running[asked] = start(asked, [listening, *running])


def main() -> None:
    """Import what commands import, and answer until the tests end."""
    import numba

    import dualrank

    make_small()
    for name in WANTED:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(dualrank.__path__, "dualrank."):
        if not re.search(r"spark|__main__", module.name):
            importlib.import_module(module.name)
    numba.njit(lambda number: number)(0)  # the first kernel sets up the compiler
    for each in list(weakref.finalize._registry):
        each.atexit = False  # no fork has to clean up what was imported
    gc.freeze()  # what is collected in a fork would have to be copied for it
    serve()
    os._exit(0)  # what was imported has nothing to clean up


if __name__ == "__main__":
    main()
