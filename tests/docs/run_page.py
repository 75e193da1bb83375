"""The blocks of one page, one after the other: those of shell in bash, those of Python together.

Run inside a fork of `warm_python.py`. What serves and learns for ever runs beside the blocks that
follow, at a port of its own, and ends with the page.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import types
from pathlib import Path

BASH = r"""
set -Eeuo pipefail
trap 'echo "this failed: ${asked:-$BASH_COMMAND}" >&2' ERR
dualrank() {
    asked="dualrank $*"
    case "$1" in
    serve)
        command dualrank "$@" --port $PORT &> served.txt &
        local server=$!
        until (: < /dev/tcp/127.0.0.1/$PORT) 2> /dev/null; do
            kill -0 $server 2> /dev/null || { cat served.txt >&2; return 1; }
            sleep 0.1
        done ;;
    learn)
        command dualrank "$@" &> learned.txt &
        local learner=$!
        sleep 2
        kill -0 $learner 2> /dev/null || { cat learned.txt >&2; return 1; } ;;
    *) command dualrank "$@" ;;
    esac
    asked=
}
curl() { command curl --fail-with-body --silent "$@"; }
"""
TIME_LIMIT = 120
"""Seconds that all blocks of a page may take."""


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"the blocks of a page may take {TIME_LIMIT} seconds")


def run_page(blocks: Path) -> None:
    """Run the blocks that this file lists, as pairs of place, kind and code."""
    os.setsid()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ["PORT"] = port
    # A module, as a user's file would be: dataclasses look their types up there.
    program = types.ModuleType("printed")
    sys.modules[program.__name__] = program
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(TIME_LIMIT)
    ended = 0
    for place, kind, code in json.loads(blocks.read_text(encoding="utf-8")):
        try:
            if kind == "shell":
                code = code.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
                ended = subprocess.run(["bash", "-c", BASH + code]).returncode
            else:
                exec(compile(code, place.rpartition(":")[0], "exec"), program.__dict__)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            ended = 1
        if ended:
            print(f"{place}: this block does not run", file=sys.stderr)
            break
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.killpg(0, signal.SIGTERM)
    sys.exit(ended)
