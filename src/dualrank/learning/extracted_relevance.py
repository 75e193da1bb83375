"""Relevance that a click model extracted in the place of clicks: the paper's UBM and DBN rows.

A click model may have several parameters of a document. `ubm` means what the model itself calls
relevance, `dbn:attraction` one parameter of it: DBN's relevance is attraction times satisfaction,
and satisfaction is what logs tell least about (docs/table-3.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.models.registry import click_model
from dualrank.data.click_log import ClickLog
from dualrank.errors import DataError, SettingsError

if TYPE_CHECKING:
    from dualrank.learning.plan import Plan

CLICK_MODEL = "ubm"
MIN_SESSIONS = 10
"""The paper removes lists with fewer sessions: too little is known of their documents."""


def extract_relevance(log: ClickLog, plan: Plan) -> tuple[ClickLog, NDArray[np.float32]]:
    """The lists with enough sessions, and the relevance of every document by a click model.

    Relevance is per index of the log, on the scale of clicks; documents that are not on these lists
    have 0.
    """
    name = plan.click_model or CLICK_MODEL
    model = model_of_label(name)
    least = plan.min_sessions or MIN_SESSIONS
    enough = np.flatnonzero(log.sessions_per_list >= least)
    if len(enough) == 0:
        most = log.sessions_per_list.max(initial=0)
        raise DataError(
            f"no list was displayed in {least} sessions or more (the most is {most}): there "
            "is too little to extract relevance from; lower min_sessions, or use method='dla'"
        )
    kept = log.take_lists(enough)
    model.fit(kept)
    shown = model.fitted.observations > 0
    values = np.where(shown, label_of_model(model, name).values, 0.0)
    return kept, scaled_to_clicks(values.astype(np.float32), kept)


def model_of_label(name: str) -> ClickModel:
    """The click model, yet to be fitted, of a label such as `ubm` or `dbn:attraction`."""
    return click_model(name.partition(":")[0])


def label_of_model(model: ClickModel, name: str) -> PairParameter:
    """What a label such as `ubm` or `dbn:attraction` says of every pair of a fitted model."""
    parameter, known = name.partition(":")[2], model.fitted.pairs
    if not parameter:
        return model.relevance_of_pairs()
    if parameter not in known:
        raise SettingsError(f"{model.name} has no {parameter!r}; it has {', '.join(known)}")
    return known[parameter]


def scaled_to_clicks(relevance: NDArray[np.float32], log: ClickLog) -> NDArray[np.float32]:
    """Relevance times a constant, so that a session displays as much of it as it has clicks.

    The loss is linear in labels, so that their scale is a factor of the learning rate. Click models
    differ in it: a probability to be clicked at the top (PBM, UBM) is several times one to satisfy
    (DBN), and the network of the latter would hardly move in the same number of steps.
    """
    displayed = float((log.sessions_per_list[:, None] * log.lists.gather(relevance)).sum())
    clicks = float(log.clicks_per_list.sum())
    return relevance if displayed == 0 else (relevance * (clicks / displayed)).astype(np.float32)
