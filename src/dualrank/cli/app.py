"""The command `dualrank`: its parts, and how errors end."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from dualrank.cli import (
    clicks_commands,
    data_commands,
    diagnose_command,
    estimate_command,
    evaluate_command,
    export_command,
    interleave_commands,
    judge_command,
    learn_command,
    pages_commands,
    plan_swaps_command,
    propensity_command,
    rank_command,
    reduce_command,
    reproduce_commands,
    serve_command,
    train_command,
    update_command,
    versions_commands,
)
from dualrank.cli.options import add_command
from dualrank.cli.wording import in_plain_words
from dualrank.errors import DualrankError, StoppedError
from dualrank.showing.visible import visible
from dualrank.version import __version__

app = typer.Typer(
    name="dualrank",
    help="Turn biased click logs into unbiased rankers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
clicks = typer.Typer(
    help="Click models: what users look at and like, read off a log.", no_args_is_help=True
)
interleave = typer.Typer(
    help="Interleaving: two rankers in one list, and which of them users prefer.",
    no_args_is_help=True,
)
reproduce_commands.add_to(app)
COMMANDS: tuple[Callable[..., None], ...] = (
    data_commands.generate,
    data_commands.simulate,
    reduce_command.reduce,
    train_command.train,
    update_command.update,
    rank_command.rank,
    evaluate_command.evaluate,
    export_command.export,
    diagnose_command.diagnose,
    propensity_command.propensity,
    plan_swaps_command.plan_swaps,
    judge_command.judge,
    estimate_command.estimate,
    serve_command.serve,
    learn_command.learn,
    versions_commands.versions,
    versions_commands.rollback,
    pages_commands.index,
    pages_commands.search,
    pages_commands.features,
)
for function in COMMANDS:
    add_command(app, function)
add_command(clicks, clicks_commands.fit)
add_command(clicks, clicks_commands.compare)
add_command(clicks, clicks_commands.relevance)
app.add_typer(clicks, name="clicks")
add_command(interleave, interleave_commands.build)
add_command(interleave, interleave_commands.read)
app.add_typer(interleave, name="interleave")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dualrank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; what the user can mend ends with one sentence and exit code 2."""
    _log_to_stderr()
    # Waiting OpenMP threads sleep instead of spinning, which other work on the cores would pay for.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        sys.exit(app(standalone_mode=False))
    except StoppedError as error:
        _stop(str(error), 128 + signal.SIGTERM)
    except DualrankError as error:
        _stop(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        # Wrong words on the command line; the parser's exceptions have no public base class.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.exit(2)
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "dualrank"
        _stop(f"{in_plain_words(message()).rstrip('.')}; see '{path} --help'")
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(*_: object) -> None:
    """End as if by an error: temporary files are removed, and workers do not stay behind."""
    raise StoppedError("asked to stop")


class _OneLine(logging.Formatter):
    """A message is one line, whatever the names in it are made of."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's
        return visible(super().formatMessage(record))


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("dualrank: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _stop(sentence: str, code: int = 2) -> None:
    print(f"dualrank: {visible(sentence)}", file=sys.stderr)  # noqa: T201 - the one sentence
    sys.exit(code)
