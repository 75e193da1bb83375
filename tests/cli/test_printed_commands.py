"""Every command that is printed, in the docs or in a sentence of dualrank, is one that exists."""

import ast
import re
import shlex
from functools import cache
from itertools import pairwise

import pytest
import typer

from dualrank.cli.app import app
from dualrank.clicks.models.registry import MODELS
from dualrank.engines.judgement_files import FORMATS
from dualrank.engines.targets import TARGETS
from dualrank.learning.methods import METHODS
from dualrank.rankers.kinds import RANKERS

from ..docs.printed_blocks import PAGES, ROOT

SOURCES = sorted(ROOT.glob("src/dualrank/**/*.py"))
NAMES = {
    "--method": METHODS,
    "--ranker": RANKERS,
    "--model": MODELS,
    "--to": {*TARGETS, *FORMATS},
}
"""Options whose values are names that the command itself looks up."""
OTHERS = {"--version", "--nproc-per-node", "--train", "--impressions", "--change"}
"""Of `dualrank` itself, torchrun, `python -m benchmarks.trees`, and the users of the demo."""
FOREIGN = r"pip|python|pytest|make|torchrun"
"""How commands begin that have options of their own."""


@cache
def command_of(words):
    """The command that these words begin with, and how many of them are its name."""
    command, used = typer.main.get_command(app), 0
    for word in words:
        if not hasattr(command, "commands"):
            break
        if word not in command.commands:
            break
        command, used = command.commands[word], used + 1
    return command, used


@cache
def options_of(words):
    command, used = command_of(words)
    context = command.make_context("dualrank", [], resilient_parsing=True)
    found = {name for each in context.command.params for name in (*each.opts, *each.secondary_opts)}
    return found | {"--help", "-h"}, used


def words_of(line):
    """The words of one command of a shell, without comments and what follows a pipe."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    words = []
    for word in lexer:
        if set(word) <= set("|&;<>()") and word:
            break
        words.append(word)
    return words


def is_name(value):
    """Whether an option's value is a name that is looked up: no path, number or placeholder."""
    return not value.isupper() and not re.search(r"[…/]|\.run$|^\d+$", value)


def check_names(words):
    for option, value in pairwise(words):
        for name in value.split(",") if option in NAMES and is_name(value) else ():
            assert name.partition(":")[0] in NAMES[option], f"{option} {value}"


def check_whole(line):
    """The parser takes the line."""
    words = words_of(line)
    words = words[words.index("dualrank") + 1 :]
    if words == ["--version"]:
        return
    command, used = command_of(tuple(words))
    assert used, "no such command"
    command.make_context("dualrank", words[used:])
    check_names(words)


def check_part(text):
    """What is named in passing exists, though more may be needed to run it."""
    words = tuple(re.findall(r"--?[a-z][a-z-]*|[^\s=]+", text))[1:]
    options, used = options_of(words)
    first = words[0] if words else "--help"
    assert used or first.startswith("-") or "…" in first, "no such command"
    for word in words:
        if re.fullmatch(r"-{1,2}[a-z][a-z-]*", word):
            assert word in options, f"no option {word}"
    check_names(words)


def blocks(page):
    """The lines of a page's shell blocks, continued ones as one."""
    text = page.read_text(encoding="utf-8")
    for kind, block in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL):
        if kind in ("sh", "bash", ""):
            for line in block.replace("\\\n", " ").splitlines():
                begun = re.match(r"(\$ )?(?=dualrank |torchrun .*-m dualrank )", line)
                if begun and (kind or begun[1] or "--" in line):
                    yield line[begun.end() :]


def spans(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for span in re.findall(r"`([^`]+)`", text):
        yield " ".join(span.split())


@cache
def strings():
    """Every string of the package, with where it stands."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append((f"{path.name}:{node.lineno}", node.value))
    return found


def unknown_options(texts):
    """Options that no command has, with where they are named."""
    tops = [(name,) for name in command_of(())[0].commands]
    groups = [
        (top, name) for (top,) in tops for name in getattr(command_of((top,))[0], "commands", ())
    ]
    known = {option for path in [*tops, *groups] for option in options_of(path)[0]}
    return {
        (where, option)
        for where, text in texts
        for option in re.findall(r"(?<![\w\"-])--[a-z][a-z-]*[a-z](?![\w-])", text)
        if option not in known | OTHERS
    }


def complaints(check, lines):
    found = []
    for where, line in lines:
        try:
            check(line)
        except Exception as error:
            message = getattr(error, "format_message", lambda error=error: str(error))()
            found.append(f"{where}: {line}: {message}")
    return found


def test_every_command_of_a_block_in_the_docs_is_taken():
    lines = [(page.name, line) for page in PAGES for line in blocks(page)]
    assert len(lines) > 60
    whole = [each for each in lines if "…" not in each[1]]
    assert complaints(check_whole, whole) == []
    assert complaints(check_part, [each for each in lines if "…" in each[1]]) == []


def test_every_command_and_option_in_a_sentence_of_the_docs_exists():
    lines = [(page.name, span) for page in PAGES for span in spans(page)]
    commands = [each for each in lines if re.match(r"dualrank [a-z]", each[1])]
    assert len(commands) > 40
    assert complaints(check_part, commands) == []
    ours = [each for each in lines if not re.match(FOREIGN, each[1])]
    assert unknown_options(ours) == set()


def test_every_example_of_a_help_text_is_taken():
    lines = []
    for where, text in strings():
        for example in re.findall(r"Example: (.*?)(?:\n\s*\n|\Z)", text, re.DOTALL):
            lines.append((where, " ".join(example.split())))
    assert len(lines) > 20
    assert complaints(check_whole, lines) == []


def test_every_command_and_option_in_a_sentence_of_the_package_exists():
    sentences = [(where, " ".join(text.split())) for where, text in strings()]
    commands = [
        (where, found)
        for where, text in sentences
        for found in re.findall(r"[`(>](dualrank [a-z][^`)<,;]*)[`)<]", text)
    ]
    assert len(commands) > 5
    assert complaints(check_part, commands) == []
    assert unknown_options(sentences) == set()


@pytest.mark.parametrize(
    "line",
    [
        "dualrank clicks fit LOG --model dbn, ubm",
        "dualrank clicks fit LOG --models dbn",
        "dualrank train LOG --features F --out m --schedule fast",
        "dualrank fit LOG",
    ],
)
def test_a_command_that_does_not_exist_is_found(line):
    assert complaints(check_whole, [("here", line)])
