"""A metric is a value: a name and a cutoff, parsed from a string and printed as its key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dualrank.errors import SettingsError

METRIC_NAMES = ("map", "ndcg", "err", "dcg", "mrr", "precision")
LARGEST_CUTOFF = 1_000_000


@dataclass(frozen=True)
class Metric:
    """What is measured and how far down the ranking; without a cutoff, all of it.

    The formulas stand in `dualrank.evaluation.formulas`.

    >>> Metric.parse("ndcg@10")
    Metric(name='ndcg', cutoff=10)
    >>> str(Metric("map"))
    'map'
    """

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.name not in METRIC_NAMES:
            raise SettingsError(f"unknown metric {str(self)!r}; {_KNOWN}")
        if self.cutoff is None:
            if self.name == "precision":
                raise SettingsError("precision needs a cutoff, as in 'precision@10'")
        elif not 1 <= self.cutoff <= LARGEST_CUTOFF:
            raise SettingsError(
                f"metric {str(self)!r} has cutoff {self.cutoff}; "
                f"cutoffs are whole numbers from 1 to {LARGEST_CUTOFF}"
            )

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Read a key such as `map` or `ndcg@10`."""
        match = re.fullmatch(r"([a-z]+)(?:@(0|[1-9][0-9]{0,18}))?", text)
        if match is None:
            raise SettingsError(f"unknown metric {text!r}; {_KNOWN}")
        name, cutoff = match.groups()
        return cls(name, None if cutoff is None else int(cutoff))

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"


_KNOWN = (
    f"known are {', '.join(METRIC_NAMES[:-1])} and {METRIC_NAMES[-1]}, "
    "with a cutoff k of 1 or more as in 'ndcg@10'"
)

PAPER_METRICS = tuple(
    Metric.parse(key)
    for key in (
        "map",
        *(f"{name}@{cutoff}" for cutoff in (1, 3, 5, 10) for name in ("ndcg", "err")),
    )
)
"""The columns of the paper's Table 2, in its order."""


def parse_metrics(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """One or several metrics, each as a value or as its key; repetitions are dropped."""
    several = [metrics] if isinstance(metrics, str | Metric) else metrics
    parsed = (m if isinstance(m, Metric) else Metric.parse(m) for m in several)
    unique = tuple(dict.fromkeys(parsed))
    if not unique:
        raise SettingsError(f"no metric is named; {_KNOWN}")
    return unique
