"""Sentences of the library, and of the parser, in the words of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

OF_REDUCE = ("partial", "max-bad-share")
"""How a log is read, which not every command that takes one can be told."""
_OF_THE_PARSER = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer\b.*", "expected a whole number"),
    (r"Input should be a valid number\b.*", "expected a number"),
    (r"Input should be greater than or equal to (\S+)", r"expected \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"expected \1 or less"),
    (r"Input should be (greater|less) than (\S+)", r"expected a number \1 than \2"),
    (r"Input should be ", "expected "),
)


def in_plain_words(sentence: str) -> str:
    """What the parser of the command line says, without the words of the library that checks types.

    >>> in_plain_words("Invalid value for '--steps': Input should be a valid integer, got a string")
    "Invalid value for '--steps': expected a whole number"
    """
    for theirs, ours in _OF_THE_PARSER:
        sentence = re.sub(theirs, ours, sentence)
    return sentence


def in_options(sentence: str, options: Sequence[str]) -> str:
    """Settings that are options of a command, as they are typed.

    Names of one word are only understood before an equals sign (`features=`), since they are words
    of English too; what stands in quotes, or in a path, is the user's own. A pair of a setting that
    holds pairs is typed under the setting's singular.

    >>> in_options("raise max_bad_share, or give validation=0", ["max-bad-share", "validation"])
    'raise --max-bad-share, or give --validation 0'
    >>> in_options("give columns={'doc_id': 'item'}", ["column"])
    'give --column doc_id=item'
    >>> in_options("set partial=True", ["partial"])
    'set --partial'
    >>> in_options("give way='team-draft' for more", ["way"])
    'give --way team-draft for more'
    >>> in_options("propensity='my/curve.json' is no file", ["propensity"])
    '--propensity my/curve.json is no file'
    >>> in_options("raise max_bad_share", ["seed"])
    'raise --max-bad-share (an option of `dualrank reduce`, whose file goes here too)'
    """
    sentence = _with_options(sentence, options)
    elsewhere = _with_options(sentence, OF_REDUCE)
    if elsewhere != sentence:
        elsewhere += " (an option of `dualrank reduce`, whose file goes here too)"
    return elsewhere


def in_commands(sentence: str, log: str) -> str:
    """Functions that are commands, as they are typed for this log.

    >>> in_commands("see plan_swaps(log, precision=0.1), or (see plan_swaps)", "my log.csv")
    "see dualrank plan-swaps 'my log.csv' --precision 10%, or (see dualrank plan-swaps)"
    """

    def typed(found: re.Match[str]) -> str:
        command = "dualrank plan-swaps"
        if found[1]:
            command += f" {shlex.quote(log)} --precision {100 * float(found[1]):.3g}%"
        return command

    return re.sub(r"\bplan_swaps\b(?:\(log, precision=([\d.]+)\))?", typed, sentence)


def _with_options(sentence: str, options: Sequence[str]) -> str:
    for option in options:
        name = re.escape(option.replace("-", "_"))
        quoted, value = r"='([^'\s]+)'", r"=([\w.]+)"
        before, after = r"(?<![\w'\"./=-])", r"(?![\w'\"/=-]|\.\w)"
        pair = r"s=\{'([^']+)': '([^']+)'\}"
        sentence = re.sub(f"{before}{name}{pair}", rf"--{option} \1=\2", sentence)
        sentence = re.sub(f"{before}{name}=True", f"--{option}", sentence)
        sentence = re.sub(f"{before}{name}{quoted}", rf"--{option} \1", sentence)
        sentence = re.sub(f"{before}{name}{value}", rf"--{option} \1", sentence)
        sentence = re.sub(rf"{before}{name}=(?=[,;\s]|$)", f"--{option}", sentence)
        if "-" in option:
            sentence = re.sub(f"{before}{name}{after}", f"--{option}", sentence)
    return sentence
