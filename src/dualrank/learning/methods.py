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
from dualrank.corrections.stopped_labels import StoppedLabels
from dualrank.corrections.stopping import Stopping
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import SettingsError
from dualrank.learning.extracted_relevance import extract_relevance
from dualrank.learning.feedback import DisplayedOrder, LoggedClicks, ReadClicks, WholeFeedback

if TYPE_CHECKING:
    from dualrank.learning.plan import Plan

Labels = Callable[[ClickLog, Dataset, str | None, NDArray[np.float32] | None], WholeFeedback]
"""Makes labels of a log, with a context column and what its lists stand on, if there are such."""


def clicks_of(
    log: ClickLog, dataset: Dataset, context: str | None, ground: NDArray[np.float32] | None
) -> WholeFeedback:
    """Clicks, as most methods learn from."""
    return LoggedClicks(log, context, ground)


def read_clicks_of(
    log: ClickLog, dataset: Dataset, context: str | None, ground: NDArray[np.float32] | None
) -> WholeFeedback:
    """Clicks, and what was read down to the last of them."""
    return ReadClicks(log, context, ground)


def order_of(
    log: ClickLog, dataset: Dataset, context: str | None, ground: NDArray[np.float32] | None
) -> WholeFeedback:
    """The order displayed."""
    return DisplayedOrder(log, dataset)


_DRAWN: dict[Labels, str] = {clicks_of: "clicks", read_clicks_of: "reading", order_of: "order"}

Extract = Callable[[ClickLog, "Plan"], tuple[ClickLog, NDArray[np.float32]]]


@dataclass(frozen=True)
class Method:
    """A correction, the options of a plan that it takes or needs, and what stands for clicks.

    `extract` gives the part of a log to learn from and a relevance for each of its documents, which
    is learned from in the place of clicks. `feedback` makes labels of a log.
    `ground` is the method of the ranker that is trained before, on whose scores this one stands.
    """

    name: str
    correction: type[Correction]
    takes: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    extract: Extract | None = None
    feedback: Labels = clicks_of
    ground: str | None = None

    @property
    def needs_log(self) -> bool:
        """Whether it learns from a click log only, and from no other source of labels."""
        return bool(self.extract or self.ground) or self.feedback is not clicks_of

    @property
    def drawn(self) -> str | None:
        """What is drawn of a list alone, where its labels follow from its own rows."""
        by_list = self.extract is None and self.correction.labels is Correction.labels
        return _DRAWN.get(self.feedback) if by_list else None


_CONTEXT = frozenset({"context"})
_BY_POSITION = _CONTEXT | {"position_model"}
_LABELS = frozenset({"loss"})

METHODS = {
    method.name: method
    for method in (
        # auto trains several of the others; options are for those that take them.
        Method("auto", Naive, takes=_BY_POSITION),
        Method("grounded", Likelihood, takes=_BY_POSITION, ground="imitation"),
        Method("likelihood", Likelihood, takes=_BY_POSITION),
        Method("imitation", Imitation, feedback=order_of),
        Method("stopping", Stopping, takes=_CONTEXT, feedback=read_clicks_of),
        Method(
            "grounded-stopping",
            Stopping,
            takes=_CONTEXT,
            feedback=read_clicks_of,
            ground="imitation",
        ),
        Method("dla", DualLearning, takes=_BY_POSITION | _LABELS),
        Method("ipw", InversePropensity, _LABELS | _CONTEXT, frozenset({"propensity"})),
        Method("affine", Affine, takes=_LABELS),
        Method("doubly-robust", DoublyRobust, takes=_LABELS | _CONTEXT | {"propensity"}),
        Method("dcm", StoppedLabels, takes=_LABELS),
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
