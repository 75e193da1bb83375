"""Commands run as a user would, in this process."""

import contextlib
import io
import logging
import sys
from subprocess import CompletedProcess

import pytest

from dualrank.cli.app import main


def _quick_and_quiet(patch):
    """No progress on slow machines, and brief rankers where a diagnosis trains its own.

    What such rankers find is tested with `diagnose` itself.
    """
    for name in ("FIRST", "WORTH_A_WORD"):
        patch.setattr(f"dualrank.cli.progress_lines.{name}", 1e6)
    patch.setattr("dualrank.diagnostics.trained_pair.STEPS", 30)


@pytest.fixture
def command(monkeypatch, capsys):
    """Run `dualrank …`: exit code, stdout and stderr."""
    _quick_and_quiet(monkeypatch)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dualrank", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def run_in():
    """Run `dualrank …` in a folder, also for fixtures that several tests share.

    It gives what `subprocess.run` would; a process of its own would import torch anew.
    """

    def run(folder, *words):
        out, err = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            _quick_and_quiet(patch)
            patch.setattr(logging.getLogger(), "handlers", [])
            patch.setattr(sys, "argv", ["dualrank", *map(str, words)])
            with pytest.raises(SystemExit) as stopped:
                main()
        code = int(stopped.value.code or 0)
        return CompletedProcess(words, code, out.getvalue(), err.getvalue())

    return run
