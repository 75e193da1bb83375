"""The process of a command, which ends when its answer is out."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable


def run() -> None:
    """Run the command of this process; what Python has to clean up is cleaned up, and no more.

    Arrow reads ahead in threads of its own, and where one of them is still at work when the
    libraries of a process are torn down, the process aborts after all it had to do is done
    (apache/arrow#34314, apache/arrow#39862). The operating system takes the rest back.
    """
    main = _command()
    try:
        main()
        code: object = 0
    except SystemExit as end:
        code = end.code
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # whoever read the answer is gone
        code = code or 1
    os._exit(code if isinstance(code, int) else int(code is not None))


def _command() -> Callable[[], None]:
    """The command line; who interrupts while it is loaded, about a second, sees no traceback."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dualrank.cli.app import main

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main
