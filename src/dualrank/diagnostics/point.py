"""One question about a log, and what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Status = Literal["good", "warning", "failed", "not measured"]
SEVERITY: tuple[Status, ...] = ("not measured", "good", "warning", "failed")


@dataclass(frozen=True)
class Point:
    """What was asked (`name`), the numbers found, what they mean, and what to do about it.

    `warning` is something to know before training on the log, `failed` something to mend first.
    `not measured` says in `meaning` what the log lacks.
    """

    name: str
    status: Status
    numbers: Mapping[str, Any]
    meaning: str
    advice: str = ""


@dataclass(frozen=True)
class Question:
    """What is asked of a log, and the numbers that were found about it."""

    name: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def answer(self, status: Status, meaning: str, advice: str = "") -> Point:
        """The point that these numbers make."""
        return Point(self.name, status, self.numbers, meaning, advice)


def worst(*statuses: Status) -> Status:
    """The most severe of several."""
    return max(statuses, key=SEVERITY.index, default="good")


def two_sided(errors: Any, freedom: float) -> Any:
    """Student's two-sided p-value of so many standard errors; never 0, whatever underflows."""
    tiny = np.finfo(np.float64).tiny
    found: NDArray[np.float64] | float = np.maximum(2 * student.sf(errors, freedom), tiny)
    return found if np.ndim(errors) else float(found)


def plain(value: Any) -> Any:
    """Numbers as JSON can hold them: what is not finite becomes null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
