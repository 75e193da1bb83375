"""Commands run as a user would, in this process."""

import sys

import pytest

from dualrank.cli.app import main


@pytest.fixture
def command(monkeypatch, capsys):
    """Run `dualrank …`: exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dualrank", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return run
