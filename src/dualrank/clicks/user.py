"""What a simulated user is, and how relevant a graded document looks to one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.browsing import Pages
from dualrank.errors import DataError, SettingsError


class User(Protocol):
    """Someone who clicks on lists of graded documents."""

    def browse(
        self, grades: NDArray[np.floating], mask: NDArray[np.bool_], max_grade: float
    ) -> Pages:
        """This user in front of lists of grades; padding is never clicked."""


def perceived_relevance(
    grades: NDArray[np.floating], max_grade: float, epsilon: float
) -> NDArray[np.float64]:
    """ε + (1 − ε) (2^y − 1) / (2^y_max − 1): how likely a grade looks relevant."""
    if not max_grade > 0:
        raise DataError("all grades are 0: no document is more relevant than another")
    gain = (np.exp2(grades.astype(np.float64)) - 1) / (np.exp2(max_grade) - 1)
    return epsilon + (1 - epsilon) * gain


def up_to(depth: int, values: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """A habit for positions 1 to `depth`."""
    if depth > len(values):
        raise SettingsError(f"the user's {name} is known for {len(values)} positions, not {depth}")
    return values[:depth]


def require_probability(name: str, *values: float) -> None:
    """Refuse a parameter that is no probability, or not all of whose values are."""
    for value in values:
        if not 0 <= value <= 1:
            raise SettingsError(f"{name} is a probability, not {value}")
