"""A Python that has imported dualrank already, and forks for every command that it is asked to run.

    python warm_python.py SOCKET

Starting Python and importing torch takes two seconds, a fork some milliseconds. Who asks is the
script that `write_commands` puts on PATH under the names `dualrank` and `python`; it hands over its
arguments, folder, environment and the three standard files, and ends as the fork ends. The fork
is stopped where the one that asked is gone. All trainings, logs and collections in here are small
(`make_small`): what is printed in a page is run as it is printed, but at another size.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import re
import runpy
import select
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

STEPS, TREES, SESSIONS, PAGES = 12, 5, 8_000, 150
HEADER = 8
WANTED = ("run_page", "duckdb", "lightgbm", "matplotlib.pyplot", "onnxruntime", "scipy.stats")
"""What is imported beside dualrank, because commands do."""
COMMAND = """#!{python} -IS
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({at!r})
said = json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(asked, [len(said).to_bytes({header}, "big")], [0, 1, 2])
asked.sendall(said)
sys.exit((asked.recv(1) or b"\\x01")[0])
"""


def write_commands(folder: Path, at: Path, names: tuple[str, ...]) -> None:
    """Write commands of these names, which ask the process that listens there."""
    folder.mkdir()
    for name in names:
        script = COMMAND.format(python=sys.executable, at=str(at), name=name, header=HEADER)
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)


def make_small() -> None:
    """Trainings take a few steps, logs some thousand sessions, generated collections are tiny."""
    import dualrank.clicks.sampling as sampling
    import dualrank.pages.small_web as small_web
    from dualrank.data.generator import PRESETS
    from dualrank.settings import TrainingSettings

    suited, sample = TrainingSettings.suited, sampling.sample_log

    def few_steps(self, *suits):
        found = suited(self, *suits)
        return replace(found, steps=min(found.steps, TREES if found.steps <= 300 else STEPS))

    def few_sessions(dataset, lists, user, sessions, *others, **named):
        return sample(dataset, lists, user, min(sessions, SESSIONS), *others, **named)

    TrainingSettings.suited = few_steps
    sampling.sample_log = few_sessions
    for name in PRESETS:
        PRESETS[name] = replace(PRESETS["tiny"], train=120, valid=30, test=40)
    defaults = small_web.WebSize.__init__.__defaults__
    small_web.WebSize.__init__.__defaults__ = (PAGES, PAGES // 3, 4, *defaults[3:])


def work(name: str, words: list[str]) -> None:
    """Be this command."""
    sys.argv = [name, *words]
    if name == "dualrank":
        from dualrank.cli.process import run

        run()
    if name == "page":
        import run_page

        run_page.run_page(Path(words[0]))
        return
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    code = sys.stdin.read() if words[0] == "-" else words[1]
    exec(compile(code, "<printed>", "exec"), {"__name__": "__main__"})


def _fork(asked: socket.socket) -> None:
    """Run what is asked for in a process of its own, and say how it ended."""
    header, files, *_ = socket.recv_fds(asked, HEADER, 3)
    said = b""
    while len(said) < int.from_bytes(header, "big"):
        said += asked.recv(1 << 16)
    name, words, folder, environment = json.loads(said)
    child = os.fork()
    if child == 0:
        asked.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[0] = ""
        code = 1
        try:
            work(name, words)
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
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            asked.sendall(bytes([code if code >= 0 else 128 - code]))
            os._exit(0)
        if select.select([asked], [], [], 0.02)[0]:
            os.kill(child, signal.SIGKILL)
            os._exit(0)


def main(at: str) -> None:
    """Import what commands import, and answer until the end."""
    import dualrank

    make_small()
    for name in WANTED:
        importlib.import_module(name)
    for room in pkgutil.walk_packages(dualrank.__path__, "dualrank."):
        if not re.search(r"spark|__main__", room.name):
            importlib.import_module(room.name)
    gc.freeze()  # what is collected in a fork would have to be copied for it
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(at)
    listening.listen()
    while True:
        asked, _ = listening.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            listening.close()
            _fork(asked)
        asked.close()


if __name__ == "__main__":
    main(sys.argv[1])
