"""Commands run as a user would, in this process."""

import sys

import pytest

from dualrank.cli.app import main


@pytest.fixture
def command(monkeypatch, capsys):
    """Run `dualrank …`: exit code, stdout and stderr, without progress on slow machines."""
    for name in ("EVERY", "WORTH_A_WORD"):
        monkeypatch.setattr(f"dualrank.cli.progress_lines.{name}", 1e6)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dualrank", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return run
