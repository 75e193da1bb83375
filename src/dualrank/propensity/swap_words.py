"""Shares, sessions and times of a plan, as people write them."""

from __future__ import annotations


def as_percent(share: float) -> str:
    """A share as it would be typed.

    >>> as_percent(0.1), as_percent(0.0004321), as_percent(10)
    ('10%', '0.0432%', '1000%')
    """
    return f"{float(f'{100 * share:.3g}'):g}%"


def rounded(count: float) -> str:
    """A number of sessions, of which the first two digits are known.

    >>> rounded(671_234), rounded(88)
    ('670,000', '88')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def in_days(days: float) -> str:
    """A time in days, or hours.

    >>> in_days(8.7), in_days(0.3), in_days(1.2)
    ('9 days', '7 hours', '29 hours')
    """
    return f"{days:,.0f} days" if days >= 2 else f"{max(24 * days, 1):.0f} hours"
