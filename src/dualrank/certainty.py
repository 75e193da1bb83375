"""How sure a sentence must be: the one place for the levels of intervals, tests and alarms.

One rule holds everywhere: *what an interval excludes is what the sentence beside it says*. A single
interval or comparison is wrong one time in twenty (`LEVEL`): propensities, relevance, Fisher's
test. `diagnose` asks a dozen questions of a log at once, of which some ten can raise a false alarm,
and an alarm must be rarer than that for any of them to be rare together: each has a tenth of the
level (`ALARM`), and so has every position where a question compares several. The intervals shown
beside an alarm, or beside its absence, are those of the corrected level.

That nothing was found says something only where something would have been found: `seen` is how
large a difference must be for that.
"""

from __future__ import annotations

from statistics import NormalDist

LEVEL = 0.05
"""How often a single interval, or a single test, may be wrong."""

NORMAL_95 = 1.959964
"""Standard errors on either side of a 95% interval."""

QUESTIONS = 10
ALARM = LEVEL / QUESTIONS
"""How often one of the questions that are asked of a log together may raise a false alarm."""

SURELY = f"{1 - ALARM:.1%}"
"""The level of an alarm's interval, in words."""

TELLING = 2.0
"""A question is answered where a difference by this factor would have been seen, and left open
where it could have been missed: an examination curve that is wrong by more than that at some
position weighs clicks there at less than half, or more than twice, of what they are worth."""


def level_errors(tests: int = 1) -> float:
    """Standard errors on either side of an interval of `LEVEL`, so many of which hold together.

    >>> round(level_errors(), 2), round(level_errors(12), 2)
    (1.96, 2.87)
    """
    return NormalDist().inv_cdf(1 - LEVEL / (2 * max(tests, 1)))


def alarm_errors(tests: int = 1) -> float:
    """Standard errors on either side of an alarm's interval, where so many are tested together.

    >>> round(alarm_errors(), 2), round(alarm_errors(9), 2)
    (2.81, 3.45)
    """
    return NormalDist().inv_cdf(1 - ALARM / (2 * max(tests, 1)))


def seen(errors: float) -> float:
    """In standard errors, the difference that is found five times in six if these are needed."""
    return errors + 1.0
