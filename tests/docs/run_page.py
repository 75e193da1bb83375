"""Run the blocks of a page or the cells of a notebook in order, in a fork of `warm_python.py`.

Shell blocks run in bash, blocks of Python share one module, cells run in IPython. A server runs
beside the blocks that follow, at a port of its own, and ends with the page.
"""

from __future__ import annotations

import json
import os
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
    if [ "$1" = serve ]; then
        command dualrank "$@" --port $PORT &> served.txt &
        local server=$!
        until (: < /dev/tcp/127.0.0.1/$PORT) 2> /dev/null; do
            kill -0 $server 2> /dev/null || { cat served.txt >&2; return 1; }
            sleep 0.05
        done
    else
        command dualrank "$@"
    fi
    asked=
}
curl() { command curl --fail-with-body --silent "$@"; }
"""


def run_cell(code: str) -> None:
    """Run a cell of a notebook, and make all forms of what it displays."""
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.enable_gui = lambda shell, gui=None: None  # which only kernels have
    shell = InteractiveShell.instance(history_length=0)
    shell.enable_matplotlib("inline")
    shell.run_cell(code).raise_error()


def run_page(blocks: Path) -> None:
    """Run the blocks that this file lists as triples of place, kind and code."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ["PORT"] = port
    # A module, as a user's file would be: dataclasses look their types up there.
    program = types.ModuleType("printed")
    sys.modules[program.__name__] = program
    for place, kind, code in json.loads(blocks.read_text(encoding="utf-8")):
        failed = False
        try:
            if kind in ("sh", "bash"):
                code = code.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
                failed = subprocess.run(["bash", "-c", BASH + code]).returncode != 0
            elif kind == "cell":
                run_cell(code)
            else:
                exec(compile(code, place.rpartition(":")[0], "exec"), program.__dict__)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            failed = True
        if failed:
            print(f"{place}: this block does not run", file=sys.stderr)
            sys.exit(1)
