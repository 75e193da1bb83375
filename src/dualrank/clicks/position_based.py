"""The position-based user: examines by position, clicks what looks relevant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.browsing import Independent
from dualrank.clicks.user import perceived_relevance, require_probability, up_to
from dualrank.errors import SettingsError

# Examination of ranks 1 to 10 in the eye-tracking study of Joachims et al. (2005), as the
# reference implementation of the paper has it.
EYE_TRACKING = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)


@dataclass(frozen=True)
class PositionBasedUser:
    """A user who clicks exactly what is both examined and perceived as relevant.

    Section "Click simulation" of the paper:

        P(o_i = 1) = ρ_i^η
        P(r_x = 1) = ε + (1 − ε) (2^y − 1) / (2^y_max − 1)
        c = o · r

    η is the severity of the presentation bias (0: every position is examined), ε the click noise.

    >>> user = PositionBasedUser(eta=0)
    >>> user.examination(3)
    array([1., 1., 1.])
    >>> user.perceived_relevance(np.array([0.0, 4.0]), max_grade=4)
    array([0.1, 1. ])
    """

    eta: float = 1.0
    epsilon: float = 0.1
    curve: tuple[float, ...] = EYE_TRACKING

    def __post_init__(self) -> None:
        if not 0 <= self.eta < math.inf:
            raise SettingsError(f"eta is the severity of the bias, 0 or more, not {self.eta}")
        require_probability("epsilon", self.epsilon)
        if not all(0 < value <= 1 for value in self.curve):
            raise SettingsError(f"the curve holds probabilities above 0, not {self.curve}")

    def examination(self, depth: int) -> NDArray[np.float64]:
        """P(o_i = 1) for positions 1 to `depth`."""
        return np.asarray(up_to(depth, self.curve, "examination")) ** self.eta

    def perceived_relevance(
        self, grades: NDArray[np.floating], max_grade: float
    ) -> NDArray[np.float64]:
        """P(r_x = 1) for documents of these grades."""
        return perceived_relevance(grades, max_grade, self.epsilon)

    def click_probabilities(
        self, grades: NDArray[np.floating], mask: NDArray[np.bool_], max_grade: float
    ) -> NDArray[np.float64]:
        """P(c = 1) for lists of grades; padding is never clicked."""
        relevance = self.perceived_relevance(grades, max_grade)
        return np.where(mask, relevance * self.examination(grades.shape[1]), 0.0)

    def browse(
        self, grades: NDArray[np.floating], mask: NDArray[np.bool_], max_grade: float
    ) -> Independent:
        """This user in front of lists of grades."""
        return Independent(self.click_probabilities(grades, mask, max_grade).astype(np.float32))
