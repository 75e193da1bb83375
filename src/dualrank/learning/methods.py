"""The ways to learn from clicks, by name: which correction, on which labels, with which options.

A new correction is a file in `corrections/` and a line here. One from elsewhere is given as it is:
`fit(log, dataset, method=MyCorrection)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.corrections.affine import Affine
from dualrank.corrections.correction import Correction
from dualrank.corrections.doubly_robust import DoublyRobust
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.imitation import Imitation
from dualrank.corrections.ipw import InversePropensity
from dualrank.corrections.likelihood import Likelihood
from dualrank.corrections.naive import Naive
from dualrank.corrections.pairwise import Pairwise
from dualrank.corrections.prs import PropensityRatio
from dualrank.corrections.stopping import Stopping
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import SettingsError
from dualrank.learning.extracted_relevance import extract_relevance
from dualrank.learning.feedback import DisplayedOrder, WholeFeedback

if TYPE_CHECKING:
    from dualrank.learning.plan import Plan

Extract = Callable[[ClickLog, "Plan"], tuple[ClickLog, NDArray[np.float32]]]


@dataclass(frozen=True)
class Method:
    """A correction, the options of a plan that it takes or needs, and what stands for clicks.

    `extract` gives the part of a log to learn from and a relevance for each of its documents, which
    is learned from in the place of clicks.
    """

    name: str
    correction: type[Correction]
    takes: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    extract: Extract | None = None
    feedback: Callable[[ClickLog, Dataset], WholeFeedback] | None = None


_BY_POSITION = frozenset({"position_model", "context"})
_LABELS = frozenset({"loss"})

METHODS = {
    method.name: method
    for method in (
        # auto trains several of the others, and takes dual learning's options for that candidate.
        Method("auto", Naive, takes=_BY_POSITION | _LABELS),
        Method("likelihood", Likelihood, takes=_BY_POSITION),
        Method("imitation", Imitation, feedback=DisplayedOrder),
        Method("dla", DualLearning, takes=_BY_POSITION | _LABELS),
        Method("ipw", InversePropensity, _LABELS | {"context"}, frozenset({"propensity"})),
        Method("affine", Affine, takes=_LABELS),
        Method("doubly-robust", DoublyRobust, takes=_LABELS | {"propensity", "context"}),
        Method("dcm", Stopping, takes=_LABELS),
        Method("prs", PropensityRatio, frozenset({"context"}), frozenset({"propensity"})),
        Method("pairwise", Pairwise),
        Method("naive", Naive, takes=_LABELS),
        Method(
            "click-model",
            Naive,
            takes=_LABELS | {"click_model", "min_sessions"},
            extract=extract_relevance,
        ),
    )
}


def method_of(given: str | Method | type[Correction]) -> Method:
    """The method that is meant by a name, or by a correction from elsewhere."""
    if isinstance(given, Method):
        return given
    if isinstance(given, type) and issubclass(given, Correction):
        return Method(f"{given.__module__}.{given.__qualname__}", given)
    if not isinstance(given, str) or given not in METHODS:
        raise SettingsError(f"unknown method {given!r}; known are {', '.join(METHODS)}")
    return METHODS[given]
